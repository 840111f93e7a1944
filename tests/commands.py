"""Runs the command line in the process of the test."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from kbtools.cli import main


def run_command(root: Path | None, *words: str) -> Result:
    """Runs a command in this process; a traceback is the test's."""
    result = CliRunner().invoke(main, [*(["-C", str(root)] if root else []), *words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def output_of(root: Path, *words: str) -> str:
    """What a command prints that ends well."""
    result = run_command(root, *words)
    assert result.exit_code == 0, result.output
    return result.stdout
