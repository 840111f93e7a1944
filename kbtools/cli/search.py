"""The command that finds articles by words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from kbtools.cli.group import INDEX, config_to_read, refuse_broken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtools.articles.model import Problem
    from kbtools.matching.search import Hit


@click.command(short_help="Find articles by words.")
@click.argument("words", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.option(
    "--top",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="N",
    help="Show at most N articles.",
)
@INDEX
@click.pass_context
def search(
    ctx: click.Context, words: tuple[str, ...], as_json: bool, top: int, index: Path | str | None
) -> None:
    """Find the articles that have WORDS in titles, error texts, summaries or symptoms.

    WORDS may be a question or a line of an error. Every language of the knowledge base is searched;
    a word counts the more, the fewer articles have it. For a log there is `kbtools diagnose`.

    The exit code is 0 if there is an article and 3 if there is none. Nothing leaves this machine.
    """
    from kbtools import matching
    from kbtools.checks.base import load_base
    from kbtools.matching import search as searching

    text = " ".join(words)
    if not searching.words_of(text):
        raise click.UsageError("name a word; these are only punctuation")
    problems: Sequence[Problem] = ()
    if index is None:
        base = load_base(config_to_read(ctx))
        documents = [*searching.documents_of_base(base.articles, base.pages, base.notices)]
        problems = base.problems
    else:
        documents = [*searching.documents_of_index(matching.load(Path(ctx.obj), index))]
    hits = searching.search(documents, text)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(hits[:top])))
    elif hits:
        show(hits, top, searching.words_of(text))
    else:
        click.echo("none: no article has enough of these words; for a log: kbtools diagnose FILE")
    refuse_broken(problems)
    sys.exit(0 if hits else 3)


def show(hits: Sequence[Hit], top: int, words: Sequence[str]) -> None:
    """Prints the best hits, and how to read on.

    Args:
        hits: Best first.
        top: How many are printed.
        words: Of the search.
    """
    for hit in hits[:top]:
        click.echo(f"{click.style(hit.id, bold=True)}  {hit.title}")
        if hit.reported:
            click.echo(f"  reported, not run here; looked up on {hit.reported}")
            click.echo(f"  reported help {hit.summary}")
        else:
            click.echo(f"  {click.style('what helps', fg='green')}    {hit.summary}")
        missing = [word for word in words if word not in hit.words]
        lacks = f"; not there: {', '.join(missing)}" if missing else ""
        click.echo(f"  found in      {', '.join(hit.parts)}{lacks}\n")
    if len(hits) > top:
        click.echo(f"and {len(hits) - top} more: --top {len(hits)}")
    click.echo(f"read on: kbtools explain {hits[0].id}")
