"""Commands about evidence: `evidence merge`."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import click

from kbtools.cli.base import found, main


@main.group()
def evidence() -> None:
    """Rows of evidence, as runs on this and other machines write them."""


@evidence.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Say what would be taken, and take nothing.")
@click.pass_context
def merge(ctx: click.Context, paths: tuple[Path, ...], dry_run: bool) -> None:
    """Joins the evidence of other machines: files as in KB0002.jsonl, or folders of them.

    Of a file with a row that no run can have written nothing is taken; of two rows of one snippet
    on one toolchain the newer is kept. Merging again changes nothing, nor does the order.

    Exits with 1 when a file was refused, 2 when one cannot be read.
    """
    from kbtools import checks, merging

    base = checks.load(found(ctx))
    readable, _ = checks.readable(base)
    examined = merging.examine(paths, readable, datetime.datetime.now(datetime.UTC))
    for one in examined.refused:
        mark = click.style("left out", fg="yellow") if one.stale else click.style("no", fg="red")
        click.echo(f"{one.file}:{one.line}: {mark}: {one.why}", err=True)
    refused = {one.file for one in examined.forged}
    for file in sorted(refused):
        click.echo(f"{file}: refused whole; ask for it again, or run it yourself", err=True)
    changed = 0 if dry_run else merging.write(examined, base.config)
    said = "would be looked at" if dry_run else f"taken, {changed} of them new"
    rows = f"{len(examined.rows)} row{'s' * (len(examined.rows) != 1)}"
    click.echo(f"{rows} {said}; {len(examined.refused)} left out or refused")
    sys.exit(1 if refused else 0)
