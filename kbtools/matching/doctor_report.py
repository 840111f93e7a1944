"""What the doctor printed, in a pasted text: versions, and the articles that its probes name.

The twin of this module is `site/assets/matching/doctor_report.js`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from kbtools.config import KbtoolsError

MOST_REPORTS = 8
"""Reports that are looked for in a text."""
LONGEST_REPORT = 1000
"""Lines after which a report has ended that has no end."""
LONGEST_LINE = 2000
"""Characters of a line that can be one of a report."""
LONGEST_TEXT = 400
"""Characters of a finding that are kept."""

_LINE_END = re.compile(r"(\r+\n?|\n)")
_ID = r"[A-Z][A-Z-]{0,20}[0-9]{1,9}"
_LEVEL = r"(fault|risk|故障|风险)"
_ANY = r"[^\n]*"
_WORD = r"[^ \t\n]{1,40}"
_HINT = re.compile(rf'"program":[ \t\n]*"kbtools |kbtools {_WORD} (?:doctor: |· )')
_JSON = re.compile(r'\{[ \t\n]*"schema":[ \t\n]*1,[ \t\n]*"program":[ \t\n]*"kbtools ')
_PASTED = re.compile(rf"(?:<details>[ \t]*<summary>)?kbtools {_WORD} doctor: ")
_PRINTED = re.compile(rf"kbtools {_WORD} · ")
_VERSION = re.compile(rf"([A-Za-z0-9][\w.-]{{0,80}}) ([0-9][\w.!+-]{{0,80}})(?: {_ANY})?", re.ASCII)
_GPU = re.compile(rf"GPU [0-9]{{1,3}}:? {_ANY}, compute capability ([0-9]{{1,2}}\.[0-9])")
_FINDING = re.compile(
    rf"(?:- )?(?:\*\*)?{_LEVEL}(?:\*\*)? ({_ANY}) (?:\[({_ID})\]\({_ANY}\)|({_ID}))"
)
_DETAIL = re.compile(rf"(?:- )?(?:where|seen|expected|位置|现状|应为): {_ANY}")
_LISTED = re.compile(rf"(?:\x1b\[[0-9]+m)?[✗!] {_LEVEL}(?:\x1b\[0m)?(?: \({_ANY}?\))?: ({_ANY})")
_ARTICLE = re.compile(rf"(?:article|文章): ({_ID})(?: {_ANY})?")
_COUNTED = re.compile(rf"[0-9]{{1,4}} (?:faults?, |处故障){_ANY}")


class NoDoctorReportError(KbtoolsError):
    """A file holds no report of the doctor's."""


class DoctorFinding(msgspec.Struct, frozen=True):
    """What a probe found on the reader's machine."""

    article: str
    """Id of the article or notice that the probe names."""
    level: str
    """`fault` or `risk`."""
    summary: str


class DoctorReport(msgspec.Struct, frozen=True):
    """What the doctor said about a machine."""

    versions: dict[str, str]
    """Name → version; `python`, `driver` and `sm` of the machine among them."""
    findings: tuple[DoctorFinding, ...] = ()


def read_report(text: str, name: str) -> DoctorReport:
    """The report in a text that is one: JSON in any layout, or what `--paste` prints.

    `name` is that of the file, for the error.

    Raises:
        NoDoctorReportError: it holds none.
    """
    report = _of_json(text) or without_report(text)[1]
    if report is None:
        raise NoDoctorReportError(
            f"{name}: no report of the doctor's; write one with: kbtools doctor --json"
        )
    return report


def without_report(raw: str) -> tuple[str, DoctorReport | None]:
    """A text in which the lines of reports are empty, and what they say; None for no report.

    What a probe expected or saw is no line of the log, though it may read like one. The lines keep
    their numbers. Of a version that several reports have, the first counts.
    """
    if not _HINT.search(raw):
        return raw, None
    parts = _LINE_END.split(raw)
    lines = parts[::2]
    reports: list[DoctorReport] = []
    at = begun = 0
    while at < len(lines) and begun < MOST_REPORTS:
        begins = _begins(lines, at)
        begun += begins
        end, report = _report_at(lines, at) if begins else (at, None)
        if report is not None:
            reports.append(report)
            parts[2 * at : 2 * end : 2] = [""] * (end - at)
        at = max(end, at + 1)
    if not reports:
        return raw, None
    versions: dict[str, str] = {}
    for report in reports:
        versions = {**report.versions, **versions}
    findings = dict.fromkeys(finding for report in reports for finding in report.findings)
    return "".join(parts), DoctorReport(versions, tuple(findings))


def _stripped(line: str) -> str:
    return line.strip(" \t")


def _full(form: re.Pattern[str], line: str) -> re.Match[str] | None:
    return form.fullmatch(line) if len(line) <= LONGEST_LINE else None


def _begins(lines: list[str], at: int) -> bool:
    """Whether a line begins a report, by its form."""
    line = _stripped(lines[at])
    if line.startswith("{"):
        return _JSON.match("\n".join(map(_stripped, lines[at : at + 3]))) is not None
    return (_PASTED.match(line) or _PRINTED.match(line)) is not None


def _report_at(lines: list[str], at: int) -> tuple[int, DoctorReport | None]:
    """The number of the line behind a report, and what it says; None if it has no end."""
    line, window = lines[at], lines[at : at + LONGEST_REPORT]
    stripped = list(map(_stripped, window))
    if stripped[0].startswith("{"):
        margin = line[: line.index("{")]  # what is nested ends in a bracket further to the right
        is_whole = stripped[0].endswith("}")
        length = (
            1 if is_whole else window.index(f"{margin}}}") + 1 if f"{margin}}}" in window else 0
        )
        return at + length, _of_json("\n".join(window[:length]))
    if _PASTED.match(stripped[0]):
        ends = _places(stripped, "</details>")
        length = ends[0] + 1 if ends else _known_lines(stripped)
        return at + length, _of_lines(stripped[1:length])
    last = next((n for n, text in enumerate(stripped) if _full(_COUNTED, text)), None)
    if last is None:
        return at, None
    return at + last + 1, DoctorReport({}, tuple(_listed(stripped[:last])))


def _places(lines: list[str], text: str) -> list[int]:
    return [number for number, line in enumerate(lines) if line == text]


def _known_lines(lines: list[str]) -> int:
    """How many lines are those of a report, as one copies them off a page."""
    forms = (_VERSION, _GPU, _FINDING, _DETAIL)
    strange = (
        number
        for number, line in enumerate(lines)
        if number
        and line
        and not line.startswith("```")
        and not any(_full(form, line) for form in forms)
    )
    return next(strange, len(lines))


def _of_json(text: str) -> DoctorReport | None:
    """The report that `kbtools doctor --json` printed; None for any other text."""
    try:
        record: Any = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    program = record.get("program") if isinstance(record, dict) else None
    if not (isinstance(program, str) and program.startswith("kbtools ")):
        return None
    machine = {"driver": record.get("driver")}
    python, gpus = record.get("python"), record.get("gpus")
    if isinstance(python, dict):
        machine["python"] = python.get("version")
    if isinstance(gpus, list) and gpus and isinstance(gpus[0], dict):
        machine["sm"] = gpus[0].get("sm")
    packages = record.get("versions")
    named = {**(packages if isinstance(packages, dict) else {}), **machine}
    versions = {name: text for name, text in named.items() if isinstance(text, str) and text}
    findings = record.get("findings")
    return DoctorReport(versions, tuple(_decoded(findings if isinstance(findings, list) else ())))


def _decoded(findings: Iterable[Any]) -> Iterator[DoctorFinding]:
    for finding in findings:
        if not isinstance(finding, dict):
            continue
        values = (finding.get(key) for key in ("article", "level", "summary"))
        texts = [value for value in values if isinstance(value, str)]
        if len(texts) == 3 and re.fullmatch(_ID, texts[0]):
            yield _finding(*texts)


def _of_lines(lines: Iterable[str]) -> DoctorReport:
    """The report of the lines that `kbtools doctor --paste` printed."""
    versions: dict[str, str] = {}
    findings = []
    for line in lines:
        if match := _full(_FINDING, line):
            findings.append(_finding(match[3] or match[4], match[1], match[2]))
        elif match := _full(_GPU, line):
            versions.setdefault("sm", match[1])
        elif not findings and (match := _full(_VERSION, line)):
            versions.setdefault(match[1], match[2])
    return DoctorReport(versions, tuple(findings))


def _listed(lines: Iterable[str]) -> Iterator[DoctorFinding]:
    """The findings of the lines that `kbtools doctor` prints for people."""
    finding = None
    for line in lines:
        finding = _full(_LISTED, line) or finding
        if finding and (match := _full(_ARTICLE, line)):
            yield _finding(match[1], finding[1], finding[2])
            finding = None


def _finding(article: str, level: str, summary: str) -> DoctorFinding:
    word = "fault" if level in ("fault", "故障") else "risk"
    return DoctorFinding(article, word, summary[:LONGEST_TEXT])
