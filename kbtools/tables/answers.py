"""The parts of an answer: what was chosen, what was passed over, and which row says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from kbtools.config import KbtoolsError
from kbtools.tables.machines import Machine
from kbtools.tables.model import Origin, Release, Statement


class WantError(KbtoolsError):
    """A requirement in a question cannot be read."""


class Reason(msgspec.Struct, frozen=True):
    """Why a choice was limited, and the row that says so."""

    text: str
    source: Origin | None = None
    basis: str = "measured"


class Choice(msgspec.Struct, frozen=True):
    """A release that was chosen."""

    release: Release
    reasons: tuple[Reason, ...]
    """What had to hold of it, each with its row."""
    is_implied: bool
    """Whether an installer takes this very release because of what the others require."""


class Refusal(msgspec.Struct, frozen=True):
    """A newer release that was passed over."""

    package: str
    version: str
    reason: Reason


class Fit(msgspec.Struct, frozen=True):
    """The answer to a question."""

    machine: Machine
    wants: tuple[str, ...]
    choices: tuple[Choice, ...]
    """None: nothing fits."""
    refusals: tuple[Refusal, ...]
    """Of each package that was asked for, its newest releases that were passed over."""
    unknown: tuple[str, ...]
    """What no row tells."""
    gave_up: bool = False

    @property
    def versions(self) -> dict[str, str]:
        """Package → version of what was chosen."""
        return {c.release.package: c.release.version for c in self.choices}

    @property
    def line(self) -> tuple[str, ...]:
        """The requirements to install: what was chosen, without what follows from it."""
        lines = []
        for want in map(Requirement, self.wants):
            name = canonicalize_name(want.name)
            extras = f"[{','.join(sorted(want.extras))}]" if want.extras else ""
            version = self.versions.get(name)
            lines.append(f"{name}{extras}=={version}" if version else str(want))
        wanted = {canonicalize_name(Requirement(want).name) for want in self.wants}
        followers = (
            c for c in self.choices if c.release.package not in wanted and not c.is_implied
        )
        return (*lines, *(f"{c.release.package}=={c.release.version}" for c in followers))


class Constraint(msgspec.Struct, frozen=True):
    """A requirement of a package, and who has it."""

    requirement: Requirement
    reason: Reason

    def admits(self, version: str) -> bool:
        """Whether a version lies in its range."""
        return self.requirement.specifier.contains(version, prereleases=True)

    @property
    def is_exact(self) -> bool:
        """Whether it names one version."""
        return any(
            clause.operator in ("==", "===") and not clause.version.endswith("*")
            for clause in self.requirement.specifier
        )


Constraints = Mapping[str, Sequence[Constraint]]
"""Package → what is required of it."""


def parse_wants(words: Sequence[str]) -> dict[str, Requirement]:
    """Package → requirement of words as in `numpy>=2`.

    Raises:
        WantError: a word is no requirement.
    """
    wants: dict[str, Requirement] = {}
    for word in words:
        try:
            requirement = Requirement(word)
        except InvalidRequirement as error:
            raise WantError(f"`{word}` is not a requirement, as in numpy>=2") from error
        wants[canonicalize_name(requirement.name)] = requirement
    return wants


def contradicted(statement: Statement, versions: Mapping[str, str]) -> str:
    """What a statement that applies has against these versions; empty if nothing."""
    about = ", ".join(f"{name} {versions[name]}" for name in statement.about)
    if statement.works is False:
        return f"{about} does not work{': ' if statement.note else ''}{statement.note}"
    for name, text in statement.needs.items():
        requirement = Requirement(f"x{text}").specifier
        if name in versions and not requirement.contains(versions[name], prereleases=True):
            return f"{about} needs {name} {text}; yours is {versions[name]}"
    return ""


def confirmed(statement: Statement) -> str:
    """What a statement that applies says for a choice; empty if nothing."""
    about = ", ".join(f"{name} {text}" for name, text in statement.about.items())
    if statement.works:
        facts = [f"{name} {' '.join(values)}" for name, values in statement.facts.items()]
        details = "; ".join(filter(None, [*facts, statement.note]))
        return f"seen to work: {about}{f' ({details})' if details else ''}"
    needs = ", ".join(f"{name} {text}" for name, text in statement.needs.items())
    return f"{about} needs {needs}" if needs else ""
