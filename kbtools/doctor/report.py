"""What the doctor prints: for people, for an issue, for programs."""

from __future__ import annotations

import fnmatch
import json
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from kbtools.doctor.hardware import driver, gpus
from kbtools.doctor.machine import Machine
from kbtools.doctor.probe import FAULT, Examined, Text
from kbtools.doctor.redaction import redacted

SCHEMA = 1
"""Of the JSON; a key that goes or changes its meaning raises it."""
WORDS: Dict[str, Sequence[str]] = {
    "fault": ("fault", "故障"),
    "risk": ("risk", "风险"),
    "where": ("where", "位置"),
    "seen": ("seen", "现状"),
    "expected": ("expected", "应为"),
    "next": ("next", "下一步"),
    "article": ("article", "文章"),
    "with": ("with", "涉及"),
    "none": ("No probe found anything.", "没有探针发现问题。"),
    "unanswered": ("could not tell", "无法判断"),
    "summary": (
        "{faults} faults, {risks} risks; {probes} probes in {seconds:.1f} s,"
        " {unanswered} could not tell",
        "{faults} 处故障，{risks} 处风险；{probes} 个探针用时 {seconds:.1f} 秒，"
        "{unanswered} 个无法判断",
    ),
}


class About(NamedTuple):
    """The knowledge base that the probes are of."""

    name: str
    version: str
    """Of kbtools."""
    url: str
    """Of its site; empty if it has none."""
    packages: List[str]
    """Shell patterns of the distributions whose versions a report shows."""
    titles: Dict[str, List[str]]
    """Id of an article or notice → its title, in English and in Chinese."""


def in_language(text: Text, language: str) -> str:
    """A text in a language, `en` or `zh`."""
    return text if isinstance(text, str) else text[language == "zh"]


def record_of(
    machine: Machine, examined: Sequence[Examined], about: About, language: str, seconds: float
) -> Dict[str, Any]:
    """What was found, as one JSON object."""
    interpreter = machine.interpreter
    versions = {
        name: distributions[0].version
        for name, distributions in sorted(machine.distributions.items())
        if any(fnmatch.fnmatch(name, pattern) for pattern in about.packages)
    }
    return {
        "schema": SCHEMA,
        "program": f"kbtools {about.version}",
        "knowledge_base": about.name,
        "python": {
            "version": interpreter.version,
            "executable": interpreter.executable,
            "platform": f"{interpreter.platform}-{interpreter.machine}",
            "libc": interpreter.libc,
        },
        "driver": driver(machine),
        "gpus": [
            {"name": gpu.name, "sm": ".".join(map(str, gpu.capability))} for gpu in gpus(machine)
        ],
        "versions": versions,
        "findings": [
            finding for answer in examined for finding in _findings(answer, about, language)
        ],
        "unanswered": [
            {"probe": answer.probe.id, "article": answer.probe.article, "reason": answer.unanswered}
            for answer in examined
            if answer.unanswered
        ],
        "probes": len(examined),
        "seconds": round(seconds, 2),
    }


def _findings(answer: Examined, about: About, language: str) -> List[Dict[str, str]]:
    probe = answer.probe
    titles = about.titles.get(probe.article, ["", ""])
    prefix = "zh/" if language == "zh" else ""
    return [
        {
            "probe": probe.id,
            "article": probe.article,
            "title": in_language((titles[0], titles[-1]), language),
            "address": f"{about.url.rstrip('/')}/{prefix}{probe.article}/" if about.url else "",
            "level": finding.level or probe.level,
            "when": in_language(probe.when, language),
            "summary": in_language(probe.summary, language),
            "where": finding.where,
            "seen": in_language(finding.seen, language),
            "expected": in_language(finding.expected, language),
            "next": finding.next,
        }
        for finding in answer.findings
    ]


def as_json(record: Mapping[str, Any]) -> str:
    """The record as JSON."""
    return json.dumps(record, ensure_ascii=False, indent=1)


def as_text(record: Mapping[str, Any], language: str, colour: bool) -> str:
    """The record for people."""
    words = {key: texts[language == "zh"] for key, texts in WORDS.items()}
    python = record["python"]
    head = f"{record['program']} · {record['knowledge_base']}"
    lines = [head, f"Python {python['version']}  {python['executable']}", ""]
    for finding in record["findings"]:
        lines += _paragraph(finding, words, colour)
    if not record["findings"]:
        lines += [words["none"], ""]
    for entry in record["unanswered"]:
        lines.append(
            f"? {entry['probe']} ({entry['article']}): {words['unanswered']}: {entry['reason']}"
        )
    if record["unanswered"]:
        lines.append("")
    lines.append(counted(record, words["summary"]))
    return "\n".join(lines)


def _paragraph(finding: Mapping[str, str], words: Mapping[str, str], colour: bool) -> List[str]:
    sign = "✗" if finding["level"] == FAULT else "!"
    code = "31" if finding["level"] == FAULT else "33"
    level = f"{sign} {words[finding['level']]}"
    level = f"\x1b[{code}m{level}\x1b[0m" if colour else level
    when = f" ({words['with']} {finding['when']})" if finding["when"] else ""
    lines = [f"{level}{when}: {finding['summary']}", f"    {finding['where']}"]
    keys = [key for key in ("seen", "expected") if finding[key]]
    lines += [f"    {words[key]}: {finding[key]}" for key in keys]
    commands = finding["next"].splitlines()
    lines += [f"    {words['next']}: {command}" for command in commands[:1]]
    # a Chinese character is as wide as two others
    margin = 4 + sum(1 + (ord(letter) > 0x2E7F) for letter in words["next"]) + 2
    lines += [" " * margin + command for command in commands[1:]]
    lines += [f"    {words['article']}: {finding['article']} {finding['address']}".rstrip(), ""]
    return lines


def counted(record: Mapping[str, Any], summary: str) -> str:
    """The last line: how much was found, in which time."""
    faults = sum(finding["level"] == FAULT for finding in record["findings"])
    text = summary.format(
        faults=faults,
        risks=len(record["findings"]) - faults,
        probes=record["probes"],
        seconds=record["seconds"],
        unanswered=len(record["unanswered"]),
    )
    return re.sub(r"\b1 (fault|risk|probe)s\b", r"1 \1", text)


def as_paste(
    record: Mapping[str, Any], environment: Mapping[str, str], language: str, url: str = ""
) -> str:
    """Markdown for an issue: the versions and the findings, without names, hosts and tokens.

    `url` is the address of the site, whose host may be named.
    """
    words = {key: texts[language == "zh"] for key, texts in WORDS.items()}
    python = record["python"]
    total = counted(record, words["summary"])
    lines = [f"<details><summary>{record['program']} doctor: {total}</summary>"]
    lines += ["", "```text"]
    lines.append(f"python {python['version']}  {python['platform']}  glibc {python['libc'] or '?'}")
    lines += [f"driver {record['driver']}"] if record["driver"] else []
    lines += [
        f"GPU {number}: {gpu['name']}, compute capability {gpu['sm']}"
        for number, gpu in enumerate(record["gpus"])
    ]
    lines += [f"{name} {version}" for name, version in record["versions"].items()]
    lines += ["```", ""]
    for finding in record["findings"]:
        address = (
            f"[{finding['article']}]({finding['address']})"
            if finding["address"]
            else finding["article"]
        )
        lines.append(f"- **{words[finding['level']]}** {finding['summary']} {address}")
        for key in ("where", "seen", "expected"):
            if finding[key]:
                text = " ".join(finding[key].split("\n"))  # a code span ends with its line
                lines.append(f"  - {words[key]}: `{text}`")
    lines += ["", "</details>"]
    return redacted("\n".join(lines), environment, url)


def exit_code(record: Mapping[str, Any]) -> int:
    """1 if something is surely wrong, 0 otherwise: a risk may never be met."""
    return int(any(finding["level"] == FAULT for finding in record["findings"]))
