"""Whether a claim about versions is about a toolchain."""

from __future__ import annotations

import msgspec
from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from kbtools.articles.model import ABSENT, Affected
from kbtools.toolchains.model import MACHINE, Toolchain


class Missing(msgspec.Struct, frozen=True):
    """What an `affected` speaks of is not on the toolchain."""

    name: str


class Undecided(msgspec.Struct, frozen=True):
    """Whether an `affected` holds cannot be told."""

    reason: str


def within(specifiers: SpecifierSet, version: Version) -> bool | None:
    """Whether a version lies in a range; None where a pre-release makes that a guess.

    Compared on the release, the local part stripped. A development or vendor pre-release whose
    release is the very boundary of the range could be on either side of it: it was cut before
    the release, with or without the change that the boundary speaks of. So could the build of a
    commit (`3.3.0+git96316ce5`, as in PyTorch's nightlies), although PEP 440 calls it final.
    """
    release = Version(version.base_version)
    answer: bool | None = True
    for clause in specifiers:
        if not (version.is_prerelease or _of_commit(version)):
            holds: bool | None = clause.contains(version.public, prereleases=True)
        elif _names_prerelease(clause):
            on_boundary = release == Version(Version(_bound(clause)).base_version)
            holds = clause.contains(version.public, prereleases=True)
            holds = None if on_boundary and _undated(version) else holds
        elif _on_boundary(clause, release):
            holds = None
        else:
            holds = clause.contains(release.public, prereleases=True)
        if holds is False:
            return False
        answer = answer if holds else None
    return answer


def _bound(clause: Specifier) -> str:
    return clause.version.removesuffix(".*")


def _names_prerelease(clause: Specifier) -> bool:
    return Version(_bound(clause)).is_prerelease


def _undated(version: Version) -> bool:
    """A build from source, by a vendor or of a commit: `a0`, `dev0` and `+git…` are no dates."""
    if version.local is None:
        return False
    return version.pre == ("a", 0) or version.dev == 0 or _of_commit(version)


def _of_commit(version: Version) -> bool:
    return (version.local or "").startswith("git")


def _on_boundary(clause: Specifier, release: Version) -> bool:
    bound = Version(_bound(clause))
    if clause.version.endswith(".*") or clause.operator == "~=":
        stem = bound.release if clause.operator != "~=" else bound.release[:-1]
        after = Version(".".join(map(str, (*stem[:-1], stem[-1] + 1))))
        return release in (bound, after)
    return release == bound


def specifiers(text: str) -> SpecifierSet:
    """A PEP 440 range, as in `>=2.2,<3.0`.

    Raises:
        ValueError: it is none, or one that cannot be compared on the release.
    """
    try:
        found = SpecifierSet(text)
    except InvalidSpecifier as error:
        raise ValueError(str(error)) from error
    for clause in found:
        if clause.operator == "===" or "+" in clause.version:
            raise ValueError(f"`{clause}`: compared is the release, no text and no local part")
    return found


def is_affected(affected: Affected, toolchain: Toolchain) -> bool | Missing | Undecided:
    """Whether any alternative of `affected` holds on a toolchain."""
    missing: Missing | None = None
    undecided: Undecided | None = None
    for alternative in affected:
        answer = _alternative(alternative, toolchain)
        if answer is True:
            return True
        if isinstance(answer, Missing):
            missing = missing or answer
        elif isinstance(answer, Undecided):
            undecided = undecided or answer
    return undecided or missing or False


def _alternative(alternative: dict[str, str], toolchain: Toolchain) -> bool | Missing | Undecided:
    answers = [_condition(name, text, toolchain) for name, text in alternative.items()]
    for answer in answers:
        # without a package that it speaks of a snippet cannot be run, whatever the rest says
        if isinstance(answer, Missing) and answer.name not in MACHINE:
            return answer
    if False in answers:
        return False
    return next((answer for answer in answers if answer is not True), True)


def _condition(name: str, text: str, toolchain: Toolchain) -> bool | Missing | Undecided:
    found = toolchain.version(name)
    if text == ABSENT:
        return found is None
    if found is None:
        return Missing(name)
    try:
        answer = within(specifiers(text), Version(found))
    except InvalidVersion:
        return Undecided(f"{name} {found} is not a version that compares")
    if answer is None:
        return Undecided(f"{name} {found} is a pre-release on the boundary of {text}")
    return answer
