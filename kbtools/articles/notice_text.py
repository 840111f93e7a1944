"""A notice as one Markdown document, which says first that nobody here ran it.

`kbtools explain`, the MCP server and the site all print this document.
"""

from __future__ import annotations

from kbtools.articles import links
from kbtools.articles.notices import Notice
from kbtools.articles.receipt_grammar import brackets
from kbtools.config import Config


def standing(notice: Notice, word: str = "reported") -> str:
    """What a notice is worth, in one line.

    Args:
        notice: The notice.
        word: What follows from its runs: `reported` where there are none.
    """
    day = notice.matter.looked_up
    if word == "measured":
        return f"Reported, and measured here; looked up on {day}"
    if word == "seen":
        return f"Reported, and seen to fail here, not every bound measured; looked up on {day}"
    return f"Reported, not run here; looked up on {day}"


def window(notice: Notice) -> str:
    """The versions on which the failure is reported, as in `triton >=3.4,<3.6 or any driver`."""
    return " or ".join(
        " and ".join(
            f"any {name}" if versions == "*" else f"{name} {versions}"
            for name, versions in alternative.items()
        )
        for alternative in notice.matter.affected
    )


def hardware_words(notice: Notice) -> str:
    """The hardware on which it is reported; empty if nobody says."""
    hardware = notice.matter.hardware
    if hardware is None:
        return ""
    return "; ".join(filter(None, (hardware.sm and f"sm {hardware.sm}", hardware.words)))


def notice_markdown(notice: Notice, config: Config, word: str = "reported") -> str:
    """A notice as a Markdown document.

    Args:
        notice: The notice.
        config: Of the knowledge base. If it has no address, the document has no link to its page.
        word: What follows from its runs: `reported` where there are none.
    """
    matter = notice.matter
    lines = [f"# {notice.id}: {_line(matter.title)}", "", f"**{standing(notice, word)}.**", ""]
    if matter.retired:
        lines += [f"Retired since {matter.retired.since}: {_line(matter.retired.reason)}", ""]
    lines += [f"What helps, as reported: {_line(matter.summary)}", ""]
    lines += [f"- {_line(remedy.do)} {brackets(remedy.receipt)}" for remedy in matter.remedies]
    if matter.no_help:
        lines += ["", "Does not help, as reported:", ""]
    lines += [f"- {_line(d.do)} {_line(d.why)} {brackets(d.receipt)}" for d in matter.no_help]
    lines += ["", f"Reported on {window(notice)}:", ""]
    lines += [f"- `{bound.bound}` {brackets(bound.receipt)}" for bound in matter.bounds]
    if matter.hardware:
        cited = brackets(matter.hardware.receipt)
        lines.append(f"- hardware: {_line(hardware_words(notice))} {cited}")
    lines += ["", notice.article.body.strip(), ""]
    if matter.article:
        lines.append(f"- Article about it: {matter.article}")
    lines.append(f"- Components: {', '.join(matter.components)}; stage: {matter.stage}")
    lines.append(f"- Severity: {matter.severity}")
    lines.append(f"- Threads: {', '.join(links.upstream_url(t) for t in matter.threads)}")
    if site := config.knowledge_base.url:
        lines.append(f"- Page: {links.url(notice.id, site)}")
    return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())
