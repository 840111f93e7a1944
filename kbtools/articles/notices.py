"""A notice: a failure known from threads, its window of versions and what helps, not run here.

Its front matter holds everything that a table or an assistant needs; its text is a paragraph.
"""

from __future__ import annotations

import datetime
from functools import cached_property
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from kbtools.articles.model import (
    EDITION,
    Article,
    FrontMatter,
    Reference,
    Retired,
    Signature,
    Snippet,
    Text,
    Upstream,
)
from kbtools.articles.reported import Receipts, ReportedBound


class Remedy(msgspec.Struct, frozen=True):
    """What helps, and what says so."""

    do: Text
    receipt: Receipts


class Dead(msgspec.Struct, frozen=True):
    """What is plausible and does not help, the reason, and what says so."""

    do: Text
    why: Text
    receipt: Receipts


class Hardware(msgspec.Struct, frozen=True, omit_defaults=True):
    """The GPUs on which it was reported: a range of compute capabilities, words, or both."""

    receipt: Receipts
    sm: Text | None = None
    """As in `>=9.0,<10.0`."""
    words: Text | None = None
    """As in `H100; not A100`, or what no compute capability tells."""


class NoticeMatter(msgspec.Struct, frozen=True, omit_defaults=True, rename="kebab"):
    """The YAML block at the head of a notice."""

    id: str
    title: Text
    summary: Text
    components: Annotated[tuple[str, ...], Meta(min_length=1)]
    stage: str
    severity: str
    affected: Annotated[tuple[dict[str, str], ...], Meta(min_length=1)]
    remedies: Annotated[tuple[Remedy, ...], Meta(min_length=1)]
    threads: Annotated[tuple[Reference, ...], Meta(min_length=1)]
    basis: Literal["reported"]
    looked_up: datetime.date
    """The day on which the threads were read."""
    bounds: tuple[ReportedBound, ...] = ()
    """Of every clause of `affected`; none where every release fails."""
    hardware: Hardware | None = None
    no_help: tuple[Dead, ...] = msgspec.field(default=(), name="not")
    signatures: tuple[Signature, ...] = ()
    """None where the failure prints nothing."""
    confusable: tuple[str, ...] = ()
    article: str | None = None
    """The article that it has grown into, or whose mechanism is its own."""
    retired: Retired | None = None


class TranslatedDead(msgspec.Struct, frozen=True):
    """What does not help, and the reason, in another language."""

    do: Text
    why: Text


class NoticeTranslation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The YAML block of a notice's translation: its words; everything else is the original's."""

    id: str
    title: Text
    summary: Text
    remedies: tuple[Text, ...]
    """In the order of the original's."""
    no_help: tuple[TranslatedDead, ...] = msgspec.field(default=(), name="not")
    hardware: Text | None = None
    """The original's `words`."""
    follows: Annotated[str, Meta(pattern=EDITION)] | None = None


class Notice(msgspec.Struct, frozen=True, dict=True):
    """A failure that is reported, and was not run here."""

    matter: NoticeMatter
    path: str
    """Relative to the knowledge base."""
    language: str
    snippets: tuple[Snippet, ...]
    body: str
    """The Markdown after the front matter."""

    @property
    def id(self) -> str:
        """As in `KBN0001`."""
        return self.matter.id

    @cached_property
    def article(self) -> Article:
        """The same as what is matched and, if it has snippets, run.

        It is no article that could be read: it may have no signature.
        """
        matter = as_front_matter(self.matter)
        return Article(matter, self.path, self.language, self.snippets, self.body)


def as_front_matter(matter: NoticeMatter) -> FrontMatter:
    """The keys that a notice shares with an article; its threads are related ones."""
    return FrontMatter(
        id=matter.id,
        title=matter.title,
        summary=matter.summary,
        components=matter.components,
        stage=matter.stage,
        severity=matter.severity,
        signatures=matter.signatures,
        affected=matter.affected,
        bounds=matter.bounds,
        upstream=tuple(Upstream(related=thread) for thread in matter.threads),
        confusable=matter.confusable,
        retired=matter.retired,
    )
