"""`needs`: what must be there to run a snippet, and nothing that it says about the failure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from bases import Base, fence
from examples import check

from kbtools.articles.model import ALWAYS, Keys, Place, Role, Snippet
from kbtools.articles.needs import joined, parse_needs
from kbtools.checks.base import load_base
from kbtools.config import find
from kbtools.evidence.verdicts import Expectation, expect
from kbtools.site.data import api
from kbtools.site.generate import tree
from kbtools.site.model import build_model
from kbtools.toolchains.model import Toolchain

HERE = Toolchain("3.11.7", {"torch": "2.13.0+cpu", "triton": "3.7.1"}, programs=("ptxas",))
FAILS = fence("python repro id=r1", 'raise OSError("the failure")')
FIX = fence("python fix id=f1", "assert True")


def snippet(needs: dict[str, str], role: Role = Role.REPRO) -> Snippet:
    """A snippet with these needs."""
    place = Place("kb/KB0001-a.md", 7)
    return Snippet("KB0001", "r1", role, "python", "x\n", place, Keys(), ALWAYS, needs=needs)


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("torch", {"torch": "*"}),
        ("torch *", {"torch": "*"}),
        ("torch>=2.4,<2.8, bin:cuobjdump", {"torch": ">=2.4,<2.8", "bin:cuobjdump": "*"}),
        ("torch >= 2.4 , < 2.8", {"torch": ">= 2.4,< 2.8"}),
        ("flash-attn==2.*; bin:nsys", {"flash-attn": "==2.*", "bin:nsys": "*"}),
        ("bin:g++", {"bin:g++": "*"}),
    ],
)
def test_parse(text: str, needs: dict[str, str]) -> None:
    """A fence's needs are names joined by commas; a range may have commas of its own."""
    assert parse_needs(text) == needs


@pytest.mark.parametrize("text", ["", "torch 2.4", ">=2.4", "torch, ", "torch, torch<3", "a b"])
def test_parse_nonsense(text: str) -> None:
    """What is not a name and a range is refused."""
    with pytest.raises(ValueError, match="`"):
        parse_needs(text)


def test_joined() -> None:
    """A fence's needs add to the article's: a version must satisfy both ranges."""
    both = joined({"torch": ">=2.4", "triton": "*"}, {"torch": "<3", "triton": ">=2", "numpy": "*"})
    assert both == {"torch": ">=2.4,<3", "triton": ">=2", "numpy": "*"}
    assert joined({"torch": ">=2.4"}, {"torch": ">=2.4"}) == {"torch": ">=2.4"}


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        ({"torch": "*", "triton": ">=3.7", "python": ">=3.9", "bin:ptxas": "*"}, ""),
        ({"Torch": ">=2.13"}, ""),
        ({"numpy": "*"}, "needs numpy, not here"),
        ({"numpy": ">=2"}, "needs numpy >=2, not here"),
        ({"torch": "<2.8"}, "needs torch <2.8, this is 2.13.0+cpu"),
        ({"python": ">=3.12"}, "needs python >=3.12, this is 3.11.7"),
        ({"bin:cuobjdump": "*"}, "needs the program cuobjdump, none on the PATH"),
        ({"cuda": ">=12"}, "needs cuda >=12, not here"),
    ],
)
def test_unmet(needs: dict[str, str], reason: str) -> None:
    """Whatever its role, a snippet whose needs are unmet is skipped and says what it needs."""
    for role in Role:
        expected = expect(snippet(needs, role), HERE)
        assert (expected.what == "skip") is bool(reason)
        assert not reason or expected.reason == reason
    met = Expectation("fails", "this toolchain is affected: every toolchain")
    assert reason or expect(snippet(needs), HERE) == met


def test_a_nightly_on_the_boundary() -> None:
    """Whether a nightly has what its release has would be a guess: the snippet is skipped."""
    nightly = Toolchain("3.11.7", {"torch": "2.14.0.dev20260401"})
    assert expect(snippet({"torch": ">=2.14"}), nightly).what == "skip"
    assert expect(snippet({"torch": ">=2.13"}), nightly).what == "fails"


def test_what_was_recorded_did_run() -> None:
    """Evidence does not say which programs were there: a run that was made had what it needs."""
    recorded = msgspec.structs.replace(HERE, programs=None)
    assert expect(snippet({"bin:cuobjdump": "*"}), recorded).what == "fails"
    assert recorded.identity == HERE.identity


def test_verify(base: Base) -> None:
    """`needs` of article and fence decide what is run; evidence outlives a change of them."""
    base.article(FAILS, FIX, matter='needs: {click: "*"}')
    assert base.kbtools("verify", "--record").code == 0
    assert check(base.root)[0] == 0
    file = base.root / "evidence" / "KB0001.jsonl"
    rows = list(map(json.loads, file.read_text("utf-8").splitlines()))
    assert len(rows) == 2 and all("programs" not in row["toolchain"] for row in rows)
    base.article(
        FAILS,
        fence('python fix id=f1 needs="no-such-thing>=2, bin:no-such-program"', "assert True"),
        matter='needs: {click: ">=1"}',
    )
    done = base.kbtools("verify", "-v")
    assert done.code == 0 and "needs no-such-thing >=2, not here" in done.out
    assert "reproduced     KB0001/r1" in done.out
    listed = base.kbtools("list")
    assert "reproduced" in listed.out


def test_programs_are_looked_up(base: Base) -> None:
    """A program that `programs` names is looked up on the PATH that snippets get."""
    config = base.root / "kbtools.toml"
    config.write_text(config.read_text("utf-8") + '\n[toolchain]\nprograms = ["sh", "no-sh"]\n')
    base.article(
        fence("python repro id=r1 needs=bin:sh", 'raise OSError("the failure")'),
        fence("python fix id=f1 needs=bin:no-sh", "assert True"),
    )
    done = base.kbtools("verify", "-v")
    assert "reproduced     KB0001/r1" in done.out
    assert "needs the program no-sh, none on the PATH" in done.out


def test_schema(base: Base) -> None:
    """The JSON Schema for editors knows `needs` as a mapping of names to texts."""
    schema = json.loads(base.kbtools("schema").out)
    form = schema["$defs"]["FrontMatter"]["properties"]["needs"]
    assert form["additionalProperties"] == {"type": "string"}


def test_diagnosis(base: Base, tmp_path: Path) -> None:
    """What an article needs never makes a reader's versions "not affected"."""
    base.article(FAILS, FIX, literal="the failure", matter='needs: {torch: ">=2.4"}')
    log = tmp_path / "log"
    log.write_text("torch==2.3.1\nOSError: the failure\n")
    done = base.kbtools("diagnose", "--json", str(log))
    [match] = json.loads(done.out)["matches"]
    assert match["affected"] == "affected"


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("[run.compile-needs]\nnowhere = '*'", "needs nowhere, not here"),
        ("[run.compile-needs]\nclick = '*'", "ran to its end"),
        ("", "ran to its end"),
    ],
)
def test_what_compiling_needs(new_base: Callable[..., Base], table: str, reason: str) -> None:
    """`[run.compile-needs]` adds to the needs of what compiles; without it nothing is needed."""
    base = new_base(table)
    base.article(FAILS, fence("python control id=c1 requires=compile", "pass"))
    assert base.verify().result("KB0001/c1")["reason"] == reason


def test_site(base: Base) -> None:
    """The page says what its snippets need, in words, and offers no range as affected."""
    base.article(
        FAILS,
        fence('python fix id=f1 needs="click, bin:sh"', "assert True"),
        matter='needs: {click: ">=1", pluggy: "*"}',
    )
    model = build_model(load_base(find(base.root)))
    page = dict(tree(model))["KB0001.md"].decode()
    assert "The snippets need click &gt;=1, pluggy. Without that they are skipped." in page
    assert "(needs click, the program sh)" in page
    assert "No version decides" in page
    document = api.document(model, model.by_id["KB0001"])
    assert [snippet.needs for snippet in document.snippets] == [
        {"click": ">=1", "pluggy": "*"},
        {"click": ">=1", "pluggy": "*", "bin:sh": "*"},
    ]
