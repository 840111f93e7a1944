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
    help="Only jobs on such machines; may be given several times.",
)
@click.option(
    "--shards",
    type=click.IntRange(1),
    help="Parts of each toolchain. [default: by recorded seconds and `shard-seconds`]",
)
@click.pass_context
def ci_matrix(
    ctx: click.Context, names: tuple[str, ...], needs: tuple[str, ...], shards: int | None
) -> None:
    """Prints the jobs of a night, as JSON for a workflow's `strategy.matrix`.

    A job is a toolchain of toolchains.toml (default: all that can be built), a kind of machine
    with its labels from kbtools.toml, and a shard. There are none for what has nothing to run.
    """
    from kbtools.checks.base import load_base, readable_articles
    from kbtools.ci import jobs

    base = load_base(config_of(ctx))
    articles, _ = readable_articles(base)
    made = jobs.jobs(articles, base.config, names or None, needs or None, shards)
    click.echo(msgspec.json.encode({"include": made}))
