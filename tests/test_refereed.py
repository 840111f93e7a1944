"""`refereed`: who did not write an article has read it; when, against what, and which words."""

from __future__ import annotations

import datetime
import re

import pytest
from bases import Base, fence
from examples import check

from kbtools import config
from kbtools.articles.refereed import with_referee
from kbtools.checks.base import load_base
from kbtools.site.generate import tree
from kbtools.site.model import build_model

FAILS = fence("python repro id=r1", 'raise OSError("the failure")')
FIX = fence("python fix id=f1", "assert True")
AGAINST = 'torch 2.13.0 sources, "pytorch/pytorch#123"'


def rendered(base: Base) -> dict[str, str]:
    """Path of each page of the site → its Markdown."""
    model = build_model(load_base(config.find(base.root)))
    return {path: content.decode() for path, content in tree(model) if path.endswith(".md")}


def test_command(base: Base) -> None:
    """`referee` writes the day, the edition and the sources; a change of words gives a notice."""
    base.article(FAILS, FIX)
    file = next((base.root / "kb").iterdir())
    done = base.kbtools("referee", "KB0001")
    assert done.code == 1 and "KB0001 was not refereed; next: kbtools referee KB0001" in done.out
    assert base.kbtools("referee", "KB0001", "--against", AGAINST).code == 0
    text = file.read_text("utf-8")
    today = datetime.datetime.now(datetime.UTC).date()
    assert re.search(
        rf'^refereed: {{date: {today}, edition: "[0-9a-f]{{12}}", against: ', text, re.M
    )
    assert check(base.root) == (0, "1 file checked, no problems\n")
    done = base.kbtools("referee", "KB0001")
    assert (done.code, done.out) == (0, f"KB0001 was refereed on {today} against {AGAINST}\n")

    file.write_text(text.replace("assert True", "assert 1"), "utf-8")  # no words
    assert "since it was refereed" not in check(base.root)[1]
    file.write_text(text.replace("Do it right.", "Do it otherwise."), "utf-8")
    code, printed = check(base.root)
    assert code == 0 and f"its words have changed since it was refereed, {today}" in printed
    assert "::notice file=kb/" in base.kbtools("check", "--github").out
    done = base.kbtools("referee", "KB0001")
    assert done.code == 1 and "its words have changed since" in done.out

    assert base.kbtools("referee", "KB0001", "--against", "its thread").code == 0
    assert file.read_text("utf-8").count("refereed:") == 1
    assert "since it was refereed" not in check(base.root)[1]


def test_command_refuses(base: Base) -> None:
    """An article that does not exist and empty sources are errors of the call."""
    base.article(FAILS, FIX)
    assert base.kbtools("referee", "KB0009", "--against", "x").code == 2
    assert base.kbtools("referee", "KB0001", "--against", " ").code == 2


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=repr)
def test_where_it_is_written(end: str) -> None:
    """A value on several lines is replaced whole; what else the file holds stays."""
    old = (
        "---\nid: X\nrefereed:\n  date: 2020-01-01\n  against: old\nstage: a\n---\n\nrefereed: no\n"
    )
    new = with_referee(old.replace("\n", end), "0" * 12, datetime.date(2026, 1, 31), "a\nb")
    line = 'refereed: {date: 2026-01-31, edition: "000000000000", against: "a b"}\n'
    assert new.replace(end, "\n") == f"---\nid: X\n{line}stage: a\n---\n\nrefereed: no\n"


def test_site(base: Base) -> None:
    """The article has it in a line, and a page lists what was read, changed since, and never."""
    for number in (1, 2, 3):
        base.article(FAILS, FIX, number=number)
    for number in (1, 2):
        base.kbtools("referee", f"KB000{number}", "--against", AGAINST)
    changed = next((base.root / "kb").glob("KB0002*"))
    changed.write_text(changed.read_text("utf-8").replace("Do it right.", "No."), "utf-8")
    pages = rendered(base)
    listed = pages["refereed.md"]
    assert "1 of 3 articles have been read in the words that they have now." in listed
    assert listed.count("the words have changed since") == 1
    assert "Read by nobody but the author (1)" in listed
    today = datetime.datetime.now(datetime.UTC).date()
    assert f"on {today} by somebody who did not write it." in pages["KB0001.md"]
    assert "did not write it; the words have changed since." in pages["KB0002.md"]
    assert "did not write it" not in pages["KB0003.md"]
