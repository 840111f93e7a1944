"""The code on an article's first card: its remedy, if it is short enough to be an answer.

The summary stands above it. Where the fix is a whole program, or differs from the repro by more
than what is to be done, the summary alone is the card, and a link leads to all of the fix.
"""

from __future__ import annotations

import re

import msgspec

from kbtools.articles.model import Snippet
from kbtools.articles.parsing import Page
from kbtools.articles.remedy import Remedy, changed, remedy
from kbtools.site.rendering import LONG, cut

PROGRAM = 10
"""Lines of a program that is shown, at most."""
PLAIN, NAMED = 4, 8
"""Changed lines that are shown at most: in any case, and if the summary names what is new in them.

A program that shows a failure and one that shows its fix differ in more than the fix: in waiting
times, in what they check. What the summary names is the fix.
"""
WORD = re.compile(r"[A-Za-z_]\w{2,}")


def first_card(page: Page, snippets: tuple[Snippet, ...]) -> Remedy:
    """The fix in short; `page` is the original, `snippets` are those of the article."""
    short = remedy(page, snippets)
    if not is_answer(short, str(page.matter.get("summary", ""))):
        return Remedy(short.section)
    return msgspec.structs.replace(
        short,
        lines=tuple((sign, cut(text)) for sign, text in short.lines),
        code=cut(short.code, LONG),
    )


def is_answer(short: Remedy, summary: str) -> bool:
    """Whether the code of a fix can be taken in at a glance; a command always is one."""
    if not short.fix:
        return True
    if not short.lines:
        return sum(bool(line.strip()) for line in short.code.split("\n")) <= PROGRAM
    words = {
        sign: {word for s, text in short.lines if s == sign for word in WORD.findall(text)}
        for sign in "+- "
    }
    new = words["+"] - words["-"] - words[" "]
    limit = NAMED if new & set(WORD.findall(summary)) else PLAIN
    return changed(short.lines) <= limit
