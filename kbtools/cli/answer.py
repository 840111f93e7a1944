"""`kbtools answer` and `comment`: the two steps in which a GitHub Action replies to issues.

Two, so that what reads the text of a stranger has no token.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kbtools.cli.group import INDEX

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = click.Path(path_type=Path, dir_okay=False)


@contextmanager
def _annotated() -> Iterator[None]:
    """On GitHub, what is not set up stands on the summary of the run, not only in its log."""
    from kbtools.config import KbtoolsError
    from kbtools.reports import github

    try:
        yield
    except (OSError, KbtoolsError) as error:
        if os.environ.get("GITHUB_ACTIONS") == "true":
            # not on standard output: that is GITHUB_OUTPUT
            click.echo(github.error("kbtools", str(error)), err=True)
        raise


@click.command(short_help="Write the reply to a new issue.")
@click.option(
    "--event",
    "event_file",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Read the event from FILE, the one that GITHUB_EVENT_PATH names.",
)
@click.option(
    "--reply",
    "reply_file",
    metavar="FILE",
    required=True,
    type=FILE,
    help="Write the reply to FILE; no file is written if there is no reply.",
)
@INDEX
@click.pass_context
def answer(
    ctx: click.Context, event_file: Path, reply_file: Path, index: Path | str | None
) -> None:
    """Write the reply to an issue, if an article is surely about it; else print why not.

    Standard output is `sure=true` or `sure=false` and `article=ID`, for GITHUB_OUTPUT. Nothing is
    posted.

    The exit code is 2 if the event is not about an issue, or if the knowledge base has no address.
    """
    from kbtools import matching
    from kbtools.integrations import new_issue

    with _annotated():
        issue = new_issue.read_issue(event_file)
        reply = new_issue.reply_to(issue, matching.load(Path(ctx.obj), index))
    if reply.reply:
        reply_file.write_text(reply.reply, "utf-8")
    else:
        click.echo(f"no reply: {reply.silence}", err=True)
    click.echo(f"sure={'true' if reply.reply else 'false'}\narticle={reply.article}")


@click.command(short_help="Post a reply to an issue, once.")
@click.argument("issue", metavar="OWNER/REPO#N")
@click.argument("reply_file", metavar="FILE", type=click.Path(path_type=Path, exists=True))
def comment(issue: str, reply_file: Path) -> None:
    """Comment on the issue OWNER/REPO#N with the reply in FILE, which `kbtools answer` has written.

    An issue that has a reply gets no second one. The reply is updated if the issue was edited and
    is now about another article. Standard output is `comment=ADDRESS` and `action=` with `created`,
    `updated`, `left` or `none`, for GITHUB_OUTPUT. The token is in GH_TOKEN, the API's address in
    GITHUB_API_URL.

    The exit code is 2 if GitHub refuses the comment.
    """
    from kbtools.integrations import comments, github

    match = re.fullmatch(r"([\w.-]+/[\w.-]+)#([1-9]\d*)", issue)
    if not match:
        raise click.BadParameter(f"`{issue}` is not as in owner/repo#12")
    token = os.environ.get("GH_TOKEN", "")
    client = github.GitHub(
        token,
        os.environ.get("GITHUB_API_URL") or github.API,
        report=lambda line: click.echo(f"kbtools: {line}", err=True),
    )
    with _annotated():
        if not token:
            raise github.RefusedError("no token: set GH_TOKEN, or `token` of the action", 401)
        result = comments.send(client, match[1], int(match[2]), reply_file.read_text("utf-8"))
    if result.reason:
        click.echo(f"kbtools: {result.action}: {result.reason}", err=True)
    click.echo(f"comment={result.address}\naction={result.action}")
