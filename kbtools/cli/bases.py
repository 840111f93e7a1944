"""Commands about a knowledge base as a whole: start one, build its site, show its machine."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import msgspec

from kbtools.cli.base import TOOLCHAIN, found, main, refuse_broken
from kbtools.config import Unreadable


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--name", prompt="Name of the knowledge base", help="As shown to readers.")
@click.option("--prefix", prompt="Prefix of its ids", default="KB", help="Capital letters.")
def init(folder: Path, name: str, prefix: str) -> None:
    """Starts a knowledge base of your own in FOLDER."""
    from kbtools.starting import new_base

    try:
        for file in new_base(folder, name, prefix):
            click.echo(f"wrote {file}")
    except OSError as error:
        raise Unreadable(f"{folder}: {error}") from error
    click.echo(f"\nTry it:\n\n    cd {shlex.quote(str(folder))} && kbtools check && kbtools verify")


@main.command()
@click.pass_context
def build(ctx: click.Context) -> None:
    """Builds the site: pages of Markdown in build/pages, HTML in site."""
    from kbtools import checks
    from kbtools.site.build import build as build_html
    from kbtools.site.generate import generate

    base = checks.load(found(ctx))
    refuse_broken(base.problems)
    changed = generate(base, base.config.root / "build" / "pages")
    click.echo(f"{len(base.articles)} articles, {len(changed)} pages changed")
    click.echo(f"the site is in {build_html(base.config).relative_to(base.config.root)}/")


@main.command()
@TOOLCHAIN
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def env(ctx: click.Context, toolchain: str | None, as_json: bool) -> None:
    """Shows what the toolchain is, as evidence would record it."""
    from kbtools import environments

    where = environments.find(found(ctx), toolchain)
    holds = environments.describe(where)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(holds)))
        return
    for key, value in environments.as_rows(holds, where):
        click.echo(f"{click.style(key, bold=True):<28} {value}")
