"""The command that a GitHub Action answers new issues with."""

from __future__ import annotations

from pathlib import Path

import click

from kbtools.cli.group import INDEX


@click.command(short_help="Write the reply to a new issue.")
@click.option(
    "--event",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The event, as the file that GITHUB_EVENT_PATH names.",
)
@click.option(
    "--reply",
    "reply_file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write the reply; without one, no file is written.",
)
@INDEX
@click.pass_context
def answer(ctx: click.Context, event: Path, reply_file: Path, index: Path | None) -> None:
    """Writes the reply to a newly opened issue, when the match is sure; says why when it is not.

    Prints `sure=true` or `sure=false` and `article=ID`, for GITHUB_OUTPUT. Posts nothing.
    """
    from kbtools import matching
    from kbtools.integrations import new_issue

    said = new_issue.answer(new_issue.issue(event), matching.load(Path(ctx.obj), index))
    if said.reply:
        reply_file.write_text(said.reply, "utf-8")
    else:
        click.echo(f"no reply: {said.silence}", err=True)
    click.echo(f"sure={'true' if said.reply else 'false'}\narticle={said.article}")
