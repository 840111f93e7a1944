"""The command that looks for causes of failures before they occur."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kbtools.cli.group import config_to_read

if TYPE_CHECKING:
    from kbtools.config import Config


@click.command(short_help="Look for what is wrong with an environment.")
@click.option("--python", default="", metavar="PYTHON", help="Look at this interpreter.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--paste", is_flag=True, help="Print Markdown for an issue, without names and tokens."
)
@click.option("--gpu", is_flag=True, help="Use the GPUs, too: up to two minutes.")
@click.option(
    "--lang", type=click.Choice(["en", "zh"]), help="Of the answer. [default: the locale's]"
)
@click.option("--cases", is_flag=True, help="Try every probe on the machines planted for it.")
@click.pass_context
def doctor(
    ctx: click.Context,
    python: str,
    as_json: bool,
    paste: bool,
    gpu: bool,
    lang: str | None,
    cases: bool,
) -> None:
    """Look for what is wrong with an environment, and for what will be.

    Runs the probes of the knowledge base on this machine and on the packages of an interpreter: by
    default the one that runs kbtools. Each finding names an article, and what to type. A fault
    fails as it stands; a risk, only with what it names. Reads and never writes; uses no network.

    The exit code is 1 if there is a fault, 0 otherwise, 2 if the interpreter cannot be run.
    """
    from kbtools.doctor import bundle
    from kbtools.doctor.machine import InterpreterError
    from kbtools.doctor.main import answer

    config = config_to_read(ctx)
    probes = bundle.probes_of(config)
    about = bundle.about(config, probes)
    if cases:
        from kbtools.doctor import planting, trying

        trials = [*trying.try_all(probes, planting.read(config.probes))]
        problems = [trial for trial in trials if trial.problem]
        for trial in problems:
            click.echo(f"✗ {trial.name}: {trial.problem}")
        click.echo(f"{len(probes)} probes, {len(trials)} trials, {len(problems)} of them wrong")
        sys.exit(1 if problems else 0)
    try:
        text, code = answer(
            probes,
            about,
            python=python,
            form="json" if as_json else "paste" if paste else "text",
            gpu=gpu,
            language=lang or "",
            colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
        )
    except InterpreterError as error:
        click.echo(f"kbtools: {error}", err=True)
        sys.exit(2)
    for remark in remarks(config, bool(probes), python):
        click.echo(f"kbtools: {remark}", err=True)
    click.echo(text)
    sys.exit(code)


def remarks(config: Config, has_probes: bool, python: str) -> Iterator[str]:
    """Why a report that finds nothing says little."""
    if not has_probes:
        yield f"{config.knowledge_base.name} has no probes, so nothing was looked for"
    headline = config.toolchain.headline
    if headline and not python and not any(map(is_installed, headline)):
        yield (
            f"the Python that runs kbtools has no {headline[0]}; to look at yours:"
            " kbtools doctor --python PYTHON"
        )


def is_installed(distribution: str) -> bool:
    """Whether a distribution is beside kbtools."""
    from importlib import metadata

    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
