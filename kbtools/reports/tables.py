"""Rows of tables as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

import click

from kbtools.tables.model import Origin, Release, Statement

MANY = 40
"""More values than these are counted, not listed."""


def row(line: Release | Statement) -> str:
    """A row with where it was read."""
    return "\n".join(_release(line) if isinstance(line, Release) else _statement(line))


def origin(source: Origin, basis: str, day: object) -> str:
    """Where a row was read, as in `torch-2.9.0….whl sha256:8f25033b8667, read 2026-11-23`."""
    digest = f" sha256:{source.sha256[:12]}" if source.sha256 else ""
    return f"{source.file}{digest}, {'read' if basis == 'measured' else 'reported, read'} {day}"


def _release(release: Release) -> Iterator[str]:
    title = f"{release.package} {release.version}"
    yield f"{click.style(title, bold=True)}  {release.platform}  {release.uploaded or ''}".rstrip()
    if release.tags:
        yield f"  wheels for {', '.join(release.tags)}"
    if release.requires_python:
        yield f"  Python {release.requires_python}"
    for name, values in release.facts.items():
        many = f"{len(values)}, in --json"
        yield f"  {name}: {many if len(values) > MANY else ' '.join(values) or 'none'}"
    for requirement in release.requires or ():
        yield f"  requires {requirement}"
    if release.requires is None:
        yield "  its requirements are not known: the source archive does not list them"
    yield f"  {origin(release.source, release.basis, release.date)}"


def _statement(statement: Statement) -> Iterator[str]:
    yield click.style(condition(statement.about), bold=True)
    if statement.works is not None:
        yield f"  {'works' if statement.works else 'does not work'}"
    if statement.needs:
        yield f"  needs {condition(statement.needs)}"
    for name, values in statement.facts.items():
        yield f"  {name}: {' '.join(values)}"
    if statement.note:
        yield f"  {statement.note}"
    yield f"  {origin(statement.source, statement.basis, statement.date)}"


def condition(ranges: dict[str, str]) -> str:
    """Ranges in words, as in `driver >=580`."""
    return ", ".join(f"{name} {text}" for name, text in ranges.items())
