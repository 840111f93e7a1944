"""What a run did, as observed. No claim and no judgement in here."""

from __future__ import annotations

from typing import Literal

import msgspec

Status = Literal["passed", "failed", "stopped", "signal", "timeout", "limit", "lost"]
Isolation = Literal["fork", "spawn"]
"""`fork`: a process forked from a zygote, modules preloaded; `spawn`: a new interpreter."""


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one run of one snippet did.

    `status` is `passed` (ran to its end, exit 0), `failed` (exit other than 0), `stopped` (exit 0
    before its last line), `signal`, `timeout`, `limit` (a limit other than time) or `lost` (the
    runner could not tell).
    """

    status: Status
    seconds: float = 0.0
    """Wall time."""
    cpu_seconds: float | None = None
    """CPU time, in user and system mode, of the snippet and of every process that it started. None
    where it was not measured, as in rows of evidence that were written before this was recorded."""
    exit: int | None = None
    signal: str | None = None
    exceptions: tuple[str, ...] = ()
    """The uncaught Python exception's type and its bases, most derived first."""
    message: str = ""
    """The uncaught exception's text, or why the runner ended the snippet."""
    output: str = ""
    """Its standard output and error, head and tail, with machine paths taken out."""
    targets: tuple[str, ...] = ()
    """Architectures that it had a compiler compile for, as in `sm_100`; no GPU need be there."""
    peak_mib: float = 0.0
    """Largest resident set of the snippet's own process."""
    unsandboxed: str = ""
    """What of the sandbox it ran without, and why; empty where it had all of it."""
    isolation: Isolation | None = None
    """How the process of a Python snippet was made. None for other languages, for a run that was
    lost, and in rows of evidence that were written before this was recorded here."""

    @property
    def where(self) -> str:
        """What hardware it speaks of without having been there, in a few words; or nothing."""
        return f"compiled for {', '.join(self.targets)}" if self.targets else ""

    @property
    def ended(self) -> str:
        """How it ended, in a few words."""
        if self.status == "passed":
            return "ran to its end"
        if self.status == "stopped":
            return "ended before its last line with exit code 0"
        if self.status == "signal":
            return f"killed by {self.signal}" + (f" ({self.message})" if self.message else "")
        if self.status in ("timeout", "limit", "lost"):
            return self.message
        if self.exceptions:
            first = self.message.strip().splitlines()
            return f"{self.exceptions[0]}: {first[0]}" if first else self.exceptions[0]
        return f"exit code {self.exit}"
