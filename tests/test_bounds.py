"""The bounds of claims: measured on both sides, reported with a receipt, or open."""

from __future__ import annotations

import datetime
import json

import msgspec
import pytest
from bases import Base, fence

from kbtools import config
from kbtools.articles.model import Article
from kbtools.checks.base import load_base
from kbtools.checks.bounds import kb330_open_bound, kb331_reported_bound
from kbtools.evidence.bounds import Bound, bounds_of, releases_of
from kbtools.evidence.rows import Row
from kbtools.evidence.tried import tried_ranges
from kbtools.matching import Matcher, load
from kbtools.outcome import Outcome
from kbtools.reports.bounds import standing
from kbtools.site.data.osv import affects
from kbtools.site.model import build_model
from kbtools.site.pages.bounds import lines
from kbtools.site.pages.frame import Frame
from kbtools.site.theming import promise
from kbtools.toolchains.affected import MissingVersion, is_affected
from kbtools.toolchains.model import Toolchain

FAILURE = 'raise RuntimeError("the failure")'
REPRO = fence("python repro id=r1", FAILURE)
WHEN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def written(base: Base, affected: str, *fences: str, more: str = "") -> Article:
    """The article of a base with this `affected`, as YAML."""
    base.article(*(fences or (REPRO,)), matter=f"affected: [{affected}]\n{more}")
    [article] = load_base(config.find(base.root)).articles
    return article


def row(article: Article, version: str, status: str, snippet: str = "r1", **more: str) -> Row:
    """A run with a version of `widget`: `failed` with the documented text, or `passed`."""
    [code] = [s.digest for s in article.snippets if s.id == snippet]
    toolchain = Toolchain(python="3.11.7", packages={"widget": version, **more})
    outcome = Outcome("failed", exit=1, output="the failure")
    if status == "passed":
        outcome = Outcome("passed", exit=0)
    return Row(2, snippet, code, toolchain, outcome, WHEN, "0.1.0")


def bounds(article: Article, *rows: Row) -> dict[str, Bound]:
    """Text of each bound of an article → the bound."""
    return {bound.text: bound for bound in bounds_of(article, rows, releases_of(rows))}


def test_both_sides(base: Base) -> None:
    """A bound is measured between the nearest versions that went as claimed on either side."""
    article = written(base, '{widget: ">=2.2,<2.6"}')
    rows = [
        row(article, version, status)
        for version, status in (
            ("2.1.0", "passed"),
            ("2.2.0", "failed"),
            ("2.5.0", "failed"),
            ("2.5.1+cpu", "failed"),
            ("2.6.0+cpu", "passed"),
            ("2.9.0", "passed"),
        )
    ]
    listed = bounds(article, *rows)
    assert standing(listed["widget>=2.2"]) == "2.1.0 | 2.2.0"
    assert standing(listed["widget<2.6"]) == "2.5.1 | 2.6.0"
    assert {bound.standing for bound in listed.values()} == {"measured"}
    assert [trial.version for trial in listed["widget<2.6"].tried][::5] == ["2.1.0", "2.9.0"]


@pytest.mark.parametrize(
    ("versions", "missing"),
    [
        ({"2.5.1": "failed"}, "a run that passes from widget 2.6 on"),
        ({"2.6.0": "passed"}, "a run that fails below widget 2.6"),
        ({}, "a run that fails below widget 2.6 and a run that passes from widget 2.6 on"),
        ({"2.5.1": "passed", "2.6.0": "passed"}, "a run that fails below widget 2.6"),
        ({"2.5.1": "failed", "2.6.0": "failed"}, "a run that passes from widget 2.6 on"),
    ],
)
def test_one_side(base: Base, versions: dict[str, str], missing: str) -> None:
    """Runs on one side, or runs that contradict the claim, leave a bound open."""
    article = written(base, '{widget: "<2.6"}')
    [bound] = bounds(article, *(row(article, *item) for item in versions.items())).values()
    assert (bound.standing, bound.missing) == ("open", missing)


def test_edited_since(base: Base) -> None:
    """Runs of code that was edited since measure nothing."""
    article = written(base, '{widget: "<2.6"}')
    rows = [row(article, "2.5.1", "failed"), row(article, "2.6.0", "passed")]
    assert bounds(article, *rows)["widget<2.6"].standing == "measured"
    edited = written(base, '{widget: "<2.6"}', fence("python repro id=r1", f"x = 1\n{FAILURE}"))
    assert bounds(edited, *rows)["widget<2.6"].standing == "open"


def test_other_conditions(base: Base) -> None:
    """A run that another condition leaves out says nothing of a bound."""
    article = written(base, '{widget: "<2.6", gear: ">=2"}')
    fails = row(article, "2.5.1", "failed", gear="2.0")
    elsewhere = row(article, "2.6.0", "passed", gear="1.0")
    listed = bounds(article, fails, elsewhere)
    assert {bound.standing for bound in listed.values()} == {"open"}
    listed = bounds(article, fails, elsewhere, row(article, "2.6.0", "passed", gear="2.0"))
    assert standing(listed["widget<2.6"]) == "2.5.1 | 2.6.0"
    assert listed["gear>=2"].standing == "open"


def test_another_alternative(base: Base) -> None:
    """Between two alternatives, the versions of neither measure the bounds of both."""
    article = written(base, '{widget: "<2"}, {widget: ">=4"}')
    versions = (("1.0", "failed"), ("2.0", "passed"), ("3.0", "passed"), ("4.0", "failed"))
    listed = bounds(article, *(row(article, *item) for item in versions))
    assert standing(listed["widget<2"]) == "1.0 | 2.0"
    assert standing(listed["widget>=4"]) == "3.0 | 4.0"


def test_not_tried_between(base: Base) -> None:
    """A release that other runs know, and that lies between the two sides, is named."""
    article = written(base, '{widget: "<2.8"}')
    rows = [row(article, "2.5.1", "failed"), row(article, "2.8.0", "passed")]
    releases = {"widget": ("2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.0")}
    [bound] = bounds_of(article, tuple(rows), releases)
    assert standing(bound) == "2.5.1 | 2.8.0, not tried between: 2.6.0, 2.7.1"


def test_equal_and_absent(base: Base) -> None:
    """One version alone has an end below and one above; `absent` is another word for a side."""
    article = written(base, '{widget: "==3.4.*"}, {gear: absent}')
    versions = (("3.3.1", "passed"), ("3.4.0", "failed"), ("3.5.0", "passed"))
    rows = [row(article, *item, gear="1") for item in versions]
    listed = bounds(article, *rows)
    assert standing(listed["widget==3.4.*"]) == "3.3.1 | 3.4.0; 3.4.0 | 3.5.0"
    assert listed["gear absent"].missing == "a run that fails without gear"


def test_own_range(base: Base) -> None:
    """The range of a fence is held to the runs of that fence alone."""
    own = fence('python repro id=r2 affected="widget<2"', FAILURE)
    article = written(base, '{widget: "<3"}', REPRO, own)
    rows = [row(article, "2.9", "failed"), row(article, "3.0", "passed")]
    listed = bounds(article, *rows)
    assert listed["widget<3"].standing == "measured"
    assert (listed["widget<2"].snippet, listed["widget<2"].standing) == ("r2", "open")
    rows += [row(article, "1.9", "failed", "r2"), row(article, "2.0", "passed", "r2")]
    assert standing(bounds(article, *rows)["widget<2"]) == "1.9 | 2.0"


def test_reported(base: Base) -> None:
    """An entry of `bounds` stands behind a bound that no run measures."""
    more = 'bounds: [{bound: "widget<2.6", basis: reported, receipt: "owner/repo#12"}]'
    article = written(base, '{widget: "<2.6"}', more=more)
    [bound] = bounds(article, row(article, "2.5.1", "failed")).values()
    assert (bound.standing, bound.receipt) == ("reported", "owner/repo#12")
    rows = (row(article, "2.5.1", "failed"), row(article, "2.6.0", "passed"))
    [bound] = bounds(article, *rows).values()
    assert (bound.standing, bound.receipt) == ("measured", "")


def test_the_command(base: Base) -> None:
    """`kbtools bounds` lists them with what is missing, for people and for programs."""
    base.article(REPRO, matter='affected: [{python: ">=3.9,<9"}]')
    assert base.verify("--record").code == 0
    done = base.kbtools("bounds")
    assert done.code == 0, done.err
    assert "KB0001" in done.out
    assert "open" in done.out
    assert "needs a run that passes from python 9 on" in done.out
    assert done.out.endswith("2 bounds: 0 measured, 0 reported, 2 open\n")
    document = json.loads(base.kbtools("bounds", "--json", "KB0001").out)
    assert [entry["bound"] for entry in document["bounds"]] == ["python>=3.9", "python<9"]
    assert base.kbtools("bounds", "KB0002").code == 2


def test_a_fact(base: Base) -> None:
    """What a fact says to hold in a range is held to a run that passes and one that fails."""
    fact = fence('python fact id=t1 holds="widget>=2.7"', "assert True")
    base.article(REPRO, fact)
    [article] = load_base(config.find(base.root)).articles
    holds = row(article, "2.7.1", "passed", "t1")
    [bound] = bounds(article, holds).values()
    assert (bound.snippet, bound.standing) == ("t1", "open")
    assert bound.missing == "a run that fails below widget 2.7"
    fails = row(article, "2.6.0", "failed", "t1")
    outcome = Outcome("failed", exit=1, exceptions=("AssertionError", "Exception"))
    [bound] = bounds(article, holds, msgspec.structs.replace(fails, outcome=outcome)).values()
    assert standing(bound) == "2.6.0 | 2.7.1"


def test_how_far_it_was_tried(base: Base) -> None:
    """Beyond the oldest and the newest version tried nothing is known, unless a bound decides."""
    article = written(base, '{widget: "<2.6"}')
    fails = row(article, "2.5.1", "failed")
    assert tried_ranges(article, bounds(article).values()) == ()
    ends = tried_ranges(article, bounds(article, fails).values())
    assert ends == ({"widget": ">=2.5.1,<=2.5.1"},)
    both = bounds(article, fails, row(article, "2.6.0", "passed"))
    assert tried_ranges(article, both.values()) == ({"widget": ">=2.5.1"},)
    more = 'bounds: [{bound: "widget<2.6", receipt: "a/b#1"}]'
    article = written(base, '{widget: "<2.6"}', more=more)
    reported = tried_ranges(article, bounds(article, fails).values())
    assert reported == ({"widget": ">=2.5.1"},)


def test_what_a_reader_is_told(base: Base) -> None:
    """`diagnose` says that nothing is known of a version older than the oldest that was tried."""
    article = written(base, '{widget: "<2.6"}')
    recorded(base, row(article, "2.5.1", "failed"), row(article, "2.6.0", "passed"))
    matcher = Matcher(load(base.root))
    answers = {}
    for version in ("2.4.0", "2.5.1", "2.9.0"):
        [match] = matcher.diagnose(f"widget=={version}\nRuntimeError: the failure\n").matches
        answers[version] = (match.affected, match.reason)
        assert not any("add the version" in hint for hint in match.hints)
    assert answers == {
        "2.4.0": (
            "unknown",
            "widget <2.6 is affected; widget 2.4.0 is outside of what was tried, >=2.5.1",
        ),
        "2.5.1": ("affected", "widget <2.6 is affected; the log shows widget 2.5.1"),
        "2.9.0": ("not affected", "widget <2.6 is affected; the log shows widget 2.9.0"),
    }


def test_osv(base: Base) -> None:
    """A range for other programs ends at measured bounds, or with what was seen to fail."""
    article = written(base, '{widget: ">=2.2,<2.6"}')
    rows = [row(article, version, "failed") for version in ("2.3.0", "2.5.1")]
    affected = article.matter.affected
    [entry] = affects(affected, [*bounds(article, *rows).values()])
    assert entry.ranges[0].events == ({"introduced": "2.3.0"}, {"last_affected": "2.5.1"})
    rows.append(row(article, "2.6.0", "passed"))
    [entry] = affects(affected, [*bounds(article, *rows).values()])
    assert entry.ranges[0].events == ({"introduced": "2.3.0"}, {"fixed": "2.6"})


def checked(base: Base) -> list[str]:
    """Code and message of what the rules of this file find in a base."""
    return [
        f"{problem.place.line} {problem.message}"
        for rule in (kb330_open_bound, kb331_reported_bound)
        for problem in rule(load_base(config.find(base.root)))
    ]


def recorded(base: Base, *rows: Row) -> None:
    """Stores rows as the evidence of the first article."""
    folder = base.root / "evidence"
    folder.mkdir(exist_ok=True)
    (folder / "KB0001.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(rows))


def test_the_rule(base: Base) -> None:
    """A bound with runs on one side is a problem at its line; one with both, or a receipt, none."""
    article = written(base, '{widget: "<2.6"}')
    fails, passes = row(article, "2.5.1", "failed"), row(article, "2.6.0", "passed")
    recorded(base, fails)
    [problem] = checked(base)
    assert "nothing stands behind the bound `widget<2.6`" in problem
    assert "a run that passes from widget 2.6 on (tried on 2.5.1)" in problem
    recorded(base, fails, passes)
    assert checked(base) == []
    recorded(base, fails)
    written(base, '{widget: "<2.6"}', more='bounds: [{bound: widget<2.6, receipt: "a/b#1"}]')
    assert checked(base) == []


def test_an_entry_that_is_not_needed(base: Base) -> None:
    """A reported bound that runs measure, or that the article does not have, is a problem."""
    more = 'bounds: [{bound: "widget<2.6", receipt: "a/b#1"}, {bound: "gear<3", receipt: "a/b#1"}]'
    article = written(base, '{widget: "<2.6"}', more=more)
    fails, passes = row(article, "2.5.1", "failed"), row(article, "2.6.0", "passed")
    recorded(base, fails, passes)
    messages = checked(base)
    assert any("runs measure `widget<2.6`: 2.5.1 | 2.6.0" in message for message in messages)
    assert any("`gear<3` is not a bound of this article" in message for message in messages)
    recorded(base, fails)
    assert len(checked(base)) == 1


def test_the_promise(base: Base) -> None:
    """The foot of a page counts what was run and measured, and leaves out what there is none of."""
    article = written(base, '{widget: "<2.6"}')
    fails = row(article, "2.5.1", "failed")
    recorded(base, fails)
    model = build_model(load_base(config.find(base.root)))
    text = promise(model, "en")
    assert "1 of 1 snippets" in text
    assert "0 of 1 version bounds were measured on both sides" in text
    assert "claims" not in text
    recorded(base, fails, row(article, "2.6.0", "passed"))
    assert "1 of 1 version bounds" in promise(build_model(load_base(config.find(base.root))), "en")


def test_the_first_card(base: Base) -> None:
    """It says between which versions a bound was measured, and what the oldest tried is."""
    article = written(base, '{widget: "<2.6"}')
    recorded(base, row(article, "2.5.1", "failed"), row(article, "2.6.0", "passed"))
    model = build_model(load_base(config.find(base.root)))
    shown = " ".join(map(str, lines(Frame(model, "en", "KB0001.md"), model.views[0])))
    assert "measured: 2.5.1 | 2.6.0" in shown
    assert "oldest widget tried: 2.5.1" in shown
    assert "newest" not in shown


def test_any_version(base: Base) -> None:
    """`*` is every version of a distribution that is installed, and no bound."""
    article = written(base, '{widget: "*"}')
    fails = row(article, "2.5.1", "failed")
    recorded(base, fails)
    assert bounds(article, fails) == {}
    assert checked(base) == []
    assert affects(article.matter.affected) == ()
    assert is_affected(article.matter.affected, fails.toolchain) is True
    without = Toolchain(python="3.11.7", packages={})
    assert is_affected(article.matter.affected, without) == MissingVersion("widget")
