"""Runs the command line in the process of the test."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from kbtools.cli import main


def run_command(root: Path | None, *words: str) -> Result:
    """Runs a command in this process; a traceback is the test's."""
    done = CliRunner().invoke(main, [*(["-C", str(root)] if root else []), *words])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def output_of(root: Path, *words: str) -> str:
    """What a command prints that ends well."""
    done = run_command(root, *words)
    assert done.exit_code == 0, done.output
    return done.stdout
