"""Which releases go together on a machine: a search among the rows, the newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from packaging.utils import canonicalize_name

from kbtools.tables.answers import Constraint, Constraints, Reason, contradicted
from kbtools.tables.files import ANY
from kbtools.tables.machines import Machine, misfit, runs_on
from kbtools.tables.model import ARCHITECTURES, CUDA, SOURCE, Release, requirement_of
from kbtools.tables.store import Base

TRIED = 20_000
"""Choices after which the search gives up."""


class Search:
    """A search among the rows of the tables for one machine."""

    def __init__(self, base: Base, machine: Machine) -> None:
        self.base, self.machine, self.tried = base, machine, 0
        self.known = {name: rows for name, rows in base.releases.items() if rows}
        self.statements = [s for table in base.statements.values() for s in table]
        self.misfits: dict[tuple[str, str], Reason] = {}
        """Package and version → why it is not for the machine, whatever it goes with."""
        self.candidates: dict[str, tuple[Release, ...]] = {}

    def of(self, package: str) -> tuple[Release, ...]:
        """The releases of a package that are for the machine, new to old."""
        if package not in self.candidates:
            by_version: dict[str, list[Release]] = {}
            for release in self.known.get(package, ()):
                by_version.setdefault(release.version, []).append(release)
            fitting = [self._for_machine(rows) for rows in by_version.values()]
            self.candidates[package] = tuple(
                sorted(filter(None, fitting), key=lambda r: r.parsed, reverse=True)
            )
        return self.candidates[package]

    def _for_machine(self, rows: Sequence[Release]) -> Release | None:
        """The row of a release that is for the machine; None if there is none."""
        order = {self.machine.platform: 0, ANY: 1, SOURCE: 2}
        reason = Reason("")
        for row in sorted(rows, key=lambda row: order.get(row.platform, 3)):
            why = misfit(row, self.machine) or self._no_code(row) or self._statement(row)
            if not why:
                return row
            new = why if isinstance(why, Reason) else Reason(why, row.source)
            reason = reason if reason.text and row.platform not in order else new
        self.misfits[rows[0].package, rows[0].version] = reason
        return None

    def _no_code(self, row: Release) -> str:
        """Why a wheel has no code for the GPU; empty if it has, or nobody knows."""
        targets = row.facts.get(ARCHITECTURES)
        if targets is None or not self.machine.sm or runs_on(self.machine.sm, targets):
            return ""
        name = f"{row.package} {row.version} for {row.platform}"
        if not targets:
            return f"{name} has no code for a GPU"
        return f"{name} has code for {' '.join(targets)}, none for {self.machine.sm}"

    def _statement(self, row: Release) -> Reason | None:
        """The statement that a release alone contradicts on the machine."""
        return self.contradiction(self.versions({row.package: row}))

    def versions(self, chosen: Mapping[str, Release]) -> dict[str, str]:
        """Every version that a statement can be about."""
        versions = dict(self.machine.versions)
        for name, release in chosen.items():
            versions[name] = release.version
            if cuda := release.fact(CUDA):
                versions.setdefault(CUDA, cuda)
        return versions

    def contradiction(self, versions: Mapping[str, str]) -> Reason | None:
        """The first statement that these versions contradict."""
        for statement in self.statements:
            if statement.applies(versions) and (text := contradicted(statement, versions)):
                return Reason(text, statement.source, statement.basis)
        return None

    def required_by(
        self, release: Release, constraints: Sequence[Constraint] = ()
    ) -> Iterator[tuple[str, Constraint]]:
        """What a release requires of packages that have a table, on the machine.

        Args:
            release: The release.
            constraints: On its package, which may ask for extras.
        """
        extras = {"", *(extra for c in constraints for extra in c.requirement.extras)}
        for text in release.requires or ():
            requirement = requirement_of(text)
            name = canonicalize_name(requirement.name)
            if name not in self.known:
                continue
            if not any(_holds(text, self.machine, extra) for extra in extras):
                continue
            who = f"{release.package} {release.version} requires {requirement.name}"
            reason = Reason(f"{who}{requirement.specifier}", release.source, release.basis)
            yield name, Constraint(requirement, reason)

    def newest(self, package: str) -> Release | None:
        """The newest release of a package that goes with what it requires; None if none does."""
        wanted = Constraint(requirement_of(package), Reason(""))
        return (self.extend({}, {package: [wanted]}) or {}).get(package)

    def extend(
        self, chosen: dict[str, Release], constraints: Constraints
    ) -> dict[str, Release] | None:
        """Choices for all packages that are required; None if there are none."""
        pending = [n for n in constraints if n in self.known and n not in chosen]
        if not pending:
            return chosen
        name = self._next(pending, constraints)
        for release in self.of(name):
            self.tried += 1
            if self.tried > TRIED:
                return None
            if not all(c.admits(release.version) for c in constraints[name]):
                continue
            trial = chosen | {name: release}
            merged = {key: list(values) for key, values in constraints.items()}
            for package, constraint in self.required_by(release, constraints[name]):
                merged.setdefault(package, []).append(constraint)
            if not self._agree(trial, merged) or self.contradiction(self.versions(trial)):
                continue
            if complete := self.extend(trial, merged):
                return complete
        return None

    @staticmethod
    def _agree(chosen: Mapping[str, Release], constraints: Constraints) -> bool:
        return all(
            constraint.admits(release.version)
            for name, release in chosen.items()
            for constraint in constraints.get(name, ())
        )

    def _next(self, pending: Sequence[str], constraints: Constraints) -> str:
        """The package to choose next: one that is pinned, else one that no other pending one needs.

        What needs others comes before them: the newest server decides about the library, as who
        asks for both means it, and no release from before the library existed is chosen.
        """
        for name in pending:
            if any(constraint.is_exact for constraint in constraints[name]):
                return name
        needed = {package for name in pending for package in self._needs(name) if package != name}
        return next((name for name in pending if name not in needed), pending[0])

    def _needs(self, name: str) -> set[str]:
        """The packages that any release of a package requires."""
        return {package for release in self.of(name) for package, _ in self.required_by(release)}


def _holds(text: str, machine: Machine, extra: str) -> bool:
    return not requirement_of(text).marker or _evaluated(
        text, machine.python, machine.platform, extra
    )


@cache
def _evaluated(text: str, python: str, platform: str, extra: str) -> bool:
    """Whether the marker of a requirement holds; other things of a machine do not matter to it."""
    marker = requirement_of(text).marker
    return marker is None or marker.evaluate(Machine(python, platform).markers | {"extra": extra})
