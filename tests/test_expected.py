"""How long a snippet is expected to take: by evidence, or by what this machine remembers."""

from __future__ import annotations

import datetime
from pathlib import Path

import msgspec
import pytest

from kbtools.articles.model import Article, FrontMatter, Keys, Place, Role, Snippet
from kbtools.config import Config, decode
from kbtools.evidence.expected import ExpectedTime, expected_times, recorded_times, wall_seconds
from kbtools.evidence.rows import SCHEMA, EvidenceError, Row
from kbtools.evidence.store import file_of, record
from kbtools.outcome import Outcome
from kbtools.toolchains.model import Toolchain


def snippet(name: str) -> Snippet:
    """A snippet of KB0001."""
    place = Place("kb/KB0001-x.md")
    return Snippet("KB0001", name, Role.REPRO, "python", name, place, Keys(), ())


SNIPPETS = (snippet("r1"), snippet("f1"), snippet("p1"))
ARTICLE = Article(
    msgspec.convert(
        {
            "id": "KB0001",
            "title": "a title",
            "summary": "a summary",
            "components": ["x"],
            "stage": "x",
            "severity": "crash",
            "affected": [],
            "signatures": [{"literal": "a failure"}],
        },
        FrontMatter,
    ),
    "kb/KB0001-x.md",
    "en",
    SNIPPETS,
    "",
)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """The configuration of an empty knowledge base."""
    return decode('[knowledge-base]\nname = "a test"\nprefix = "KB"\n', tmp_path)


def write(
    folder: Path, config: Config, snippet: Snippet, minor: int, seconds: float, cpu: float | None
) -> None:
    """Records a run on a toolchain of its own."""
    row = Row(
        schema=SCHEMA,
        snippet=snippet.id,
        code=snippet.digest,
        toolchain=Toolchain(f"3.{minor}.0", {}),
        outcome=Outcome("passed", seconds=seconds, cpu_seconds=cpu, exit=0, isolation="fork"),
        when=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        kbtools="0.1",
    )
    record(folder, "KB0001", row, config)


def test_the_median_of_what_is_recorded(config: Config) -> None:
    """Wall seconds of every row count, CPU seconds of the rows that have them."""
    for minor, seconds, cpu in [(9, 1.0, None), (10, 2.0, 0.5), (11, 60.0, 0.7)]:
        write(config.evidence, config, SNIPPETS[0], minor, seconds, cpu)
    write(config.evidence, config, SNIPPETS[1], 9, 5.0, None)
    times = recorded_times([ARTICLE], config)
    assert times == {"KB0001/r1": ExpectedTime(2.0, 0.6), "KB0001/f1": ExpectedTime(5.0, None)}
    assert wall_seconds(times) == {"KB0001/r1": 2.0, "KB0001/f1": 5.0}


def test_this_machine_comes_first(config: Config) -> None:
    """What this machine remembers replaces the evidence; the CPU time that only that has stays."""
    write(config.evidence, config, SNIPPETS[0], 9, 8.0, 0.5)
    write(config.evidence, config, SNIPPETS[1], 9, 3.0, None)
    write(config.memory, config, SNIPPETS[0], 9, 20.0, None)
    write(config.memory, config, SNIPPETS[2], 9, 1.0, 0.25)
    expected = {
        "KB0001/r1": ExpectedTime(20.0, 0.5),
        "KB0001/f1": ExpectedTime(3.0, None),
        "KB0001/p1": ExpectedTime(1.0, 0.25),
    }
    assert expected_times([ARTICLE], config) == expected
    assert recorded_times([ARTICLE], config)["KB0001/r1"].seconds == 8.0, "as on every machine"


def test_what_cannot_be_read(config: Config) -> None:
    """Shards must not be cut by half of the evidence; an estimate does without it."""
    write(config.evidence, config, SNIPPETS[0], 9, 8.0, 0.5)
    config.memory.mkdir(parents=True)
    file_of(config.memory, "KB0001").write_text("{")
    assert expected_times([ARTICLE], config) == {"KB0001/r1": ExpectedTime(8.0, 0.5)}
    file_of(config.evidence, "KB0001").write_text("{")
    assert expected_times([ARTICLE], config) == {}
    with pytest.raises(EvidenceError, match="not a row"):
        recorded_times([ARTICLE], config)
