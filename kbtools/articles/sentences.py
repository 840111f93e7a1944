"""Page → sentences: each with its section, its line and the receipts in it. A row is a sentence."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import itemgetter

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kbtools.articles.decoding import decode_fence_keys, snippet_id
from kbtools.articles.parsing import ROLES, Page
from kbtools.articles.receipt_grammar import Kind, kind_of
from kbtools.articles.receipts import Receipt, understand_receipts

CODE, RECEIPT = "\ufffc", "\ufffb"
"""Stand for each character of a code span, and of a receipt, where words are looked for."""
ABBREVIATIONS = r"(?:\b(?:e\.g|i\.e|cf|vs|etc|approx|resp|No|Nos|Fig|Sec|Dr|Mr|Ms|St)|\b[A-Z])\."
ENDS = re.compile(
    rf"(?<![.])[.!?][\"'”’)\]*_]*(?:[ \n]*{RECEIPT}+)*(?=[ \n]+[^\s{RECEIPT}]|\s*$)"
    rf"|[。！？][”’」』）)*]*(?:[ \n]*{RECEIPT}+)*"
)
"""Matches the end of a sentence, with the receipts that follow its full stop."""
COLONS = (":", "：")
MARKS = re.compile(rf"(?:(?<!\s)\s+)?{RECEIPT}+")
LONGEST_ABBREVIATION = 24
LONGEST_PAGE = 1_000_000
"""Characters of a page that is read for its sentences; a longer one is no prose."""
LONGEST_BLOCK = 100_000
"""Characters of a paragraph or cell that is read as prose; a longer one is none."""
ABBREVIATED = re.compile(rf"{ABBREVIATIONS}$")
THREAD = re.compile(
    r"(?<![\w./#@-])[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(?:#[1-9]\d*|@[0-9a-f]{7,40})(?![\w/])"
)
"""A thread that a sentence names in its words, without brackets."""

_markdown = MarkdownIt("commonmark").enable("table")
understand_receipts(_markdown)


class Sentence(msgspec.Struct, frozen=True):
    """A sentence of an article's prose, or a row of a table."""

    section: int
    """Which section of level two it is in, from 0; -1 above the first."""
    line: int
    """Of the file, where it begins."""
    text: str
    """As it reads, without its receipts; code has its backticks."""
    words: str
    """The same with `CODE` in place of each character of code, for the eyes of a rule."""
    receipts: tuple[Receipt, ...]
    is_row: bool = False
    """Whether it is a row of a table."""


class _Line(msgspec.Struct):
    """A block of text while it is read: three texts of the same length, and its receipts."""

    start: int
    """Line of the file where it begins."""
    shown: str = ""
    words: str = ""
    breaks: list[int] = []
    """Where a line of the file ends in it."""
    receipts: list[tuple[int, Receipt]] = []
    """Each with its place in the text."""

    def add(self, text: str, words: str | None = None) -> None:
        self.shown += text
        self.words += text if words is None else words

    @property
    def line(self) -> int:
        """Of the file, at the end of what was read."""
        return self.start + len(self.breaks)

    def add_receipt(self, kind: Kind, text: str, *, bracketed: bool = True) -> None:
        self.receipts.append((len(self.shown), Receipt(kind, text, self.line, bracketed)))


def sentences(page: Page) -> Iterator[Sentence]:
    """The sentences of a page's prose, in order; none of its headings and of its code.

    A sentence that ends in a colon right above a snippet has that snippet as a receipt: it says
    what is shown there. One right above a table lends its receipts to each row.
    """
    if len(page.body) > LONGEST_PAGE:
        return
    text = "\n".join(page.lines[page.opening :])
    tokens = _markdown.parse(text + "\n")
    snippets = snippet_ids(page)
    section, row = -1, None
    lent: tuple[Receipt, ...] = ()
    for i, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag == "h2" and token.level == 0:
            section += 1
        elif token.type == "table_open" and tokens[i - 1].type != "paragraph_close":
            lent = ()
        elif token.type == "tr_open" and tokens[i - 1].type != "thead_open":
            row = _Line((token.map or [0])[0] + page.opening + 1)
        elif token.type == "tr_close" and row is not None:
            yield from _sentence(row, 0, len(row.shown), section, lent=lent, is_row=True)
            row = None
        elif token.type == "inline" and len(token.content) > LONGEST_BLOCK:
            continue
        elif token.type == "inline" and token.map and tokens[i - 1].type == "paragraph_open":
            block = _read(token.children or (), _Line(token.map[0] + page.opening + 1))
            below = next((t.map[0] for t in tokens[i + 1 :] if t.nesting >= 0 and t.map), -1)
            parts = list(_split(block, section, snippets.get(below + page.opening + 1, "")))
            introduces = bool(parts) and parts[-1].text.rstrip("*_").endswith(COLONS)
            lent = parts[-1].receipts if introduces else ()
            yield from parts
        elif token.type == "inline" and row is not None:
            row.add(" | " if row.shown else "")
            _read(token.children or (), row)


def snippet_ids(page: Page) -> dict[int, str]:
    """Line of a snippet's fence → its id, also on a page in which there are problems."""
    counts: Counter[str] = Counter()
    return {
        fence.line: snippet_id(fence, decode_fence_keys(fence)[0], counts)
        for fence in page.fences
        if fence.runs and fence.role in ROLES
    }


def _read(tokens: Sequence[Token], block: _Line) -> _Line:
    """The block with the text of these tokens added."""
    link = ""
    for token in tokens:
        if token.type == "text":
            for mention in THREAD.finditer(token.content) if not link else ():
                receipt = Receipt(Kind.THREAD, mention[0], block.line, bracketed=False)
                block.receipts.append((len(block.shown) + mention.end(), receipt))
            block.add(token.content)
        elif token.type == "code_inline":
            code = f"`{token.content}`"
            block.add(code, CODE * len(code))
        elif token.type in ("softbreak", "hardbreak"):
            block.breaks.append(len(block.shown))
            block.add(" ")
        elif token.type == "receipt":
            kind = kind_of(token.content)
            if kind is not None:
                block.add_receipt(kind, token.content)
            block.add(RECEIPT)
        elif token.type == "link_open":
            link = str(token.attrs.get("href", ""))
        elif token.type == "link_close":
            if link.startswith("https://"):
                block.add_receipt(Kind.PAGE, link, bracketed=False)
            link = ""
    return block


def _split(block: _Line, section: int, snippet: str) -> Iterator[Sentence]:
    """A block as sentences; `snippet` is the one right below it, if any."""
    begin = 0
    for match in ENDS.finditer(block.words):
        before = max(begin, match.start() - LONGEST_ABBREVIATION)
        if match[0].startswith(".") and ABBREVIATED.search(block.words[before : match.start() + 1]):
            continue
        yield from _sentence(block, begin, match.end(), section)
        begin = match.end()
    rest = block.words[begin:].rstrip(f" *_{RECEIPT}")
    lent: tuple[Receipt, ...] = ()
    if snippet and rest.endswith(COLONS):
        lent = (Receipt(Kind.SNIPPET, snippet, block.line),)
    yield from _sentence(block, begin, len(block.shown), section, lent=lent)


def _sentence(
    block: _Line,
    begin: int,
    end: int,
    section: int,
    *,
    lent: tuple[Receipt, ...] = (),
    is_row: bool = False,
) -> Iterator[Sentence]:
    """The part of a block between two places, unless it holds no word.

    Args:
        block: The text.
        begin: Where the part begins.
        end: Where it ends.
        section: Of the page.
        lent: Receipts that it has by its place: the snippet below it, those of its table.
        is_row: Whether it is a row of a table.
    """
    text = block.shown[begin:end]
    begin += len(text) - len(text.lstrip())
    line = block.start + bisect_left(block.breaks, begin)
    first = bisect_left(block.receipts, begin, key=itemgetter(0))
    until = bisect_left(block.receipts, end + (end == len(block.shown)), key=itemgetter(0))
    receipts = [receipt for _, receipt in block.receipts[first:until]]
    receipts += [msgspec.structs.replace(r, line=line, bracketed=False) for r in lent]
    if receipts or any(character.isalnum() for character in text):
        yield Sentence(
            section=section,
            line=line,
            text=_tidy(block.shown[begin:end]),
            words=_tidy(block.words[begin:end]),
            receipts=tuple(dict.fromkeys(receipts)),
            is_row=is_row,
        )


def _tidy(text: str) -> str:
    """A text without marks of receipts, and without the blanks that they leave."""
    return MARKS.sub("", text).strip()
