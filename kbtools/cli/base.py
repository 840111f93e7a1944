"""What every command shares: the group, the exit codes, how an article is named.

Exit codes of every command: 0 well; 1 a claim is contradicted or a check failed; 2 the input or
the call cannot be read; 3 nothing could be concluded; 130 Ctrl-C, with what finished kept.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from kbtools import __version__, config
from kbtools.config import Config, Unreadable


class Group(click.Group):
    """Turns what may go wrong below into a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        # a CI that cancels: end as on Ctrl-C, with what finished kept and nothing left running
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return super().invoke(ctx)
        except Unreadable as error:
            click.echo(f"kbtools: {error}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            sys.exit(130)
        except BrokenPipeError:
            # the reader of the pipe has left; the interpreter must not flush into it again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(128 + signal.SIGPIPE)
        except OSError as error:
            click.echo(f"kbtools: {error}", err=True)
            sys.exit(2)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@click.option(
    "-C",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Work on the knowledge base that this folder lies in.",
)
@click.pass_context
def main(ctx: click.Context, folder: Path) -> None:
    """A knowledge base in which every claim is executed."""
    ctx.obj = folder


def found(ctx: click.Context) -> Config:
    """The configuration of the knowledge base that the command is about."""
    return config.find(Path(ctx.obj))


def selected_path(base: Any, word: str) -> str:
    """The path of the page that an argument names, by id or by path."""
    for page in base.pages:
        same_id = page.matter.get("id") == word and not page.translates
        if same_id or page.path == word or (base.config.root / page.path) == Path(word).resolve():
            return str(page.path)
    raise Unreadable(f"no article `{word}`; kbtools list shows what there is")


def refuse_broken(problems: Iterable[Any]) -> None:
    """Reports what keeps articles from being read, and exits with 2 if there is any of it."""
    from kbtools.reports import text

    shown = [text.problem(problem) for problem in problems]
    if shown:
        click.echo("\n\n".join(shown), err=True)
        click.echo("\nkbtools: these articles cannot be read; see: kbtools check", err=True)
        sys.exit(2)


TOOLCHAIN = click.option(
    "--toolchain",
    metavar="NAME|PYTHON",
    help="One of toolchains.toml, or the path of an interpreter. [default: this one]",
)
