"""Atom feeds of changes of state, computed from the rows of evidence and their dates."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as Xml

from kbtools.articles.notice_text import window
from kbtools.evidence.state import Observation, where
from kbtools.site import words
from kbtools.site.model import ArticleView, Change, SiteModel, day, page_path, prefix
from kbtools.site.rendering import LONG, cut

ATOM = "http://www.w3.org/2005/Atom"
SPACE = uuid.UUID("8a2f4d5e-6f0b-5c0e-9d0a-3b1f0c9e7a11")
"""The namespace of the ids. It must not change: readers know an entry by its id."""
NEVER = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
NEWEST = 200
"""Entries in a feed at most."""


def path(model: SiteModel, language: str) -> str:
    """Of the feed in a language, as in `zh/feed.xml`."""
    return f"{prefix(model, language)}feed.xml"


def files(model: SiteModel) -> Iterator[tuple[str, bytes]]:
    """The feeds of each language: of changes of state, and of notices."""
    for language in model.languages:
        yield path(model, language), feed(model, language)
        yield f"{prefix(model, language)}known.xml", notices(model, language)


def feed(model: SiteModel, language: str) -> bytes:
    """The feed: the newest change first, each with what was seen on its day."""
    say, base = words.of(language), model.config.knowledge_base
    views = {view.id: view for view in model.views}
    changes = [(change, views[change.article]) for change in model.changes[:NEWEST]]
    updated = max((moment(change, view) for change, view in changes), default=NEVER)
    root = Xml.Element("feed", {"xmlns": ATOM, "xml:lang": language})
    _add(root, "id", identity(model, "feed", language))
    _add(root, "title", f"{base.name}: {say('site.feed')}")
    _add(root, "updated", stamp(updated))
    _add(_add(root, "author"), "name", base.name)
    _add(root, "link", rel="self", href=address(model, language, path(model, language)))
    _add(root, "link", rel="alternate", type="text/html", href=address(model, language, ""))
    for change, view in changes:
        text = view.text(language)
        element = _add(root, "entry")
        _add(
            element,
            "id",
            identity(model, language, *map(str, (change.article, change.day, change.after))),
        )
        state = say.word_for("state", change.after)
        _add(element, "title", f"{view.id} · {state}: {cut(text.title)}")
        _add(element, "updated", stamp(moment(change, view)))
        page = page_path(model, view.id, language)
        _add(
            element, "link", rel="alternate", type="text/html", href=address(model, language, page)
        )
        _add(element, "category", term=change.after)
        before = say.word_for("state", change.before)
        runs = [line(element, model.headline) for element in cause(change, view)]
        lines = [f"{before} → {state}", cut(text.summary, LONG), *runs]
        _add(element, "content", "\n".join(lines), type="text")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, "unicode").encode()


def notices(model: SiteModel, language: str) -> bytes:
    """The feed of notices: the one looked up last comes first.

    Args:
        model: The site.
        language: Of the feed.
    """
    say, base = words.of(language), model.config.knowledge_base
    newest = sorted(model.notices, key=lambda n: (n.notice.matter.looked_up, n.id), reverse=True)
    root = Xml.Element("feed", {"xmlns": ATOM, "xml:lang": language})
    _add(root, "id", identity(model, "notices", language))
    _add(root, "title", f"{base.name}: {say('known.feed')}")
    days = [notice.notice.matter.looked_up for notice in newest]
    _add(root, "updated", stamp(_midnight(days[0])) if days else stamp(NEVER))
    _add(_add(root, "author"), "name", base.name)
    own = f"{prefix(model, language)}known.xml"
    _add(root, "link", rel="self", href=address(model, language, own))
    for notice in newest[:NEWEST]:
        text, matter = notice.view.text(language), notice.notice.matter
        element = _add(root, "entry")
        _add(element, "id", identity(model, language, notice.id, str(matter.looked_up)))
        state = say.word_for("state", notice.view.state.word)
        _add(element, "title", f"{notice.id} · {state}: {cut(text.title)}")
        _add(element, "updated", stamp(_midnight(matter.looked_up)))
        page = address(model, language, page_path(model, notice.id, language))
        _add(element, "link", rel="alternate", type="text/html", href=page)
        _add(element, "category", term=notice.view.state.word)
        lines = [say("notice.not-run", day=matter.looked_up), window(notice.notice)]
        _add(element, "content", "\n".join([*lines, cut(text.summary, LONG)]), type="text")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, "unicode").encode()


def _midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(), datetime.UTC)


def cause(change: Change, view: ArticleView) -> tuple[Observation, ...]:
    """The observations on the day of a change whose verdicts agree with the new state."""
    that_day = [
        observation for observation in view.observations if day(observation.row) == change.day
    ]
    if change.after == "contradicted":
        return tuple(observation for observation in that_day if observation.verdict.colour == "red")
    return tuple(
        observation for observation in that_day if str(observation.verdict.name) == change.after
    )


def line(observation: Observation, headline: Sequence[str]) -> str:
    """A run in a few words."""
    return cut(
        f"{observation.snippet.id}: {observation.verdict.name} ({where(observation, headline)})"
    )


def moment(change: Change, view: ArticleView) -> datetime.datetime:
    """When a change was complete: at the last run of its day, or at the day's beginning."""
    begins = datetime.datetime.combine(change.day, datetime.time(), datetime.UTC)
    return max((observation.row.when for observation in cause(change, view)), default=begins)


def identity(model: SiteModel, *parts: str) -> str:
    """A permanent id, the same for every address of the site."""
    base = model.config.knowledge_base
    return uuid.uuid5(SPACE, "\n".join((base.name, base.prefix, *parts))).urn


def address(model: SiteModel, language: str, target: str) -> str:
    """The address of a path of the site.

    Args:
        model: of the site; if it has no address, the result is relative to the feed.
        language: of the feed.
        target: path, relative to the root of the site.
    """
    url = model.config.knowledge_base.url.rstrip("/")
    if url:
        return f"{url}/{target}"
    return "../" * prefix(model, language).count("/") + target or "./"


def stamp(when: datetime.datetime) -> str:
    """A moment in the form of RFC 3339."""
    return when.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _add(parent: Xml.Element, tag: str, text: str = "", **attributes: str) -> Xml.Element:
    element = Xml.SubElement(parent, tag, attributes)
    element.text = "".join(c for c in text if c in "\t\n" or c >= " ") or None
    return element
