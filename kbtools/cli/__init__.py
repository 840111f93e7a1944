"""The command line: the only room of the package that prints or exits."""

from kbtools.cli import articles, bases, bisect, toolchain, verify
from kbtools.cli.base import main

__all__ = ["articles", "bases", "bisect", "main", "toolchain", "verify"]
