"""The signatures for a browser, on shelves: it fetches those that its text may be about, not all.

The whole index grows by 250 bytes an article, compressed. A browser reads `head.json` first: the
rules and, of every literal, a number that stands for a few of its characters. Where a text has such
characters it fetches the shelf, which has the articles. The twin of this module, which reads what
is written here, is `site/assets/matching/shelves.js`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from kbtools.matching import Index, IndexEntry

FOLDER = "paste/signatures"
GRAM = 8
"""Characters of a literal that stand for it."""
SHELF = 48
"""Numbers on a shelf."""
SHARED = 12
"""Literals that may have the same characters, if these stand for several of them."""
BASE, MIX, DROPPED = 0x01000193, 0x9E3779B1, 8
"""Of `number_of`: any odd number would do, and 24 bits are left."""
WORD = 0xFFFFFFFF


class Head(msgspec.Struct, frozen=True):
    """`head.json`: what a browser needs before it knows which shelves it needs."""

    count: int
    """Articles on all shelves."""
    index: Index
    """The rules, and the articles with a literal shorter than `gram`, which any text may have."""
    gram: int
    shelf: int
    numbers: tuple[int, ...]
    """Of all shelves, ascending; each is the distance from the one before it."""


def files(index: Index) -> Iterator[tuple[str, bytes]]:
    """The head and the shelves: path → content."""
    shelves = shelves_of(index)
    numbers = sorted(number for shelf in shelves for number in shelf[0])
    distances = tuple(b - a for a, b in zip((0, *numbers), numbers, strict=False))
    always = tuple(
        entry
        for entry in index.entries
        if any(len(signature.literal) < GRAM for signature in entry.signatures)
    )
    rules = msgspec.structs.replace(index, articles=always, notices=(), gpus={}, families={})
    head = Head(len(index.articles), rules, GRAM, SHELF, distances)
    yield f"{FOLDER}/head.json", msgspec.json.encode(head)
    for place, (_, entries) in enumerate(shelves):
        yield f"{FOLDER}/{place}.json", msgspec.json.encode(entries)


def shelves_of(index: Index) -> list[tuple[list[int], list[IndexEntry]]]:
    """The numbers of each shelf, and the articles that have a literal with one of them."""
    grams = Counter(
        gram
        for entry in index.entries
        for signature in entry.signatures
        for gram in set(_grams(signature.literal))
    )
    pairs = [(s.literal, entry) for entry in index.entries for s in entry.signatures]
    owners: dict[int, list[IndexEntry]] = {}
    # short literals have least choice; longer ones stand beside them if they can, since a text with
    # both then needs one shelf
    for literal, entry in sorted(pairs, key=lambda pair: len(pair[0])):
        if candidates := list(_grams(literal)):
            # the rarest: what many literals have would fetch them all
            shared = [g for g in candidates if grams[g] <= SHARED and number_of(g) in owners]
            rarest = min(shared or candidates, key=lambda gram: grams[gram])
            owners.setdefault(number_of(rarest), []).append(entry)
    numbers = sorted(owners)
    parts = [numbers[start : start + SHELF] for start in range(0, len(numbers), SHELF)]
    return [
        (part, list({entry.id: entry for n in part for entry in owners[n]}.values()))
        for part in parts
    ]


def _grams(literal: str) -> Iterable[str]:
    return (literal[start : start + GRAM] for start in range(len(literal) - GRAM + 1))


def number_of(gram: str) -> int:
    """A number of 24 bits; that of the next gram of a text follows from it in a few operations."""
    value = 0
    for character in gram:
        value = (value * BASE + ord(character)) & WORD
    return (((value ^ (value >> 15)) * MIX) & WORD) >> DROPPED
