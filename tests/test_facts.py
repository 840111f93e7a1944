"""Facts: a sentence about the toolchain as an assertion, run on both sides of its range."""

from __future__ import annotations

import sys

from bases import Base, fence
from examples import check

from kbtools.articles.model import ALWAYS, Keys, Place, Role, Snippet
from kbtools.evidence.verdicts import expect
from kbtools.toolchains.model import Toolchain

FAILS = fence("python repro id=r1", 'raise OSError("the failure")')
FIX = fence("python fix id=f1", "assert True")


def verdicts(base: Base, *facts: tuple[str, str]) -> tuple[int, dict[str, str]]:
    """The exit code of a run, and fact → verdict; each fact is its words and its code."""
    fences = [fence(f"python fact id=t{n} {words}", code) for n, (words, code) in enumerate(facts)]
    base.article(FAILS, FIX, *fences)
    done = base.kbtools("verify", "--all", "--role", "fact", "-v")
    words = (line.split() for line in done.out.splitlines() if "KB0001/t" in line)
    return done.code, {line[2].partition("/")[2]: line[1] for line in words if line[0] in "✓✗"}


def test_both_sides(base: Base) -> None:
    """A fact passes where it holds, and fails with AssertionError elsewhere: both are green."""
    code, names = verdicts(
        base,
        ("", "assert True"),
        ('holds="python>=3"', "assert True"),
        ('holds="python<3"', "assert False"),
        ('holds="python<3" fails=KeyError', "{}[1]"),
        ('holds="python<3" fails=LookupError', "{}[1]"),
    )
    assert code == 0
    assert names == {"t0": "holds", "t1": "holds", **dict.fromkeys(("t2", "t3", "t4"), "holds-not")}


def test_contradicted(base: Base) -> None:
    """A fact that fails where it holds, passes where it does not, or fails otherwise is red."""
    code, names = verdicts(
        base,
        ("", "assert False"),
        ('holds="python<3"', "assert True"),
        ('holds="python<3"', "{}[1]"),
        ('holds="python>=3"', "{}[1]"),
        ('holds="python<3"', 'print("the failure")\nraise OSError("the failure")'),
    )
    assert code == 1
    assert names == {
        "t0": "untrue",
        "t1": "too-narrow",
        "t2": "other-failure",
        "t3": "other-failure",
        "t4": "other-failure",
    }


def test_where_nothing_follows() -> None:
    """Without the distribution a fact is skipped; a pre-release on the boundary is unknown."""
    place = Place("kb/KB0001-a.md", 7)
    affected = ({"torch": ">=2.7"},)
    fact = Snippet("KB0001", "t1", Role.FACT, "python", "x\n", place, Keys(), affected)
    assert expect(fact, Toolchain("3.11.7", {})).what == "skip"
    nightly = Toolchain("3.11.7", {"torch": "2.7.0.dev20250401"})
    assert expect(fact, nightly).what == "unknown"
    assert expect(fact, Toolchain("3.11.7", {"torch": "2.6.0"})).what == "fails"
    everywhere = Snippet("KB0001", "t1", Role.FACT, "python", "x\n", place, Keys(), ALWAYS)
    assert expect(everywhere, nightly).what == "passes"


def test_the_range_of_the_article_is_not_its_own(base: Base) -> None:
    """Without `holds` a fact holds everywhere, also where the article is not affected."""
    reported = 'bounds: [{bound: "python<3", basis: reported, receipt: "owner/repo#12"}]'
    base.article(
        FAILS,
        FIX,
        fence("python fact id=t1", "assert True"),
        matter=f"affected: [{{python: '<3'}}]\n{reported}",
    )
    base.kbtools("verify", "--record", "--role", "fact")
    assert check(base.root)[0] == 0
    assert "holds" in base.kbtools("verify", "KB0001/t1").out


def test_site(base: Base) -> None:
    """A fact's evidence has its words on the page, on both sides."""
    base.article(
        FAILS,
        FIX,
        fence('python fact id=t1 holds="python<3"', "assert False"),
        fence("python fact id=t2", f"assert {sys.version_info.major} == 3"),
    )
    base.kbtools("verify", "--record")
    explained = base.kbtools("explain", "KB0001").out
    assert "t1 (fact) | holds-not" in explained and "t2 (fact) | holds |" in explained
