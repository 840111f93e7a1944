"""The command that says which versions go together."""

from __future__ import annotations

import platform
import sys

import click
import msgspec

from kbtools.cli.group import config_to_read


@click.command(short_help="Say which versions go together on a machine.")
@click.argument("wants", nargs=-1, metavar="REQUIREMENT...")
@click.option(
    "--gpu", default="", help="Compute capability or name of the GPU, as in 12.0 or H100."
)
@click.option("--driver", default="", help="Version of the NVIDIA driver, as in 570.86.")
@click.option("--python", default="", help="Python, as in 3.13. [default: that of kbtools]")
@click.option("--platform", "system", default="", help="As in linux-x86_64. [default: this one]")
@click.option("--glibc", default="", help="C library, as in 2.31. [default: this one]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def fits(
    ctx: click.Context,
    wants: tuple[str, ...],
    gpu: str,
    driver: str,
    python: str,
    system: str,
    glibc: str,
    as_json: bool,
) -> None:
    """Say which releases of what you want go together on your machine, the newest first.

    REQUIREMENT is as pip takes it: a name, or a name with a range. The answer follows from the
    tables: what releases declare and contain, what runs showed and documents say. It names the row
    behind each word, the failures that are known for these versions, and what nobody knows.

    The exit code is 0 if releases go together, and 3 if none do or if there are no tables. Nothing
    leaves this machine.
    """
    from kbtools import matching
    from kbtools.matching.known import known_failures, sm_of
    from kbtools.reports import fits as printer
    from kbtools.tables import store
    from kbtools.tables.explaining import fit
    from kbtools.tables.machines import Machine

    config = config_to_read(ctx)
    tables = store.read(config)
    if not tables.releases:
        name = config.knowledge_base.name
        click.echo(f"kbtools: {name} has no tables of releases: docs/compatibility.md", err=True)
        sys.exit(3)
    knowledge = matching.load(ctx.obj, None)
    machine = Machine(
        python=python or ".".join(platform.python_version_tuple()[:2]),
        platform=system or here(),
        sm=sm_of(gpu, knowledge) if gpu else "",
        driver=driver,
        glibc=glibc or ("" if system else platform.libc_ver()[1]),
    )
    answer = fit(tables, machine, wants)
    versions = {**answer.versions, "python": machine.python.rstrip("t")}
    versions |= {"driver": driver} if driver else {}
    failures = known_failures(knowledge, versions, machine.sm).failures if answer.choices else ()
    affected = tuple(failure for failure in failures if failure.answer == "affected")
    if as_json:
        content = {
            **msgspec.to_builtins(answer),
            "line": answer.line,
            "failures": msgspec.to_builtins(affected),
        }
        click.echo(msgspec.json.format(msgspec.json.encode(content)))
    else:
        addresses = {failure.id: knowledge.address(failure.id) for failure in affected}
        click.echo(printer.answer(answer, affected, addresses))
    sys.exit(0 if answer.choices else 3)


def here() -> str:
    """The platform of this machine, as tables name it."""
    system = {"Linux": "linux", "Windows": "win", "Darwin": "macos"}.get(platform.system(), "")
    machine = platform.machine().lower()
    names = {"arm64": "arm64" if system == "macos" else "aarch64", "amd64": "x86_64"}
    word = names.get(machine, machine)
    return f"win-{machine}" if system == "win" else f"{system}-{word}"
