"""The board, articles × toolchains, as Markdown and as JSON."""

from __future__ import annotations

import msgspec

from kbtools.evidence.board import Board


def as_markdown(board: Board) -> str:
    """The board as a table of Markdown, and the toolchains that its columns stand for."""
    columns = [f"T{i}" for i, _ in enumerate(board.toolchains, 1)]
    lines = [f"| | {' | '.join(columns)} |", f"| --- |{' :-: |' * len(columns)}"]
    for article, cells in board.rows:
        lines.append(f"| {article} | {' | '.join(one.mark for one in cells)} |")
    lines += ["", "✗ fails · ✓ does not fail · ! contradicts the article · r only reported", ""]
    lines += [
        f"- {name}: {toolchain.label(board.headline)}"
        for name, toolchain in zip(columns, board.toolchains, strict=True)
    ]
    return "\n".join(lines) + "\n"


def as_json(board: Board) -> bytes:
    """`{"schema", "toolchains": [{"id", "label", …}], "articles": [{"id", "cells": {id: …}}]}`."""
    ids = [toolchain.identity[:12] for toolchain in board.toolchains]
    whole = {
        "schema": 1,
        "toolchains": [
            {"id": name, "label": one.label(board.headline), "toolchain": one}
            for name, one in zip(ids, board.toolchains, strict=True)
        ],
        "articles": [
            {"id": article, "cells": dict(zip(ids, cells, strict=True))}
            for article, cells in board.rows
        ],
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"
