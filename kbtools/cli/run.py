"""The command that runs a program and shows the article under its traceback."""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path

import click

from kbtools.cli.group import INDEX
from kbtools.integrations import wrapping

NOT_FOUND, NOT_TO_BE_RUN = 127, 126
"""Exit codes of a shell for a program that is not there, or may not be run."""


@click.command(
    short_help="Run a program; if it fails, show its article.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
@INDEX
def run(command: tuple[str, ...], index: Path | None) -> None:
    """Runs the program CMD; when it fails, its article is shown under what it printed.

    It runs as if on its own: with the same input, terminal and signals, and its exit code is that
    of this command. Nothing is shown when it succeeds, or when no article is about its failure.
    """
    try:
        ended = wrapping.run(command)
    except OSError as error:
        click.echo(f"kbtools: {command[0]}: {error.strerror}", err=True)
        sys.exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_TO_BE_RUN)
    # whose reader has left, has not failed
    if ended.code and ended.signal != signal.SIGPIPE:
        show(ended, index)
    if ended.signal:
        die(ended.signal)
    sys.exit(ended.code)


def show(ended: wrapping.Ended, index: Path | None) -> None:
    """Shows the article for a failure, if there is one; whatever happens here changes nothing."""
    try:
        from kbtools.integrations import footnote

        texts = [kept.decode("utf-8", "replace") for kept in (ended.err, ended.out)]
        said = footnote.of(*texts, index=index)
    except KeyboardInterrupt:
        return
    except Exception as error:
        said = f"kbtools: no article was looked for: {' '.join(str(error).split())}"
    if said and sys.stderr:
        with suppress(OSError):  # nobody reads it
            click.echo(f"\n{said}", err=True)


def die(number: int) -> None:
    """Ends as the program did, for whoever waits for us; its core is written already, if any."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    sys.exit(128 + number)
