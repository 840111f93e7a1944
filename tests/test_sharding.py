"""A run in parts: all of it, nothing twice, balanced, stable, and the same evidence."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from bases import Base, fence

from kbtools.articles.model import ALWAYS, Keys, Place, Role, Snippet
from kbtools.ci import sharding
from kbtools.ci.sharding import Shard


def snippet(article: int, number: int) -> Snippet:
    """A snippet of an article with that number."""
    name = f"KB{article:04}"
    place = Place(f"kb/{name}-x.md", 10 * number)
    return Snippet(name, f"r{number}", Role.REPRO, "python", "", place, Keys(), ALWAYS)


def parts(snippets: list[Snippet], of: int, seconds: dict[str, float]) -> list[set[str]]:
    """The names of every shard."""
    return [sharding.part(snippets, Shard(n, of), seconds) for n in range(1, of + 1)]


SNIPPETS = [snippet(article, number) for article in range(1, 61) for number in range(1, 8)]
RANDOM = random.Random(4)
SECONDS = {s.name: RANDOM.choice([0.2, 0.5, 1, 3, 9, 30]) for s in SNIPPETS}


def test_every_snippet_is_in_one_shard() -> None:
    """The shards together are the whole, and none overlaps another, in whatever order given."""
    shards = parts(SNIPPETS, 8, SECONDS)
    assert sum(map(len, shards)) == len(SNIPPETS) == len(set().union(*shards))
    assert parts(SNIPPETS[::-1], 8, SECONDS) == shards


def test_balanced() -> None:
    """By recorded seconds no shard takes a third more than the mean."""
    loads = [sum(SECONDS[name] for name in shard) for shard in parts(SNIPPETS, 8, SECONDS)]
    assert max(loads) < 4 / 3 * sum(loads) / len(loads)


@pytest.mark.parametrize("requires", ["gpu", "gpus:1", "gpus:2"])
def test_gpus_are_balanced(requires: str) -> None:
    """Work on GPUs is shared out evenly, whatever else there is, and so is all work."""
    on_gpus = {s.name for s in SNIPPETS if int(s.article[2:]) % 3 == 0}
    snippets = [
        msgspec.structs.replace(s, keys=Keys(requires=requires if s.name in on_gpus else "cpu"))
        for s in SNIPPETS
    ]
    shards = parts(snippets, 8, SECONDS)
    for names in ({s.name for s in SNIPPETS}, on_gpus):
        loads = [sum(SECONDS[name] for name in shard & names) for shard in shards]
        assert max(loads) < 4 / 3 * sum(loads) / len(loads)


def test_stable() -> None:
    """An article that is added moves no snippet to another shard; nor does a little more time."""
    before = parts(SNIPPETS, 8, SECONDS)
    after = parts([*SNIPPETS, *(snippet(61, n) for n in range(1, 8))], 8, SECONDS)
    assert all(names <= more for names, more in zip(before, after, strict=True))
    longer = {name: seconds * 1.02 for name, seconds in SECONDS.items() if seconds not in (0.5, 1)}
    assert parts(SNIPPETS, 8, {**SECONDS, **longer}) == before


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "1/0", "a/b", "-1/2", "1/2/3"])
def test_not_a_shard(text: str) -> None:
    """A text that is not a shard is refused."""
    with pytest.raises(ValueError, match="is not a shard"):
        sharding.parse(text)


def comparable(folder: Path) -> dict[str, bytes]:
    """Evidence byte for byte, but for what no two runs agree on: times and memory."""
    varies = re.compile(rb'("seconds":|"cpu_seconds":|"peak_mib":)[\d.]+|("when":)"[^"]*"')
    return {
        file.name: varies.sub(rb"\1\2_", file.read_bytes())
        for file in sorted(folder.glob("*.jsonl"))
    }


def test_shards_merged_are_the_whole_run(base: Base, tmp_path: Path) -> None:
    """Eight shards merged in any order give the evidence of one run, times aside."""
    for number in range(1, 6):
        base.article(
            fence("python repro", f"print({number}); raise ValueError('the failure')"),
            fence("python fix", f"print({number})"),
            fence("python practice", f"x = {number}"),
            number=number,
        )
    evidence = base.root / "evidence"
    assert base.verify("--record", "--all").code == 0
    unsharded = comparable(evidence)
    assert sum(content.count(b"\n") for content in unsharded.values()) == 15
    shutil.rmtree(evidence)
    folders = []
    for number in range(1, 9):
        assert base.verify("--record", "--all", "--shard", f"{number}/8").code in (0, 3)
        if evidence.exists():
            folders.append(shutil.move(evidence, tmp_path / f"shard{number}"))
    first: dict[str, bytes] = {}
    for order in range(3):
        random.Random(order).shuffle(folders)
        shutil.rmtree(evidence, ignore_errors=True)
        merged = base.kbtools("evidence", "merge", *map(str, folders))
        assert merged.code == 0, merged.err
        assert "15 rows taken, 15 of them new" in merged.out
        assert comparable(evidence) == unsharded
        content = {file.name: file.read_bytes() for file in evidence.iterdir()}
        first = first or content
        assert content == first
    again = base.kbtools("evidence", "merge", *map(str, reversed(folders)))
    assert "0 of them new" in again.out
    assert {file.name: file.read_bytes() for file in evidence.iterdir()} == first
