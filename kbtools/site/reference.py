"""Pages about kbtools itself, from its code: the rules, the commands, the modules."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import click

import kbtools
from kbtools.checks.rules import RULES
from kbtools.config import Config

FOLDER = "reference"
INTERNAL = {"__main__", "cli", "site", "running", "templates", "uv", "disk_usage", "pip_settings"}
"""Modules that only kbtools itself imports."""

_HEAD = "---\ntitle: {title}\n---\n\n# {title}\n\n"


def pages(config: Config, commands: click.Command) -> Iterator[tuple[str, bytes]]:
    """The pages that the knowledge base asks for in `[site] reference`, paths in the tree first.

    `commands` is the command line, which this layer cannot import.
    """
    kinds = config.site.reference
    if "rules" in kinds:
        yield f"{FOLDER}/rules.md", rules().encode()
    if "cli" in kinds:
        yield f"{FOLDER}/cli.md", command_line(commands).encode()
    if "api" in kinds:
        modules = tuple(public_modules())
        yield f"{FOLDER}/api/index.md", api(modules).encode()
        for name in modules:
            yield f"{FOLDER}/api/{name}.md", module(name).encode()


def rules() -> str:
    """Every rule of `kbtools check`, with the docstring of its function."""
    parts = (
        f"## {rule.code} {rule.name} {{#{rule.code.lower()}}}\n\n{rule.page}\n" for rule in RULES
    )
    head = _HEAD.format(title="Rules") + "What `kbtools check` holds every article to.\n\n"
    return head + "\n".join(parts)


def command_line(command: click.Command, name: str = "kbtools") -> str:
    """Every command, with its arguments and options."""
    parts = [_HEAD.format(title="Commands")]
    for words, subcommand in _walk(command, (name,)):
        parts.append(_command(" ".join(words), subcommand, len(words)))
    return "\n".join(parts)


def _walk(
    command: click.Command, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if not isinstance(command, click.Group):
        return
    context = click.Context(command)
    for name in sorted(command.list_commands(context)):
        inner = command.get_command(context, name)
        if inner and not inner.hidden:
            yield from _walk(inner, (*words, name))


def _command(words: str, command: click.Command, depth: int) -> str:
    context = click.Context(command, info_name=words)
    usage = " ".join([words, *command.collect_usage_pieces(context)])
    lines = [f"{'#' * max(depth, 2)} `{words}`", "", text(command.help or ""), ""]
    lines += ["```sh", usage, "```", ""]
    records = [
        record for p in command.get_params(context) if (record := p.get_help_record(context))
    ]
    if records:
        lines += ["| option | meaning |", "| --- | --- |"]
        lines += [
            f"| `{option.replace('|', chr(92) + '|')}` | {text(meaning)} |"
            for option, meaning in records
        ]
        lines.append("")
    return "\n".join(lines)


def text(help_text: str) -> str:
    """A help text as Markdown: in it nothing is markup but code between backticks."""
    paragraphs = re.split(r"\n\s*\n", help_text.replace("\b", "").strip())
    help_text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    parts = re.split(r"(`[^`]+`)", help_text)
    return "".join(
        part
        if part.startswith("`") and len(part) > 2
        else re.sub(r"([\\*_\[\]<>|])", r"\\\1", part)
        for part in parts
    )


def public_modules() -> Iterator[str]:
    """The modules that a program may import, by name below `kbtools`."""
    for module in pkgutil.walk_packages(kbtools.__path__, "kbtools."):
        name = module.name.removeprefix("kbtools.")
        if not INTERNAL & set(name.split(".")):
            yield name


def api(modules: Iterable[str]) -> str:
    """The list of the modules."""
    lines = [_HEAD.format(title="Modules"), "What a program may import.", ""]
    lines += ["| module | what it is |", "| --- | --- |"]
    lines += [f"| [`kbtools.{name}`]({name}.md) | {text(about(name))} |" for name in modules]
    return "\n".join(lines) + "\n"


def about(name: str) -> str:
    """The first paragraph of a module's docstring; the module is not run for it."""
    spec = find_spec(f"kbtools.{name}")
    assert spec and spec.origin
    tree = ast.parse(Path(spec.origin).read_bytes())
    return (ast.get_docstring(tree) or "").partition("\n\n")[0]


def module(name: str) -> str:
    """The page of a module: mkdocstrings fills it from the docstrings."""
    return f"{_HEAD.format(title=f'kbtools.{name}')}::: kbtools.{name}\n"
