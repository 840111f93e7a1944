"""The code on an article's first card: a command, a difference, or a program."""

from __future__ import annotations

import pytest
from bases import Base, fence

from kbtools import config
from kbtools.articles.remedy import COMPARABLE, Remedy, remedy
from kbtools.checks.base import load_base, readable_articles
from kbtools.site.pages.remedy import NAMED, PLAIN, PROGRAM, first_card

HEADING, SECTION = "## Does not help\n", "does-not-help"
"""A section that test articles do not have yet, and its id."""
REPRO = "import torch\n\nx = load()\n\n\nif x:\n    x += 1\nsave(x)\nclose()\n"
FIX = "import os\nimport torch\n\nx = load()\n\n\nif x:\n    x = x + 1\nsave(x)\nclose()\n"


def remedies_of(base: Base, *blocks: str) -> tuple[Remedy, Remedy]:
    """The remedy of an article with these blocks, those of its fix behind a heading; its card."""
    repros = [block for block in blocks if " repro" in block]
    rest = [block for block in blocks if block not in repros]
    base.article(*repros, HEADING, *rest)
    loaded = load_base(config.find(base.root))
    articles, problems = readable_articles(loaded)
    assert not problems
    [article] = articles
    page = loaded.page_of(article)
    return remedy(page, article.snippets), first_card(page, article.snippets)


def remedy_of(base: Base, *blocks: str) -> Remedy:
    """The remedy of an article with these blocks."""
    return remedies_of(base, *blocks)[0]


def test_a_command(base: Base) -> None:
    """A block for the shell that is not run comes first: it can be pasted as it is."""
    card = remedy_of(base, fence("sh", "pip install it"), fence("python fix", FIX))
    assert card == Remedy(SECTION, code="pip install it")


def test_a_command_that_comes_later(base: Base) -> None:
    """What stands behind the first fix is not the first thing to do."""
    card = remedy_of(base, fence("python fix id=f1", "pass"), fence("sh", "pip install it"))
    assert card == Remedy(SECTION, "f1", code="pass")


def test_the_lines_that_make_the_difference(base: Base) -> None:
    """Of the nearest repro, without imports and empty lines, a line of both around them."""
    far = fence("python repro id=r1", "y = 1\nraise OSError")
    card = remedy_of(base, far, fence("python repro id=r2", REPRO), fence("python fix id=f1", FIX))
    assert (card.repro, card.fix, card.code) == ("r2", "f1", "")
    assert card.lines == (
        (" ", "if x:"),
        ("-", "    x += 1"),
        ("+", "    x = x + 1"),
        (" ", "save(x)"),
    )


def test_a_gap(base: Base) -> None:
    """Between two changes stands that something is left out; indentation of all goes."""
    old = "".join(f"    line({i})\n" for i in range(9))
    new = old.replace("line(2)", "two()").replace("line(7)", "seven()")
    fences = [
        fence(f"python {role}", f"if 1:\n{code}") for role, code in (("repro", old), ("fix", new))
    ]
    signs, texts = zip(*remedy_of(base, *fences).lines, strict=True)
    assert "".join(signs) == " -+ … -+ "
    assert texts[:3] == ("line(1)", "line(2)", "two()")


def test_an_import_that_is_the_difference(base: Base) -> None:
    """Where nothing else differs, imports do."""
    old, new = "import a\nimport b\n\na.go()\nb.go()\n", "import b\nimport a\n\na.go()\nb.go()\n"
    card = remedy_of(base, fence("python repro", old), fence("python fix", new))
    assert ("+", "import b") in card.lines or ("+", "import a") in card.lines


def test_the_environment(base: Base) -> None:
    """A variable of the fix is a line of it; one that only made the repro fail is none."""
    repro = fence('python repro env="JOBS=3 BROKEN=1"', FIX)
    card = remedy_of(base, repro, fence("python fix env=\"JOBS='1 2'\"", FIX))
    assert [line for line in card.lines if line[0] in "+-"] == [
        ("-", "JOBS=3"),
        ("+", "JOBS='1 2'"),
    ]


@pytest.mark.parametrize("code", ["other()\n", "x = load()\n", "pass\n" * (COMPARABLE + 1)])
def test_a_complete_program(base: Base, code: str) -> None:
    """Where the difference is no shorter, only takes away, or is too long to look for."""
    card = remedy_of(
        base, fence("python repro", "x = load()\nx += 1"), fence("python fix id=f1", code)
    )
    assert card == Remedy(SECTION, "f1", code=code.strip())


def test_no_fix(base: Base) -> None:
    """Then there is nothing to type."""
    assert remedy_of(base, fence("python repro", REPRO)) == Remedy()


@pytest.mark.parametrize(("lines", "is_shown"), [(PROGRAM, True), (PROGRAM + 1, False)])
def test_a_program_on_the_card(base: Base, lines: int, is_shown: bool) -> None:
    """A program that is longer than an answer is not on the card; the link to the fix is."""
    fix = fence("python fix id=f1", "\n".join(f"other({n})" for n in range(lines)))
    whole, card = remedies_of(base, fence("python repro", "x = load()"), fix)
    assert card == (whole if is_shown else Remedy(SECTION))


@pytest.mark.parametrize(
    ("lines", "new", "is_shown"),
    [
        (PLAIN, "lock()", True),
        (PLAIN + 1, "lock()", False),
        (PLAIN + 1, "right(x)", True),
        (NAMED, "right(x)", True),
        (NAMED + 1, "right(x)", False),
    ],
)
def test_a_difference_on_the_card(base: Base, lines: int, new: str, is_shown: bool) -> None:
    """A longer difference is one only if the summary, "Do it right.", names what is new in it.

    Otherwise two programs differ in more than the fix, as in how long they wait.
    """
    same = [f"step({n})" for n in range(20)]
    fix = [*same, new, *(f"wait({n})" for n in range(lines - 1))]
    blocks = [
        fence(f"python {role}", "\n".join(code))
        for role, code in (("repro", same), ("fix id=f1", fix))
    ]
    whole, card = remedies_of(base, *blocks)
    assert sum(sign == "+" for sign, _ in whole.lines) == lines
    assert card == (whole if is_shown else Remedy(SECTION))


def test_a_command_on_the_card(base: Base) -> None:
    """A command is on the card, however long."""
    command = "\n".join(f"export A{n}=1" for n in range(PROGRAM + 1))
    whole, card = remedies_of(base, fence("sh", command), fence("python fix", FIX))
    assert card == whole == Remedy(SECTION, code=command)
