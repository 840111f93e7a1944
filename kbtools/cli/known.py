"""The command that says what is known to fail on some versions."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from kbtools.cli.group import INDEX, config_to_read


@click.command(short_help="Show what is known to fail on some versions.")
@click.argument("packages", nargs=-1, required=True, metavar="NAME==VERSION...")
@click.option("--gpu", default="", help="Compute capability or name of the GPU, as in 9.0 or H100.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--top",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="N",
    help="Show at most N failures.",
)
@INDEX
@click.pass_context
def known(
    ctx: click.Context,
    packages: tuple[str, ...],
    gpu: str,
    as_json: bool,
    top: int,
    index: Path | str | None,
) -> None:
    """Show the failures that are known for these versions, those that print nothing first.

    NAME is a distribution, a project such as nccl, or python, cuda, driver. Of each failure stands
    whether it was executed here or only reported, and what says so.

    The exit code is 0 if a failure is known and 3 if none is. Nothing leaves this machine.
    """
    from kbtools import matching
    from kbtools.matching.known import known_failures, parse_packages
    from kbtools.reports import known as printer

    if index is None:
        config_to_read(ctx)
    knowledge = matching.load(Path(ctx.obj), index)
    answer = known_failures(knowledge, parse_packages(packages), gpu)
    if as_json:
        best = msgspec.structs.replace(answer, failures=answer.failures[:top])
        click.echo(msgspec.json.format(msgspec.json.encode(best)))
    else:
        addresses = {failure.id: knowledge.address(failure.id) for failure in answer.failures}
        click.echo(printer.known(answer, top, addresses))
    sys.exit(0 if answer.failures else 3)
