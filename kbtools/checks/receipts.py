"""Rules for receipts: each leads to something, and a translation has those of its original."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kbtools.articles.model import Problem
from kbtools.articles.parsing import Page
from kbtools.articles.receipts import BRACKET, STEP, Kind, Receipt, kind_of, snippet_name
from kbtools.articles.sentences import snippet_ids
from kbtools.articles.translations import is_outdated
from kbtools.checks.model import Base


def kb320_receipt(base: Base) -> Iterator[Problem]:
    """A receipt leads to a snippet that exists, to a thread, or to a file at a tag.

    `[r3]` is a snippet of this article, `[KB0010/r1]` one of another, `[owner/repo#12]` a thread,
    `[owner/repo@tag path/file.py:120]` a line of source, and `[inferred]` says that a sentence is
    an inference. Threads and sources are held to their form only: `check` asks no network.
    """
    names = _snippet_names(base)
    articles = {name.partition("/")[0] for name in names}
    for page in base.pages:
        identifier = str(page.matter.get("id"))
        for receipt in _receipts(base, page):
            name = snippet_name(receipt.text, identifier)
            article = name.partition("/")[0]
            if receipt.kind is Kind.MALFORMED:
                yield page.problem(receipt.line, f"`[{receipt.text}]` is not a receipt", STEP)
            elif receipt.kind is Kind.SNIPPET and article in articles and name not in names:
                listed = ", ".join(
                    n.partition("/")[2] for n in names if n.startswith(f"{article}/")
                )
                message = f"`[{receipt.text}]` leads to nothing: {article} has no such snippet"
                yield page.problem(receipt.line, message, f"name one of its snippets: {listed}")


def kb321_receipts_of_a_translation(base: Base) -> Iterator[Problem]:
    """A translation has the receipts of its original, each section the same ones.

    Only a translation that names the current edition of its original is compared; if the original
    has changed since, `check` gives a notice, and nobody need know the other language.
    """
    originals = {article.id: base.page_of(article) for article in base.articles}
    for page in base.pages:
        original = originals.get(str(page.matter.get("id")))
        if not page.translates or original is None or is_outdated(page, original):
            continue
        if len(page.headings) != len(original.headings):
            continue
        of_original, of_translation = _by_section(base, original), _by_section(base, page)
        for section in sorted(of_original.keys() | of_translation.keys()):
            lacking = of_original.get(section, Counter()) - of_translation.get(section, Counter())
            extra = of_translation.get(section, Counter()) - of_original.get(section, Counter())
            line = page.headings[section].line if section >= 0 else page.opening + 1
            for text in lacking:
                message = f"the original has the receipt `[{text}]` in this section"
                yield page.problem(line, message, "end the same sentence with it")
            for text in extra:
                message = f"the original does not have the receipt `[{text}]` in this section"
                yield page.problem(line, message, "take it out, or add it to the original")


def _snippet_names(base: Base) -> dict[str, None]:
    """The names of all snippets, as in `KB0002/r1`, in order; also of pages with problems."""
    return {
        f"{page.matter.get('id')}/{name}": None
        for page in base.pages
        if not page.translates and not page.broken
        for name in snippet_ids(page).values()
    }


def _receipts(base: Base, page: Page) -> Iterator[Receipt]:
    """The receipts that are written as such on a page; none where its text is not known."""
    if page.broken or not _may_have_any(page):
        return
    for sentence in base.sentences_of(page):
        yield from (receipt for receipt in sentence.receipts if receipt.bracketed)


def _may_have_any(page: Page) -> bool:
    """Whether a bracket of the prose looks like a receipt: to read sentences takes a while."""
    return any(
        kind_of(match[1] or match[2])
        for line in page.prose
        if "[" in line
        for match in BRACKET.finditer(line)
    )


def _by_section(base: Base, page: Page) -> dict[int, Counter[str]]:
    """Section of a page, by number → the receipts that are written in it."""
    sections: dict[int, Counter[str]] = {}
    for sentence in base.sentences_of(page) if _may_have_any(page) else ():
        texts = [receipt.text for receipt in sentence.receipts if receipt.bracketed]
        if texts:
            sections.setdefault(sentence.section, Counter()).update(texts)
    return sections
