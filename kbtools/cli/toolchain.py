"""`kbtools toolchain` and `env`: build, list, remove and describe the environments of tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
import msgspec

from kbtools.cli.group import TOOLCHAIN, config_of, config_to_read
from kbtools.config import KbtoolsError

if TYPE_CHECKING:
    from kbtools.toolchains.uv import ProgressCallback

GB = 10**9


@click.group(short_help="Build, list and remove toolchains.")
def toolchain() -> None:
    """Build, list and remove the environments that toolchains.toml declares."""


@toolchain.command("list", short_help="List the declared toolchains.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    """List the toolchains of toolchains.toml: states on this machine, sizes, and their sum."""
    from kbtools.toolchains import declared, environments

    config = config_of(ctx)
    home = environments.environments_folder(config)
    rows = [
        (
            name,
            declaration,
            environments.state_of(config, name, declaration),
            environments.read_build_record(home / name) if declaration.is_built else None,
        )
        for name, declaration in declared.read_declarations(config).items()
    ]
    if as_json:
        objects = [
            {
                "name": name,
                **msgspec.to_builtins(declaration),
                "state": state,
                "built": msgspec.to_builtins(record),
            }
            for name, declaration, state, record in rows
        ]
        click.echo(msgspec.json.format(msgspec.json.encode(objects)))
        return
    width = max([len(name) for name, *_ in rows], default=0)
    colours = {"ready": "green", "stale": "yellow", "broken": "red"}
    for name, declaration, state, record in rows:
        size = f"{record.size / GB:.2f} GB" if record else declaration.size_note.strip(" ()")
        line = (
            click.style(f"{name:<{width}}", bold=True),
            click.style(f"{state:<10}", fg=colours.get(state)),
            f"{size:<13}",
            declaration.purpose,
        )
        click.echo("  ".join(line).rstrip())
    if rows:
        together = sum(declaration.size_gb for _, declaration, *_ in rows)
        ready = sum(state == "ready" for _, _, state, _ in rows)
        click.echo(f"{len(rows)} toolchains, about {together:.4g} GB together; {ready} ready here")


@toolchain.command(short_help="Build environments, or bring them up to date.")
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option("--all", "everything", is_flag=True, help="Build all that toolchains.toml declares.")
@click.pass_context
def sync(ctx: click.Context, names: tuple[str, ...], everything: bool) -> None:
    """Build the toolchains NAME... that are missing or differ from toolchains.toml.

    An older environment is replaced only when the new one is complete. The exit code is 2 if one of
    them could not be built.
    """
    from kbtools.toolchains import declared, sync

    config = config_of(ctx)
    declarations = declared.read_declarations(config)
    if everything:
        built = (name for name, declaration in declarations.items() if declaration.is_built)
        names = tuple(dict.fromkeys((*names, *built)))
    if everything and not names:
        click.echo("toolchains.toml declares no toolchain that is built")
        return
    if not names:
        raise click.UsageError("name some toolchains, or all of them with --all")
    # a terminal that is closed: end as on Ctrl-C, with what is half-built removed
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    failed = False
    for name in names:
        try:
            size = declarations[name].size_gb if name in declarations else 0.0
            with progress(name, size) as report:
                record, changed = sync.sync(config, name, report)
        except KbtoolsError as error:
            failed = True
            click.echo(f"kbtools: {error}", err=True)
            continue
        except KeyboardInterrupt:
            click.echo(
                f"\nkbtools: interrupted; nothing half-built of {name} is left, and what "
                "uv has in its cache is not downloaded again",
                err=True,
            )
            raise
        linked = f", {record.shared / GB:.2f} GB of it linked from uv's cache"
        shared = linked if record.shared else ""
        how = f"in {record.seconds:.0f} s with {record.installer}" if changed else "there already"
        click.echo(f"{click.style(name, bold=True)}: {record.size / GB:.2f} GB{shared}, {how}")
    sys.exit(2 if failed else 0)


@contextmanager
def progress(name: str, gigabytes: float) -> Iterator[ProgressCallback]:
    """Shows the progress of a build: a live line on a terminal, a line for each step elsewhere.

    Args:
        name: of the toolchain.
        gigabytes: its declared size, in 10⁹ bytes; 0: unknown.
    """
    about = f" of about {gigabytes:.2f}" if gigabytes else ""
    if not sys.stderr.isatty():
        last = ""

        def line(activity: str, size: int | None) -> None:
            nonlocal last
            if activity != last:
                so_far = f" [{size / GB:.2f}{about} GB]" if size else ""
                click.echo(f"{name}: {activity}{so_far}", err=True)
            last = activity

        yield line
        return

    from rich.console import Console
    from rich.status import Status
    from rich.text import Text

    console = Console(stderr=True)
    with Status(name, console=console) as status:

        def live(activity: str, size: int | None) -> None:
            if size is None:
                console.print(Text(f"{name}: {activity}"), soft_wrap=True)
                return
            text = Text(f"{name}  {size / GB:.2f}{about} GB  {activity}", overflow="ellipsis")
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

    config = config_of(ctx)
    home = environments.environments_folder(config)
    declarations = declared.read_declarations(config)
    complete = dict(sync.complete_environments(home))
    for name in names:
        if name not in declarations and name not in complete:
            raise environments.UnknownToolchain(
                f"no toolchain `{name}`, neither declared nor in {home}"
            )
    undeclared = [name for name in complete if name not in declarations]
    interrupted = [] if names else sync.interrupted_builds(home)
    if not names and os.environ.get(environments.FOLDER):
        for name in undeclared:
            click.echo(
                f"{name}: not declared here, left alone; see: kbtools toolchain prune {name}"
            )
        undeclared = []
    for name in names or undeclared:
        freed = sync.prune(home, name)
        click.echo(f"removed {name}: {freed / GB:.2f} GB freed")
    for name in interrupted:
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

    environment = environments.find_environment(config_to_read(ctx), toolchain)
    description = environments.toolchain_of(environment)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(description)))
        return
    sandbox = environments.sandbox_states(environment)
    for key, value in text.toolchain_rows(description, environment.python, sandbox):
        click.echo(f"{click.style(key, bold=True):<28} {value}")
