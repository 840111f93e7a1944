"""From what a keeper reports to what the run did."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from kbtools.outcome import Outcome
from kbtools.running.model import Run, architectures
from kbtools.running.protocol import Ending, Report

TARGETS = "targets"
"""The file in the scratch folder in which `kbtools.repro` writes what it compiled for."""
SIGNALS = {"SIGKILL": "not by kbtools: was memory short?", "SIGXFSZ": "file size limit"}
"""Signal → why it may have come, where that is not obvious."""


def outcome_of(report: Report, observed: Outcome, clean: Callable[[str], str]) -> Outcome:
    """What a run did.

    report: what its keeper says, the snippet's own words in it.
    observed: what is known of it besides how it ended: output, targets, sandbox.
    clean: takes paths and secrets out of a text.
    """
    ending = report.get("ending", Ending())
    observed = msgspec.structs.replace(
        observed,
        seconds=report.get("seconds", 0.0),
        cpu_seconds=report.get("cpu_seconds"),
        peak_mib=round(report.get("peak_kib", 0) / 1024, 1),
        isolation=report.get("isolation"),
    )
    status = report.get("status")
    if status:
        message = report.get("message", "")
        if status == "timeout" and ending.get("end"):
            message += ", though it reached its last line: something keeps it alive"
        return msgspec.structs.replace(observed, status=status, message=message)
    code = os.waitstatus_to_exitcode(report.get("wait") or 0)
    if code < 0:
        name = signal_name(-code)
        why = SIGNALS.get(name, "")
        return msgspec.structs.replace(observed, status="signal", signal=name, message=why)
    if code == 0:
        status_0 = "passed" if ending.get("end") else "stopped"
        return msgspec.structs.replace(observed, status=status_0, exit=0)
    return msgspec.structs.replace(
        observed,
        status="failed",
        exit=code,
        exceptions=tuple(ending.get("raised", ())),
        message=clean(ending.get("message", "")),
    )


def targets_of(run: Run, environment: Mapping[str, str], scratch: Path) -> tuple[str, ...]:
    """The architectures that a run compiled for, as `kbtools.repro` and nvcc's flags name them.

    environment: the variables that it saw; scratch: its folder.
    """
    if run.compile_only:
        names = ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS")
        flags = " ".join(environment.get(name, "") for name in names)
        return tuple(sorted(set(architectures(flags))))[:16]
    try:
        return tuple(sorted(set((scratch / TARGETS).read_text("utf-8").split())))[:16]
    except (OSError, UnicodeDecodeError):
        return ()


def signal_name(number: int) -> str:
    """As in `SIGKILL`, or `SIG40`: most of the real-time signals have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
