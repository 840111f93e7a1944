"""Claim × toolchain → expectation; expectation × outcome → verdict. No clock, file or process."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec
from packaging.version import Version

from kbtools.articles.model import Article, Role, Snippet
from kbtools.articles.signatures import recognises
from kbtools.outcome import Outcome
from kbtools.toolchains.affected import MissingVersion, UndecidedVersion, is_affected, range_holds
from kbtools.toolchains.model import MACHINE, Toolchain
from kbtools.toolchains.needs import unmet_need

Colour = Literal["green", "red", "grey"]


class VerdictName(StrEnum):
    """What follows from a claim and an outcome."""

    REPRODUCED = "reproduced"
    RESOLVED = "resolved"
    HOLDS = "holds"
    HOLDS_NOT = "holds-not"
    NO_HELP = "no-help"
    NOT_REPRODUCED = "not-reproduced"
    OTHER_FAILURE = "other-failure"
    REGRESSED = "regressed"
    BROKEN = "broken"
    UNTRUE = "untrue"
    TOO_NARROW = "too-narrow"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"
    INCONCLUSIVE = "inconclusive"


GREEN = (
    VerdictName.REPRODUCED,
    VerdictName.RESOLVED,
    VerdictName.HOLDS,
    VerdictName.HOLDS_NOT,
    VerdictName.NO_HELP,
)
RED = (
    VerdictName.NOT_REPRODUCED,
    VerdictName.OTHER_FAILURE,
    VerdictName.REGRESSED,
    VerdictName.BROKEN,
    VerdictName.UNTRUE,
    VerdictName.TOO_NARROW,
)


class Verdict(msgspec.Struct, frozen=True):
    """What follows, and why in one sentence."""

    name: VerdictName
    reason: str

    @property
    def colour(self) -> Colour:
        """Green: the claim stands; red: it is contradicted; grey: neither."""
        return "green" if self.name in GREEN else "red" if self.name in RED else "grey"


class Expectation(msgspec.Struct, frozen=True):
    """What an article's claims imply for a snippet on a toolchain.

    `what` is `fails`, `passes`, `skip` (it cannot be run there) or `unknown` (nothing is implied).
    """

    what: Literal["fails", "passes", "skip", "unknown"]
    reason: str


def expect(snippet: Snippet, toolchain: Toolchain, name: str | None = None) -> Expectation:
    """What the claims imply for a snippet on a toolchain.

    Args:
        snippet: The snippet.
        toolchain: What is installed, and the machine that it is on.
        name: The toolchain's name in `toolchains.toml`, if it has one.
    """
    lacking = _lacking(snippet, toolchain, name)
    if lacking:
        return Expectation("skip", lacking)
    affected = is_affected(snippet.affected, toolchain)
    if isinstance(affected, MissingVersion):
        lacks = "not known here" if affected.name in MACHINE else "not installed"
        return Expectation("skip", f"{affected.name} is {lacks}")
    if snippet.role not in (Role.REPRO, Role.DEADEND, Role.FACT):
        return Expectation("passes", f"a {snippet.role} passes everywhere")
    if isinstance(affected, UndecidedVersion):
        return Expectation("unknown", affected.reason)
    if snippet.role is Role.FACT:
        place = "here" if affected else "not here"
        reason = f"said to hold on {claim(snippet)}, {place}"
        return Expectation("passes" if affected else "fails", reason)
    if affected:
        return Expectation("fails", f"this toolchain is affected: {claim(snippet)}")
    return Expectation("passes", f"this toolchain is not affected: {claim(snippet)}")


def claim(snippet: Snippet) -> str:
    """The snippet's `affected`, or a fact's `holds`, in words."""
    ranges = [" and ".join(f"{n} {s}" for n, s in entry.items()) for entry in snippet.affected]
    return " or ".join(text or "every toolchain" for text in ranges)


def _lacking(snippet: Snippet, toolchain: Toolchain, name: str | None) -> str:
    """What the toolchain lacks that the snippet needs; empty when it can be run."""
    keys = snippet.keys
    if keys.toolchain and keys.toolchain != name:
        return f"only on the toolchain {keys.toolchain}"
    if unmet := unmet_need(snippet.needs, toolchain):
        return unmet
    if snippet.gpus > len(toolchain.gpus):
        available = f"{len(toolchain.gpus)} here" if toolchain.gpus else "none here"
        return f"needs {snippet.gpus} GPU{'s' * (snippet.gpus > 1)}, {available}"
    if (snippet.language == "cuda" or keys.requires == "nvcc") and not toolchain.cuda:
        return "needs nvcc, none on the PATH"
    if snippet.language == "cuda" and keys.requires == "cpu" and not toolchain.gpus:
        return "runs a CUDA program, no GPU here"
    if keys.sm:
        if toolchain.sm is None:
            return f"needs a GPU of compute capability {keys.sm}, none here"
        if not range_holds(keys.sm, Version(toolchain.sm)):
            return f"needs a GPU of compute capability {keys.sm}, this one has {toolchain.sm}"
    return ""


def verdict_without_run(expected: Expectation) -> Verdict | None:
    """The verdict on a snippet that is not run on a toolchain; None where a run decides."""
    if expected.what == "skip":
        return Verdict(VerdictName.SKIPPED, expected.reason)
    if expected.what == "unknown":
        return Verdict(VerdictName.UNKNOWN, expected.reason)
    return None


def judge(article: Article, snippet: Snippet, expected: Expectation, outcome: Outcome) -> Verdict:
    """The verdict on a run of a snippet.

    Args:
        article: The article of the snippet, whose signatures recognise the documented failure.
        snippet: What was run.
        expected: What the article's claims imply on the toolchain of the run.
        outcome: What the run did. It is ignored if the claims imply that there is no run.
    """
    if verdict := verdict_without_run(expected):
        return verdict
    if outcome.status == "lost":
        return Verdict(VerdictName.INCONCLUSIVE, outcome.message)
    if snippet.role is Role.FACT:
        return _judge_fact(article, snippet, expected, outcome)
    may_fail = snippet.role in (Role.REPRO, Role.DEADEND)
    documented = may_fail and fails_as_documented(article, snippet, outcome)
    passed = outcome.status == "passed"
    if expected.what == "fails":
        if documented:
            name = VerdictName.REPRODUCED if snippet.role is Role.REPRO else VerdictName.NO_HELP
            return Verdict(name, f"failed as documented: {evident(article, snippet, outcome)}")
        if passed:
            return Verdict(VerdictName.NOT_REPRODUCED, f"{expected.reason}; yet it passes")
        return Verdict(VerdictName.OTHER_FAILURE, f"failed, but not as documented: {outcome.ended}")
    if passed:
        return Verdict(VerdictName.RESOLVED if may_fail else VerdictName.HOLDS, "ran to its end")
    if documented:
        return Verdict(VerdictName.REGRESSED, f"{expected.reason}; yet it fails as documented")
    return Verdict(VerdictName.OTHER_FAILURE if may_fail else VerdictName.BROKEN, outcome.ended)


def _judge_fact(
    article: Article, snippet: Snippet, expected: Expectation, outcome: Outcome
) -> Verdict:
    """The verdict on a run of a fact, which passes where it holds and fails where it does not."""
    if outcome.status == "passed":
        if expected.what == "passes":
            return Verdict(VerdictName.HOLDS, "ran to its end")
        return Verdict(VerdictName.TOO_NARROW, f"{expected.reason}; yet it passes")
    if not fails_as_documented(article, snippet, outcome):
        return Verdict(VerdictName.OTHER_FAILURE, f"failed, but not as claimed: {outcome.ended}")
    if expected.what == "fails":
        return Verdict(VerdictName.HOLDS_NOT, f"{expected.reason}: {outcome.ended}")
    return Verdict(VerdictName.UNTRUE, f"{expected.reason}; yet it fails: {outcome.ended}")


def fails_as_documented(article: Article, snippet: Snippet, outcome: Outcome) -> bool:
    """Whether an outcome is the failure that the snippet's `fails` describes."""
    if outcome.status in ("passed", "stopped", "lost"):
        return False
    kind = kind_of_failure(snippet)
    if kind == "signature":
        return any(recognises(s, outcome.output) for s in article.matter.signatures)
    if kind == "timeout":
        return outcome.status == "timeout"
    if kind.startswith("exit:"):
        return outcome.exit == int(kind[5:])
    if kind.startswith("SIG"):
        return outcome.signal == kind
    return kind in outcome.exceptions


def kind_of_failure(snippet: Snippet) -> str:
    """What counts as its documented failure: its `fails`; by default a fact is an assertion."""
    kind = snippet.keys.fails
    return "AssertionError" if kind == "signature" and snippet.role is Role.FACT else kind


def evident(article: Article, snippet: Snippet, outcome: Outcome) -> str:
    """The line of the output that a signature recognises, or how the run ended.

    Args:
        article: Its signatures are tried.
        snippet: Its `fails` says what counts as the documented failure.
        outcome: The run, with its output.
    """
    if kind_of_failure(snippet) == "signature":
        for signature in article.matter.signatures:
            if recognises(signature, outcome.output):
                lines = outcome.output.splitlines()
                return next(line.strip() for line in lines if signature.literal in line)
    return outcome.ended


def documented_failure(article: Article, snippet: Snippet) -> str:
    """What a failure must show to count, in words."""
    kind = kind_of_failure(snippet)
    if kind != "signature":
        return kind
    return " or ".join(f"`{s.regex or s.literal}`" for s in article.matter.signatures)
