"""The command line: the only room of the package that prints or exits."""

from kbtools.cli import articles, bases, bisect, diagnose, toolchain, verify
from kbtools.cli.base import main

__all__ = ["articles", "bases", "bisect", "diagnose", "main", "toolchain", "verify"]
