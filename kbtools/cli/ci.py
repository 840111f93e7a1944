"""Commands for a fleet of machines: `ci-matrix`."""

from __future__ import annotations

import click
import msgspec

from kbtools.cli.group import config_of


@click.command("ci-matrix", short_help="Print the jobs of a CI run, as JSON.")
@click.argument("names", nargs=-1, metavar="[TOOLCHAIN]...")
@click.option(
    "--needs",
    multiple=True,
    metavar="cpu|gpu|gpus:N",
    help="Print only jobs for such machines. May be repeated.",
)
@click.option(
    "--shards",
    type=click.IntRange(1),
    help="Cut each toolchain into so many jobs. [default: by recorded seconds and `shard-seconds`]",
)
@click.pass_context
def ci_matrix(
    ctx: click.Context, names: tuple[str, ...], needs: tuple[str, ...], shards: int | None
) -> None:
    """Print the jobs of a CI run on TOOLCHAIN, as JSON for a workflow's `strategy.matrix`.

    A job is a toolchain of toolchains.toml (default: all that can be built), a kind of machine with
    its labels in kbtools.toml, and a shard of the snippets. A toolchain without snippets to run has
    no job.
    """
    from kbtools.checks.base import load_base, readable_articles
    from kbtools.ci import jobs

    base = load_base(config_of(ctx))
    articles, _ = readable_articles(base)
    matrix = jobs.jobs(articles, base.config, names or None, needs or None, shards)
    click.echo(msgspec.json.encode({"include": matrix}))
