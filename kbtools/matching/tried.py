"""How far the claims of an index were tried: of versions beyond that, nothing is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kbtools.articles.model import Affected
from kbtools.config import Config, KbtoolsError

if TYPE_CHECKING:
    from kbtools.matching.index import Index


def with_tried(index: Index, tried: Mapping[str, Affected]) -> Index:
    """The index, with how far each article's claim was tried.

    Args:
        index: The index of a knowledge base.
        tried: Id of an article → what `evidence.tried.tried_ranges` says of it.
    """
    entries = tuple(
        msgspec.structs.replace(entry, tried=tried.get(entry.id, ())) for entry in index.articles
    )
    return msgspec.structs.replace(index, articles=entries)


def tried_of(files: Iterable[Path], settings: Config) -> dict[str, Affected]:
    """Id of an article → how far its claim was tried; none of what cannot be read.

    Args:
        files: Those of the articles.
        settings: The configuration of their knowledge base.
    """
    from kbtools.articles import decoding, parsing
    from kbtools.evidence import store
    from kbtools.evidence.bounds import bounds_of
    from kbtools.evidence.tried import tried_ranges

    tried = {}
    for file in files:
        page = parsing.read_page(file, settings)
        if "affected" in page.matter:
            try:
                article = decoding.decode_article(page)
                bounds = bounds_of(article, store.read(settings.evidence, article.id), {})
            except (ValueError, TypeError, msgspec.MsgspecError, KbtoolsError):
                continue  # `check` reports it
            tried[article.id] = tried_ranges(article, bounds)
    return tried
