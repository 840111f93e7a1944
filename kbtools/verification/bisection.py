"""Between which two versions of a package does a repro flip? Each step is a real run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Literal

import msgspec
from packaging.version import Version

from kbtools.articles.model import Article, Role, Snippet
from kbtools.config import Config, KbtoolsError
from kbtools.evidence.verdicts import expect, fails_as_documented
from kbtools.toolchains import declared, environments, sync
from kbtools.toolchains.uv import ProgressCallback
from kbtools.verification.machines import ThisMachine
from kbtools.verification.verifier import RunOptions, Task, Verifier

Saw = Literal["fails", "passes", "neither"]
"""What a repro did: its documented failure, a run to its end, or something that says nothing."""


class Step(msgspec.Struct, frozen=True):
    """One version that was tried."""

    version: str
    saw: Saw
    reason: str
    agrees: bool | None
    """Whether the article's claims expect it; None where nothing was seen."""


class BisectResult(msgspec.Struct, frozen=True):
    """What a search found. The steps are in the order of their versions."""

    steps: tuple[Step, ...]
    untried: tuple[str, ...]

    @property
    def flips(self) -> tuple[tuple[Step, Step], ...]:
        """The neighbours, of those that say something, between which the repro flips."""
        telling = [step for step in self.steps if step.saw != "neither"]
        return tuple((low, high) for low, high in pairwise(telling) if low.saw != high.saw)


def between(versions: Iterable[str], first: str | None, last: str | None) -> tuple[str, ...]:
    """The versions from `first` to `last`, both included.

    Raises:
        KbtoolsError: fewer than two are left.
    """
    chosen = tuple(
        one
        for one in versions
        if (first is None or Version(one) >= Version(first))
        and (last is None or Version(one) <= Version(last))
    )
    if len(chosen) < 2:
        raise KbtoolsError(f"nothing to search between: {', '.join(chosen) or 'no version'}")
    return chosen


def search(
    versions: Sequence[str], attempt: Callable[[str], Step], *, every: bool = False
) -> BisectResult:
    """Tries both ends, then halves what lies between them; `every` tries every version.

    A version that says nothing (it cannot be built, or fails in another way) is passed over for
    its nearest neighbour. That the repro flips once is not assumed: each flip among the versions
    that were tried is in what is returned, and so are the versions that were not.
    """
    steps: dict[str, Step] = {}

    def saw(version: str) -> Saw:
        if version not in steps:
            steps[version] = attempt(version)
        return steps[version].saw

    low, high = 0, len(versions) - 1
    ends = saw(versions[low]), saw(versions[high])
    if every:
        for version in versions:
            saw(version)
    elif "neither" not in ends and ends[0] != ends[1]:
        while (middle := _middle(versions, low, high, steps)) is not None:
            found = saw(versions[middle])
            if found == ends[0]:
                low = middle
            elif found == ends[1]:
                high = middle
    return BisectResult(
        tuple(sorted(steps.values(), key=lambda step: Version(step.version))),
        tuple(one for one in versions if one not in steps),
    )


def _middle(versions: Sequence[str], low: int, high: int, steps: dict[str, Step]) -> int | None:
    """The untried version nearest to the middle of an open interval."""
    untried = [i for i in range(low + 1, high) if versions[i] not in steps]
    return min(untried, key=lambda i: abs(2 * i - low - high), default=None)


# The attempt at a version: its environment, the run, what it did.


def model(config: Config, package: str, like: str | None) -> str:
    """The declared toolchain to derive others from: `like`, or the smallest with that package.

    Raises:
        KbtoolsError: there is none.
    """
    tables = declared.read_declarations(config)
    able = [name for name, one in tables.items() if package in declared.pinned_packages(one)]
    if like is not None and like not in able:
        raise KbtoolsError(f"no toolchain `{like}` that pins {package}; there are: {able}")
    if not able:
        raise KbtoolsError(f"no toolchain in {declared.FILE} has a package `{package}`")
    return like or min(able, key=lambda name: tables[name].size_gb)


def chosen(article: Article, word: str) -> Snippet:
    """The snippet to bisect with: the one that a word like `KB0002/r1` names, or the first repro.

    Raises:
        KbtoolsError: there is no such repro.
    """
    wanted = word.partition("/")[2]
    repros = [one for one in article.snippets if one.role is Role.REPRO and not one.gpus]
    found = [one for one in repros if one.id == wanted or not wanted]
    if not found:
        there = ", ".join(one.name for one in repros) or "none"
        raise KbtoolsError(f"no repro `{word}` that needs no GPU; there are: {there}")
    return found[0]


def attempt(
    config: Config,
    article: Article,
    snippet: Snippet,
    name: str,
    *,
    keep: bool,
    tell: ProgressCallback,
) -> Step:
    """Builds the toolchain of that name, runs the snippet there, records what it did."""
    version = name.rpartition("==")[2]
    was_there = (environments.environments_folder(config) / name).exists()
    try:
        sync.sync(config, name, tell)
        where = environments.find_environment(config, name)
        toolchain = environments.toolchain_of(where)
        expected = expect(snippet, toolchain, name)
        task = Task(article, snippet, toolchain, expected)
        options = RunOptions(jobs=1, record=True)
        engine = partial(ThisMachine(config).engine, where)
        [result] = Verifier(config, [task], options, engine).verify()
    except KbtoolsError as error:
        return Step(version, "neither", str(error).splitlines()[0], None)
    finally:
        if not (keep or was_there):
            sync.prune(environments.environments_folder(config), name)
    if result.outcome is None or result.verdict.name == "inconclusive":
        return Step(version, "neither", result.verdict.reason, None)
    agrees = result.verdict.colour == "green"
    if result.outcome.status == "passed":
        return Step(version, "passes", result.verdict.reason, agrees)
    documented = fails_as_documented(article, snippet, result.outcome)
    return Step(version, "fails" if documented else "neither", result.verdict.reason, agrees)
