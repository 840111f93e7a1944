"""Rules for the articles of a knowledge base together."""

from __future__ import annotations

from collections.abc import Iterator

from kbtools.articles import links
from kbtools.articles.decoding import decode_front_matter, decode_snippets
from kbtools.articles.model import Place, Problem, Snippet
from kbtools.articles.translations import edition
from kbtools.checks.model import Base, fatal


@fatal
def kb301_duplicate_id(base: Base) -> Iterator[Problem]:
    """An id is for ever that of one article: two articles, or translations, never share it."""
    first: dict[tuple[str, str], str] = {}
    for page in base.pages:
        key = (str(page.matter.get("id", "")), page.language)
        if key[0] and key in first:
            step = "take the next free id: kbtools new prints it"
            if page.translates:
                step = "keep one translation for each language"
            message = f"{first[key]} has the id {key[0]}, too"
            yield page.problem(page.line_of("id"), message, step)
        first.setdefault(key, page.path)


def kb302_unknown_article(base: Base) -> Iterator[Problem]:
    """`confusable` and `replaced_by` name articles of this base, and not the article itself.

    So does `article` of a notice.
    """
    notices = {notice.id: notice for notice in base.notices}
    ids = {str(page.matter.get("id")) for page in base.pages}
    for article in (*base.articles, *(notice.article for notice in base.notices)):
        page = base.page_of(article)
        matter = article.matter
        ids_by_key = {f"confusable[{i}]": name for i, name in enumerate(matter.confusable)}
        if matter.retired and matter.retired.replaced_by:
            ids_by_key["retired.replaced_by"] = matter.retired.replaced_by
        if (notice := notices.get(article.id)) and notice.matter.article:
            ids_by_key["article"] = notice.matter.article
        for key, identifier in ids_by_key.items():
            message = f"unknown article `{identifier}`" if identifier not in ids else ""
            if identifier == article.id:
                message = f"`{identifier}` is the article itself"
            if message:
                yield page.problem(page.line_of(key), message, "name another article's id")


def kb303_translation(base: Base) -> Iterator[Problem]:
    """A translation has the original's snippets, byte for byte: only the prose is translated."""
    notices = {notice.id: notice.article for notice in base.notices}
    originals = {article.id: article for article in base.articles} | notices
    broken = {problem.place.path for problem in base.problems}
    for page in base.pages:
        if not page.translates or page.path in broken:
            continue
        values, _ = decode_front_matter(page)
        original = originals.get(str(values.get("id")))
        if original is None:
            yield page.problem(page.line_of("id"), "no article has this id", "correct the id")
            continue
        snippets = decode_snippets(page, original.id)
        for copy, source in zip(snippets, original.snippets, strict=False):
            if _as_written(copy) != _as_written(source):
                yield page.problem(
                    copy.place.line,
                    f"snippet {copy.id} differs from {source.name}",
                    f"copy it from {source.place}",
                )
        if len(snippets) != len(original.snippets):
            number = "1 snippet" if len(snippets) == 1 else f"{len(snippets)} snippets"
            message = f"{number}, but the original has {len(original.snippets)}"
            yield page.problem(len(page.lines), message, f"copy them from {original.path}")


def kb308_follows(base: Base) -> Iterator[Problem]:
    """A translation names the edition of the original's words that it was made from.

    If the original's words change later, that is no problem: `check` and the translation's page
    give a notice until somebody has translated the change and names the new edition.
    """
    notices = (notice.article for notice in base.notices)
    originals = {article.id: base.page_of(article) for article in (*base.articles, *notices)}
    for page in base.pages:
        original = originals.get(str(page.matter.get("id")))
        if page.translates and original and "follows" not in page.matter:
            message = "the translation does not name the edition of its original that it follows"
            step = f'compare it with {original.path}, then add: follows: "{edition(original)}"'
            yield page.problem(page.line_of("summary"), message, step)


def _as_written(snippet: Snippet) -> tuple[object, ...]:
    return snippet.language, snippet.role, snippet.keys, snippet.code


def kb311_translated_notice(base: Base) -> Iterator[Problem]:
    """A translated notice has the words of its original: each remedy, each thing that fails."""
    originals = {notice.id: notice.matter for notice in base.notices}
    for page in base.pages:
        original = originals.get(str(page.matter.get("id")))
        if not (page.translates and original):
            continue
        values, _ = decode_front_matter(page)
        for key, own in (("remedies", original.remedies), ("not", original.no_help)):
            translated = values.get(key, ())
            if isinstance(translated, tuple) and len(translated) != len(own):
                message = f"`{key}` has {len(translated)}, but the original has {len(own)}"
                yield page.problem(page.line_of(key), message, "translate each, in that order")
        if original.hardware and original.hardware.words and "hardware" not in values:
            step = "add a line `hardware: …` with the translation of its `words`"
            yield page.problem(1, "the words of `hardware` are not translated", step)


def kb307_published_address(base: Base) -> Iterator[Problem]:
    """A published address stays: links to it stand on pages that nobody here can change.

    `published.txt` lists every address that was ever published; `kbtools link --publish` adds
    those of today, before a change is merged.
    """
    published = links.published_addresses(base.config)
    if not published:
        return
    current = set(permanent_addresses(base))
    readable = len(base.articles) + len(base.notices)
    is_whole = readable == sum(not page.translates for page in base.pages)
    # the address of a page that cannot be read is not lost
    for address in (address for address in published if is_whole and address not in current):
        yield Problem(
            Place(links.PUBLISHED, published[address]),
            "",
            f"`{address}` was published, and no article has that address now",
            "retire an article, never delete it; keep a thread that it named as `related`",
            address,
        )
    new = sorted(current - published.keys())
    if new:
        count = f" and {len(new) - 1} more" if len(new) > 1 else ""
        yield Problem(
            Place(links.PUBLISHED),
            "",
            f"`{new[0]}`{count} is not in the list of published addresses",
            "run: kbtools link --publish",
            links.HEAD,
        )


def permanent_addresses(base: Base) -> Iterator[str]:
    """Every address below the site's root that is promised to stay."""
    translations = [
        (str(page.matter.get("id")), page.language) for page in base.pages if page.translates
    ]
    subjects = (*base.articles, *(notice.article for notice in base.notices))
    return links.permanent_addresses((subject.matter for subject in subjects), translations)
