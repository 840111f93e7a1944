"""`api/v1/notices.json`: what is reported and was not run here, apart from the articles."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kbtools.articles.notices import NoticeMatter
from kbtools.site.data.api import FOLDER, Version, Words, encoded, schema
from kbtools.site.model import SiteModel, page_path


def files(model: SiteModel) -> Iterator[tuple[str, bytes]]:
    """The document and its schema."""
    yield f"{FOLDER}/notices.json", encoded(notices(model))
    yield f"{FOLDER}/schemas/notices.json", encoded(schema(Notices))


class NoticeDocument(msgspec.Struct, frozen=True):
    """A notice: reported, and not run here unless `standing` is `measured`."""

    standing: str
    """`reported`, `measured`, `contradicted` (a run disagrees) or `retired`."""
    matter: NoticeMatter
    words: dict[str, Words]
    """Language → title, summary and page."""


class Notices(msgspec.Struct, frozen=True):
    """`notices.json`: every notice; none of them is among the articles."""

    schema: Version
    notices: tuple[NoticeDocument, ...]


def notices(model: SiteModel) -> Notices:
    """Every notice, by id."""
    documents = []
    for notice in model.notices:
        view = notice.view
        texts = {view.original.language: view.original, **view.translations}
        words = {
            language: Words(text.title, text.summary, page_path(model, view.id, language))
            for language, text in texts.items()
        }
        documents.append(NoticeDocument(view.state.word, notice.notice.matter, words))
    return Notices(1, tuple(documents))
