"""The site's box answers what `kbtools diagnose` answers: both read the same logs here."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hostile_logs import LOGS, SIZES

from kbtools.articles.model import Signature
from kbtools.config import ToolchainForm
from kbtools.matching import Index, IndexEntry, Matcher, load
from kbtools.matching.versions import version_patterns
from kbtools.toolchains.affected import MissingVersion, UndecidedVersion, is_affected, parse_range
from kbtools.toolchains.model import MACHINE, Toolchain

pytest.importorskip("py_mini_racer", reason="mini-racer is not installed")

from v8 import Browser, evaluate

ROOT = Path(__file__).parent.parent
SECONDS = 2.0
"""Of CPU, for one log in the browser."""
NUMBER = re.compile(r"0x[0-9a-f]+|[0-9a-f]{6,}|[0-9]+")


@cache
def both() -> tuple[Matcher, Browser]:
    """The two matchers of this knowledge base."""
    index = load(ROOT)
    return Matcher(index), Browser(index)


def differing(logs: dict[str, str], matcher: Matcher, browser: Browser) -> dict[str, Any]:
    """Of these logs the ones that the two answer differently, with both answers.

    Logs that need the same shelves follow each other: the page's matcher is made once for them.
    """
    answers = {}
    for name, log in sorted(logs.items(), key=lambda item: browser.shelves(item[1])):
        ours = json.loads(msgspec.json.encode(matcher.diagnose(log)))
        theirs = browser.diagnose(log)
        if ours != theirs:
            answers[name] = (ours, theirs)
    return answers


def cut(logs: dict[str, str]) -> dict[str, str]:
    """The logs, and the last 30 lines of those that have more."""
    ends = {
        f"{name}, its end": "\n".join(log.split("\n")[-30:])
        for name, log in logs.items()
        if log.count("\n") >= 30
    }
    return logs | ends


def recorded() -> dict[str, str]:
    """What every snippet printed, each text once; texts that differ in numbers alone are one."""
    texts: dict[str, tuple[str, str]] = {}
    for file in sorted((ROOT / "evidence").glob("*.jsonl")):
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            output = json.loads(line).get("outcome", {}).get("output")
            if output:
                texts.setdefault(NUMBER.sub("0", output), (f"{file.name}:{number}", output))
    return dict(texts.values())


def test_the_corpus() -> None:
    """Every log of the corpus, whole and cut to its end, has one answer."""
    files = sorted((ROOT / "tests" / "logs").glob("*.log"))
    logs = cut({file.name: file.read_bytes().decode("utf-8", "replace") for file in files})
    assert any(both()[0].diagnose(log).matches for log in logs.values())
    assert differing(logs, *both()) == {}


def test_first_failures() -> None:
    """Every log that shows how a failure is followed by others has one answer."""
    files = sorted((ROOT / "tests" / "first_failures").glob("*.log"))
    logs = {file.name: file.read_text("utf-8") for file in files}
    before = logs["watchdog-minutes-later.log"].splitlines(keepends=True)
    logs["of one rank, then of the other"] = "".join(before[5:] + before[:5])
    assert differing(cut(logs), *both()) == {}


def test_what_was_recorded() -> None:
    """Every output in the evidence, whole and cut to its end, has one answer."""
    logs = cut(recorded())
    assert any(both()[0].diagnose(log).matches for log in logs.values())
    assert differing(logs, *both()) == {}


@pytest.mark.parametrize(("name", "size"), SIZES)
def test_what_hurts(name: str, size: int) -> None:
    """What is meant to hurt a matcher has one answer, and the page has it soon."""
    log = LOGS[name](size)
    if name == "surrogates":  # JSON's two halves become one character on their way there
        log = log.encode("utf-16", "surrogatepass").decode("utf-16")
    matcher, browser = both()
    ours = json.loads(msgspec.json.encode(matcher.diagnose(log)))
    theirs, seconds = browser.timed(log)
    assert seconds < SECONDS
    assert theirs == ours


BOOM = "Error: boom: it failed"
LINES = [
    BOOM,
    f"# {BOOM}\n\na not found; falling back to b",
    "ImportError: libx.so: 无法打开共享对象文件: 没有那个文件或目录",
    "*** An error occurred in MPI_Init_thread",
    "Unable to find image 'a:1' locally",
    f"🙂🙃 {BOOM} 🙂",
    f"\u2028{BOOM}\u2029\x85",
    f"\u00a0{BOOM} in \u3000",
    f"print()\u2028{BOOM}\x0b\x0c after",
    "Error: boom:\nit failed",
    "Error: boom: it\n failed",
    "Error: boo\nm: it failed",
    "\ue000🙂 boom: it failed",
    f"triton==3.0.0\r\n{BOOM}\r\n\r\n",
    f"triton==2.3.0\u2028torch==2.5.1\n{BOOM}",
    f'  File "x.py", line 3, in f\n    {BOOM}',
    f'C:\\\\x \\"{BOOM}\\"',
    f"{'🙂' * 700}{BOOM}{'🙂' * 700}",
    f"{'🙂' * 600_000}{BOOM}\n{'🙃' * 1_500_000}",
    "x\n" * 30_000 + f"{BOOM}\n" + "x\n" * 50_000 + BOOM,
    "x\n" * 19_999 + f"{BOOM}\n" + "x\n" * 40_001,
    "x\n" * 30_000 + f"{BOOM}\n" + "x\n" * 39_999 + "x",
    "# boom: it failed\n" * 8 + BOOM + "\n# boom: it failed" * 5,
    f'File "x.py", line 3, in f\n{BOOM}',
    f'{{"exc_info": "Traceback\\n  File \\"x.py\\", line 2\\n    f()\\n{BOOM}"}}\n{BOOM}',
    f"&lt;b&gt; it&#x27;s &amp;quot; {BOOM}\na\\nb\\\\nc {BOOM}",
    f'"output_type": "error",\n "traceback": [\n  "a\\n",\n  "{BOOM}"\n ]',
    f"10:00:00 INFO Traceback (most recent call last):\n10:00:00 INFO - {BOOM}",
    f"INFO boom: it failed, {BOOM}\nretry on '{BOOM}' and \"boom: it failed",
    "FAILED test_a.py::test_b - RuntimeError: a literal that stands at th...\n",
    f"falling back\nTraceback (most recent call last):\n{BOOM}\n",
    f"{BOOM}\n\n\nretrying\n",
    "UserWarning: boom: it\nplain boom: it",
    "boom: it failed\n",
    f"UserWarning: boom: it failed\n{BOOM[:5]} other\nValueError: other",
    "Error: failed\u3000then",
    f"# {BOOM}\n\n# boom: it failed\n",
    f"\n  # boom: it failed\r\n \r\n{BOOM}",
    f'"{BOOM}"\n"{BOOM}",\n"boom: it failed"',
    f"2023-10-06 13:14:53.424902: E a/b/driver.cc:864] {BOOM}",
    f"10 %\r20 %\r{BOOM}\n{BOOM}\r\n\r\r\n{BOOM}\r",
    f"10 %\r20 %\r{BOOM}",
    "x\r\n" * 10_000 + "y\r" * 55_000 + f"\n{BOOM}",
    f"# {BOOM}\n\n```\n{BOOM}\n```\n",
    f"## {BOOM}\n\n- [ ] {BOOM}\nTitle: {BOOM}\nx\n{BOOM} 3\n```\nValueError: it\n{BOOM}\n",
    f"ValueError: a\n\n{BOOM}\nValueError: a b\n",
    "# ValueError: a\n\nthe worker died\n",
    "",
    "\n",
]


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_characters(line: str) -> None:
    """Characters of two units, other languages' spaces and line ends, and cuts are the same."""
    signatures = (
        Signature("boom: it failed", r"^[^x]*\bboom:\s.*failed\S*\s*$", "错误|it .{1,9}$"),
    )
    span: tuple[dict[str, str], ...] = ({"triton": ">=2.2,<3.0"}, {"torch": "<2", "sm": ">=9.0"})
    first = IndexEntry("KB0001", "t", "s", "blocks", signatures, span, confusable=("KB0002",))
    shorter = (
        *(Signature("boom: it"), Signature("it failed"), Signature("failed", r"failed\sthen")),
        Signature("a literal that stands at the end"),
    )
    second = IndexEntry("KB0002", "t", "s", "blocks", shorter)
    entries = (first, second)
    versions = version_patterns(
        (condition for entry in entries for condition in entry.affected), ToolchainForm()
    )
    index = Index(1, "tiles", "", entries, versions=versions)
    assert differing({"": line}, Matcher(index), Browser(index)) == {}


RELEASES = ("2.9", "3.0", "3.0.0", "3.0.1", "3.1", "3.10.2", "4.0", "1!3.0")
ENDINGS = (
    *("", "a0", "a0+gitabc", "b2", "rc1", "rc0.dev3", "rc1.post2", ".dev0", ".dev0+cu130"),
    *(".dev20250101", ".post1", ".post1.dev2", "+cpu", "+git96316ce5", "rc1+git1"),
)
BOUNDS = ("2.9", "3.0", "3.0.0", "3.1", "3.0rc1", "3.0.dev20250101", "3.0.post1", "3.0a0", "1!3.0")
RANGES = [
    *(
        operator + bound
        for operator in ("==", "!=", "<", ">", "<=", ">=", "~=")
        for bound in BOUNDS
    ),
    *("==3.*", "!=3.0.*", "==3.0.0.*", "~=3.0.1", ">=2.2,<3.0", "> 2.9 , != 3.0.*", "==1!3.*"),
    *(">=3.0,<3.1,!=3.0.1", "~=2.9,!=3.*", "==3.10.*", "*"),
]


def answer(
    affected: tuple[dict[str, str], ...], toolchain: Toolchain, tried: Any = ()
) -> bool | str:
    """What `is_affected` says, in the words of `affected.js`."""
    decision = is_affected(affected, toolchain, tried)
    if isinstance(decision, MissingVersion):
        return "missing"
    return "undecided" if isinstance(decision, UndecidedVersion) else decision


def test_versions() -> None:
    """Whether a version lies in a range, for many of both."""
    versions = [release + ending for release in RELEASES for ending in ENDINGS]
    versions += ["v3.0", "3.0-1", "3.0.0-beta.2", "3.0c1", "3.0alpha", "not", "3.x"]
    cases = [(text, version) for text in RANGES for version in versions]
    assert all(parse_range(text) for text in RANGES if text != "*")
    ours = [answer(({"a": r},), Toolchain(python="", packages={"a": v})) for r, v in cases]
    theirs = json.loads(
        evaluate(
            f"JSON.stringify({json.dumps(cases)}.map(([range, version]) => isAffected("
            "[{ a: range }], { gpus: [], packages: { a: version } }).answer))"
        )
    )
    assert [case for case in zip(cases, ours, theirs, strict=True) if case[1] != case[2]] == []
    assert {True, False, "undecided"} == set(ours)


def test_outside_of_what_was_tried() -> None:
    """A version of which nothing is known is undecided, unless another condition excludes it."""
    claims = ({"a": "<3.0"}, {"a": ">=5", "b": ">1"}, {"a": "==2.7.*"})
    known: Any = ({"a": ">=2.5.1"}, {"a": "<=6.0"}, {"b": ">=1"}, {"a": ">=2.5.1", "b": "<=3"}, {})
    others: Any = ({}, {"b": "1"}, {"b": "2"}, {"b": "4"})
    cases = [
        ((left, right), (tried, more), {"a": version} | other)
        for left in claims
        for right in claims
        for tried in known
        for more in known
        for version in ("2.4", "2.5.0", "2.5.1+cpu", "2.7.1", "3.0", "6.0", "6.1", "6.0.dev1")
        for other in others
    ]
    ours = [
        answer(affected, Toolchain(python="", packages=packages), tried)
        for affected, tried, packages in cases
    ]
    theirs = json.loads(
        evaluate(
            f"JSON.stringify({json.dumps(cases)}.map(([claims, tried, packages]) => isAffected("
            "claims, { gpus: [], packages }, tried).answer))"
        )
    )
    assert [case for case in zip(cases, ours, theirs, strict=True) if case[1] != case[2]] == []
    plain = [answer(claims, Toolchain(python="", packages=p)) for claims, _, p in cases]
    assert plain != ours, "what was tried changes some answers"


def test_alternatives() -> None:
    """What is missing, undecided or false weighs the same in conditions of several."""
    conditions = [{"a": ">=3.0"}, {"a": "<3.0"}, {"b": ">1"}, {"sm": ">=9.0"}, {"gpus": ">1"}]
    conditions += [{"a": "absent"}, {"b": "absent"}]
    pairs = [left | right for left in conditions for right in conditions]
    cases = [
        ((left, right), v) for left in pairs for right in pairs for v in ("2.9", "3.0rc1", "?")
    ]
    ours = [answer(claims, Toolchain(python="", packages={"a": v})) for claims, v in cases]
    theirs = json.loads(
        evaluate(
            f"JSON.stringify({json.dumps(cases)}.map(([claims, version]) => isAffected("
            "claims, { gpus: [], packages: { a: version } }).answer))"
        )
    )
    assert [case for case in zip(cases, ours, theirs, strict=True) if case[1] != case[2]] == []
    assert "sm" in MACHINE


def test_the_index_says_everything() -> None:
    """The published index holds what the page needs, although all of it is the default."""
    published = json.loads(msgspec.json.encode(Index(1, "tiles", "", ())))
    assert {"noise", "prefixes", "versions", "rules"} <= set(published)
    assert {"error", "frame", "joints", "places", "head", "tail"} <= set(published["rules"])
