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

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit codes of a shell for a program that does not exist, or may not be executed."""


@click.command(
    short_help="Run a program; if it fails, show its article.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
@INDEX
def run(command: tuple[str, ...], index: Path | str | None) -> None:
    """Run the program CMD; if it fails, show the article about the failure below its output.

    The program gets the same input, terminal and signals as without kbtools, and its exit code is
    the exit code of this command. Where the output goes on after what failed first, that line is
    shown, too. Nothing is shown if the program succeeds.
    """
    try:
        end = wrapping.run(command)
    except OSError as error:
        click.echo(f"kbtools: {command[0]}: {error.strerror}", err=True)
        sys.exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE)
    # SIGPIPE: the reader went away, which is not a failure of the program
    if end.code and end.signal != signal.SIGPIPE:
        show_article(end, command, index)
    if end.signal:
        die_by(end.signal)
    sys.exit(end.code)


def show_article(
    end: wrapping.ProgramEnd, command: tuple[str, ...], index: Path | str | None
) -> None:
    """Shows the article about a failure, if there is one; an error here changes nothing else.

    Args:
        end: How the program ended, and what it printed.
        command: What started it.
        index: The file or the address of a published index, if one is given.
    """
    try:
        from kbtools.integrations import footnote

        texts = [output.decode("utf-8", "replace") for output in (end.err, end.out)]
        message = footnote.brief_article(*texts, index=index, command=command)
    except KeyboardInterrupt:
        return
    except Exception as error:
        message = f"kbtools: no article was looked for: {' '.join(str(error).split())}"
    if message and sys.stderr:
        with suppress(OSError):  # standard error has no reader any more
            click.echo(f"\n{message}", err=True)


def die_by(number: int) -> None:
    """Ends this process by the signal that ended the program, so that our parent sees the same."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has left its core, not we
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    sys.exit(128 + number)
