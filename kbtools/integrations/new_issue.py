"""A newly opened issue → the reply to it, or why there is none.

Anybody can write an issue. Nothing of its text is repeated here: a reply holds only texts of the
article and of the knowledge base, and the number of a line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from kbtools.articles import links
from kbtools.config import KbtoolsError
from kbtools.matching import Index, Match, Matcher

_FENCE = re.compile(
    r"^ {0,3}(`{3,}+|~{3,}+)[^\n]*+\n(.*?)(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE
)
_COMMENT = "<!--", "-->"


class EventError(KbtoolsError):
    """The file of an event cannot be read, or the event is not about an issue."""


class Issue(msgspec.Struct, frozen=True):
    """An issue, as the event about it has it."""

    number: int
    title: str
    body: str
    is_new: bool
    """Whether this very event opened it, and it is no pull request."""


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
            is_new=event.get("action") == "opened" and "pull_request" not in issue,
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
        raise EventError(f"{event_file}: not an event about an issue: {reason}") from error


def reply_to(issue: Issue, index: Index) -> IssueReply:
    """The reply to an issue, only if it is new and the match is sure.

    The whole body is matched, and its blocks of code alone: if the two lead to different articles,
    none of them is sure.
    """
    if not issue.is_new:
        return IssueReply(silence="only issues are answered, and only when they are opened")
    if not index.url:
        return IssueReply(silence="the knowledge base has no address yet: `url` in kbtools.toml")
    matcher = Matcher(index)
    body = without_comments(issue.body.replace("\r\n", "\n"))
    blocks = "\n".join(block[2] for block in _FENCE.finditer(body))
    best = [_best(matcher, text) for text in (body, blocks)]
    matches = {match.id: match for match in best if match is not None}
    if not matches:
        return IssueReply(silence="no article is about it")
    if len(matches) > 1:
        return IssueReply(silence=f"{' and '.join(matches)} may be about it")
    [match] = matches.values()
    if not any(match is not None and match.confident for match in best):
        doubt = "; ".join(match.hints) or "it does not read as an error"
        silence = f"{match.id} may be about it, but the match is not sure: {doubt}"
        return IssueReply(article=match.id, silence=silence)
    return IssueReply(match.id, links.reply(match, index.url, index.name))


def without_comments(text: str) -> str:
    """The text without HTML comments, in which the templates of issues say what to fill in."""
    start, end = _COMMENT
    parts = text.split(start)
    return parts[0] + "".join(part.partition(end)[2] for part in parts[1:])


def _best(matcher: Matcher, text: str) -> Match | None:
    matches = matcher.diagnose(text).matches
    return matches[0] if matches else None
