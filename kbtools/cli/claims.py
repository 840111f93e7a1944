"""`kbtools claims`: the sentences that a reader relies on, and what stands behind each."""

from __future__ import annotations

import click

from kbtools.cli.group import config_to_read, refuse_broken, selected_path


@click.command(short_help="List the claims of articles and what stands behind each.")
@click.argument("articles", nargs=-1, metavar="[ID]...")
@click.option("--bare", is_flag=True, help="List only claims without a receipt.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def claims(ctx: click.Context, articles: tuple[str, ...], bare: bool, as_json: bool) -> None:
    """List the claims of all articles, or of those with these IDs, each with its receipts.

    A claim is a sentence that states a version, a date, a limit, a default or a wording, or says
    never, always or only. A receipt is what stands behind it: a snippet, a thread, a source at a
    tag. The share of claims with a receipt is the last line.
    """
    from kbtools.articles.claims import claims as claims_of
    from kbtools.checks.base import load_base
    from kbtools.reports import claims as printer

    base = load_base(config_to_read(ctx))
    selected = {selected_path(base, word) for word in articles}
    broken = {problem.place.path for problem in base.problems}
    of_pages = [
        claim
        for page in base.pages
        if page.path not in broken and (page.path in selected if selected else not page.translates)
        for claim in claims_of(page, base.config)
    ]
    if as_json:
        listed = printer.bare_of(of_pages) if bare else of_pages
        click.echo(printer.as_json(listed))
    else:
        click.echo(printer.as_text(of_pages, bare_only=bare))
    refuse_broken([p for p in base.problems if not selected or p.place.path in selected])
