"""What all commands share: help, how a command is imported, the error without kbtools.toml."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from commands import run_command

from kbtools import __version__, config
from kbtools.cli import main

ROOT = Path(__file__).parent.parent
COMMANDS = main.list_commands(click.Context(main))


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help(name: str) -> None:
    """The help of every command says what it does and names every option and argument."""
    result = run_command(None, *([name] if name else []), "--help")
    assert result.exit_code == 0
    command = main.get_command(click.Context(main), name) if name else main
    assert command and command.help
    text = " ".join(result.stdout.split())
    assert command.help.split(".")[0].replace("\n", " ") in text
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert all(word in text for word in parameter.opts)
        else:
            assert parameter.make_metavar(click.Context(command)) in text


def test_help_lists_every_command() -> None:
    """`kbtools --help` has a line for every command of `kbtools/cli`, and cuts none of them."""
    text = run_command(None, "--help").stdout
    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert "..." not in text.partition("Options:")[2]
    modules = {path.rpartition(".")[0] for path in main.imports.values()}
    assert modules == {
        f"kbtools.cli.{file.stem}"
        for file in (ROOT / "kbtools" / "cli").glob("*.py")
        if re.search(r"^@click\.(command|group)", file.read_text("utf-8"), re.MULTILINE)
        and file.stem != "group"
    }


def test_a_misspelt_command() -> None:
    """The command that was probably meant is proposed, and the exit code is 2."""
    result = run_command(None, "verfy")
    assert result.exit_code == 2
    assert "verify" in result.stderr


@pytest.mark.parametrize("module", ["kbtools", "kbtools.cli"])
def test_run_as_a_module(module: str) -> None:
    """`python -m kbtools` is `kbtools`."""
    command = [sys.executable, "-m", module, "--version"]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stdout.startswith("kbtools, version ")


def test_a_command_imports_only_its_own_module() -> None:
    """`kbtools run` does not wait for what the other commands import."""
    code = (
        "import sys\nfrom kbtools.cli import main\n"
        "try: main(['run', '--', 'true'])\nexcept SystemExit: print(*sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    modules = set(process.stdout.split())
    assert {name for name in modules if name.startswith("kbtools.cli.")} == {
        *("kbtools.cli.group", "kbtools.cli.lazy", "kbtools.cli.run")
    }
    assert not modules & {"msgspec", "rich", "yaml", "kbtools.config", "kbtools.matching"}


READING = (
    *("explain", "search", "list", "matrix", "bounds", "link", "env", "diagnose", "verify"),
    *("known", "claims", "doctor", "fits"),
)
"""Serve the knowledge base that came with kbtools where there is none around them."""
ANYWHERE = ("init", "rules", "run", "mcp", "answer", "comment", *READING)
"""Need no knowledge base around them."""


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ANYWHERE])
def test_outside_a_knowledge_base(name: str, tmp_path: Path) -> None:
    """Where there is no kbtools.toml, a command exits with 2 and says how to get one."""
    words = {
        "new": ["title"],
        "bisect": ["KB0001", "--package", "numpy"],
        "toolchain": ["list"],
        "tables": ["sync"],
        "evidence": ["merge", "."],
        "referee": ["KB0001"],
    }.get(name, [])
    result = run_command(tmp_path, name, *words)
    assert result.exit_code == 2
    assert "kbtools init" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        ["explain", "kb2"],
        ["search", "--json", "memory"],
        ["list", "--json"],
        ["matrix", "--json"],
        ["bounds", "KB0015"],
        ["link", "KB0002", "--format", "threads"],
        ["env", "--json"],
        ["diagnose", "--json", __file__],
        ["verify", "KB0002", "--role", "deadend", "--needs", "gpus:9"],
    ],
    ids=lambda words: words[0],
)
def test_a_reading_command_says_which_base_it_serves(words: list[str], tmp_path: Path) -> None:
    """Away from any base, it is the one that came with kbtools; standard output is the same."""
    assert words[0] in READING
    away, at_home = run_command(tmp_path, *words), run_command(ROOT, *words)
    seconds = re.compile(r"in \d+\.\d s")
    assert seconds.sub("", away.stdout) == seconds.sub("", at_home.stdout)
    assert away.exit_code == at_home.exit_code
    name = config.find(ROOT).knowledge_base.name
    note = f"kbtools: no kbtools.toml here or above; this is `{name}`, "
    assert away.stderr.startswith(note)
    assert away.stderr.partition("\n")[0].endswith(f", which came with kbtools {__version__}")
    assert "kbtools.toml" not in at_home.stderr


def test_what_came_with_kbtools_is_not_written_to(tmp_path: Path) -> None:
    """Evidence is recorded in a knowledge base, published addresses too."""
    for words in (["verify", "KB0002", "--record"], ["link", "--publish"]):
        result = run_command(tmp_path, *words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "go to a knowledge base" in result.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[knowledge-base\n", "1"),
        ('[knowledge-base]\nname = "a"\n', "prefix"),
        ('[knowledge-base]\nname = "a"\nprefix = "A"\nprefixes = 1\n', "prefixes"),
        ('[knowledge-base]\nname = "a"\nprefix = 3\n', "prefix"),
        ('[knowledge-base]\nname = "a"\nprefix = "A"\n[run]\ntimeout = "long"\n', "run.timeout"),
        ('[knowledge-base]\nname = "a"\nprefix = "A"\nlanguages = []\n', "languages"),
        ('[knowledge-base]\nname = "a"\nprefix = ""\n', "prefix"),
        ('[knowledge-base]\nname = "a"\nprefix = "A"\n[article]\nstages = []\n', "stages"),
        ("\ufeff\x00", ""),
    ],
)
def test_malformed_configuration(text: str, why: str, tmp_path: Path) -> None:
    """A kbtools.toml that will not do is named, with what is wrong, and the exit code is 2."""
    (tmp_path / "kbtools.toml").write_text(text, "utf-8")
    for words in (["check"], ["list"], ["new", "title"]):
        result = run_command(tmp_path, *words)
        assert result.exit_code == 2
        assert str(tmp_path / "kbtools.toml") in result.stderr
        assert why in result.stderr
    assert not (tmp_path / "kb").exists()
