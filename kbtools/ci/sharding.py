"""A run cut into parts for several machines: balanced, and stable when articles are added."""

from __future__ import annotations

import heapq
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

    Args:
        snippets: All snippets of the run.
        shard: Which part.
        seconds: Name of a snippet → what it takes; snippets without an entry take `UNKNOWN`.
    """
    loads = [(0.0, number) for number in range(1, shard.of + 1)]
    names = set()
    for snippet in _in_order(snippets):
        load, number = heapq.heappop(loads)
        heapq.heappush(loads, (load + _weight(seconds.get(snippet.name, UNKNOWN)), number))
        if number == shard.number:
            names.add(snippet.name)
    return names


def _in_order(snippets: Iterable[Snippet]) -> Sequence[Snippet]:
    return sorted(snippets, key=lambda snippet: (snippet.article, snippet.place.line))


def _weight(seconds: float) -> float:
    return 2.0 ** math.ceil(math.log2(max(seconds, 1 / 16)))
