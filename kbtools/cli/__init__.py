"""The command line: the only room of the package that prints or exits."""

from kbtools.cli import articles, bases, verify
from kbtools.cli.base import main

__all__ = ["articles", "bases", "main", "verify"]
