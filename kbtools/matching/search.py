"""Words → the articles that have them: in titles, signatures, fixes in a sentence, symptoms.

For what is no log: `search` asks what the articles say, `diagnose` what a program printed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kbtools.articles.model import Article
from kbtools.articles.notices import Notice
from kbtools.articles.parsing import Page
from kbtools.matching.index import Index

WEIGHTS = {"title": 3, "signature": 2, "summary": 2, "component": 1, "symptom": 1}
"""Part of an article → how often a word counts that stands in it."""
WORD = re.compile(r"[a-z_][a-z0-9_]*|[0-9]+(?:\.[0-9]+)*|[\u3400-\u9fff]+|[^\W\d_]+")
CHINESE = re.compile(r"[\u3400-\u9fff]")
ENDINGS = ("ing", "ed", "es", "s")
"""Of English words: `crashes` finds `crash` and `crashed`."""
STEM = 4
"""Letters of a word that stay before an ending that is taken off."""
SATURATION, LENGTH = 1.2, 0.4
"""`k1` and `b` of Okapi BM25 (Robertson and Zaragoza, 2009): how soon a repeated word counts no
more, and how much a long article must have more of it than a short one.
"""
PHRASE = 1.5
"""How much more an article counts in which the words stand beside each other as they were typed."""
LEAST = 0.15
"""Of the rarity of all words, what an article must have of it to be a hit."""
NEAR_THE_BEST = 1 / 3
"""Of the score of the best hit, what the others must have."""
MOST_WORDS = 64
"""Words of a search that are looked up."""


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
    """The words of a search, and the parts of names such as `load_inline`.

    Of Chinese, which has no blanks, each two neighbouring characters are a word.
    """
    words: list[str] = []
    for word in WORD.findall(text.casefold()):
        if CHINESE.match(word):
            words += [word[i : i + 2] for i in range(max(len(word) - 1, 1))]
        else:
            words += [part for part in (word.strip("_"), *_parts_of_name(word)) if len(part) > 1]
    return tuple(dict.fromkeys(words))[:MOST_WORDS]


def _parts_of_name(word: str) -> list[str]:
    return word.split("_") if "_" in word.strip("_") else []


def search(documents: Sequence[Document], text: str) -> tuple[Hit, ...]:
    """The articles that have most of what the words say, best first.

    The score is that of Okapi BM25 over the parts of an article: a word counts the more, the fewer
    articles have it, and the more where it stands in a title.

    Args:
        documents: What is searched.
        text: The words, as a person types them, or a line of an error.
    """
    words = words_of(text)
    phrase = " ".join(text.casefold().split())
    lengths = [
        sum(WEIGHTS[part] * len(text) for part, text in document.parts.items())
        for document in documents
    ]
    mean = sum(lengths) / len(lengths) if any(lengths) else 1
    counts = {word: _occurrences(word, documents) for word in words}
    rarity = {word: _rarity(len(places), len(documents)) for word, places in counts.items()}
    best: dict[str, tuple[float, Hit]] = {}
    for number, document in enumerate(documents):
        there = {word: places[number] for word, places in counts.items() if number in places}
        if sum(rarity[word] for word in there) <= LEAST * sum(rarity.values()):
            continue
        norm = SATURATION * (1 - LENGTH + LENGTH * lengths[number] / mean)
        score = sum(rarity[word] * count / (count + norm) for word, count in there.items())
        score *= PHRASE if any(phrase in part for part in document.parts.values()) else 1
        if document.id not in best or score > best[document.id][0]:
            best[document.id] = (score, _hit(document, there))
    least = NEAR_THE_BEST * max((score for score, _ in best.values()), default=0)
    ranked = sorted(best.values(), key=lambda entry: (-entry[0], entry[1].id))
    return tuple(hit for score, hit in ranked if score >= least)


def _occurrences(word: str, documents: Sequence[Document]) -> dict[int, int]:
    """Number of a document → how often it has the word, by the weights of its parts."""
    stem, pattern = _stem(word), _pattern(word)
    counts = {}
    for number, document in enumerate(documents):
        # most texts do not have it, and a plain search says so in a tenth of a pattern's time
        count = sum(
            WEIGHTS[part] * len(pattern.findall(text))
            for part, text in document.parts.items()
            if stem in text
        )
        if count:
            counts[number] = count
    return counts


def _pattern(word: str) -> re.Pattern[str]:
    """Matches where a word begins: `oom` is not in `room`, and `compil` is in `compiler`."""
    stem = _stem(word)
    start = r"(?<![0-9a-z])" if re.match("[0-9a-z]", stem) else ""
    return re.compile(start + re.escape(stem))


def _stem(word: str) -> str:
    """An English word without its ending."""
    if word.isascii() and word.isalpha():
        for ending in ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= STEM:
                return word.removesuffix(ending)
    return word


def _rarity(having: int, documents: int) -> float:
    """The weight of a word that so many of the documents have."""
    return math.log(1 + (documents - having + 0.5) / (having + 0.5))


def _hit(document: Document, words: Iterable[str]) -> Hit:
    """`words`: those of the search that the document has."""
    words = tuple(words)
    patterns = [_pattern(word) for word in words]
    return Hit(
        id=document.id,
        title=document.title,
        summary=document.summary,
        language=document.language,
        words=words,
        parts=tuple(
            part
            for part in WEIGHTS
            if any(pattern.search(document.parts.get(part, "")) for pattern in patterns)
        ),
        reported=document.reported,
    )
