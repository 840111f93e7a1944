"""The command line: the only room of the package that prints or exits."""

from kbtools.cli.group import main

__all__ = ["main"]
