"""Ids, permanent addresses, upstream threads: texts by which a page refers to another.

A published address is kept for ever: `published.txt` lists them all, and `kbtools check` compares.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Protocol

from kbtools.articles.model import FrontMatter
from kbtools.articles.placeholders import RECEIPT
from kbtools.config import Config, KbtoolsError
from kbtools.files import write_whole

PUBLISHED = "published.txt"
HEAD = "# Every address ever published, kept for ever; written by: kbtools link --publish"

_REFERENCE = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:#([1-9]\d*)|@([0-9a-f]{7,40}))")
_THREAD = re.compile(
    r"https?://(?:www\.)?github\.com/([\w.-]+/[\w.-]+)/"
    r"(?:(?:issues|pull|discussions)/([1-9]\d*)|commit/([0-9a-f]{7,40}))"
)


class Titled(Protocol):
    """An article as far as links speak of it: its front matter, or its entry in the index."""

    @property
    def id(self) -> str:
        """As in `KB0002`."""

    @property
    def title(self) -> str:
        """The text of the failure."""

    @property
    def summary(self) -> str:
        """What helps."""


class NoAddressError(KbtoolsError):
    """A link was asked for, and the site of the knowledge base has no address."""


def path(article: str, language: str = "") -> str:
    """The address of an article below the site's root, as in `KB0002/` or `zh/KB0002/`.

    `language` is that of a translation, empty for the original.
    """
    return f"{language}/{article}/" if language else f"{article}/"


def url(article: str, site: str, language: str = "") -> str:
    """The permanent address of an article, or only its path if the site has no address yet.

    `article` is its id, `site` the address of the site, `language` that of a translation.
    """
    return f"{site.rstrip('/')}/{path(article, language)}"


def thread_path(reference: str) -> str:
    """The page about an upstream thread: `issues/OWNER/REPO/97/` for `OWNER/REPO#97`.

    Raises:
        ValueError: it is not a reference.
    """
    match = _REFERENCE.fullmatch(reference)
    if not match:
        raise ValueError(f"invalid reference `{reference}`: owner/repo#12 or owner/repo@1a2b3c4")
    return f"issues/{match[1]}/{match[2] or match[3]}/"


def upstream_url(reference: str) -> str:
    """The address of an upstream thread or commit.

    GitHub redirects `issues/12` to the pull request or the discussion if 12 is one.

    Raises:
        ValueError: it is not a reference.
    """
    match = _REFERENCE.fullmatch(reference)
    if not match:
        raise ValueError(f"invalid reference `{reference}`: owner/repo#12 or owner/repo@1a2b3c4")
    where = f"issues/{match[2]}" if match[2] else f"commit/{match[3]}"
    return f"https://github.com/{match[1]}/{where}"


def parse_reference(text: str) -> str | None:
    """The reference to an upstream thread in a text: `owner/repo#12`, or the address of its page.

    None if the text is neither.
    """
    text = text.strip()
    if _REFERENCE.fullmatch(text):
        return text
    match = _THREAD.match(text)
    if not match:
        return None
    return f"{match[1]}#{match[2]}" if match[2] else f"{match[1]}@{match[3]}"


def article_id(text: str, config: Config) -> str | None:
    """The article id in a text: the id itself, or an address that ends in it, `…/KB0002/#fix`.

    An id may be written as in `kb2`. None if the text is neither.
    """
    text = text.strip()
    if identifier := config.canonical_id(text):
        return identifier
    for part in reversed(re.split(r"[/#?]", text)):
        if "/" in text and config.id_pattern.fullmatch(part):
            return part
    return None


def articles_citing(reference: str, matters: Iterable[FrontMatter]) -> tuple[FrontMatter, ...]:
    """The articles that name an upstream thread or commit; upper and lower case are the same."""
    folded = reference.casefold()
    return tuple(
        matter
        for matter in matters
        if any(thread.reference.casefold() == folded for thread in matter.upstream)
    )


def markdown(article: Titled, site: str) -> str:
    """A link in Markdown, or the id and the title alone if `site`, the site's address, is empty.

    Characters of the title that mean something in Markdown are escaped.
    """
    title = re.sub(r"([\\`*_\[\]<>#])", r"\\\1", f"{article.id}: {article.title}")
    return f"[{title}]({url(article.id, site)})" if site else f"**{title}**"


def badge(article: Titled, site: str) -> str:
    """A picture of an article's state, in Markdown, which links to the article.

    `site` is the address of the site, and not empty.
    """
    return f"[![{article.id}]({site.rstrip('/')}/badges/{article.id}.svg)]({url(article.id, site)})"


def permanent_addresses(
    matters: Iterable[FrontMatter], translated: Iterable[tuple[str, str]]
) -> Iterator[str]:
    """Every address below the site's root that stays for ever, for these articles.

    `translated` holds `(id, language)` of each translation. The thread that a skeleton brings is
    none: a published address could not be taken back.
    """
    for matter in matters:
        yield path(matter.id)
        for thread in matter.upstream:
            if thread.reference != RECEIPT:
                yield thread_path(thread.reference)
    for article, language in translated:
        yield path(article, language)


def published_addresses(config: Config) -> dict[str, int]:
    """Address → its line in `published.txt`; empty if there is no such file."""
    try:
        text = (config.root / PUBLISHED).read_text("utf-8")
    except FileNotFoundError:
        return {}
    lines = enumerate(text.splitlines(), 1)
    return {line: number for number, line in lines if line and not line.startswith("#")}


def publish(addresses: Iterable[str], config: Config) -> tuple[str, ...]:
    """Adds addresses to `published.txt`, removes none, and returns those that are new.

    Raises:
        OSError: the file could not be written, and is as it was.
    """
    published = set(published_addresses(config))
    new = sorted(set(addresses) - published)
    if new:
        file = config.root / PUBLISHED
        write_whole(file, ("\n".join((HEAD, *sorted(published | {*new}))) + "\n").encode())
    return tuple(new)


def slug(title: str) -> str:
    """A title as part of a file name: lower-case words joined by hyphens, at most 50 characters."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)
    text = ""
    for word in words:
        longer = f"{text}-{word}".strip("-")
        if len(longer) > 50:
            break
        text = longer
    return text or "article"
