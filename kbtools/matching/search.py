"""Words → the articles that have them: in titles, signatures, fixes in a sentence, symptoms.

For what is no log: `search` asks what the articles say, `diagnose` what a program printed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kbtools.articles.model import Article
from kbtools.articles.notices import Notice
from kbtools.articles.parsing import Page
from kbtools.matching.index import Index

WEIGHTS = {"title": 8.0, "signature": 6.0, "summary": 4.0, "component": 3.0, "symptom": 2.0}
"""Part of an article → what a word in it counts. A word counts once, where it counts most."""
CHINESE = re.compile(r"[\u3400-\u9fff]+")
EDGES = "\"'`“”‘’「」()[]{}<>,.:;!?，。：；！？、（）"
"""Characters that are taken off a word's ends."""


class Document(msgspec.Struct, frozen=True):
    """An article in one language, as far as it is searched."""

    id: str
    title: str
    summary: str
    language: str
    parts: dict[str, str]
    """Part, as in `WEIGHTS` → its text, case folded."""
    reported: str = ""
    """Of a notice that nobody has run, the day on which it was looked up."""


class Hit(msgspec.Struct, frozen=True):
    """An article in the answer to a search, in the language in which it has most of the words."""

    id: str
    title: str
    summary: str
    language: str
    words: tuple[str, ...]
    """Those of the search that it has; two Chinese characters count as a word."""
    parts: tuple[str, ...]
    """Where they are."""
    reported: str = ""
    """Of a notice that nobody has run, the day on which it was looked up."""


def documents_of_base(
    articles: Iterable[Article], pages: Iterable[Page], notices: Iterable[Notice] = ()
) -> Iterator[Document]:
    """The documents of a knowledge base: of each article one for the original and each translation.

    Args:
        articles: Those that can be read.
        pages: Of all files.
        notices: Those that can be read.
    """
    reported = {notice.id: notice for notice in notices}
    by_id = {article.id: article for article in articles}
    by_id |= {identifier: notice.article for identifier, notice in reported.items()}
    for page in pages:
        article = by_id.get(str(page.matter.get("id")))
        if article:
            matter = article.matter
            title = str(page.matter.get("title", matter.title))
            summary = str(page.matter.get("summary", matter.summary))
            literals = [signature.literal for signature in matter.signatures]
            notice = reported.get(article.id)
            symptom = page.body if notice else _symptom(page)
            parts = _parts(article.id, title, summary, literals, matter.components, symptom)
            day = str(notice.matter.looked_up) if notice else ""
            yield Document(article.id, title, summary, page.language, parts, day)


def documents_of_index(index: Index) -> Iterator[Document]:
    """The documents of a published index, which has neither symptoms nor translations."""
    for entry in (*index.articles, *(notice.entry for notice in index.notices)):
        literals = [signature.literal for signature in entry.signatures]
        parts = _parts(entry.id, entry.title, entry.summary, literals, entry.components, "")
        yield Document(entry.id, entry.title, entry.summary, "", parts, entry.looked_up)


def _parts(
    identifier: str,
    title: str,
    summary: str,
    literals: Iterable[str],
    components: Iterable[str],
    symptom: str,
) -> dict[str, str]:
    texts = (f"{identifier} {title}", "\n".join(literals), summary, " ".join(components), symptom)
    return dict(zip(WEIGHTS, map(str.casefold, texts), strict=True))


def _symptom(page: Page) -> str:
    """The text of the first section: what one sees when it fails."""
    starts = [heading.line for heading in page.headings[:2]]
    end = starts[1] - 1 if len(starts) > 1 else len(page.lines)
    return "\n".join(page.lines[starts[0] : end]) if starts else ""


def words_of(text: str) -> tuple[str, ...]:
    """The words of a search. Of Chinese, which has no blanks, each two neighbouring characters."""
    words: list[str] = []
    for part in text.casefold().split():
        words += (word for piece in CHINESE.split(part) if (word := piece.strip(EDGES)))
        for run in CHINESE.findall(part):
            words += [run[i : i + 2] for i in range(max(len(run) - 1, 1))]
    return tuple(dict.fromkeys(words))


def search(documents: Sequence[Document], text: str) -> tuple[Hit, ...]:
    """The articles that have more than half of the words, those with most of them first.

    Among equals, a word that few articles have counts more, and so does one in a title, and words
    that stand beside each other as in `text`.

    Args:
        documents: What is searched.
        text: The words, as a person types them.
    """
    words = words_of(text)
    phrase = " ".join(text.casefold().split())
    patterns = {word: _pattern(word) for word in words}
    places = [
        {word: part for word in words if (part := _best_part(word, patterns[word], document))}
        for document in documents
    ]
    frequency = Counter(word for parts in places for word in parts)
    rarity = {word: math.log(1 + len(documents) / number) for word, number in frequency.items()}
    best: dict[str, tuple[int, float, Hit]] = {}
    for document, parts in zip(documents, places, strict=True):
        if 2 * len(parts) > len(words):
            score = sum(rarity[word] * WEIGHTS[part] for word, part in parts.items())
            together = (WEIGHTS[part] for part, text in document.parts.items() if phrase in text)
            score += len(words) * max(together, default=0)
            if document.id not in best or (len(parts), score) > best[document.id][:2]:
                best[document.id] = (len(parts), score, _hit(document, parts))
    ranked = sorted(best.values(), key=lambda entry: (-entry[0], -entry[1], entry[2].id))
    return tuple(hit for _, _, hit in ranked)


def _hit(document: Document, parts: dict[str, str]) -> Hit:
    """`parts`: word → the part of the document that it is in."""
    return Hit(
        id=document.id,
        title=document.title,
        summary=document.summary,
        language=document.language,
        words=tuple(parts),
        parts=tuple(part for part in WEIGHTS if part in parts.values()),
        reported=document.reported,
    )


def _pattern(word: str) -> re.Pattern[str]:
    """Matches a word where one begins: `oom` is not in `room`, and `compil` is in `compiler`."""
    start = r"(?<![0-9a-z])" if re.match("[0-9a-z]", word) else ""
    return re.compile(start + re.escape(word))


def _best_part(word: str, pattern: re.Pattern[str], document: Document) -> str:
    """The part that counts most of those that have the word; empty if none has it."""
    parts = document.parts.items()
    # most texts do not have it, and a plain search says so in a tenth of a pattern's time
    return next((part for part, text in parts if word in text and pattern.search(text)), "")
