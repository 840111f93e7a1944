"""Commands about articles: what is wrong with them, what they say, new ones, a base for them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from kbtools.cli import reporting
from kbtools.cli.group import config_of, config_to_read, refuse_broken, selected_path

if TYPE_CHECKING:
    from kbtools.articles.model import Place


@click.command(cls=reporting.ReportingCommand, short_help="Report the problems of articles.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@reporting.SARIF
@reporting.GITHUB
@click.pass_context
def check(
    ctx: click.Context, paths: tuple[Path, ...], sarif_file: str | None, github: bool
) -> None:
    """Report every problem of every article, or of the articles at PATHS.

    What a new article still has of its skeleton is reported, too, but is no problem.

    The exit code is 1 if there is a problem.
    """
    from kbtools.articles.claims import claims
    from kbtools.articles.placeholders import placeholders
    from kbtools.articles.refereed import changed_since
    from kbtools.articles.translations import outdated_translations
    from kbtools.checks.base import check_base, load_base
    from kbtools.reports import claims as of_claims
    from kbtools.reports import github as on_github
    from kbtools.reports import sarif, text
    from kbtools.reports.places import in_checkout

    base = load_base(config_of(ctx))
    to_stderr = sarif_file == "-"
    selected = {selected_path(base, str(path)) for path in paths}

    def is_selected(place: Place) -> bool:
        return not selected or place.path in selected

    problems = [problem for problem in check_base(base) if is_selected(problem.place)]
    with reporting.commands_disabled(github, to_stderr):
        for problem in problems:
            click.echo(text.problem(problem) + "\n", err=to_stderr)
    snippets = [snippet for article in base.articles for snippet in article.snippets]
    networked = [s for s in snippets if s.keys.net and is_selected(s.place)]
    for snippet in networked:
        click.echo(text.asks_for_the_network(snippet), err=to_stderr)
    outdated = [t for t in outdated_translations(base.pages) if is_selected(t.place)]
    for translation in outdated:
        click.echo(text.behind(translation), err=to_stderr)
    read = ((base.page_of(article), article) for article in base.articles)
    unread = [c for c in changed_since(read) if is_selected(c.place)]
    for changed in unread:
        click.echo(text.changed_since_refereed(changed), err=to_stderr)
    unwritten = [p for p in placeholders(base.pages) if is_selected(p.place)]
    for placeholder in unwritten:
        click.echo(text.placeholder(placeholder), err=to_stderr)
    originals = [base.page_of(article) for article in base.articles]
    bare = of_claims.bare_of(
        claim
        for page in originals
        if is_selected(page.place(1))
        for claim in claims(page, base.config, base.sentences_of(page))
    )
    for line in of_claims.notices(bare):
        click.echo(line, err=to_stderr)
    files = len(selected) or len(base.pages)
    lines = f"{len(unwritten)} line{'s' * (len(unwritten) != 1)}"
    to_write = f"; {lines} to be written" if unwritten else ""
    click.echo(
        f"{files} file{'s' * (files != 1)} checked, {len(problems) or 'no'} problem"
        f"{'s' * (len(problems) != 1)}{to_write}",
        err=to_stderr,
    )
    if github:
        reporting.annotate(problems, base.config, to_stderr)
        prefix = in_checkout(base.config)
        reporting.emit((on_github.asks_for_the_network(s, prefix) for s in networked), to_stderr)
        reporting.emit((on_github.behind(t, prefix) for t in outdated), to_stderr)
        reporting.emit((on_github.changed_since_refereed(c, prefix) for c in unread), to_stderr)
        reporting.emit((on_github.placeholder(p, prefix) for p in unwritten), to_stderr)
        reporting.emit((on_github.bare_claim(c, prefix) for c in bare), to_stderr)
    if sarif_file:
        log = sarif.of_problems(problems, in_checkout(base.config))
        reporting.write_report(sarif_file, log)
    sys.exit(1 if problems else 0)


@click.command(short_help="Print the rules that `check` applies.")
@click.pass_context
def rules(ctx: click.Context) -> None:
    """Print the rules that `check` applies, each with its explanation."""
    from kbtools.checks.rules import RULES

    for rule in RULES:
        click.echo(f"{click.style(rule.code, bold=True)} {rule.name}\n")
        click.echo("    " + rule.page.replace("\n", "\n    ") + "\n")


@click.command(short_help="Print the JSON Schema of an article's front matter.")
@click.option("--notice", is_flag=True, help="Print that of a notice's front matter.")
@click.pass_context
def schema(ctx: click.Context, notice: bool) -> None:
    """Print the JSON Schema of an article's front matter, for use in an editor."""
    from kbtools.articles.schema import front_matter_schema

    form = front_matter_schema(config_of(ctx), notice=notice)
    click.echo(msgspec.json.format(msgspec.json.encode(form)))


@click.command(short_help="Write the skeleton of an article or a notice.")
@click.argument("title")
@click.option("--anyway", is_flag=True, help="Write it though an article has such a signature.")
@click.option("--notice", is_flag=True, help="Write a notice: reported in a thread, not run here.")
@click.pass_context
def new(ctx: click.Context, title: str, anyway: bool, notice: bool) -> None:
    """Write the skeleton of an article with the title TITLE and the next free id.

    TITLE is the text of the error, as people search for it. If a signature of an article
    recognises it, nothing is written, that article is named, and the exit code is 1.
    """
    from kbtools import matching
    from kbtools.articles.links import published_addresses
    from kbtools.articles.scaffold import new_article, new_notice
    from kbtools.reports import text

    config = config_of(ctx)
    matches = matching.Matcher(matching.of_base(config)).diagnose(title).matches
    if matches and not anyway:
        click.echo(text.covered(matches, title), err=True)
        sys.exit(1)
    file = new_notice(config, title) if notice else new_article(config, title)
    path = file.relative_to(config.root)
    match = config.id_pattern.match(file.name)  # a prefix may hold hyphens
    if notice:
        click.echo(f"{path}\n\nReplace what stands in it. This names what is missing:\n")
        click.echo(f"    kbtools check {path}")
    else:
        click.echo(f"{path}\n\nIt is valid and runs as it is. Try:\n")
        click.echo(f"    kbtools verify {match[0] if match else file}")
    if published_addresses(config):
        click.echo("    kbtools link --publish  # lists the new address; check asks for it")


@click.command(short_help="Start a knowledge base.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--name", help="The name that readers see. [default: asks]")
@click.option(
    "--prefix",
    help="What ids begin with: one to ten capital letters. [default: asks]",
)
def init(folder: Path, name: str | None, prefix: str | None) -> None:
    """Start a knowledge base in FOLDER: its settings and a first article that can be verified."""
    if not (name and prefix):
        if not sys.stdin.isatty():
            raise click.UsageError("no terminal to ask on; give --name and --prefix")
        name = name or click.prompt("Name of the knowledge base")
        prefix = prefix or click.prompt("Prefix of its ids", default="KB")
    from kbtools.articles.scaffold import ScaffoldError, new_base

    try:
        for file in new_base(folder, name, prefix):
            click.echo(f"wrote {file}")
    except OSError as error:
        raise ScaffoldError(f"{folder}: {error}") from error
    click.echo(f"\nTry it:\n\n    cd {shlex.quote(str(folder))} && kbtools check && kbtools verify")


@click.command("list", short_help="List the articles with their computed states.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    """List the articles, each with the state that follows from its evidence."""
    from kbtools.checks.cached import load_cached
    from kbtools.evidence.state import state_of

    base = load_cached(config_to_read(ctx))
    states = [(article, state_of(article, base.config)) for article in base.articles]
    if as_json:
        rows = [
            {**msgspec.to_builtins(article.matter), "state": state, "path": article.path}
            for article, state in states
        ]
        click.echo(msgspec.json.format(msgspec.json.encode(rows)))
    else:
        for article, state in states:
            name = click.style(article.id, bold=True)
            click.echo(f"{name}  {state.word:<12} {article.matter.title}")
    refuse_broken(base.problems)


@click.command("matrix", short_help="Show on which toolchains each failure was seen.")
@click.argument("articles", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--markdown", is_flag=True, help="Print a table in Markdown. [default]")
@click.pass_context
def matrix_(ctx: click.Context, articles: tuple[str, ...], as_json: bool, markdown: bool) -> None:
    """Show on which toolchains the failure of each article was seen, from evidence alone.

    It is that of all articles, or of ARTICLES.
    """
    from kbtools.checks.cached import load_cached
    from kbtools.evidence.board import build_board
    from kbtools.reports import board as printer

    if as_json and markdown:
        raise click.UsageError("--json or --markdown, not both")
    base = load_cached(config_to_read(ctx))
    paths = {selected_path(base, word) for word in articles}
    selected = [article for article in base.articles if article.path in paths or not paths]
    board = build_board(selected, base.config)
    click.echo(printer.as_json(board) if as_json else printer.as_markdown(board), nl=False)
    refuse_broken(base.problems)
