"""Rules for the articles of a knowledge base together, and for what was recorded of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import re2

from kbtools.articles import links
from kbtools.articles.decoding import decode_front_matter, decode_snippets
from kbtools.articles.model import Article, Place, Problem, Role, Signature, Snippet
from kbtools.articles.signatures import recognises
from kbtools.articles.translations import edition
from kbtools.config import KbtoolsError
from kbtools.evidence import store
from kbtools.evidence.store import Row

if TYPE_CHECKING:
    from kbtools.checks.base import Base


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


def kb304_own_output(base: Base) -> Iterator[Problem]:
    """Where a repro was seen to fail as it should, a signature is found in what it printed.

    A failure that shows nothing (`fails=timeout`, an exit code) is not asked.
    """
    for one, snippet, row in _recorded_failures(base):
        if snippet.role is Role.REPRO and _shows(one.matter.signatures, row) is False:
            page = base.page_of(one)
            yield page.problem(
                page.line_of("signatures"),
                f"no signature is found in the recorded output of {snippet.name}"
                f" ({row.toolchain.label}): {row.outcome.ended}",
                "correct the signature, or record the repro again",
            )


def kb305_claims_another(base: Base) -> Iterator[Problem]:
    """A signature does not claim another article's recorded output.

    The same text can be another bug: then declare it `confusable`, and the Symptom section says
    how to tell them apart.
    """
    seen: set[tuple[str, str]] = set()
    for other, snippet, row in _recorded_failures(base):
        for one in base.articles:
            if (
                one.id == other.id
                or other.id in one.matter.confusable
                or (one.id, other.id) in seen
            ):
                continue
            # what wraps others is expected in their output, and ranks below them
            if _shows((it for it in one.matter.signatures if not it.wraps), row):
                seen.add((one.id, other.id))
                page = base.page_of(one)
                yield page.problem(
                    page.line_of("signatures"),
                    f"a signature also claims the output of {snippet.name}",
                    f"make it narrower, or declare `confusable: [{other.id}]` and tell them apart",
                )


def kb306_unreadable_evidence(base: Base) -> Iterator[Problem]:
    """Evidence is JSON Lines, each a row that a run wrote."""
    for one in base.articles:
        try:
            store.read(base.config.evidence, one.id)
        except KbtoolsError as error:
            page = base.page_of(one)
            message = str(error).replace(f"{base.config.root}/", "")
            yield page.problem(1, message, "restore the file from version control")


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


def _recorded_failures(base: Base) -> Iterator[tuple[Article, Snippet, Row]]:
    """Every recorded failure of a snippet that fails by printing its signature."""
    for one in base.articles:
        try:
            rows = store.read(base.config.evidence, one.id)
        except KbtoolsError:
            continue
        for snippet in one.snippets:
            if snippet.role not in (Role.REPRO, Role.DEADEND) or snippet.keys.fails != "signature":
                continue
            for row in store.of_snippet(rows, snippet):
                if row.outcome.status in ("failed", "signal"):
                    yield one, snippet, row


def _shows(signatures: Iterable[Signature], row: Row) -> bool | None:
    try:
        return any(recognises(one, row.outcome.output) for one in signatures)
    except re2.error:
        return None  # KB201 says so
