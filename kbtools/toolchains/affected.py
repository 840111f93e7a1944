"""Is a toolchain affected? Version ranges, compared with what a toolchain holds.

`kbtools/site/assets/matching/affected.js` gives the same answers in the browser.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec
from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from kbtools.articles.model import ABSENT, Affected
from kbtools.articles.needs import ANY
from kbtools.toolchains.model import MACHINE, Toolchain


class MissingVersion(msgspec.Struct, frozen=True):
    """The toolchain has no version for a name that `affected` mentions."""

    name: str


class UndecidedVersion(msgspec.Struct, frozen=True):
    """A version of the toolchain can be neither put into a range of `affected` nor kept out."""

    reason: str


class Clause(msgspec.Struct, frozen=True):
    """One clause of a version range, as `>=2.2` in `>=2.2,<3.0`."""

    specifier: Specifier

    def answer(self, version: Version) -> bool | None:
        """Whether a version satisfies the clause; None if that would be a guess.

        A pre-release is built before its release, with or without the change that a bound refers
        to. So is the build of a commit (`3.3.0+git96316ce5`, as in PyTorch's nightlies), although
        PEP 440 calls it final. Local parts are ignored. The first row that applies decides:

        | version                       | clause                              | answer            |
        | ----------------------------- | ----------------------------------- | ----------------- |
        | a release                     | any                                 | PEP 440           |
        | undated, release of the bound | bound is a pre-release (`<2.8rc1`)  | None              |
        | any other                     | bound is a pre-release              | PEP 440           |
        | its release is a boundary     | bound is a release (`<2.8`)         | None              |
        | any other                     | bound is a release                  | PEP 440, release  |
        """
        release = Version(version.base_version)
        if not (version.is_prerelease or _is_of_commit(version)):
            return self.specifier.contains(version.public, prereleases=True)
        if self.bound.is_prerelease:
            if _is_undated(version) and release == Version(self.bound.base_version):
                return None
            return self.specifier.contains(version.public, prereleases=True)
        if release in self.boundaries:
            return None
        return self.specifier.contains(release.public, prereleases=True)

    @property
    def bound(self) -> Version:
        """The version that the clause names; `2.7` for `==2.7.*`."""
        return Version(self.specifier.version.removesuffix(".*"))

    @property
    def boundaries(self) -> tuple[Version, ...]:
        """The releases at which the answer changes: both ends for `==2.7.*` and for `~=2.7`."""
        bound, operator = self.bound, self.specifier.operator
        if not (self.specifier.version.endswith(".*") or operator == "~="):
            return (bound,)
        prefix = bound.release[:-1] if operator == "~=" else bound.release
        following = (*prefix[:-1], prefix[-1] + 1)
        return bound, Version(".".join(map(str, following)))


def _is_undated(version: Version) -> bool:
    """A build from source, by a vendor or of a commit: `a0`, `dev0` and `+git…` are no dates."""
    if version.local is None:
        return False
    return version.pre == ("a", 0) or version.dev == 0 or _is_of_commit(version)


def _is_of_commit(version: Version) -> bool:
    return (version.local or "").startswith("git")


def parse_range(text: str) -> SpecifierSet:
    """A PEP 440 range, as in `>=2.2,<3.0`; `*` is every version.

    Raises:
        ValueError: it is not a range, or a clause of it cannot be compared with releases.
    """
    try:
        specifiers = SpecifierSet("" if text == ANY else text)
    except InvalidSpecifier as error:
        raise ValueError(str(error)) from error
    for clause in specifiers:
        if clause.operator == "===":
            raise ValueError(f"`{clause}`: ranges compare release versions; use `==`")
        if "+" in clause.version:
            local = clause.version.partition("+")[2]
            raise ValueError(f"`{clause}`: ranges compare release versions; drop `+{local}`")
    return specifiers


@lru_cache(10_000)
def clauses_of(text: str) -> tuple[Clause, ...]:
    """The clauses of a range. Cached: one article's range is asked of every toolchain.

    Raises:
        ValueError: it is not a range.
    """
    return tuple(Clause(specifier) for specifier in parse_range(text))


def range_holds(text: str, version: Version) -> bool | None:
    """Whether a version lies in a range; None if a pre-release makes that a guess.

    One clause that excludes the version decides, whatever the others leave open.

    Raises:
        ValueError: the text is not a range.
    """
    answers = [clause.answer(version) for clause in clauses_of(text)]
    if False in answers:
        return False
    return None if None in answers else True


def is_affected(
    affected: Affected, toolchain: Toolchain, tried: Affected = ()
) -> bool | MissingVersion | UndecidedVersion:
    """Whether any alternative of `affected` holds on a toolchain.

    Args:
        affected: The alternatives.
        toolchain: What is installed, and the machine that it is on.
        tried: For each alternative, name → the versions of which something is known; a version
            outside is undecided. Without it the claim is taken at its word.
    """
    missing: MissingVersion | None = None
    undecided: UndecidedVersion | None = None
    for i, alternative in enumerate(affected):
        answer = _alternative(alternative, toolchain, tried[i] if i < len(tried) else {})
        if answer is True:
            return True
        if isinstance(answer, MissingVersion):
            missing = missing or answer
        elif isinstance(answer, UndecidedVersion):
            undecided = undecided or answer
    return undecided or missing or False


def _alternative(
    alternative: dict[str, str], toolchain: Toolchain, tried: dict[str, str]
) -> bool | MissingVersion | UndecidedVersion:
    answers = {name: _condition(name, text, toolchain) for name, text in alternative.items()}
    for answer in answers.values():
        # a snippet about a package cannot be run without it, whatever the other conditions say
        if isinstance(answer, MissingVersion) and answer.name not in MACHINE:
            return answer
    for name, text in tried.items():
        elsewhere = any(answer is False for key, answer in answers.items() if key != name)
        if _condition(name, text, toolchain) is False and not elsewhere:
            version = toolchain.version(name)
            return UndecidedVersion(f"{name} {version} is outside of what was tried, {text}")
    if False in answers.values():
        return False
    return next((answer for answer in answers.values() if answer is not True), True)


def _condition(
    name: str, text: str, toolchain: Toolchain
) -> bool | MissingVersion | UndecidedVersion:
    return _answer(name, text, toolchain.version(name))


@lru_cache(10_000)
def _answer(name: str, text: str, version: str | None) -> bool | MissingVersion | UndecidedVersion:
    """Whether a version meets a condition. Cached: thousands of rows ask about a few versions."""
    if text == ABSENT:
        return version is None
    if version is None:
        return MissingVersion(name)
    try:
        answer = range_holds(text, Version(version))
    except InvalidVersion:
        return UndecidedVersion(f"{name} {version} is not a PEP 440 version")
    if answer is None:
        return UndecidedVersion(f"{name} {version} is a pre-release on the boundary of {text}")
    return answer
