"""Tries probes on the machines that are planted for them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kbtools.doctor.planting import Case, MachineSpec, Planted, plant
from kbtools.doctor.probe import Examined, Probe, examine
from kbtools.doctor.report import in_language


class Trial(msgspec.Struct, frozen=True):
    """A probe on a planted machine."""

    name: str
    problem: str
    """What is wrong with what it answered; empty if nothing is."""


def try_all(probes: Sequence[Probe], planted: Planted) -> Iterator[Trial]:
    """Tries every probe on its cases, and all of them on each sound machine."""
    by_id = {probe.id: probe for probe in probes}
    for case in planted.cases:
        if case.probe not in by_id:
            yield Trial(case.name, "there is no probe of this name")
        else:
            yield Trial(case.name, problem_of(case, by_id[case.probe]))
    for probe in probes:
        for kind in ("finds", "quiet"):
            if not any(c.probe == probe.id and c.kind == kind for c in planted.cases):
                yield Trial(f"{probe.id}: {kind}", f"there is no case `[[{probe.id}.{kind}]]`")
    for name, spec in planted.sound.items():
        for answer in examined(spec, probes):
            text = texts_of(answer) or answer.unanswered
            yield Trial(f"{answer.probe.id}: sound {name}", f"it says: {text}" if text else "")


def problem_of(case: Case, probe: Probe) -> str:
    """What is wrong with the answer of a probe on one of its cases; empty if nothing is."""
    (answer,) = examined(case.machine, [probe])
    text = texts_of(answer)
    if case.kind == "unanswered":
        if text or not answer.unanswered:
            return f"it must say that it cannot tell: {text or 'it finds nothing'}"
        text = answer.unanswered
    elif answer.unanswered:
        return f"it could not tell: {answer.unanswered}"
    elif case.kind == "quiet":
        return f"it must not find: {text}" if text else ""
    elif not text:
        return "it finds nothing"
    missing = [expected for expected in case.machine.expect if expected not in text]
    return f"its answer has no `{missing[0]}`: {text}" if missing else ""


def examined(spec: MachineSpec, probes: Sequence[Probe]) -> list[Examined]:
    """The answers of probes on a machine that is planted for them alone."""
    with tempfile.TemporaryDirectory(prefix="kbtools-machine-") as folder:
        machine = plant(spec, Path(folder).resolve())
        return list(examine(machine, probes))


def texts_of(answer: Examined) -> str:
    """All findings of an answer as one text, in English."""
    return "; ".join(
        " | ".join([f.where, in_language(f.seen, "en"), in_language(f.expected, "en"), f.next])
        for f in answer.findings
    )
