"""For people: how good the answers about public threads were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kbtools.matching.threads import Row, Shares


def shares(name: str, result: Shares) -> str:
    """How many threads were answered how: each share with its counts, then each confusion."""
    lines = [
        f"{name}: {result.threads} threads, {result.failures} about a failure that has an article",
        f"  recall at 1              {_share(result.right, result.failures)}",
        f"  precision of all answers {_share(result.right, result.answered)}",
        f"  precision, sure ones     {_share(result.sure - result.surely_wrong, result.sure)}",
        *_firsts(result),
        *(f"  {count} × {pair}" for pair, count in result.confused.items()),
    ]
    if result.no_text:
        lines.append(f"  no text of {len(result.no_text)}: {', '.join(result.no_text)}")
    return "\n".join(lines)


def _firsts(result: Shares) -> Iterator[str]:
    if result.firsts:
        yield f"  what failed first        {_share(result.firsts_right, result.firsts)}"
        yield f"  first, surely wrong      {_share(result.firsts_surely_wrong, result.firsts)}"


def not_right(rows: Iterable[Row]) -> Iterator[str]:
    """A line for each thread that was answered wrong, or not."""
    for row in rows:
        if row.verdict in ("wrong", "missed", "false alarm"):
            expected = " or ".join(row.expected) or "none"
            answer = ", ".join(row.answer) or "none"
            sure = " (sure)" if row.sure else ""
            yield f"  {row.verdict}: {row.thread}: expected {expected}, got {answer}{sure}"


def _share(part: int, total: int) -> str:
    return f"{100 * part / total:5.1f} % ({part} of {total})" if total else "  –   (0 of 0)"
