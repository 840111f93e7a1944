"""The corpus of real logs and the answers expected of it belong together."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from kbtools.matching import Matcher, load, scoring

ROOT = Path(__file__).parent.parent
LOGS = ROOT / "tests" / "logs"
WRAPPERS = ("KB0098", "KB0113", "KB0114", "KB0136", "KB0144", "KB0227")
"""What ends a log, whatever failed: torchrun, a build, an engine, out of memory."""
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((LOGS / "expected.toml").read_text("utf-8"))


def test_every_log_is_listed() -> None:
    """No log without an expected answer, no answer without its log."""
    assert sorted(EXPECTED) == sorted(file.name for file in LOGS.glob("*.log"))


def test_expected_ids_are_articles() -> None:
    """Every expected answer is an article of this knowledge base, named once."""
    articles = {file.name.partition("-")[0] for file in (ROOT / "kb").glob("*.md")}
    for name, entry in EXPECTED.items():
        assert set(entry["expect"]) <= articles, name
        assert len(set(entry["expect"])) == len(entry["expect"]), name


def test_every_log_names_its_recipe() -> None:
    """Every log names the recipe that made it, and that recipe expects the same."""
    recipes = {
        name: table
        for file in (LOGS / "recipes").glob("*.toml")
        for name, table in tomllib.loads(file.read_text("utf-8")).items()
    }
    for name, entry in EXPECTED.items():
        recipe = entry["made"].removeprefix("python make.py ")
        assert f"{recipe}.log" == name
        table = recipes[recipe]
        expect = table.get("expect", recipes.get(table.get("like", ""), {}).get("expect"))
        assert expect == entry["expect"], name


def test_the_corpus_has_both_kinds() -> None:
    """A corpus of positives alone would praise a matcher that always answers."""
    answers = [bool(entry["expect"]) for entry in EXPECTED.values()]
    assert answers.count(True) >= 100
    assert answers.count(False) >= 40


def test_the_end_has_an_answer_of_its_own_only_where_it_shows_less() -> None:
    """The last lines show nothing, some of what the failure is, or what every rank's ends with."""
    for name, entry in EXPECTED.items():
        if "expect_tail" in entry:
            assert entry["expect"], name
            assert set(entry["expect_tail"]) <= {*entry["expect"], *WRAPPERS}, name
    ends = [entry for entry in EXPECTED.values() if "expect_tail" in entry]
    assert len(ends) < len(EXPECTED) / 10


@pytest.mark.parametrize("name", [name for name, entry in EXPECTED.items() if "first" in entry])
def test_what_failed_first(name: str) -> None:
    """The line that failed first, as whoever wrote the program knows, is the one that is named."""
    first = (
        Matcher(load(ROOT)).diagnose((LOGS / name).read_bytes().decode("utf-8", "replace")).first
    )
    assert first is not None
    assert EXPECTED[name]["first"] in first.text


@pytest.mark.parametrize("end", [False, True], ids=["whole", "the last lines"])
def test_how_good_the_matcher_is(end: bool) -> None:
    """Nearly every failure is found, nothing else is taken for one, and sure is never wrong."""
    cases = list(scoring.corpus(LOGS))
    if end:
        cases = [scoring.last_lines(case, scoring.TAIL) for case in cases]
    score = scoring.score(scoring.scored(cases, Matcher(load(ROOT))))
    assert score.recall >= 0.98
    # an article about what wraps other failures is no sure answer
    wrapped = [case for case in cases if case.expect and set(case.expect) <= set(WRAPPERS)]
    assert score.sure >= 0.75 * (score.failures - len(wrapped))
    assert (score.false_alarms, score.surely_wrong) == (0, 0)
