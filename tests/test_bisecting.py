"""The search of `kbtools bisect`, on histories that a test invents."""

from __future__ import annotations

import pytest

from kbtools.verification.bisection import (
    Behaviour,
    BisectResult,
    SearchRangeError,
    Step,
    between,
    search,
)

VERSIONS = [f"1.{minor}" for minor in range(16)]


def searched(history: str, *, every: bool = False) -> tuple[BisectResult, list[str]]:
    """Searches a history with a letter for each version: f fails, p passes, n says neither."""
    words: dict[str, Behaviour] = {"f": "fails", "p": "passes", "n": "neither"}
    versions, tried = VERSIONS[: len(history)], []

    def attempt(version: str) -> Step:
        tried.append(version)
        return Step(version, words[history[versions.index(version)]], "", True)

    return search(versions, attempt, every=every), tried


@pytest.mark.parametrize("flip", range(1, 16))
def test_both_sides_of_a_flip(flip: int) -> None:
    """Wherever the flip is, the search ends at its two neighbours in a few steps, ends first."""
    result, tried = searched("f" * flip + "p" * (16 - flip))
    [(low, high)] = result.flips
    assert (low.version, high.version) == (VERSIONS[flip - 1], VERSIONS[flip])
    assert tried[:2] == [VERSIONS[0], VERSIONS[-1]]
    assert len(tried) <= 6


def test_a_regression_flips_too() -> None:
    """The search does not mind which of the two ends fails."""
    result, _ = searched("ppppffff")
    [(low, high)] = result.flips
    assert (low.version, low.behaviour, high.version, high.behaviour) == (
        "1.3",
        "passes",
        "1.4",
        "fails",
    )


def test_equal_ends_are_not_searched() -> None:
    """Where both ends do the same there is no flip to halve towards, and the rest is untried."""
    result, tried = searched("ffffpff")
    assert (result.flips, len(tried), len(result.untried)) == ((), 2, 5)


def test_every_version_shows_a_flip_flop() -> None:
    """With every version tried, a failure that comes and goes shows as several flips."""
    result, _ = searched("ffppfp", every=True)
    assert [high.version for _, high in result.flips] == ["1.2", "1.4", "1.5"]
    assert result.untried == ()


def test_a_version_that_says_nothing_is_passed_over() -> None:
    """Versions that cannot be built leave the flip between their neighbours."""
    result, _ = searched("fffnnpp")
    [(low, high)] = result.flips
    assert (low.version, high.version) == ("1.2", "1.5")
    assert [step.version for step in result.steps if step.behaviour == "neither"] == ["1.3", "1.4"]


def test_an_end_that_says_nothing_ends_the_search() -> None:
    """From an end that says nothing no direction follows."""
    result, tried = searched("nffpp")
    assert len(tried) == 2
    assert result.flips == ()


def test_first_and_last_version() -> None:
    """Only the versions from the first to the last are searched, by version and not by text."""
    assert between(["1.2", "1.9", "1.10", "2.0"], "1.9", "1.10") == ("1.9", "1.10")
    with pytest.raises(SearchRangeError, match=r"needs two versions, and the range has 1\.9"):
        between(["1.2", "1.9"], "1.3", None)
