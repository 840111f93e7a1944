"""`kbtools tables`: read what releases declare and contain, and show it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from kbtools.cli.group import config_of, config_to_read

if TYPE_CHECKING:
    from kbtools.config import Config
    from kbtools.tables.declared import Tables
    from kbtools.tables.model import Release, Statement


@click.group(short_help="Read what releases declare and contain.")
def tables() -> None:
    """Read the tables of tables.toml off wheels, sources and toolchains, and show them."""


@tables.command("list", short_help="List the tables.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    """List the declared tables with their number of rows and the newest day of reading."""
    from kbtools.tables import store

    base = store.read(config_to_read(ctx))
    rows = []
    for name in base.tables.names:
        lines = base.releases.get(name) or base.statements.get(name, ())
        day = max((line.date for line in lines), default=None)
        rows.append({"name": name, "rows": len(lines), "read": str(day or "")})
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(rows)))
        return
    width = max((len(str(row["name"])) for row in rows), default=0)
    for row in rows:
        name = click.style(f"{row['name']:<{width}}", bold=True)
        click.echo(f"{name}  {row['rows']:>5} rows  {row['read'] or 'not read yet'}")


@tables.command(short_help="Read releases, and write the tables.")
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option("--again", is_flag=True, help="Read files whose rows are there, too.")
@click.option(
    "--on",
    "toolchain",
    metavar="TOOLCHAIN",
    help="Run programs on this toolchain alone, and keep their other rows.",
)
@click.option(
    "--copy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Read the document of table NAME from this file, not from its address.",
)
@click.pass_context
def sync(
    ctx: click.Context,
    names: tuple[str, ...],
    again: bool,
    toolchain: str | None,
    copy: Path | None,
) -> None:
    """Write the tables NAME..., or all that are read off the package index and documents.

    Of a wheel only its metadata and what tables.toml asks for are downloaded, in parts. A row
    whose file was read before stays as it is. A table that a program makes is written only if it
    is named: its toolchains are used as they are built here. With --on, the programs NAME..., or
    all that run on the toolchain which TOOLCHAIN is derived from, run there. With --copy, a
    document is read from a file, as of a checkout; its rows name the address and the digest.

    The exit code is 2 if a table could not be written; the others are.
    """
    from kbtools.config import KbtoolsError
    from kbtools.tables import declared, programs, store, sync
    from kbtools.tables.declared import TablesError
    from kbtools.toolchains.pip_settings import read_pip_settings

    config = config_of(ctx)
    declarations = declared.read_tables(config)
    settings = read_pip_settings()
    if not declarations.names:
        click.echo("there is no tables.toml, or it declares no table")
        return

    def say(text: str) -> None:
        click.echo(f"  {text}", err=True)

    if copy and (len(names) != 1 or names[0] not in declarations.reported):
        raise click.UsageError("--copy needs the name of one table of a document")
    if toolchain:
        _sync_on(config, declarations, names, toolchain)
        return
    failed = False
    for name in names or (*declarations.distributions, *declarations.reported):
        try:
            if name in declarations.distributions:
                rows = sync.releases(config, name, declarations, settings, say, again=again)
                number, changed = len(rows), store.write(config, name, rows)
            elif name in declarations.programs:
                printed = programs.statements(config, name, declarations.programs[name], say)
                number, changed = len(printed), store.write(config, name, printed)
            elif name in declarations.reported:
                statements = () if again or copy else store.read_statements(config, name)
                reported = sync.reported(declarations.reported[name], settings, statements, copy)
                number, changed = len(reported), store.write(config, name, reported)
            else:
                raise TablesError(f"no table `{name}`; see: kbtools tables list")
        except KbtoolsError as error:
            failed = True
            click.echo(f"kbtools: {error}", err=True)
            continue
        word = "written" if changed else "as it was"
        click.echo(f"{click.style(name, bold=True)}: {number} rows, {word}")
    sys.exit(2 if failed else 0)


def _sync_on(config: Config, declarations: Tables, names: tuple[str, ...], toolchain: str) -> None:
    """Writes the tables of programs with the rows of one more toolchain."""
    from kbtools.tables import programs, store
    from kbtools.tables.declared import TablesError

    for name in names:
        if name not in declarations.programs:
            raise TablesError(f"`{name}` is not a table that a program makes")
    for name, program in declarations.programs.items():
        if name in names or (not names and programs.is_for(program, toolchain)):
            rows = programs.statements_on(config, name, program, toolchain)
            word = "written" if store.write(config, name, rows) else "as it was"
            click.echo(f"{click.style(name, bold=True)}: {len(rows)} rows, {word}")


@tables.command(short_help="Show the rows of a table.")
@click.argument("name")
@click.argument("versions", nargs=-1, metavar="VERSION...")
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON Lines.")
@click.pass_context
def show(ctx: click.Context, name: str, versions: tuple[str, ...], as_json: bool) -> None:
    """Show the rows of a table, or those of some of its versions, and where each was read."""
    from kbtools.reports import tables as printer
    from kbtools.tables import store
    from kbtools.tables.declared import TablesError

    base = store.read(config_to_read(ctx))
    if name not in base.tables.names:
        raise TablesError(f"no table `{name}`; see: kbtools tables list")
    releases = [r for r in base.releases.get(name, ()) if not versions or r.version in versions]
    rows: list[Release | Statement] = [*releases, *base.statements.get(name, ())]
    for row in rows:
        if as_json:
            click.echo(msgspec.json.encode(row))
        else:
            click.echo(printer.row(row))
