"""What a probe is, and what it finds."""

from __future__ import annotations

import time
import traceback
from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

from kbtools.doctor.machine import Machine, Unanswered

Text = Union[str, Tuple[str, str]]
"""A text that is the same in every language, or one in English and one in Chinese."""

FAULT = "fault"
"""It fails as it stands: at an import, or at the first use."""
RISK = "risk"
"""It fails if somebody does what `when` of the probe says."""


class Finding(NamedTuple):
    """What a probe found."""

    where: str
    """A path, a package, a variable with its value."""
    seen: Text
    expected: Text
    next: str
    """A command, or lines of several."""
    level: str = ""
    """`FAULT` or `RISK`, where it is not that of the probe."""


Function = Callable[[Machine], Iterable[Finding]]


class Probe(NamedTuple):
    """A function that looks for the cause of one failure, and what it is about."""

    id: str
    article: str
    """The id of the article or notice about the failure."""
    summary: Text
    level: str
    when: Text
    """What fails: a word or two, as `torch.compile`."""
    active: bool
    """Whether it does more than look; it is run only if it is asked for."""
    function: Function


def probe(
    id: str,
    article: str,
    en: str,
    zh: str,
    *,
    level: str = FAULT,
    when: Text = "",
    active: bool = False,
) -> Callable[[Function], Probe]:
    """Makes a probe of a function that yields findings.

    Args:
        id: a name with hyphens, of its own in the knowledge base.
        article: the id of the article or notice about the failure.
        en: one sentence that says what is wrong, in English.
        zh: the same in Chinese.
        level: `FAULT`, or `RISK` if it fails only with what `when` says.
        when: what fails then.
        active: whether it does more than look.
    """

    def decorate(function: Function) -> Probe:
        return Probe(id, article, (en, zh), level, when, active, function)

    return decorate


class Examined(NamedTuple):
    """What one probe answered."""

    probe: Probe
    findings: List[Finding]
    unanswered: str
    """Why it could not tell; empty if it could."""
    seconds: float


def examine(machine: Machine, probes: Iterable[Probe]) -> Iterator[Examined]:
    """Runs probes one after the other.

    A probe that raises an error has not answered; the others are run nevertheless.
    """
    for item in probes:
        if item.active and not machine.active:
            continue
        start = time.monotonic()
        findings: List[Finding] = []
        reason: Optional[str] = None
        try:
            findings.extend(item.function(machine))
        except Unanswered as error:
            reason = str(error)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__}: {error} ({last.name}:{last.lineno})"
        yield Examined(item, findings, reason or "", time.monotonic() - start)
