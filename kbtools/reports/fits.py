"""Which versions go together, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click

from kbtools.matching.known import KnownFailure
from kbtools.tables.answers import Fit, Reason
from kbtools.tables.model import Origin

FAILURES = 8
"""Failures that a text shows at most; `--json` has all."""


def answer(fit: Fit, failures: Sequence[KnownFailure], addresses: Mapping[str, str]) -> str:
    """An answer with the rows behind it.

    Args:
        fit: What goes together.
        failures: That are known for these versions.
        addresses: Id of a failure → where it is described; empty if nowhere.
    """
    sources: dict[str, int] = {}
    lines = [*_head(fit), *([""] if fit.choices else ()), *_choices(fit, sources)]
    lines += _passed_over(fit, sources)
    lines += _failures(failures, addresses) if fit.choices else ()
    lines += ["", click.style("not known", bold=True), *(f"  {text}" for text in fit.unknown)]
    lines += ["", click.style("rows", bold=True)]
    lines += [f"  [{number}] {_row(text, fit)}" for text, number in sources.items()]
    return "\n".join(lines if sources else lines[:-2])


def _head(fit: Fit) -> Iterator[str]:
    machine = fit.machine
    parts = [f"Python {machine.python}", machine.platform]
    parts += [f"GPU {machine.sm}"] if machine.sm else []
    parts += [f"driver {machine.driver}"] if machine.driver else []
    parts += [f"glibc {machine.glibc}"] if machine.glibc else []
    yield click.style(f"{', '.join(fit.wants)} on {', '.join(parts)}", bold=True)
    yield ""
    if fit.choices:
        yield f"  pip install {' '.join(map(quoted, fit.line))}"
    elif fit.gave_up:
        yield "  no answer: there are too many combinations; give ranges"
    else:
        yield "  no releases go together, as far as the rows tell"


def quoted(requirement: str) -> str:
    """A requirement as a shell takes it."""
    return f'"{requirement}"' if any(sign in requirement for sign in "<>[]*;! ") else requirement


def _choices(fit: Fit, sources: dict[str, int]) -> Iterator[str]:
    for choice in fit.choices:
        release = choice.release
        own = _mark(release.source, release.basis, sources)
        title = click.style(f"{release.package} {release.version}", bold=True)
        facts = [f"{k} {' '.join(v)}" for k, v in release.facts.items() if len(v) == 1]
        yield "  ".join([title, release.platform, *facts, str(release.uploaded or "")]) + own
        for reason in choice.reasons:
            yield f"  {reason.text}{_of(reason, sources)}"


def _passed_over(fit: Fit, sources: dict[str, int]) -> Iterator[str]:
    if fit.refusals:
        yield ""
        yield click.style("why not a newer one", bold=True)
    for refusal in fit.refusals:
        name = f"{refusal.package} {refusal.version}"
        yield f"  {name}: {refusal.reason.text}{_of(refusal.reason, sources)}"


def _failures(failures: Sequence[KnownFailure], addresses: Mapping[str, str]) -> Iterator[str]:
    yield ""
    if not failures:
        yield "no failure is known here for these versions"
        return
    yield click.style(f"{len(failures)} known for these versions", bold=True)
    for failure in failures[:FAILURES]:
        yield f"  {failure.id}  {failure.title}  ({failure.severity}, {failure.standing})"
        yield f"    {failure.what_helps} {addresses.get(failure.id, '')}".rstrip()
    if len(failures) > FAILURES:
        yield f"  … and {len(failures) - FAILURES} more: --json has all"


def _of(reason: Reason, sources: dict[str, int]) -> str:
    return _mark(reason.source, reason.basis, sources) if reason.source else ""


def _row(text: str, fit: Fit) -> str:
    """A row, and whether it was read off a wheel that the machine's Python does not take."""
    is_for_it = fit.machine.takes(text.partition("  ")[0])
    return text if is_for_it else f"{text}  (for another Python)"


def _mark(source: Origin, basis: str, sources: dict[str, int]) -> str:
    """The number of a row, as in ` [3]`; `sources` keeps them."""
    digest = f"  sha256:{source.sha256[:16]}" if source.sha256 else ""
    text = f"{source.file}{digest}{'' if basis == 'measured' else '  (reported)'}"
    return f" [{sources.setdefault(text, len(sources) + 1)}]"
