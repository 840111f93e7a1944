"""Commands about evidence: `evidence merge`, `evidence prune`, `evidence changes`."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import click
import msgspec

from kbtools.cli.group import config_of


@click.group(short_help="Merge, prune and compare evidence.")
def evidence() -> None:
    """Merge, prune and compare the rows of evidence that runs have written."""


@evidence.command(short_help="Merge evidence of other machines.")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Print what would be merged, and merge nothing.")
@click.pass_context
def merge(ctx: click.Context, paths: tuple[Path, ...], dry_run: bool) -> None:
    """Merge evidence of other machines: files such as KB0002.jsonl, or folders of them.

    A file is refused as a whole if no run can have written one of its rows. If two rows are about
    the same snippet on the same toolchain, the newer one is kept. The order of merging does not
    matter, and merging the same file again changes nothing.

    The exit code is 1 if a file was refused and 2 if a file cannot be read.
    """
    from kbtools.checks.base import load_base, readable_articles
    from kbtools.evidence import merging

    base = load_base(config_of(ctx))
    readable, _ = readable_articles(base)
    examined = merging.examine(paths, readable, datetime.datetime.now(datetime.UTC))
    for refusal in examined.refusals:
        mark = click.style("refused", fg="red")
        if refusal.is_stale:
            mark = click.style("left out", fg="yellow")
        click.echo(f"{refusal.file}:{refusal.line}: {mark}: {refusal.reason}", err=True)
    refused = {refusal.file for refusal in examined.forgeries}
    for file in sorted(refused):
        click.echo(
            f"{file}: the whole file is refused; ask for it again, or run it yourself", err=True
        )
    changed = 0 if dry_run else merging.write(examined, base.config)
    outcome = "would be taken" if dry_run else f"taken, {changed} of them new"
    rows = f"{len(examined.rows)} row{'s' * (len(examined.rows) != 1)}"
    click.echo(f"{rows} {outcome}; {len(examined.refusals)} left out or refused")
    sys.exit(1 if refused else 0)


@evidence.command(short_help="Drop the rows of code that has changed.")
@click.option("--dry-run", is_flag=True, help="Print what would be dropped, and drop nothing.")
@click.pass_context
def prune(ctx: click.Context, dry_run: bool) -> None:
    """Drop the rows of code that no snippet has any more; they do not count.

    If you undid the edit of a snippet later, its rows would count again: commit them first.
    """
    from kbtools.checks.base import load_base, readable_articles
    from kbtools.evidence import store as rows

    base = load_base(config_of(ctx))
    readable, _ = readable_articles(base)
    folder = base.config.evidence
    total = 0
    for article in readable:
        digests = {snippet.digest for snippet in article.snippets}
        if dry_run:
            recorded = rows.read(folder, article.id)
            dropped = tuple(row for row in recorded if row.code not in digests)
        else:
            dropped = rows.prune(folder, article.id, digests, base.config)
        for row in dropped:
            label = row.toolchain.label(base.config.toolchain.headline)
            click.echo(f"{article.id}/{row.snippet}  {row.when:%Y-%m-%d}  {label}")
        total += len(dropped)
    click.echo(f"{total} row{'s' * (total != 1)} {'would be ' * dry_run}dropped")


@evidence.command(short_help="List what changed since a commit.")
@click.option("--since", "ref", metavar="REF", help="Compare with the evidence of this commit.")
@click.option(
    "--old",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Compare with the evidence in this folder.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON array, with the texts of issues."
)
@click.option("--issues", is_flag=True, help="Open or update one issue for each article, with gh.")
@click.pass_context
def changes(
    ctx: click.Context, ref: str | None, old: Path | None, as_json: bool, issues: bool
) -> None:
    """List what changed: fixes that stopped working, failures that came back or went away.

    Both the older and the current evidence are judged against the current claims.
    """
    from kbtools.checks.base import load_base, readable_articles
    from kbtools.ci import git
    from kbtools.ci import issues as tracker
    from kbtools.evidence import changes
    from kbtools.evidence import store as rows

    if (ref is None) == (old is None):
        raise click.UsageError("give one of --since REF and --old FOLDER")
    base = load_base(config_of(ctx))
    readable, _ = readable_articles(base)
    ids = [article.id for article in readable]
    after = {name: rows.read(base.config.evidence, name) for name in ids}
    if old is not None:
        before = {name: rows.read(old, name) for name in ids}
    else:
        before = git.evidence_at(str(ref), base.config)
    by_id = {article.id: article for article in readable}
    news = changes.changes_between(before, after, readable, base.config.toolchain.headline)
    texts = [tracker.issue(by_id[entry.article], entry, base.config) for entry in news]
    if as_json:
        reports = [
            {**msgspec.to_builtins(entry), "issue": text}
            for entry, text in zip(news, texts, strict=True)
        ]
        click.echo(msgspec.json.format(msgspec.json.encode(reports)))
    else:
        for entry in news:
            for change in entry.changes:
                click.echo(changes.line(change))
        if not news:
            click.echo("nothing changed")
    for line in tracker.post(texts) if issues else ():
        click.echo(line, err=as_json)
