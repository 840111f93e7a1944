"""Why these releases and no newer ones, each reason with its row, and what no row tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from packaging.version import Version

from kbtools.tables.answers import (
    Choice,
    Constraint,
    Constraints,
    Fit,
    Reason,
    Refusal,
    confirmed,
    parse_wants,
)
from kbtools.tables.files import ANY
from kbtools.tables.fitting import TRIED, Search
from kbtools.tables.machines import Machine, misfit
from kbtools.tables.model import ARCHITECTURES, CUDA, SOURCE, Release
from kbtools.tables.store import Base


def fit(base: Base, machine: Machine, words: Sequence[str]) -> Fit:
    """The newest releases that go together on a machine, as far as the rows tell.

    Args:
        base: The tables.
        machine: Where they are to be installed.
        words: Requirements, as in `numpy>=2`; none: what `tables.toml` names as default.

    Raises:
        WantError: a requirement cannot be read.
    """
    wants = parse_wants(words or base.tables.default)
    search = Search(base, machine)
    question: dict[str, list[Constraint]] = {
        name: [Constraint(requirement, Reason(f"you asked for {requirement}"))]
        for name, requirement in wants.items()
    }
    chosen = search.extend({}, question)
    words_of = Explanation(search, chosen or {}, question)
    return Fit(
        machine,
        tuple(map(str, wants.values())),
        words_of.choices(),
        tuple(words_of.passed_over()),
        tuple(words_of.unknown()),
        search.tried > TRIED,
    )


class Explanation:
    """What stands behind the end of a search."""

    def __init__(
        self,
        search: Search,
        chosen: Mapping[str, Release],
        question: Mapping[str, Sequence[Constraint]],
    ) -> None:
        self.search, self.chosen, self.question = search, chosen, question
        self.machine, self.known = search.machine, search.known
        merged = {key: list(values) for key, values in question.items()}
        for name, release in chosen.items():
            for package, constraint in search.required_by(release, question.get(name, ())):
                merged.setdefault(package, []).append(constraint)
        self.constraints: Constraints = merged

    def choices(self) -> tuple[Choice, ...]:
        """The releases that were chosen, what was asked for first, with the reasons."""
        first = [name for name in self.question if name in self.chosen]
        order = [*first, *(name for name in self.chosen if name not in first)]
        return tuple(map(self._choice, order))

    def _choice(self, name: str) -> Choice:
        release, constraints = self.chosen[name], self.constraints
        limits = (c for c in constraints[name] if c.requirement.specifier or not c.reason.source)
        reasons = [constraint.reason for constraint in limits]
        targets = release.facts.get(ARCHITECTURES)
        if targets and self.machine.sm:
            text = f"it has code for {' '.join(targets)}; your GPU is {self.machine.sm}"
            reasons.append(Reason(text, release.source, release.basis))
        versions = self.search.versions({name: release})
        for statement in self.search.statements:
            about_it = name in statement.about or (CUDA in statement.about and release.fact(CUDA))
            if about_it and statement.applies(versions) and (text := confirmed(statement)):
                reasons.append(Reason(text, statement.source, statement.basis))
        return Choice(release, tuple(reasons), self._is_implied(release, constraints[name]))

    def _is_implied(self, release: Release, constraints: Sequence[Constraint]) -> bool:
        """Whether it is the newest that the others admit, for an installer that sees no GPU."""
        versions = (
            row.parsed
            for row in self.known[release.package]
            if all(c.admits(row.version) for c in constraints)
            and not misfit(row, self.machine)
            and self._goes_with_chosen(row)
        )
        return max(versions, default=None) == release.parsed

    def _goes_with_chosen(self, release: Release) -> bool:
        return all(
            package not in self.chosen or constraint.admits(self.chosen[package].version)
            for package, constraint in self.search.required_by(release)
        )

    def passed_over(self, most: int = 3) -> Iterator[Refusal]:
        """The newest releases that were not chosen, and why; at most so many of a package."""
        chosen, question = self.chosen, self.question
        for name in question:
            releases = self.known.get(name, ())
            versions = list(dict.fromkeys(release.version for release in releases))
            number = 0
            for version in versions:
                if name in chosen and version == chosen[name].version:
                    break
                if not all(c.admits(version) for c in question.get(name, ())):
                    continue
                if number == most:
                    break
                number += 1
                yield Refusal(name, version, self._why_not(name, version))

    def _why_not(self, name: str, version: str) -> Reason:
        chosen, constraints = self.chosen, self.constraints
        if (name, version) in self.search.misfits:
            return self.search.misfits[name, version]
        for constraint in constraints.get(name, ()):
            if not constraint.admits(version):
                return constraint.reason
        release = next((r for r in self.search.of(name) if r.version == version), None)
        for package, constraint in self.search.required_by(release) if release else ():
            if why := self._none_admitted(package, constraint):
                text = f"{constraint.reason.text}; {why.text}"
                return Reason(text, why.source or constraint.reason.source, why.basis)
            both = (constraint, *self.question.get(package, ()))
            if not any(all(c.admits(r.version) for c in both) for r in self.search.of(package)):
                return constraint.reason
            if package in chosen and not constraint.admits(chosen[package].version):
                return constraint.reason
        if release and (
            reason := self.search.contradiction(self.search.versions({**chosen, name: release}))
        ):
            return reason
        return Reason("no choice of the others goes with it")

    def _none_admitted(self, package: str, constraint: Constraint) -> Reason | None:
        """Why the machine can take no release that a requirement admits; None if it can."""
        if any(constraint.admits(release.version) for release in self.search.of(package)):
            return None
        versions = (row.version for row in self.known[package] if constraint.admits(row.version))
        newest = next(versions, "")
        return self.search.misfits.get(
            (package, newest), Reason(f"no such release of {package} is known")
        )

    def unknown(self) -> Iterator[str]:
        """What no row tells about the question."""
        chosen, question = self.chosen, self.question
        for name in question:
            if name not in self.known:
                yield f"no table has {name}"
            elif not any(self._admitted(name)):
                ends = f"from {self.known[name][-1].version} to {self.known[name][0].version}"
                yield f"no row of {name} is as you asked: they go {ends}"
        for name, release in chosen.items():
            if release.platform == SOURCE:
                yield (
                    f"{name} {release.version} has only a source archive on the index: it is built"
                    " on your machine"
                )
            if release.requires is None:
                yield f"what {name} {release.version} requires: its source archive does not say"
            if self._is_gpu_unknown(release):
                yield f"for which GPUs the wheel of {name} {release.version} has code"
        versions = self.search.versions(chosen)
        for statement in self.search.statements if chosen else ():
            missing = [name for name in statement.needs if name not in versions]
            if statement.applies(versions) and missing:
                needs = ", ".join(f"{name} {text}" for name, text in statement.needs.items())
                about = ", ".join(f"{name} {versions[name]}" for name in statement.about)
                yield f"whether your machine has {needs}, which {about} needs"
        others = [r for r in chosen.values() if not self.machine.takes(r.source.file)]
        if others:
            names = ", ".join(f"{release.package} {release.version}" for release in others)
            yield (
                f"whether the wheels for Python {self.machine.python} of {names} require and"
                " contain what the rows say, which were read off those for another Python"
            )
        needs_glibc = [release for release in chosen.values() if release.glibc]
        if needs_glibc and not self.machine.glibc:
            newest = max(needs_glibc, key=lambda release: Version(release.glibc))
            yield (
                f"whether your machine has glibc {newest.glibc}, which the wheel of"
                f" {newest.package} {newest.version} needs"
            )
        if chosen and not self.machine.sm:
            yield "for which GPU it is to be: nothing was compared with one"
        yield from self.search.base.tables.notes

    def _admitted(self, name: str) -> Iterator[bool]:
        """Of each release of a package, whether its version is one that was asked for."""
        for row in self.known[name]:
            yield all(constraint.admits(row.version) for constraint in self.question[name])

    def _is_gpu_unknown(self, release: Release) -> bool:
        """Whether no row says that a wheel with code of its own is for the GPU."""
        if not self.machine.sm or release.platform in (ANY, SOURCE):
            return False
        versions = self.search.versions({release.package: release})
        about_both = {release.package, "sm"}
        return ARCHITECTURES not in release.facts and not any(
            about_both <= statement.about.keys() and statement.applies(versions)
            for statement in self.search.statements
        )
