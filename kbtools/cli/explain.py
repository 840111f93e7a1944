"""The command that shows an article, or only its fix."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kbtools.cli.group import config_to_read, refuse_broken, selected_path

if TYPE_CHECKING:
    from kbtools.articles.model import Article
    from kbtools.articles.remedy import Remedy


@click.command(short_help="Show an article with its computed state.")
@click.argument("article")
@click.option("--fix", is_flag=True, help="Show only the fix: a command, or the lines that change.")
@click.option("--runs", is_flag=True, help="Show every recorded run, not only the last ones.")
@click.pass_context
def explain(ctx: click.Context, article: str, fix: bool, runs: bool) -> None:
    """Show the article ARTICLE, an id or a path, with its computed state.

    Of the runs of a snippet that have one verdict it shows the last, and the number of others.

    With --fix, standard output has only a command, the lines in which the fix differs from what
    fails, or a program. The exit code is 3 if no snippet of the article is a fix.
    """
    from kbtools.articles.notice_text import notice_markdown
    from kbtools.articles.parsing import ArticleError
    from kbtools.articles.remedy import remedy
    from kbtools.checks.base import load_base
    from kbtools.evidence.markdown import article_markdown
    from kbtools.evidence.notices import standing_of
    from kbtools.evidence.state import observations

    base = load_base(config_to_read(ctx))
    path = selected_path(base, article)
    refuse_broken([problem for problem in base.problems if problem.place.path == path])
    identifier = next(page.matter.get("id") for page in base.pages if page.path == path)
    notice = next((n for n in base.notices if n.id == identifier), None)
    if notice and not fix:
        show(notice_markdown(notice, base.config, standing_of(notice, base.config)))
        return
    original = notice.article if notice else None
    original = original or next((a for a in base.articles if a.id == identifier), None)
    if original is None:  # `path` is a translation
        raise ArticleError(f"{path}: its original cannot be read; see: kbtools check")
    if fix:
        short = remedy(base.page_of(original), original.snippets)
        show_fix(original, short)
        sys.exit(0 if short.section else 3)
    rows = observations(original, base.config)
    show(article_markdown(original, rows, base.config, every_row=runs))
    if not runs and len(rows) > len({(row.snippet.id, row.verdict.name) for row in rows}):
        click.echo(f"every run: kbtools explain {original.id} --runs", err=True)


def show(text: str) -> None:
    """Prints a document: on a terminal with its headings and lists set, else as Markdown."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        click.echo(text)


def show_fix(article: Article, short: Remedy) -> None:
    """Prints the code of a fix to standard output, and to standard error what it is."""
    from kbtools.articles.model import Role

    click.echo(click.style(article.matter.summary, bold=True) + "\n", err=True)
    colours = {"+": "green", "-": "red"}
    for sign, line in short.lines:
        click.echo(click.style(sign if sign == "…" else sign + line, fg=colours.get(sign)))
    if short.code:
        click.echo(short.code)
    fixes = [s.id for s in article.snippets if s.role is Role.FIX and s.id != short.fix]
    hint = f"; other fixes: {', '.join(fixes)}" if fixes else ""
    note = f"{meaning(article, short)}{hint}; all of it: kbtools explain {article.id}"
    click.echo(f"\n{click.style(note, dim=True)}", err=True)


def meaning(article: Article, short: Remedy) -> str:
    """What the code of a fix is, in words; `short` is the remedy of the article."""
    if not short.section:
        return "no snippet shows the fix"
    if short.lines:
        return f"- is in {article.id}/{short.repro}, which fails; + in {article.id}/{short.fix}"
    return f"the program {article.id}/{short.fix}" if short.fix else "for the shell"
