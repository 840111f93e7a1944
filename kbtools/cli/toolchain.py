"""`kbtools toolchain` and `env`: build, list, remove and describe the environments of tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

from kbtools.cli.group import TOOLCHAIN, config_of
from kbtools.config import KbtoolsError

if TYPE_CHECKING:
    from kbtools.toolchains.installers import ProgressCallback

GB = 10**9


@click.group(short_help="Build, list and remove toolchains.")
def toolchain() -> None:
    """Build, list and remove the environments that toolchains.toml declares."""


@toolchain.command("list", short_help="List the declared toolchains.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    """List the toolchains of toolchains.toml with their states on this machine."""
    from kbtools.toolchains import declared, environments

    base = config_of(ctx)
    rows = []
    home = environments.environments_folder(base)
    for name, one in declared.read_declarations(base).items():
        state = environments.state_of(base, name, one)
        there = environments.read_build_record(home / name) if one.is_built else None
        rows.append((name, one, state, there))
    if as_json:
        whole = [
            {"name": n, **_builtins(one), "state": state, "built": there and _builtins(there)}
            for n, one, state, there in rows
        ]
        click.echo(msgspec.json.format(msgspec.json.encode(whole)))
        return
    width = max([len(name) for name, *_ in rows], default=0)
    colours = {"ready": "green", "stale": "yellow", "broken": "red"}
    for name, one, state, there in rows:
        size = f"{there.size / GB:.2f} GB" if there else one.size_note.strip(" ()")
        line = (
            click.style(f"{name:<{width}}", bold=True),
            click.style(f"{state:<10}", fg=colours.get(state)),
            f"{size:<13}",
            one.purpose,
        )
        click.echo("  ".join(line).rstrip())


def _builtins(value: Any) -> dict[str, Any]:
    return dict(msgspec.to_builtins(value))


@toolchain.command(short_help="Build environments, or bring them up to date.")
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option("--all", "everything", is_flag=True, help="Build all that toolchains.toml declares.")
@click.option(
    "--installer",
    type=click.Choice(["uv", "pip"]),
    help="Only this one. [default: uv where there is one, and pip where that fails]",
)
@click.pass_context
def sync(
    ctx: click.Context, names: tuple[str, ...], everything: bool, installer: str | None
) -> None:
    """Build the toolchains NAME... that are missing or differ from toolchains.toml.

    An older environment is replaced only when the new one is complete. The exit code is 2 if one of
    them could not be built.
    """
    from kbtools.toolchains import declared, sync

    base = config_of(ctx)
    known = declared.read_declarations(base)
    if everything:
        names = (*names, *(n for n, one in known.items() if one.is_built and n not in names))
    if not names:
        raise click.UsageError("name some toolchains, or all of them with --all")
    # a terminal that is closed: end as on Ctrl-C, with what is half-built removed
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    failed = False
    for name in names:
        try:
            with progress(name, known[name].size_gb if name in known else 0.0) as tell:
                there, changed = sync.sync(base, name, tell, installer)
        except KbtoolsError as error:
            failed = True
            click.echo(f"kbtools: {error}", err=True)
            continue
        except KeyboardInterrupt:
            click.echo(
                f"\nkbtools: interrupted; nothing half-built of {name} is left, and what the "
                "installer has in its cache is not fetched again",
                err=True,
            )
            raise
        shared = f", {there.shared / GB:.2f} GB of it shared by links" if there.shared else ""
        how = f"in {there.seconds:.0f} s with {there.installer}" if changed else "there already"
        click.echo(f"{click.style(name, bold=True)}: {there.size / GB:.2f} GB{shared}, {how}")
    sys.exit(2 if failed else 0)


@contextmanager
def progress(name: str, gigabytes: float) -> Iterator[ProgressCallback]:
    """Shows a build as it goes: a live line on a terminal, a line for each step elsewhere."""
    about = f" of about {gigabytes:.2f}" if gigabytes else ""
    if not sys.stderr.isatty():
        last = ""

        def line(doing: str, size: int | None) -> None:
            nonlocal last
            if doing != last:
                so_far = f" [{size / GB:.2f}{about} GB]" if size else ""
                click.echo(f"{name}: {doing}{so_far}", err=True)
            last = doing

        yield line
        return

    from rich.console import Console
    from rich.status import Status
    from rich.text import Text

    console = Console(stderr=True)
    with Status(name, console=console) as status:

        def live(doing: str, size: int | None) -> None:
            if size is None:
                console.print(Text(f"{name}: {doing}"), soft_wrap=True)
                return
            text = Text(f"{name}  {size / GB:.2f}{about} GB  {doing}", overflow="ellipsis")
            text.truncate(console.width - 4)
            status.update(text)

        yield live


@toolchain.command(short_help="Remove environments.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.pass_context
def prune(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Remove the environments NAME..., or those that toolchains.toml does not declare any more.

    Without a name, the remains of interrupted syncs are removed, too. In a folder that several
    checkouts share, complete environments are then kept: another checkout may declare them.
    """
    from kbtools.toolchains import declared, environments, sync

    base = config_of(ctx)
    home = environments.environments_folder(base)
    known = declared.read_declarations(base)
    there = dict(sync.complete_environments(home))
    unknown = [name for name in names if name not in known and name not in there]
    if unknown:
        raise KbtoolsError(f"no toolchain `{unknown[0]}`, neither declared nor in {home}")
    undeclared = [name for name in there if name not in known]
    left = [] if names else sync.interrupted_builds(home)
    if not names and os.environ.get(environments.FOLDER):
        for name in undeclared:
            click.echo(
                f"{name}: not declared here, left alone; see: kbtools toolchain prune {name}"
            )
        undeclared = []
    for name in names or undeclared:
        freed = sync.prune(home, name)
        click.echo(f"removed {name}: {freed / GB:.2f} GB freed")
    for name in left:
        freed = sync.prune(home, name, keep_complete=True)
        click.echo(f"removed what killed syncs of {name} left: {freed / GB:.2f} GB freed")


@toolchain.command(short_help="Print the interpreter of a toolchain.")
@click.argument("name")
@click.pass_context
def path(ctx: click.Context, name: str) -> None:
    """Print the path of the toolchain's interpreter, for use in scripts."""
    from kbtools.toolchains import environments

    click.echo(environments.find_environment(config_of(ctx), name).python)


@click.command(short_help="Show the toolchain, as evidence records it.")
@TOOLCHAIN
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def env(ctx: click.Context, toolchain: str | None, as_json: bool) -> None:
    """Show the versions, GPU and compiler of a toolchain, as evidence records them."""
    from kbtools.reports import text
    from kbtools.toolchains import environments

    where = environments.find_environment(config_of(ctx), toolchain)
    holds = environments.toolchain_of(where)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(holds)))
        return
    for key, value in text.toolchain_rows(holds, where.python, environments.sandbox_states(where)):
        click.echo(f"{click.style(key, bold=True):<28} {value}")
