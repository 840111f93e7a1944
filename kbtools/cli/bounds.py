"""`kbtools bounds`: what stands behind each end of a range in the articles."""

from __future__ import annotations

import click

from kbtools.cli.group import config_to_read, refuse_broken, selected_path


@click.command("bounds", short_help="Show what stands behind each bound of a version range.")
@click.argument("articles", nargs=-1)
@click.option("--open", "open_only", is_flag=True, help="Only those with nothing behind them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def bounds(ctx: click.Context, articles: tuple[str, ...], open_only: bool, as_json: bool) -> None:
    """Show what stands behind each bound of a version range, of all articles or of ARTICLES.

    A bound is one clause of an `affected`, as `<2.6`. It is measured if runs went as claimed on
    both sides of it; the two nearest versions are shown: `2.5.1 | 2.6.0`. Otherwise it is
    reported, with its receipt, or open, with the run that is missing.

    Those of a notice, which are reported unless it has runs, are shown if ARTICLES names it.
    """
    from kbtools.checks.cached import load_cached
    from kbtools.evidence.notices import reported_or_measured
    from kbtools.reports import bounds as printer

    base = load_cached(config_to_read(ctx))
    paths = {selected_path(base, word) for word in articles}
    selected = {article.id for article in base.articles if article.path in paths or not paths}
    of_notices = [
        bound
        for notice in base.notices
        if notice.path in paths
        for bound in reported_or_measured(notice, base.config)
    ]
    selected |= {bound.article for bound in of_notices}
    listed = [
        bound
        for bound in (*base.bounds, *of_notices)
        if bound.article in selected and (bound.standing == "open" or not open_only)
    ]
    if as_json:
        click.echo(printer.as_json(listed), nl=False)
    else:
        for line in printer.lines(listed):
            click.echo(line)
        click.echo(printer.summary(listed))
    refuse_broken(base.problems)
