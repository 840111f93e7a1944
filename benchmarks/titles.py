"""Whether `kbtools search` finds the page of a public thread by the first line of its text.

    python benchmarks/titles.py FOLDER …

A folder holds the texts of threads, as `owner__repo__12.txt`; benchmarks/threads/README.md says how
they are looked up. The pointers with the pages that are right lie in benchmarks/threads. The first
line of a text is its title in most of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.matching.search import documents_of_base, search

ROOT = Path(__file__).parent.parent
PLACES = (1, 3, 5, 10)
LABEL = re.compile(r"^(?:# |title:|\[?bug\]?:?)\s*", re.IGNORECASE)
"""What stands before a title."""


def questions(folders: list[Path]) -> Iterator[tuple[str, list[str]]]:
    """The title of each thread whose text is at hand, and the pages that are right for it."""
    texts = {file.stem: file for folder in folders for file in sorted(folder.glob("*.txt"))}
    for pointers in sorted((ROOT / "benchmarks" / "threads").glob("*.jsonl")):
        if "scoring" in pointers.name:
            continue
        for line in pointers.read_bytes().splitlines():
            pointer = msgspec.json.decode(line)
            file = texts.pop(re.sub("[/#]", "__", pointer.get("thread", "")), None)
            if file and pointer.get("expected"):
                lines = file.read_text("utf-8").strip().splitlines()
                yield LABEL.sub("", lines[0]) if lines else "", pointer["expected"]


def main(folders: list[Path]) -> None:
    """Prints how many titles have the right page among the first hits."""
    base = load_base(config.find(ROOT))
    documents = [*documents_of_base(base.articles, base.pages, base.notices)]
    places = []
    for title, expected in questions(folders):
        hits = [hit.id for hit in search(documents, title)]
        places.append(min((hits.index(page) for page in expected if page in hits), default=None))
    print(f"{len(places)} titles, {places.count(None)} of them without the right page")
    for number in PLACES:
        right = sum(place is not None and place < number for place in places)
        print(f"the right page among the first {number:2}: {right} ({right / len(places):.0%})")


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    main([Path(folder) for folder in sys.argv[1:]])
