"""Whether a run can have written a row of evidence.

This finds damage, mistakes and keys that were added to an outcome. It cannot find an outcome that
somebody with the code of a snippet invented: evidence is taken from machines that are trusted.
"""

from __future__ import annotations

import datetime
import math
import re
import signal
from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from kbtools.articles.model import Snippet
from kbtools.evidence.rows import Row
from kbtools.evidence.verdicts import expect
from kbtools.outcome import Outcome
from kbtools.running.output import SECRET
from kbtools.toolchains.model import Toolchain

SLACK = datetime.timedelta(hours=1)
"""By which the clock of another machine may be ahead."""
SIGNALS = frozenset(number.name for number in signal.Signals) | {f"SIG{n}" for n in range(35, 64)}
NAME = re.compile(r"[a-z][a-z0-9-]*")
DIGEST = re.compile(r"[0-9a-f]{64}")
DISTRIBUTION = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
DAY = 86_400.0
LONGEST = 200
"""Characters of a name, a version or a line that describes a machine."""
LONGEST_MESSAGE = 4_000
SM = (
    (re.compile(r"\b(H100|H200|GH200|H20|H800)\b"), "9.0"),
    (re.compile(r"\b(B200|GB200)\b"), "10.0"),
    (re.compile(r"\b(B300|GB300)\b"), "10.3"),
    (re.compile(r"\b(A100|A30|A800)\b"), "8.0"),
    (re.compile(r"\b(A10|A10G|A16|A40|A6000|RTX 30[5-9]0)\b"), "8.6"),
    (re.compile(r"\b(L4|L40|L40S|RTX 40[5-9]0)\b"), "8.9"),
    (re.compile(r"\b(RTX 50[5-9]0|RTX PRO 6000)\b"), "12.0"),
    (re.compile(r"\b(T4|RTX 20[6-8]0)\b"), "7.5"),
    (re.compile(r"\bV100\b"), "7.0"),
    (re.compile(r"\bP100\b"), "6.0"),
)
"""GPU → its compute capability, as https://developer.nvidia.com/cuda-gpus lists them.

Of a GPU that is not in this list every capability is accepted.
"""


def implausibilities(row: Row, snippet: Snippet, now: datetime.datetime) -> Iterator[str]:
    """The reasons, if any, why no run of a snippet can have written a row.

    Args:
        row: The row to examine.
        snippet: The snippet that has the row's code.
        now: No run is later than this, give or take `SLACK`.
    """
    if row.when.tzinfo is None:
        yield f"`when` is {row.when}, without a time zone"
    elif row.when > now + SLACK:
        yield f"`when` is {row.when}, which is in the future"
    if not NAME.fullmatch(row.snippet):
        yield f"`{row.snippet}` is not the id of a snippet"
    yield from of_isolation(row, snippet)
    if not _is_version(row.kbtools):
        yield f"kbtools `{row.kbtools}` is not a version"
    if bool(row.helper) != snippet.uses_helper or (row.helper and not DIGEST.fullmatch(row.helper)):
        imports = "imports" if snippet.uses_helper else "does not import"
        yield f"helper `{row.helper}`: the snippet {imports} kbtools.repro"
    yield from of_toolchain(row.toolchain)
    yield from of_outcome(row.outcome, snippet)
    expected = expect(snippet, row.toolchain, snippet.keys.toolchain)
    if expected.what == "skip":
        yield f"its toolchain cannot run the snippet: {expected.reason}"


def of_isolation(row: Row, snippet: Snippet) -> Iterator[str]:
    """Why no run of the snippet can have had this isolation."""
    recorded = row.outcome.isolation is not None
    if row.schema == 1:
        if recorded:
            yield "schema 1 has no `outcome.isolation`"
        return
    if row.requested_isolation is not None:
        yield f"schema {row.schema} has no `isolation` beside its outcome"
    if recorded and snippet.language != "python":
        yield f"a {snippet.language} snippet has no `outcome.isolation`"
    if not recorded and snippet.language == "python":
        yield "`outcome.isolation` of a Python snippet is missing"


def of_outcome(outcome: Outcome, snippet: Snippet) -> Iterator[str]:
    """Why no run of the snippet can have ended in this way."""
    if not _is_consistent(outcome):
        end = f"exit {outcome.exit} and signal {outcome.signal}"
        yield f"status `{outcome.status}` contradicts {end}"
    if outcome.exceptions and snippet.language != "python":
        yield f"{snippet.language} raises no {outcome.exceptions[0]}"
    if not all(name.isidentifier() and len(name) <= LONGEST for name in outcome.exceptions):
        yield "the name of an exception is not one that a class can have"
    if not 0 <= outcome.seconds <= DAY:
        yield f"it took {outcome.seconds} seconds"
    if outcome.cpu_seconds is not None and not 0 <= outcome.cpu_seconds <= DAY:
        yield f"it took {outcome.cpu_seconds} seconds of CPU"
    if not (math.isfinite(outcome.peak_mib) and outcome.peak_mib >= 0):
        yield f"it took {outcome.peak_mib} MiB"
    if not all(0 < len(t) <= 40 and t.isprintable() for t in outcome.targets):
        yield "a target that it was compiled for is not an architecture"
    if len(outcome.message) > LONGEST_MESSAGE:
        count = len(outcome.message)
        yield f"its message has {count} characters; the limit is {LONGEST_MESSAGE}"
    if len(outcome.unsandboxed) > LONGEST_MESSAGE or not outcome.unsandboxed.isprintable():
        yield "`outcome.unsandboxed` is not a message of kbtools"
    if SECRET.search(outcome.output) or SECRET.search(outcome.message):
        yield "its output contains what looks like a secret"


def _is_consistent(outcome: Outcome) -> bool:
    raised = outcome.exceptions
    if outcome.status in ("passed", "stopped"):
        return outcome.exit == 0 and not (outcome.signal or raised or outcome.message)
    if outcome.status == "failed":
        return outcome.exit in range(1, 256) and outcome.signal is None
    if outcome.status == "signal":
        return outcome.signal in SIGNALS and outcome.exit is None and not raised
    if outcome.status in ("timeout", "limit"):
        return outcome.exit is None and not (outcome.signal or raised) and bool(outcome.message)
    return False


def of_toolchain(toolchain: Toolchain) -> Iterator[str]:
    """Why no interpreter and no machine can be like this."""
    versions = {"python": toolchain.python, **toolchain.packages}
    parts = (("cuda", toolchain.cuda), ("driver", toolchain.driver))
    versions |= {name: version for name, version in parts if version is not None}
    if toolchain.ptxas:
        versions["ptxas"] = toolchain.ptxas.version
    for name, version in versions.items():
        if not _is_version(version):
            yield f"{name} `{version}` is not a version"
    for name in toolchain.packages:
        if not DISTRIBUTION.fullmatch(name) or len(name) > LONGEST:
            yield f"`{name}` is not the canonical name of a distribution"
    if toolchain.gpus and not toolchain.driver:
        yield "it has GPUs and no driver"
    for number, gpu in enumerate(toolchain.gpus):
        if not re.fullmatch(r"\d{1,2}\.\d", gpu.sm):
            yield f"gpus[{number}].sm `{gpu.sm}` is not a compute capability"
        for model, sm in SM:
            if model.search(gpu.name) and gpu.sm != sm:
                yield f"{gpu.name} has compute capability {sm}, not {gpu.sm}"
    parts_of_machine = (toolchain.platform, toolchain.libc, toolchain.compiler, toolchain.kernel)
    for text in (*parts_of_machine, *(gpu.name for gpu in toolchain.gpus)):
        if len(text) > LONGEST or not text.isprintable() or SECRET.search(text):
            yield "a description of the machine is too long, unprintable or contains a secret"


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return len(text) <= LONGEST and text == text.strip()
