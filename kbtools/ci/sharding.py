"""A run cut into parts for several machines: balanced, and stable when articles are added."""

from __future__ import annotations

import heapq
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kbtools.articles.model import Article, Snippet
from kbtools.config import Config
from kbtools.evidence import store

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
        ValueError: it is none.
    """
    found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if not found or int(found[1]) > int(found[2]):
        raise ValueError(f"`{text}` is no part as in 2/8")
    return Shard(int(found[1]), int(found[2]))


def recorded_seconds(articles: Iterable[Article], config: Config) -> dict[str, float]:
    """Name of a snippet → the seconds that it took, in the median of what is recorded of it."""
    known = {}
    for one in articles:
        rows = store.read(config.evidence, one.id)
        for snippet in one.snippets:
            found = [row.outcome.seconds for row in store.of_snippet(rows, snippet)]
            if found:
                known[snippet.name] = statistics.median(found)
    return known


def part(snippets: Iterable[Snippet], shard: Shard, seconds: Mapping[str, float]) -> set[str]:
    """The names of the snippets of one shard.

    In the order of their ids each goes to the shard that has least so far. An article that is
    added has the highest id and moves none of those before it; and as seconds only count as the
    next power of two, a run that took a little longer moves none either.
    """
    loads = [(0.0, number) for number in range(1, shard.of + 1)]
    mine = set()
    for snippet in _in_order(snippets):
        load, number = heapq.heappop(loads)
        heapq.heappush(loads, (load + _weight(seconds.get(snippet.name, UNKNOWN)), number))
        if number == shard.number:
            mine.add(snippet.name)
    return mine


def _in_order(snippets: Iterable[Snippet]) -> Sequence[Snippet]:
    return sorted(snippets, key=lambda snippet: (snippet.article, snippet.place.line))


def _weight(seconds: float) -> float:
    return 2.0 ** math.ceil(math.log2(max(seconds, 1 / 16)))
