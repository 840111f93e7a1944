"""An issue that was opened or edited → the reply to it, or why there is none.

Anybody can write an issue. Nothing of its text is repeated here: a reply holds only texts of the
article and of the knowledge base, and the number of a line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from kbtools.articles import replies
from kbtools.articles.links import NoAddressError
from kbtools.config import KbtoolsError
from kbtools.integrations import comments
from kbtools.matching import Index, Match, Matcher
from kbtools.matching.doctor_report import DoctorReport, without_report

_FENCE = re.compile(
    r"^ {0,3}(`{3,}+|~{3,}+)[^\n]*+\n(.*?)(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE
)
_COMMENT = "<!--", "-->"
_TIME = re.compile(r"[^0-9TZ:.-]")
"""What is no part of a time: an event is not trusted to hold one."""


class EventError(KbtoolsError):
    """The file of an event cannot be read, or the event is not about an issue."""


class Issue(msgspec.Struct, frozen=True):
    """An issue, as the event about it has it."""

    number: int
    title: str
    body: str
    is_new: bool
    """Whether this very event opened or edited it, and it is no pull request."""
    edition: str = ""
    """When it was last edited, as in `2026-11-22T20:00:00Z`."""


class IssueReply(msgspec.Struct, frozen=True):
    """A reply, or the reason why there is none."""

    article: str = ""
    """The id of the article that is about the issue, surely or not; empty for none."""
    reply: str = ""
    """The text of the comment, as Markdown; empty for none."""
    silence: str = ""
    """Why the issue gets no reply; empty if it gets one."""


def read_issue(event_file: Path) -> Issue:
    """The issue of an event, from the file that GitHub Actions names in GITHUB_EVENT_PATH.

    Raises:
        EventError: the file cannot be read, or the event is not about an issue.
    """
    try:
        event: Any = msgspec.json.decode(event_file.read_bytes())
        issue = event["issue"]
        return Issue(
            number=int(issue["number"]),
            title=str(issue.get("title") or ""),
            body=str(issue.get("body") or ""),
            is_new=event.get("action") in ("opened", "edited") and "pull_request" not in issue,
            edition=_TIME.sub("", str(issue.get("updated_at") or "")),
        )
    except (
        OSError,
        msgspec.MsgspecError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        # the name alone: the message of an error may quote the event, which anybody can write
        reason = type(error).__name__
        raise EventError(
            f"{event_file}: not an event about an issue: {reason}; the workflow begins with"
            " `on: {issues: {types: [opened, edited]}}`"
        ) from error


def reply_to(issue: Issue, index: Index) -> IssueReply:
    """The reply to an issue, only if the match is sure.

    The title with the body is matched, the body, and its blocks of code: if they lead to different
    articles, none of them is sure. A report of the doctor's in the body is no part of the log: its
    versions are those of the machine.

    Raises:
        NoAddressError: the knowledge base has no address, so that a reply could link to nothing.
    """
    if not index.url:
        raise NoAddressError(
            f'the knowledge base "{index.name}" has no address, so a reply could link to nothing:'
            " set `url` of [knowledge-base] in kbtools.toml, or give the action"
            " `index: https://…/api/v1/signatures.json`"
        )
    if not issue.is_new:
        return IssueReply(silence="only issues are answered, when they are opened or edited")
    matcher = Matcher(index)
    body, doctor = without_report(without_comments(issue.body.replace("\r\n", "\n")))
    blocks = "\n".join(block[2] for block in _FENCE.finditer(body))
    texts = (f"{issue.title}\n\n{body}", body, blocks)
    best = [_best(matcher, text, doctor) for text in texts]
    matches = [match for match in best if match is not None]
    ids = dict.fromkeys(match.id for match in matches)
    causes = {finding.article for finding in doctor.findings} if doctor else set()
    if not ids:
        ids_here = {entry.id for entry in (*index.articles, *(n.entry for n in index.notices))}
        names = sorted(causes & ids_here)
        note = f"; the doctor's report in it names {' and '.join(names)}" if names else ""
        return IssueReply(silence=f"no article is about it{note}")
    if len(ids) > 1:
        return IssueReply(silence=f"{' and '.join(ids)} may be about it")
    # a block alone need not show the versions that the body does
    ruled_out = next((match for match in matches if match.affected == "not affected"), None)
    match = ruled_out or next((match for match in matches if match.confident), matches[0])
    if not match.confident:
        doubt = "; ".join(match.hints) or "it does not read as an error"
        silence = f"{match.id} may be about it, but the match is not sure: {doubt}"
        return IssueReply(article=match.id, silence=silence)
    mark = comments.mark(match.id, index.url, issue.edition or "-")
    reasons = [_first_failure(matcher, body, match)]
    if match.id in causes:
        reasons.append("the doctor's report names it, too")
    reason = "; ".join(filter(None, reasons))
    return IssueReply(match.id, f"{mark}\n{replies.reply(match, index, reason, is_matched=True)}")


def without_comments(text: str) -> str:
    """The text without HTML comments, in which the templates of issues say what to fill in."""
    start, end = _COMMENT
    parts = text.split(start)
    return parts[0] + "".join(part.partition(end)[2] for part in parts[1:])


def _first_failure(matcher: Matcher, body: str, match: Match) -> str:
    """Which line failed first, where that is surely another one than that which matched."""
    first = matcher.diagnose(body).first
    if first is None or not first.confident or first.text in match.text or match.text in first.text:
        return ""
    return f"what failed first is line {first.line} of the description ({first.kind})"


def _best(matcher: Matcher, text: str, doctor: DoctorReport | None) -> Match | None:
    matches = matcher.diagnose(text, doctor=doctor).matches
    return matches[0] if matches else None
