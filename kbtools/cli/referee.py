"""The command for referees: it writes down that an article was read, and against what."""

from __future__ import annotations

import datetime

import click

from kbtools.cli.errors import UnknownArticleError
from kbtools.cli.group import config_of, selected_path


@click.command(short_help="Write down that you refereed an article.")
@click.argument("article")
@click.option("--against", metavar="TEXT", help="The sources that you had open, with versions.")
@click.pass_context
def referee(ctx: click.Context, article: str, against: str | None) -> None:
    """Write `refereed` into the front matter of ARTICLE: today, the edition of its words, TEXT.

    To referee is to read an article that you did not write, with the sources open. Without
    --against nothing is written: it says when and against what the article was refereed. The exit
    code is then 1 if it was not, or if its words have changed since.
    """
    from kbtools.articles.refereed import is_changed, with_referee
    from kbtools.articles.translations import edition
    from kbtools.checks.base import load_base

    base = load_base(config_of(ctx))
    path = selected_path(base, article)
    subject = next((entry for entry in base.articles if entry.path == path), None)
    if subject is None:
        raise UnknownArticleError(f"{path} is not an article that can be read; see: kbtools check")
    page = base.page_of(subject)
    if against is not None:
        if not against.strip():
            raise click.UsageError("--against names sources, as in 'v2.13.0, owner/repo#12'")
        file = base.config.root / path
        text = file.read_bytes().decode("utf-8")  # as it is: line ends are kept
        today = datetime.datetime.now(datetime.UTC).date()
        file.write_bytes(with_referee(text, edition(page), today, against).encode())
        click.echo(f"{path}: refereed {today}, edition {edition(page)}")
        return
    refereed = subject.matter.refereed
    if refereed is None:
        click.echo(
            f"{subject.id} was not refereed; next: kbtools referee {subject.id} --against TEXT"
        )
        ctx.exit(1)
    click.echo(f"{subject.id} was refereed on {refereed.date} against {refereed.against}")
    if is_changed(page, subject):
        click.echo("its words have changed since")
        ctx.exit(1)
