"""Rules for the links between articles, and for the ids that their texts name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set

from kbtools.articles.links import slug
from kbtools.articles.model import Problem
from kbtools.articles.parsing import Page
from kbtools.checks.model import Base

CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")
LINK = re.compile(r"\]\(\s*<?([^()<>\s]*)>?[^()]*\)")
"""The address of a link, as in `[words](address "title")`."""
ELSEWHERE = re.compile(r"[A-Za-z][\w+.-]*:|//")
"""How an address on another site begins."""


def kb309_broken_link(base: Base) -> Iterator[Problem]:
    """A link leads to an article, to a heading, or to another site; an id is that of an article.

    A link to an article names its file, as in `[KB0002](KB0002-….md)`, so that it works wherever
    the Markdown is read. A link within the page names a heading, as in `[the fix](#fix)`; in a
    translation the anchors of headings are those of the original. Code is not looked at.
    """
    files = {page.path.rpartition("/")[2]: str(page.matter.get("id", "")) for page in base.pages}
    ids = set(files.values())
    pattern = re.compile(rf"(?<![\w/#.-]){base.config.id_pattern.pattern}(?![\w-])")
    originals = {str(page.matter.get("id")): page for page in base.pages if not page.translates}
    for page in base.pages:
        if page.broken:  # where its text begins is not known
            continue
        original = originals.get(str(page.matter.get("id")), page)
        anchors = {slug(heading.text) for heading in (*page.headings, *original.headings)}
        for number, text in _prose(page):
            for address in LINK.findall(text):
                if message := _broken(address, anchors, files, base):
                    step = "link to a file of this folder, to a #heading, or to https://…"
                    yield page.problem(number, message, step)
            for name in dict.fromkeys(pattern.findall(LINK.sub("]", text))):
                if name not in ids:
                    message = f"unknown article `{name}`"
                    yield page.problem(number, message, "name another article's id")


def _prose(page: Page) -> Iterator[tuple[int, str]]:
    """The lines of a page's text by number, without blocks and spans of code."""
    code: set[int] = set()
    for fence in page.fences:
        code.update(range(fence.line, fence.line + fence.code.count("\n") + 2))
    for number, line in enumerate(page.lines[page.opening :], page.opening + 1):
        if number not in code:
            yield number, CODE_SPAN.sub("``", line)


def _broken(address: str, anchors: Set[str], files: Mapping[str, str], base: Base) -> str:
    """Why an address leads nowhere; empty if it leads somewhere."""
    if ELSEWHERE.match(address):
        return ""
    target, _, anchor = address.partition("#")
    if not target:
        return "" if anchor in anchors else f"`#{anchor}` is not a heading of this page"
    if target in files:
        return ""
    match = base.config.id_pattern.match(target)
    for file, identifier in files.items():
        if match and identifier == match[0]:
            return f"`{target}` does not exist: the article's file is {file}"
    return f"`{target}` does not exist"
