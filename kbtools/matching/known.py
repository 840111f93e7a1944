"""Versions and a GPU → the failures that are known for them, with what says so.

For who has no log: `diagnose` asks what a program printed, `known` what is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Literal

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from kbtools.articles.model import Affected
from kbtools.articles.receipt_grammar import split
from kbtools.config import KbtoolsError
from kbtools.evidence.state import has_end
from kbtools.matching.index import Index, IndexEntry, IndexNotice, Standing
from kbtools.matching.versions import as_toolchain
from kbtools.toolchains.affected import MissingVersion, UndecidedVersion, is_affected
from kbtools.toolchains.model import MACHINE, Toolchain

RECEIPTS = 4
"""Receipts of a failure that an answer has at most."""


class QuestionError(KbtoolsError):
    """A version or a GPU in a question cannot be understood."""


class KnownFailure(msgspec.Struct, frozen=True):
    """A failure whose window the versions lie in, or may lie in."""

    id: str
    title: str
    what_helps: str
    severity: str
    standing: Standing
    """`executed`: an article's runs; of a notice what `evidence.notices` says."""
    looked_up: str
    """Of a notice, the day on which its threads were read."""
    window: str
    """The versions on which it fails, as in `driver >=550,<560`."""
    hardware: str
    answer: Literal["affected", "unknown"]
    reason: str
    """The versions that lie in the window, or what would have to be known."""
    remedies: tuple[str, ...]
    receipts: tuple[str, ...]
    """Threads and sources behind its bounds and remedies."""
    article: str
    """Of a notice: the article about the same mechanism."""


class Known(msgspec.Struct, frozen=True):
    """The failures that are known for some versions, the silent ones first."""

    packages: dict[str, str]
    sm: str
    """Empty: no GPU was named."""
    failures: tuple[KnownFailure, ...]
    not_mentioned: tuple[str, ...]
    """Packages of the question that no window names: of these nothing is known here."""
    meant: dict[str, str] = {}
    """Name of such a package → the name in a window that is nearest to it, if one is near."""


def sm_of(gpu: str, index: Index) -> str:
    """The compute capability of a GPU: of `9.0`, `sm_90a` or a name that the index knows.

    Raises:
        QuestionError: it is neither.
    """
    text = gpu.strip()
    if match := re.fullmatch(r"(?:sm_?)?(\d{1,2})\.?(\d)[a-z]?", text, re.IGNORECASE):
        return f"{match[1]}.{match[2]}"
    words = re.sub(r"[^a-z0-9]+", " ", text.casefold())
    names = sorted(index.gpus, key=lambda name: -len(name))
    for name in names:
        if re.search(rf"\b{re.escape(name.casefold())}\b", words):
            return index.gpus[name]
    choices = f", or one of: {', '.join(sorted(index.gpus))}" if index.gpus else ""
    raise QuestionError(f"unknown GPU `{gpu}`; write its compute capability, as in 9.0{choices}")


def known_failures(index: Index, packages: Mapping[str, str], gpu: str = "") -> Known:
    """The failures whose window these versions lie in, or may lie in.

    An article counts if its window ends somewhere: what fails on every version is a mistake of
    use, and is about no release.

    Args:
        index: Of the knowledge base.
        packages: Name of a distribution, or `python`, `cuda`, `driver` → version.
        gpu: Its compute capability or its name; empty if it is not known.

    Raises:
        QuestionError: a version or the GPU cannot be understood.
    """
    sm = sm_of(gpu, index) if gpu else ""
    question = {_name(name): _version(name, text) for name, text in packages.items()}
    versions = question | dict(_of_families(question, index))
    toolchain = as_toolchain(versions | ({"sm": sm} if sm else {}))
    entries = [(entry, None) for entry in index.articles if has_end(entry.affected)]
    notices = [(notice.entry, notice) for notice in index.notices]
    failures: list[KnownFailure] = []
    mentioned: set[str] = set()
    for entry, notice in (*entries, *notices):
        mentioned |= {name for alternative in entry.affected for name in alternative}
        if not entry.retired and (failure := _failure(entry, notice, versions, toolchain)):
            failures.append(failure)
    silent = {entry.id for entry, _ in (*entries, *notices) if not entry.signatures}
    order = {"executed": 0, "measured": 0, "seen": 0, "reported": 1}
    failures.sort(key=lambda f: (f.answer, f.id not in silent, order[f.standing], f.id))
    families = {member: name for name, members in index.families.items() for member in members}
    mentioned_names = mentioned | {families[name] for name in mentioned if name in families}
    not_mentioned = tuple(name for name in question if name not in mentioned_names)
    near = {name: get_close_matches(name, sorted(mentioned_names), n=1) for name in not_mentioned}
    meant = {name: best for name, names in near.items() for best in names}
    return Known(question, sm, tuple(failures), not_mentioned, meant)


def _failure(
    entry: IndexEntry, notice: IndexNotice | None, versions: Mapping[str, str], at_hand: Toolchain
) -> KnownFailure | None:
    """The failure of an entry, if these versions lie in its window or may lie in it."""
    named: Affected = tuple(a for a in entry.affected if not versions.keys().isdisjoint(a))
    if not named:
        return None
    answer = is_affected(named, at_hand)
    if entry.sm and at_hand.sm and is_affected(({"sm": entry.sm},), at_hand) is False:
        return None
    if answer is False:
        return None
    if isinstance(answer, MissingVersion):
        reason = f"depends on {answer.name}"
    elif isinstance(answer, UndecidedVersion):
        reason = answer.reason
    else:
        names = sorted({name for alternative in named for name in alternative})
        at_versions = ((name, at_hand.version(name)) for name in names)
        reason = ", ".join(f"{name} {version}" for name, version in at_versions if version)
    receipts = list(_receipts(notice)) if notice else []
    return KnownFailure(
        id=entry.id,
        title=entry.title,
        what_helps=entry.summary,
        severity=entry.severity,
        standing=entry.standing,
        looked_up=entry.looked_up,
        window=window_of(entry.affected),
        hardware=notice.hardware if notice else "",
        answer="affected" if answer is True else "unknown",
        reason=reason,
        remedies=tuple(do for do, _ in notice.remedies) if notice else (),
        receipts=tuple(dict.fromkeys(receipts))[:RECEIPTS],
        article=notice.article if notice else "",
    )


def _receipts(notice: IndexNotice) -> Iterator[str]:
    """The receipts of its remedies and bounds, each as it stands in the notice."""
    for _, text in (*notice.remedies, *notice.bounds):
        yield from split(text)


def window_of(affected: Affected) -> str:
    """The ranges of a window in words."""
    return " or ".join(
        " and ".join(f"{name} {versions}" for name, versions in alternative.items())
        for alternative in affected
    )


def _of_families(question: Mapping[str, str], index: Index) -> Iterator[tuple[str, str]]:
    """The versions of distributions that are one project with one that is in the question."""
    for family, members in index.families.items():
        version = next((question[name] for name in (family, *members) if name in question), None)
        if version:
            for name in (family, *members):
                yield name, question.get(name, version)


def _name(text: str) -> str:
    return text if text in MACHINE else canonicalize_name(text)


def _version(name: str, text: str) -> str:
    """A version that can be compared, without a leading `v`.

    Raises:
        QuestionError: it is no version.
    """
    try:
        return str(Version(text.strip()))
    except InvalidVersion as error:
        raise QuestionError(f"`{name}`: `{text}` is not a version, as in 2.8.0") from error


def parse_packages(words: Sequence[str]) -> dict[str, str]:
    """Name → version of words as in `driver==550.54`.

    Raises:
        QuestionError: a word is not a name and a version.
    """
    packages = {}
    for word in words:
        name, equals, version = word.partition("==")
        if not (equals and name.strip() and version.strip()):
            raise QuestionError(f"`{word}` is not NAME==VERSION, as in numpy==2.1.0")
        packages[name.strip()] = version.strip()
    return packages
