"""A newly opened issue → the reply to it, or why there is none.

An issue is written by anybody. Nothing of its text is repeated in what is made here: a reply has
only what articles and the knowledge base say, and a number of a line.
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


class Issue(msgspec.Struct, frozen=True):
    """What an event says of the issue that it is about."""

    number: int
    title: str
    body: str
    is_new: bool
    """Opened by this very event, and no pull request."""


class Answer(msgspec.Struct, frozen=True):
    """A reply, or the reason why there is none."""

    article: str = ""
    reply: str = ""
    silence: str = ""


def issue(event: Path) -> Issue:
    """The issue of a file that GitHub Actions names in GITHUB_EVENT_PATH.

    Raises:
        KbtoolsError: it is not there, or is no event about an issue.
    """
    try:
        said: Any = msgspec.json.decode(event.read_bytes())
        about = said["issue"]
        return Issue(
            number=int(about["number"]),
            title=str(about.get("title") or ""),
            body=str(about.get("body") or ""),
            is_new=said.get("action") == "opened" and "pull_request" not in about,
        )
    except (
        OSError,
        msgspec.MsgspecError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        raise KbtoolsError(f"{event}: no event about an issue: {type(error).__name__}") from error


def answer(one: Issue, index: Index) -> Answer:
    """The reply to an issue: only when it is new and the match is sure.

    Its body is looked at as a whole and by its blocks of code: where the two speak of different
    articles, none is sure.
    """
    if not one.is_new:
        return Answer(silence="only issues are answered, and only when they are opened")
    if not index.url:
        return Answer(silence="the knowledge base has no address yet: `url` in kbtools.toml")
    matcher = Matcher(index)
    body = without_comments(one.body.replace("\r\n", "\n"))
    blocks = "\n".join(found[2] for found in _FENCE.finditer(body))
    best = [_best(matcher, text) for text in (body, blocks)]
    found = {match.id: match for match in best if match is not None}
    if not found:
        return Answer(silence="no article is about it")
    if len(found) > 1:
        return Answer(silence=f"{' and '.join(found)} may be about it")
    [match] = found.values()
    if not any(match is not None and match.confident for match in best):
        why = "; ".join(match.hints) or "it does not read as an error"
        return Answer(article=match.id, silence=f"{match.id} may be about it, not surely: {why}")
    return Answer(match.id, links.reply(match, index.url, index.name))


def without_comments(text: str) -> str:
    """The text without the comments of HTML in which templates of issues say what to fill in."""
    start, end = _COMMENT
    parts = text.split(start)
    return parts[0] + "".join(part.partition(end)[2] for part in parts[1:])


def _best(matcher: Matcher, text: str) -> Match | None:
    matches = matcher.diagnose(text).matches
    return matches[0] if matches else None
