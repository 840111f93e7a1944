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
from typing import TYPE_CHECKING, Any

import click

from kbtools import __version__
from kbtools.cli.lazy import LazyGroup

if TYPE_CHECKING:
    from kbtools.config import Config

SECTIONS = {
    "Find the article for a failure": {
        "diagnose": "kbtools.cli.diagnose.diagnose",
        "run": "kbtools.cli.run.run",
        "explain": "kbtools.cli.articles.explain",
        "score": "kbtools.cli.diagnose.score",
    },
    "Write articles": {
        "init": "kbtools.cli.articles.init",
        "new": "kbtools.cli.articles.new",
        "check": "kbtools.cli.articles.check",
        "rules": "kbtools.cli.articles.rules",
        "schema": "kbtools.cli.articles.schema",
    },
    "Run the snippets": {
        "verify": "kbtools.cli.verify.verify",
        "env": "kbtools.cli.toolchain.env",
        "toolchain": "kbtools.cli.toolchain.toolchain",
        "bisect": "kbtools.cli.bisect.bisect",
    },
    "Read the evidence": {
        "list": "kbtools.cli.articles.list_",
        "matrix": "kbtools.cli.articles.matrix_",
        "evidence": "kbtools.cli.evidence.evidence",
    },
    "Publish the site": {
        "serve": "kbtools.cli.site.serve",
        "build": "kbtools.cli.site.build",
        "link": "kbtools.cli.diagnose.link",
    },
    "Serve other programs": {
        "ci-matrix": "kbtools.cli.ci.ci_matrix",
        "answer": "kbtools.cli.answer.answer",
        "mcp": "kbtools.cli.mcp.mcp",
    },
}
"""The commands, in the order in which a newcomer needs them."""


class Group(LazyGroup):
    """Turns what may go wrong below into a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        # a CI that cancels: end as on Ctrl-C, with what finished kept and nothing left running
        if signal.getsignal(signal.SIGTERM) != signal.SIG_IGN:  # as nohup has it
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(130)
        except BrokenPipeError:
            # the reader of the pipe has left; the interpreter must not flush into it again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(128 + signal.SIGPIPE)
        except Exception as error:
            from kbtools.config import KbtoolsError

            if not isinstance(error, OSError | KbtoolsError):
                raise
            click.echo(f"kbtools: {error}", err=True)
            sys.exit(2)


@click.group(cls=Group, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
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


def config_of(ctx: click.Context) -> Config:
    """The configuration of the knowledge base that the command is about."""
    from kbtools import config

    return config.find(Path(ctx.obj))


def selected_path(base: Any, word: str) -> str:
    """The path of the page that an argument names, by id or by path."""
    for page in base.pages:
        same_id = page.matter.get("id") == word and not page.translates
        if same_id or page.path == word or (base.config.root / page.path) == Path(word).resolve():
            return str(page.path)
    from kbtools.config import KbtoolsError

    raise KbtoolsError(f"no article `{word}`; kbtools list shows what there is")


def refuse_broken(problems: Iterable[Any]) -> None:
    """Reports what keeps articles from being read, and exits with 2 if there is any of it."""
    from kbtools.reports import text

    shown = [text.problem(problem) for problem in problems]
    if shown:
        click.echo("\n\n".join(shown), err=True)
        click.echo("\nkbtools: these articles cannot be read; see: kbtools check", err=True)
        sys.exit(2)


INDEX = click.option(
    "--index",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    envvar="KBTOOLS_INDEX",
    help="The api/v1/signatures.json of a site, instead of a knowledge base.",
)

TOOLCHAIN = click.option(
    "--toolchain",
    metavar="NAME|PYTHON",
    help="One of toolchains.toml, or the path of an interpreter. [default: this one]",
)
