"""What every command shares: the group, the exit codes, options, how an article is named.

Exit codes of every command: 0 success; 1 a claim is contradicted or a check failed; 2 the input or
the call cannot be read; 3 no conclusion is possible; 130 Ctrl-C, with the finished results kept.
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
    from kbtools.articles.model import Problem
    from kbtools.checks.model import Base
    from kbtools.config import Config

SECTIONS = {
    "Find the article for a failure": {
        "diagnose": "kbtools.cli.diagnose.diagnose",
        "run": "kbtools.cli.run.run",
        "search": "kbtools.cli.search.search",
        "known": "kbtools.cli.known.known",
        "fits": "kbtools.cli.fits.fits",
        "doctor": "kbtools.cli.doctor.doctor",
        "explain": "kbtools.cli.explain.explain",
        "score": "kbtools.cli.diagnose.score",
    },
    "Write articles": {
        "init": "kbtools.cli.articles.init",
        "new": "kbtools.cli.articles.new",
        "check": "kbtools.cli.articles.check",
        "claims": "kbtools.cli.claims.claims",
        "radar": "kbtools.cli.radar.radar",
        "tables": "kbtools.cli.tables.tables",
        "referee": "kbtools.cli.referee.referee",
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
        "bounds": "kbtools.cli.bounds.bounds",
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
        "comment": "kbtools.cli.answer.comment",
        "mcp": "kbtools.cli.mcp.mcp",
    },
}
"""The commands, in the order in which a newcomer needs them."""


class Group(LazyGroup):
    """Turns an error of any command into a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        # a CI cancels a job with SIGTERM: end as on Ctrl-C, with the finished results kept and no
        # process left; where SIGTERM is ignored (nohup and the like), it stays ignored
        if signal.getsignal(signal.SIGTERM) != signal.SIG_IGN:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(130)
        except BrokenPipeError:
            # the reader of the pipe went away; the interpreter must not flush into it at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(128 + signal.SIGPIPE)
        except ModuleNotFoundError as error:
            from kbtools import installation

            extra = installation.extra_with(error.name or "")
            if extra is None:
                raise
            need = f"this needs {error.name}, which the extra `{extra}` brings"
            click.echo(f"kbtools: {need}; next: {installation.command_for(extra)}", err=True)
            sys.exit(2)
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
    help="Use the knowledge base that contains this folder. [default: the working folder]",
)
@click.pass_context
def main(ctx: click.Context, folder: Path) -> None:
    """Check, run and publish a knowledge base of failures in which every snippet is run."""
    ctx.obj = folder


def config_of(ctx: click.Context) -> Config:
    """The configuration of the knowledge base that the command works on.

    Raises:
        ConfigError: there is none, or it cannot be decoded.
    """
    from kbtools import config

    return config.find(Path(ctx.obj))


def config_to_read(ctx: click.Context) -> Config:
    """The configuration of the knowledge base that a command serves which writes nothing to it.

    Away from any, it is the one that came with kbtools, and standard error says so.

    Raises:
        ConfigError: there is none, or it cannot be decoded.
        PackagedBaseError: the one that came with kbtools cannot be unpacked.
    """
    from kbtools import packaged

    config = packaged.settings_of(Path(ctx.obj))
    if not packaged.is_around(Path(ctx.obj)):
        articles = sum(file.name.count(".") == 1 for file in config.articles.glob("*.md"))
        click.echo(
            f"kbtools: no kbtools.toml here or above; this is `{config.knowledge_base.name}`,"
            f" {articles} article{'s' * (articles != 1)}, which came with kbtools {__version__}",
            err=True,
        )
    return config


def selected_path(base: Base, word: str) -> str:
    """The path, below the root, of the page that an argument names by its id or path.

    Raises:
        UnknownArticleError: no page has that id or path.
    """
    identifier = base.config.canonical_id(word) or word
    for page in base.pages:
        same_id = page.matter.get("id") == identifier and not page.translates
        if same_id or page.path == word or (base.config.root / page.path) == Path(word).resolve():
            return page.path
    from kbtools.cli.errors import UnknownArticleError

    raise UnknownArticleError(f"no article `{word}`; see: kbtools list")


def refuse_broken(problems: Iterable[Problem]) -> None:
    """Prints the problems of articles that cannot be read; exits with 2 if there are any."""
    from kbtools.reports import text

    reports = [text.problem(problem) for problem in problems]
    if reports:
        click.echo("\n\n".join(reports), err=True)
        click.echo("\nkbtools: these articles cannot be read; see: kbtools check", err=True)
        sys.exit(2)


class PathOrAddress(click.Path):
    """The path of a file that exists, or an address on the web."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The path; an address as it is."""
        if isinstance(value, str) and value.startswith(("https://", "http://")):
            return value
        return super().convert(value, param, ctx)


INDEX = click.option(
    "--index",
    type=PathOrAddress(path_type=Path, exists=True, dir_okay=False),
    envvar="KBTOOLS_INDEX",
    metavar="FILE|URL",
    help="Use a published index, the api/v1/signatures.json of a site, or the site at URL."
    " [default: the knowledge base]",
)

TOOLCHAIN = click.option(
    "--toolchain",
    metavar="NAME|PYTHON",
    help="A toolchain of toolchains.toml, or the path of a Python interpreter."
    " [default: the interpreter that runs kbtools]",
)
