"""A reply → at most one comment on an issue, however often and by how many runs it is sent.

The comment begins with a mark that nobody sees. What is found by it is left as it is, or updated if
the issue was edited since and is now about another article.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from kbtools.config import KbtoolsError
from kbtools.integrations.github import TRIES, GitHub, NoAnswerError, RefusedError

Action = Literal["created", "updated", "left", "none"]

_MARK = re.compile(r"<!-- kbtools:reply (\S+) (\S+) (\S+) -->")
_TRUSTED = ("OWNER", "MEMBER", "COLLABORATOR")
"""A stranger may write the mark, too: a comment counts if a program or a member wrote it."""


class UnmarkedReplyError(KbtoolsError):
    """The text to be sent is not one of `kbtools answer`."""


class Comment(msgspec.Struct, frozen=True):
    """What was done on an issue, and the comment that is there now."""

    action: Action
    address: str = ""
    """Of the comment."""
    reason: str = ""
    """Why it was left, or why there is none."""


def mark(article: str, site: str, edition: str) -> str:
    """The first line of a reply.

    Args:
        article: id of the article that it recommends.
        site: address of the knowledge base's site.
        edition: when the issue was last edited, as in `2026-11-22T20:00:00Z`.
    """
    return f"<!-- kbtools:reply {article} {site} {edition} -->"


def send(github: GitHub, repository: str, issue: int, text: str) -> Comment:
    """Comments on an issue, unless a reply is there already.

    Args:
        github: where the issue is.
        repository: as in `owner/name`.
        issue: its number.
        text: the reply, which begins with a `mark`.

    Raises:
        UnmarkedReplyError: the text has no mark.
        RefusedError: GitHub refused, as to a token that may not comment.
        NoAnswerError: GitHub gave no usable answer.
        RateLimitError: GitHub asks to wait too long.
    """
    if not _MARK.match(text):
        raise UnmarkedReplyError("the reply has no mark in its first line; write it with: answer")
    path = f"/repos/{repository}/issues"
    try:
        created = None
        for attempt in range(TRIES):
            if earlier := _replies(github, path, issue):
                return _keep(github, path, earlier[0], text)
            try:
                created = github.request("POST", f"{path}/{issue}/comments", {"body": text}).value
                break
            except NoAnswerError as error:  # it may be there: look before it is sent again
                if attempt + 1 == TRIES:
                    raise
                github.wait(2.0**attempt, str(error))
        first = next(iter(_replies(github, path, issue)), created)
        if created is None or first is None or first["id"] == created["id"]:
            return Comment("created", str((created or {}).get("html_url", "")))
        # another run was as fast: every run keeps the oldest reply, so one remains
        github.request("DELETE", f"{path}/comments/{created['id']}")
        return _keep(github, path, first, text)
    except RefusedError as error:
        if error.status == 410 or (error.status == 403 and "locked" in error.text):
            return Comment("none", reason=error.text)
        raise


def _replies(github: GitHub, path: str, issue: int) -> list[dict[str, Any]]:
    """The comments on an issue that are replies of ours, the oldest first."""
    comments = github.pages(f"{path}/{issue}/comments?per_page=100")
    ours = [
        comment
        for comment in comments
        if _MARK.match(comment.get("body") or "")
        and (
            (comment.get("user") or {}).get("type") == "Bot"
            or comment.get("author_association") in _TRUSTED
        )
    ]
    return sorted(ours, key=lambda comment: int(comment["id"]))


def _keep(github: GitHub, path: str, comment: dict[str, Any], text: str) -> Comment:
    """Leaves a reply as it is, or updates it if the issue is now about another article."""
    address = str(comment.get("html_url", ""))
    was, now = _MARK.match(comment["body"]), _MARK.match(text)
    if was is None or now is None:
        return Comment("left", address, "it has no mark")
    if was[2] != now[2]:
        return Comment("left", address, f"the reply is one of {was[2]}")
    if was[1] == now[1]:
        return Comment("left", address, "the issue is answered")
    if was[3] >= now[3]:
        return Comment("left", address, "the reply is to a later edition of the issue")
    github.request("PATCH", f"{path}/comments/{comment['id']}", {"body": text})
    return Comment("updated", address)
