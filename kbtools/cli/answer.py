"""`kbtools answer`: the command with which a GitHub Action replies to new issues."""

from __future__ import annotations

from pathlib import Path

import click

from kbtools.cli.group import INDEX


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
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the reply to FILE; no file is written if there is no reply.",
)
@INDEX
@click.pass_context
def answer(ctx: click.Context, event_file: Path, reply_file: Path, index: Path | None) -> None:
    """Write the reply to a new issue, if an article is surely about it; else print why not.

    Standard output is `sure=true` or `sure=false` and `article=ID`, for GITHUB_OUTPUT. Nothing is
    posted.
    """
    from kbtools import matching
    from kbtools.integrations import new_issue

    issue = new_issue.read_issue(event_file)
    reply = new_issue.reply_to(issue, matching.load(Path(ctx.obj), index))
    if reply.reply:
        reply_file.write_text(reply.reply, "utf-8")
    else:
        click.echo(f"no reply: {reply.silence}", err=True)
    click.echo(f"sure={'true' if reply.reply else 'false'}\narticle={reply.article}")
