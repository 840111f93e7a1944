"""Statements that a script of the knowledge base prints about the toolchain that runs it."""

from __future__ import annotations

import datetime
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from kbtools.config import Config
from kbtools.running.environment import base_environment
from kbtools.tables.declared import Program, TablesError
from kbtools.tables.model import Origin, Statement
from kbtools.tables.store import read_statements
from kbtools.toolchains.declared import find_declaration
from kbtools.toolchains.environments import environments_folder, read_build_record

LAST = 400
"""Characters of a script's last words that an error shows."""


class Printed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of JSON that a script prints."""

    about: dict[str, str]
    works: bool | None = None
    needs: dict[str, str] = {}
    facts: dict[str, tuple[str, ...]] = {}
    note: str = ""


def statements_on(
    config: Config, name: str, program: Program, toolchain: str
) -> tuple[Statement, ...]:
    """The rows of a table, with those that its script prints on one more toolchain in front.

    Raises:
        TablesError: the script fails, or the toolchain is not built here.
    """
    python = _python(config, toolchain)
    if python is None:
        raise TablesError(f"{toolchain} is not built here; next: kbtools toolchain sync")
    source = Origin(f"{program.script} on {toolchain}")
    others = [row for row in read_statements(config, name) if row.source != source]
    return (*_run(config, program, python, source), *others)


def is_for(program: Program, toolchain: str) -> bool:
    """Whether a program runs on the toolchain that another one is derived from, or on that."""
    base = toolchain.partition("@")[0]
    return any(name.partition("@")[0] == base for name in program.toolchains)


def statements(
    config: Config, name: str, program: Program, say: Callable[[str], None]
) -> tuple[Statement, ...]:
    """What a script prints on each of its toolchains; of one that is not built, the rows stay.

    Raises:
        TablesError: the script fails, or no toolchain of it is here.
    """
    before = read_statements(config, name)
    rows: list[Statement] = []
    ran = False
    for toolchain in program.toolchains or ("",):
        source = Origin(f"{program.script} on {toolchain}" if toolchain else program.script)
        python = _python(config, toolchain) if toolchain else Path(sys.executable)
        if python is None:
            say(f"{toolchain} is not built here: its rows stay; next: kbtools toolchain sync")
            rows += [row for row in before if row.source == source]
            continue
        say(source.file)
        rows += _run(config, program, python, source)
        ran = True
    if not ran:
        raise TablesError(f"{name}: none of its toolchains is built here")
    return tuple(rows)


def _python(config: Config, toolchain: str) -> Path | None:
    """The interpreter of a toolchain that is built here.

    Raises:
        TablesError: toolchains.toml has no such toolchain.
    """
    if find_declaration(config, toolchain) is None:
        raise TablesError(f"tables.toml: no toolchain `{toolchain}` in toolchains.toml")
    home = environments_folder(config) / toolchain
    return home / "bin" / "python" if read_build_record(home) else None


def _run(config: Config, program: Program, python: Path, source: Origin) -> list[Statement]:
    today = datetime.datetime.now(datetime.UTC).date()
    script = config.root / program.script
    helpers = Path(__file__).parent.parent / "repro.py"
    with tempfile.TemporaryDirectory(prefix="kbtools-") as folder:
        # as snippets do, scripts import `kbtools.repro` from a package of that file alone
        package = Path(folder) / "kbtools"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "repro.py").write_bytes(helpers.read_bytes())
        variables = {"PYTHONPATH": folder, "HOME": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        caches = {
            key: value.replace("{cache}", folder) for key, value in config.run.variables.items()
        }
        try:
            done = subprocess.run(
                [str(python), str(script)],
                # the toolchain's own programs come first on its PATH
                env={**base_environment(str(python), config.run), **caches, **variables},
                cwd=folder,
                capture_output=True,
                timeout=program.timeout,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TablesError(f"{source.file}: {error}") from error
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip()[-LAST:]
        raise TablesError(f"{source.file} ends with {done.returncode}: {last}")
    try:
        lines = [msgspec.json.decode(line, type=Printed) for line in done.stdout.splitlines()]
    except msgspec.MsgspecError as error:
        raise TablesError(f"{source.file}: {error}") from error
    return [
        Statement(
            about=line.about,
            source=source,
            date=today,
            basis="measured",
            works=line.works,
            needs=line.needs,
            facts=line.facts,
            note=line.note,
        )
        for line in lines
    ]
