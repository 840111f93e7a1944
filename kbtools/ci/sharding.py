"""A run cut into parts for several machines: balanced, and stable when articles are added."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kbtools.articles.model import Snippet

UNKNOWN = 2.0
"""Seconds that a snippet is taken to need when no run of it is recorded."""


class Shard(msgspec.Struct, frozen=True):
    """One part of several, numbered from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def parse(text: str) -> Shard:
    """A shard as it is written: `2/8`.

    Raises:
        ValueError: the text is not a shard.
    """
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if not match or int(match[1]) > int(match[2]):
        raise ValueError(f"`{text}` is not a shard, as in 2/8")
    return Shard(int(match[1]), int(match[2]))


def part(snippets: Iterable[Snippet], shard: Shard, seconds: Mapping[str, float]) -> set[str]:
    """The names of the snippets of one shard.

    In the order of their ids each snippet goes to the shard with the least work so far. A new
    article has the highest id, so it moves no snippet of the others. Seconds are rounded up to a
    power of two, so that a run that took a little longer moves none either.

    What a machine can overlap least is shared out for itself: snippets that want whole GPUs or
    several, and those that want a place on one. The others make up for what is uneven then.

    Args:
        snippets: All snippets of the run.
        shard: Which part.
        seconds: Name of a snippet → what it takes; snippets without an entry take `UNKNOWN`.
    """
    totals = [0.0] * shard.of
    by_queue: dict[str, list[float]] = {}
    names = set()
    for snippet in _in_order(snippets):
        loads = by_queue.setdefault(_queue(snippet), [0.0] * shard.of) if snippet.gpus else totals
        chosen = min(range(shard.of), key=lambda n: (loads[n], totals[n], n))
        weight = _weight(seconds.get(snippet.name, UNKNOWN))
        totals[chosen] += weight
        if loads is not totals:
            loads[chosen] += weight
        if chosen == shard.number - 1:
            names.add(snippet.name)
    return names


def _queue(snippet: Snippet) -> str:
    """Of the queues of `kbtools.verification.schedule`, the one in which it waits for a GPU."""
    return "whole" if snippet.alone or snippet.gpus > 1 else "shared"


def _in_order(snippets: Iterable[Snippet]) -> Sequence[Snippet]:
    return sorted(snippets, key=lambda snippet: (snippet.article, snippet.place.line))


def _weight(seconds: float) -> float:
    return 2.0 ** math.ceil(math.log2(max(seconds, 1 / 16)))
