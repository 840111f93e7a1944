"""Comments for issue trackers that recommend an article, and what a stranger can type."""

from __future__ import annotations

import shlex
from typing import Protocol

from kbtools.articles import links


class Publisher(Protocol):
    """A knowledge base as far as replies speak of it: its configuration, or its index."""

    @property
    def name(self) -> str:
        """As readers see it."""

    @property
    def url(self) -> str:
        """The address of its site; empty if it has none."""

    @property
    def repository(self) -> str:
        """The address of its repository; empty if it has none."""

    @property
    def install(self) -> str:
        """What installs kbtools with this knowledge base in it; empty if nothing does."""


def reply(
    article: links.Titled,
    base: Publisher,
    reason: str = "",
    is_matched: bool = False,
    reported: str = "",
) -> str:
    """A comment for an issue tracker, ready to be sent; without a link if there is no address.

    Args:
        article: the article that the comment recommends.
        base: the knowledge base that it is of.
        reason: what in the log the answer follows from.
        is_matched: whether kbtools chose the article, and no person did: the comment says so, and
            where to say that it is wrong.
        reported: of a notice, the day on which it was looked up; empty for an article.
    """
    note = f" ({reason})" if reason else ""
    where = "on that page" if base.url else f"in {base.name}"
    receipt = f"The failure and the fix {where} are executed, with dated evidence."
    if reported:
        receipt = f"What helps is reported, and was not run here (looked up on {reported})."
    elif command := command_for_strangers(article.id, base):
        receipt += f" To run them on your machine: `{command}`."
    paragraphs = [
        f"This looks like {links.markdown(article, base.url)}{note}.",
        f"**What helps{', as reported' if reported else ''}:** {article.summary}",
        receipt,
    ]
    if is_matched:
        repository = base.repository.rstrip("/")
        tracker = f" at {repository}/issues" if repository else " in a comment"
        paragraphs.append(
            "*A program wrote this: kbtools found the article by the text of the error."
            f" If it is the wrong one, please say so{tracker}.*"
        )
    return "\n\n".join(paragraphs) + "\n"


def command_for_strangers(name: str, base: Publisher) -> str:
    """The command that runs an article or a snippet where nothing is installed but uv.

    `name` is as in `KB0002` or `KB0002/r1`. Empty if `base`, the knowledge base, does not say what
    installs it.
    """
    if not base.install:
        return ""
    source = "" if base.install == "kbtools" else f"--from {shlex.quote(base.install)} "
    return f'uvx {source}kbtools verify {name} --toolchain "$(command -v python)"'
