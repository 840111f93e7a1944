"""The board, articles × toolchains, as Markdown and as JSON."""

from __future__ import annotations

import msgspec

from kbtools.evidence.board import Board, Cell
from kbtools.toolchains.model import Toolchain


class _Column(msgspec.Struct, frozen=True):
    id: str
    label: str
    toolchain: Toolchain


class _Row(msgspec.Struct, frozen=True):
    id: str
    cells: dict[str, Cell]
    """By the ids of the columns."""


class _Document(msgspec.Struct, frozen=True):
    schema: int
    toolchains: list[_Column]
    articles: list[_Row]


def as_markdown(board: Board) -> str:
    """The board as a table of Markdown, and the toolchains that its columns stand for."""
    columns = [f"T{number}" for number, _ in enumerate(board.toolchains, 1)]
    lines = [f"| | {' | '.join(columns)} |", f"| --- |{' :-: |' * len(columns)}"]
    for article, cells in board.rows:
        lines.append(f"| {article} | {' | '.join(cell.mark for cell in cells)} |")
    lines += ["", "✗ fails · ✓ does not fail · ! contradicts the article · r only reported", ""]
    lines += [
        f"- {column}: {toolchain.label(board.headline)}"
        for column, toolchain in zip(columns, board.toolchains, strict=True)
    ]
    return "\n".join(lines) + "\n"


def as_json(board: Board) -> bytes:
    """`{"schema", "toolchains": [{"id", "label", …}], "articles": [{"id", "cells": {id: …}}]}`."""
    columns = [
        _Column(toolchain.identity[:12], toolchain.label(board.headline), toolchain)
        for toolchain in board.toolchains
    ]
    ids = [column.id for column in columns]
    rows = [_Row(article, dict(zip(ids, cells, strict=True))) for article, cells in board.rows]
    document = _Document(1, columns, rows)
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
