"""Rules for receipts: each leads to something, and a translation has those of its original."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Container, Iterator

from kbtools.articles.model import Problem
from kbtools.articles.parsing import Page
from kbtools.articles.receipt_grammar import Kind, kind_of
from kbtools.articles.receipts import BRACKET, STEP, Receipt, snippet_name
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
        texts = {text for _, text in _bracketed(page)}
        if all(_leads(text, identifier, names) for text in texts):
            continue
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
        if Counter(_bracketed(page)) == Counter(_bracketed(original)):
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


def _leads(text: str, article: str, names: Container[str]) -> bool:
    """Whether the text of a receipt leads somewhere, as far as its form and the snippets tell."""
    kind = kind_of(text)
    if kind is Kind.SNIPPET:
        return snippet_name(text, article) in names
    return kind is not Kind.MALFORMED


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
    for sentence in () if page.broken else base.sentences_of(page):
        yield from (receipt for receipt in sentence.receipts if receipt.bracketed)


def _bracketed(page: Page) -> Iterator[tuple[int, str]]:
    """Section and text of all that looks like a receipt, what stands in a code span included.

    To read the sentences of a page takes a while. Where all of these lead somewhere, and where a
    translation has the same, that is not needed.
    """
    code: set[int] = set()
    for fence in page.fences:
        code.update(range(fence.line, fence.line + fence.code.count("\n") + 2))
    starts = [heading.line for heading in page.headings]
    for number, line in enumerate(page.lines[page.opening :], page.opening + 1):
        if "[" in line and number not in code:
            for match in BRACKET.finditer(line):
                text = match[1] or match[2]
                if kind_of(text) is not None:
                    yield bisect(starts, number) - 1, text


def _by_section(base: Base, page: Page) -> dict[int, Counter[str]]:
    """Section of a page, by number → the receipts that are written in it."""
    sections: dict[int, Counter[str]] = {}
    for sentence in base.sentences_of(page):
        texts = [receipt.text for receipt in sentence.receipts if receipt.bracketed]
        if texts:
            sections.setdefault(sentence.section, Counter()).update(texts)
    return sections
