"""The command that finds the versions between which a repro flips."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import click

from kbtools.cli.group import config_of, refuse_broken, selected_path

if TYPE_CHECKING:
    from kbtools.verification.bisection import BisectResult, Step


@click.command(short_help="Find the releases between which a repro changes.")
@click.argument("article", metavar="ID[/SNIPPET]")
@click.option(
    "--package", required=True, metavar="NAME", help="The package whose releases are tried."
)
@click.option(
    "--from", "first", metavar="VERSION", help="The oldest release to try. [default: the first]"
)
@click.option(
    "--to", "last", metavar="VERSION", help="The newest release to try. [default: the last]"
)
@click.option("--like", metavar="TOOLCHAIN", help="Toolchain in which the package is replaced.")
@click.option("--every", is_flag=True, help="Try every release, so that no change is missed.")
@click.option("--keep", is_flag=True, help="Keep the environments that are built for the search.")
@click.option(
    "--dry-run", is_flag=True, help="Print what would be built and its size, and build nothing."
)
@click.pass_context
def bisect(
    ctx: click.Context,
    article: str,
    package: str,
    first: str | None,
    last: str | None,
    like: str | None,
    every: bool,
    keep: bool,
    dry_run: bool,
) -> None:
    """Find the two neighbouring releases of a package between which the repro of ID changes.

    That is, it fails on one of them and passes on the other. Each step builds a toolchain, runs the
    repro in it and records evidence; the oldest and the newest release are tried first.

    The exit code is 0 if a change was found and the article's `affected` agrees with every run, 1
    if it does not agree, and 3 if no change was found.
    """
    from kbtools.checks.base import load_base, readable_articles
    from kbtools.cli.toolchain import progress
    from kbtools.toolchains import declared, package_index
    from kbtools.toolchains.pip_settings import read_pip_settings
    from kbtools.verification import bisection

    base = load_base(config_of(ctx))
    readable, problems = readable_articles(base)
    path = selected_path(base, article.partition("/")[0])
    refuse_broken([p for p in problems if p.place.path == path])
    selected = next(a for a in readable if a.path == path)
    snippet = bisection.select_repro(selected, article)
    like = bisection.base_toolchain(base.config, package, like)
    versions = bisection.between(package_index.releases(package, read_pip_settings()), first, last)
    size = declared.read_declarations(base.config)[like].size_gb
    steps = len(versions) if every else min(len(versions), 2 + math.ceil(math.log2(len(versions))))
    click.echo(
        f"{snippet.name} on {package} {versions[0]} to {versions[-1]}: {len(versions)} releases,"
        f" at most {steps} steps of about {size:g} GB each, like {like}"
    )
    if dry_run:
        for version in versions if every else (versions[0], versions[-1]):
            click.echo(f"  {like}@{package}=={version}: about {size * 10**9:,.0f} bytes")
        if not every:
            click.echo("  and then the middle of what lies between, until two neighbours are left")
        return

    def attempt(version: str) -> Step:
        name = f"{like}@{package}=={version}"
        with progress(name, size) as tell:
            step = bisection.attempt(base.config, selected, snippet, name, keep=keep, tell=tell)
        click.echo(line_of(step))
        return step

    result = bisection.search(versions, attempt, every=every)
    sys.exit(conclude(result, package))


def line_of(step: Step) -> str:
    """A step on a line."""
    colours = {"fails": "red", "passes": "green", "neither": "yellow"}
    mark = click.style(f"{step.behaviour:<8}", fg=colours[step.behaviour])
    return f"{step.version:<10} {mark} {' '.join(step.reason.split())[:110]}"


def conclude(result: BisectResult, package: str) -> int:
    """Prints what follows from a search; the exit code."""
    if len(result.flips) > 1:
        click.echo("\nit flips more than once:")
    silent = [step.version for step in result.steps if step.behaviour == "neither"]
    for low, high in result.flips:
        missing = f" (said nothing: {', '.join(silent)})" if silent else ""
        words = {"fails": "failing", "passes": "passing"}
        click.echo(
            f"\nlast {words[low.behaviour]}: {package} {low.version}; "
            f"first {words[high.behaviour]}: {package} {high.version}{missing}"
        )
    if result.untried:
        listed = ", ".join(result.untried)
        click.echo(f"not tried, and taken to be like their neighbours: {listed}")
    if not result.flips:
        click.echo("\nno flip: both ends do the same, or one of them says nothing")
    contradicted = [step.version for step in result.steps if step.agrees is False]
    if contradicted:
        click.echo(f"the article's range does NOT agree on {package} {', '.join(contradicted)}")
        return 1
    if result.flips:
        click.echo("the article's range agrees with all that was seen")
        return 0
    return 3
