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
from kbtools.verification.model import RunOptions, Task
from kbtools.verification.verifier import Verifier

Behaviour = Literal["fails", "passes", "neither"]
"""What a repro did: its documented failure, a run to its end, or something that says nothing."""


class SearchRangeError(KbtoolsError):
    """There are fewer than two versions to search between."""


class BaseToolchainError(KbtoolsError):
    """No declared toolchain has the package whose versions are searched."""


class UnknownReproError(KbtoolsError):
    """An article has no such repro to search with."""


class Step(msgspec.Struct, frozen=True):
    """One version that was tried."""

    version: str
    behaviour: Behaviour
    reason: str
    agrees: bool | None
    """Whether the article's claims expect it; None where the repro showed nothing."""


class BisectResult(msgspec.Struct, frozen=True):
    """What a search came to. The steps are in the order of their versions."""

    steps: tuple[Step, ...]
    untried: tuple[str, ...]
    """The versions that were passed over."""

    @property
    def flips(self) -> tuple[tuple[Step, Step], ...]:
        """The neighbours, of those that say something, between which the repro flips."""
        steps = [step for step in self.steps if step.behaviour != "neither"]
        return tuple(
            (low, high) for low, high in pairwise(steps) if low.behaviour != high.behaviour
        )


def between(versions: Iterable[str], first: str | None, last: str | None) -> tuple[str, ...]:
    """The versions from `first` to `last`, both included.

    Args:
        versions: From old to new.
        first: The oldest to keep; None: keep from the start.
        last: The newest to keep; None: keep to the end.

    Raises:
        SearchRangeError: fewer than two are left.
    """
    selected = tuple(
        version
        for version in versions
        if (first is None or Version(version) >= Version(first))
        and (last is None or Version(version) <= Version(last))
    )
    if len(selected) < 2:
        listed = ", ".join(selected) or "no version"
        raise SearchRangeError(f"a search needs two versions, and the range has {listed}")
    return selected


def search(
    versions: Sequence[str], attempt: Callable[[str], Step], *, every: bool = False
) -> BisectResult:
    """Tries both ends, then halves the versions between them.

    A version that says nothing (it cannot be built, or fails in another way) is passed over for
    its nearest neighbour. That the repro flips once is not assumed: the result has each flip among
    the versions that were tried, and the versions that were not.

    Args:
        versions: From old to new, at least two.
        attempt: Runs the repro on a version.
        every: Try every version instead.
    """
    steps: dict[str, Step] = {}

    def behaviour(version: str) -> Behaviour:
        if version not in steps:
            steps[version] = attempt(version)
        return steps[version].behaviour

    low, high = 0, len(versions) - 1
    ends = behaviour(versions[low]), behaviour(versions[high])
    if every:
        for version in versions:
            behaviour(version)
    elif "neither" not in ends and ends[0] != ends[1]:
        while (middle := _middle(versions, low, high, steps)) is not None:
            in_the_middle = behaviour(versions[middle])
            if in_the_middle == ends[0]:
                low = middle
            elif in_the_middle == ends[1]:
                high = middle
    return BisectResult(
        tuple(sorted(steps.values(), key=lambda step: Version(step.version))),
        tuple(version for version in versions if version not in steps),
    )


def _middle(versions: Sequence[str], low: int, high: int, steps: dict[str, Step]) -> int | None:
    """The untried version nearest to the middle of an open interval."""
    untried = [i for i in range(low + 1, high) if versions[i] not in steps]
    return min(untried, key=lambda i: abs(2 * i - low - high), default=None)


# The attempt at a version: its environment, the run, what it did.


def base_toolchain(config: Config, package: str, like: str | None) -> str:
    """The declared toolchain to derive others from: `like`, or the smallest with the package.

    Args:
        config: Of the knowledge base.
        package: Whose versions are searched.
        like: The name of a declared toolchain, or None.

    Raises:
        BaseToolchainError: there is none.
        DeclarationError: `toolchains.toml` cannot be read.
    """
    declarations = declared.read_declarations(config)
    names = [
        name
        for name, declaration in declarations.items()
        if package in declared.pinned_packages(declaration)
    ]
    if like is not None and like not in names:
        listed = ", ".join(names) or "none"
        raise BaseToolchainError(f"no toolchain `{like}` that pins {package}; these do: {listed}")
    if not names:
        raise BaseToolchainError(f"no toolchain in {declared.FILE} has a package `{package}`")
    return like or min(names, key=lambda name: declarations[name].size_gb)


def select_repro(article: Article, word: str) -> Snippet:
    """The snippet to search with: the repro that a word like `KB0002/r1` names, or the first one.

    Raises:
        UnknownReproError: there is no such repro.
    """
    name = word.partition("/")[2]
    repros = [
        snippet for snippet in article.snippets if snippet.role is Role.REPRO and not snippet.gpus
    ]
    for repro in repros:
        if name in ("", repro.id):
            return repro
    listed = ", ".join(repro.name for repro in repros) or "none"
    raise UnknownReproError(f"no repro `{word}` that needs no GPU; the article has {listed}")


def attempt(
    config: Config,
    article: Article,
    snippet: Snippet,
    name: str,
    *,
    keep: bool,
    tell: ProgressCallback,
) -> Step:
    """Builds a toolchain, runs a snippet on it and records what it did.

    Args:
        config: Of the knowledge base.
        article: Whose claim is tried.
        snippet: The repro.
        name: The toolchain, as in `triton-3.9@triton==2.3.1`.
        keep: Whether the environment stays; one that was built before stays in any case.
        tell: Called with the progress of the build.
    """
    version = name.rpartition("==")[2]
    folder = environments.environments_folder(config)
    was_built = (folder / name).exists()
    try:
        sync.sync(config, name, tell)
        environment = environments.find_environment(config, name)
        toolchain = environments.toolchain_of(environment)
        task = Task(article, snippet, toolchain, expect(snippet, toolchain, name))
        engine = partial(ThisMachine(config).engine, environment)
        with Verifier(config, [task], RunOptions(jobs=1, record=True), engine) as verifier:
            result = verifier.verify_snippet(task, lambda *_: None)
    except (
        KbtoolsError
    ) as error:  # whatever keeps a version from being tried, the next one may work
        return Step(version, "neither", str(error).splitlines()[0], None)
    finally:
        if not (keep or was_built):
            sync.prune(folder, name)
    if result.outcome is None or result.verdict.name == "inconclusive":
        return Step(version, "neither", result.verdict.reason, None)
    agrees = result.verdict.colour == "green"
    if result.outcome.status == "passed":
        return Step(version, "passes", result.verdict.reason, agrees)
    is_documented = fails_as_documented(article, snippet, result.outcome)
    return Step(version, "fails" if is_documented else "neither", result.verdict.reason, agrees)
