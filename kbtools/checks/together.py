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
    """An id is one article's for ever; no other may have it."""
    first: dict[tuple[str, str], str] = {}
    for page in base.pages:
        found = (str(page.matter.get("id", "")), page.language)
        if found[0] and found in first:
            step = "take the next free id: kbtools new prints it"
            if page.translates:
                step = "keep one translation for each language"
            message = f"{found[0]} is already {first[found]}"
            yield page.problem(page.line_of("id"), message, step)
        first.setdefault(found, page.path)


def kb302_unknown_article(base: Base) -> Iterator[Problem]:
    """`confusable` and `replaced_by` name articles that are there, and not the article itself."""
    ids = {str(page.matter.get("id")) for page in base.pages}
    for one in base.articles:
        page = base.page_of(one)
        named = [(f"confusable[{i}]", other) for i, other in enumerate(one.matter.confusable)]
        if one.matter.retired and one.matter.retired.replaced_by:
            named.append(("retired.replaced_by", one.matter.retired.replaced_by))
        for key, other in named:
            if other == one.id or other not in ids:
                why = "the article itself" if other == one.id else "no article"
                message = f"`{other}` is {why}"
                yield page.problem(page.line_of(key), message, "name another article's id")


def kb303_translation(base: Base) -> Iterator[Problem]:
    """A translation has the original's snippets, byte for byte: only the prose is translated."""
    originals = {one.id: one for one in base.articles}
    broken = {problem.place.path for problem in base.problems}
    for page in base.pages:
        if not page.translates or page.path in broken:
            continue
        values, _ = decode_front_matter(page)
        original = originals.get(str(values.get("id")))
        if original is None:
            yield page.problem(page.line_of("id"), "no original has this id", "correct the id")
            continue
        here, there = decode_snippets(page, original.id), original.snippets
        for ours, theirs in zip(here, there, strict=False):
            if _as_written(ours) != _as_written(theirs):
                yield page.problem(
                    ours.place.line,
                    f"snippet {ours.id} differs from {theirs.name}",
                    f"copy it from {theirs.place}",
                )
        if len(here) != len(there):
            message = f"snippets here: {len(here)}, in the original: {len(there)}"
            yield page.problem(len(page.lines), message, f"see {original.path}")


def kb308_follows(base: Base) -> Iterator[Problem]:
    """A translation names the edition of the original's words that it was made from.

    When the original is worded anew, that is no problem: `check` says so, and so does the
    translation's page, until somebody has translated the change and names the new edition.
    """
    originals = {one.id: base.page_of(one) for one in base.articles}
    for page in base.pages:
        original = originals.get(str(page.matter.get("id")))
        if page.translates and original and "follows" not in page.matter:
            message = "it does not say which edition of its original it follows"
            step = (
                f'once it says what {original.path} says now, add: follows: "{edition(original)}"'
            )
            yield page.problem(page.line_of("summary"), message, step)


def _as_written(snippet: Snippet) -> tuple[object, ...]:
    return snippet.language, snippet.role, snippet.keys, snippet.code


def kb307_published_address(base: Base) -> Iterator[Problem]:
    """A published address stays: what points to it is outside of our reach.

    `published.txt` lists every address that ever was; `kbtools link --publish` adds the new ones.
    """
    locked = links.published_addresses(base.config)
    if not locked:
        return
    today = set(permanent_addresses(base))
    for lost in (one for one in locked if one not in today):
        yield Problem(
            Place(links.PUBLISHED, locked[lost]),
            "",
            f"`{lost}` was published and is no longer there",
            "retire an article, never delete it; keep a thread that it named as `related`",
            lost,
        )
    new = sorted(today - locked.keys())
    if new:
        more = f" and {len(new) - 1} more" if len(new) > 1 else ""
        yield Problem(
            Place(links.PUBLISHED),
            "",
            f"`{new[0]}`{more} is not in the list of published addresses",
            "run: kbtools link --publish",
            links.HEAD,
        )


def permanent_addresses(base: Base) -> Iterator[str]:
    """Every address below the site's root that is promised to stay."""
    translated = [
        (str(page.matter.get("id")), page.language) for page in base.pages if page.translates
    ]
    return links.permanent_addresses((one.matter for one in base.articles), translated)
