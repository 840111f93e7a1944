"""Sentences, claims and receipts: what is actual in an article's prose, and `kbtools claims`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from examples import check, lay_out

from kbtools.articles.claims import Claim, Standing, claims, kinds_of, share
from kbtools.articles.parsing import Page, parse_page
from kbtools.articles.receipt_grammar import Kind, kind_of, url
from kbtools.articles.sentences import Sentence, sentences
from kbtools.cli import main
from kbtools.config import Config, decode

HEAD = '---\nid: KB0001\ntitle: "it fails"\nsummary: "Upgrade."\n---\n\n'


def config() -> Config:
    """The settings of a knowledge base with the usual sections."""
    return decode('[knowledge-base]\nname = "examples"\nprefix = "KB"\n', Path())


def page(body: str) -> Page:
    """A page with this text below its front matter, which has six lines."""
    return parse_page(HEAD + body, "kb/KB0001-it-fails.md", config())


def texts(body: str) -> list[str]:
    """The sentences of a text."""
    return [sentence.text for sentence in sentences(page(body))]


def single_sentence(body: str) -> Sentence:
    """The one sentence of a text."""
    [sentence] = sentences(page(body))
    return sentence


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("It fails. Then it works.", ["It fails.", "Then it works."]),
        ("Some compilers, e.g. gcc, i.e. that one, fail.", None),
        ("It fails with gcc, clang, etc. on Linux.", None),
        ("Call `x.y. Z()` first. `a` is next.", ["Call `x.y. Z()` first.", "`a` is next."]),
        ("Torch 2.4 and 2.5.1 fail.", None),
        ("Run `a`! Does it work? Good.", ["Run `a`!", "Does it work?", "Good."]),
        ("它失败了。然后它好了。", ["它失败了。", "然后它好了。"]),
        ("用 2.5。`a` 好了（见下。）再见", ["用 2.5。", "`a` 好了（见下。）", "再见"]),
        ("- a list. Of two\n- items\n", ["a list.", "Of two", "items"]),
        ("> A quote. Of two.\n", ["A quote.", "Of two."]),
        ("**Bold.** Plain.", ["Bold.", "Plain."]),
        ("One that\nis on\ntwo lines. Another.", ["One that is on two lines.", "Another."]),
        ("Read [a page. Here](https://x.org/a.b). Go.", ["Read a page. Here.", "Go."]),
    ],
)
def test_sentences(body: str, expected: list[str] | None) -> None:
    """A sentence ends at its stop: not in code, nor in a version, nor after an abbreviation."""
    if body.startswith("Read"):  # the text of a link is text, too
        expected = ["Read a page.", "Here.", "Go."]
    assert texts(body) == (expected or [body])


def test_row_is_a_sentence() -> None:
    """Each row of a table is one sentence, its cells apart; its head is none."""
    rows = list(sentences(page("| a | b |\n| --- | --- |\n| 1. x | Y. Z |\n| 2 | [r1] |\n")))
    assert [(row.text, row.line, row.is_row) for row in rows] == [
        ("1. x | Y. Z", 9, True),
        ("2 |", 10, True),
    ]
    assert [receipt.text for receipt in rows[1].receipts] == ["r1"]


def test_lines_of_sentences_and_receipts() -> None:
    """A sentence has the line on which it begins, a receipt the line that it is on."""
    actual = list(sentences(page("One. Two\nis long [r1]\nand ends [r2]. Three.\nFour.")))
    assert [(s.text, s.line) for s in actual] == [
        ("One.", 7),
        ("Two is long and ends.", 7),
        ("Three.", 9),
        ("Four.", 10),
    ]
    assert [(r.text, r.line) for r in actual[1].receipts] == [("r1", 8), ("r2", 9)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("It fails [r1].", [["r1"]]),
        ("It fails. [r1] Next one.", [["r1"], []]),
        ("It fails. [r1][a/b#2]\nNext one [KB0002/r1].", [["r1", "a/b#2"], ["KB0002/r1"]]),
        ("它失败 [r1]。好了。[r2]", [["r1"], ["r2"]]),
        ("See `[r1]` and [text [r1] here](https://x.org).", [["https://x.org"]]),
        ("See [r1](#fix), and [text][1].\n\n[1]: KB0002-x.md\n", [[]]),
        ("In a/b#12 it says so.", [["a/b#12"]]),
        ("As in [c/d@v1 src/__init__.py:3-9].", [["c/d@v1 src/__init__.py:3-9"]]),
        ("It fails:\n\n```python repro id=r7\nx\n```\n", [["r7"]]),
        ("It fails:\n\n```text\nx\n```\n", [[]]),
        ("Seen [r1]:\n\n| a |\n| --- |\n| x |\n| y [r2] |\n", [["r1"], ["r1"], ["r2", "r1"]]),
        ("Seen [r1]:\n\n- x\n\n| a |\n| --- |\n| y |\n", [["r1"], [], []]),
        ("Seen [r1].\n\n| a |\n| --- |\n| x |\n", [["r1"], []]),
        ("It fails.\n\n```python repro id=r7\nx\n```\n", [[]]),
    ],
)
def test_receipts_of_sentences(body: str, expected: list[list[str]]) -> None:
    """A receipt belongs to the sentence that it ends; code and links hold none."""
    actual = [[receipt.text for receipt in s.receipts] for s in sentences(page(body))]
    assert actual == expected


@pytest.mark.parametrize(
    ("text", "kind", "address"),
    [
        ("r1", Kind.SNIPPET, ""),
        ("KB0010/f2", Kind.SNIPPET, ""),
        ("a/b#12", Kind.THREAD, "https://github.com/a/b/issues/12"),
        ("a/b@1a2b3c4", Kind.THREAD, "https://github.com/a/b/commit/1a2b3c4"),
        ("a/b@v1.0 x/y.py", Kind.SOURCE, "https://github.com/a/b/blob/v1.0/x/y.py"),
        ("a/b@v1 y.py:7", Kind.SOURCE, "https://github.com/a/b/blob/v1/y.py#L7"),
        ("a/b@v1 y.py:7-9", Kind.SOURCE, "https://github.com/a/b/blob/v1/y.py#L7-L9"),
        ("inferred", Kind.INFERRED, ""),
        ("a/b@v1.0", Kind.SOURCE, "https://github.com/a/b/tree/v1.0"),
        ("a/b@ x.py", Kind.MALFORMED, ""),
        ("a/b#0", Kind.MALFORMED, ""),
        ("https://x.org", Kind.PAGE, "https://x.org"),
        ("http://x.org", Kind.MALFORMED, ""),
        ("sic", None, ""),
        ("grid", None, ""),
        ("0, 1", None, ""),
    ],
)
def test_kind_of_a_receipt(text: str, kind: Kind | None, address: str) -> None:
    """A text in brackets is a receipt by its form alone, and leads to an address on the host."""
    assert kind_of(text) == kind
    assert url(text) == address


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Torch 2.4 and 2.5 give the function up.", "version"),
        ("It needs Python 3.11.", "version"),
        ("It is fixed in CUDA 13 and newer.", "version"),
        ("Newer releases call it something else.", "version"),
        ("It broke on 2026-01-31.", "date"),
        ("The reports of April 2025 are about it.", "date"),
        ("A block has at most 1024 threads.", "limit"),
        ("A thread may have up to 255 registers.", "limit"),
        ("The default is `8`.", "default"),
        ("It is off by default.", "default"),
        ("The option is called `recompile_limit`.", "wording"),
        ("The message says which one.", "wording"),
        ("It then prints `None`.", "wording"),
        ("A tensor's values are never guarded.", "absolute"),
        ("Only the first call compiles.", "absolute"),
        ("If it is there, it is always used.", "absolute"),
        ("2.4 版会放弃整个函数。", "version"),
        ("新版里已经没有。", "version"),
        ("2025 年 4 月的报告。", "date"),
        ("一个 block 最多 1024 个线程。", "limit"),
        ("默认是关闭的。", "default"),
        ("这个选项叫做 `recompile_limit`。", "wording"),
        ("报错信息里写着是哪一个。", "wording"),
        ("张量的值从来不加 guard。", "absolute"),
        ("只有第一次调用才编译。", "absolute"),
    ],
)
def test_claim(text: str, kind: str) -> None:
    """A sentence that states something a reader relies on is a claim of that kind."""
    assert kind in kinds_of(single_sentence(text))


@pytest.mark.parametrize(
    "text",
    [
        "The kernel reads the tensor.",
        "It took 3.2 s on that machine.",
        "A run of 0.609 is enough.",
        "If a name only serves to look something up, look it up before the call.",
        "Never pass a list.",
        "Do not use it only because it is there.",
        "Is it 2.5 or newer?",
        "`x = 2.5` is what it reads.",
        "The function is called once.",
        "It is there only to save memory.",
        "kernel 读取张量。",
        "如果只有一个，就这么做。",
        "不要总是这样调用。",
    ],
)
def test_no_claim(text: str) -> None:
    """Advice, questions, conditions, durations and code state nothing that needs a receipt."""
    assert kinds_of(single_sentence(text)) == ()


ARTICLE = """## Symptom

It fails since 2.4. | not a table

| since | what |
| --- | --- |
| 2.4 | it fails |

## Root cause

It fails in 2.4 [r1]. It fails in 2.5 [inferred]. It fails in 2.6 [a/b#x].

It always fails in 2.7:

```python repro id=r1
raise SystemExit("it fails")
```
"""


def of_article(body: str = ARTICLE) -> list[Claim]:
    """The claims of an article."""
    return list(claims(page(body), config()))


def test_standing_of_claims() -> None:
    """A claim is sourced, inferred or bare; of the symptom only tables are looked at."""
    actual = [(c.section, c.text, c.standing) for c in of_article()]
    assert actual == [
        ("Symptom", "2.4 | it fails", Standing.BARE),
        ("Root cause", "It fails in 2.4.", Standing.SOURCED),
        ("Root cause", "It fails in 2.5.", Standing.INFERRED),
        ("Root cause", "It fails in 2.6.", Standing.BARE),
        ("Root cause", "It always fails in 2.7:", Standing.SOURCED),
    ]
    total = share(of_article())
    assert (total.claims, total.sourced, total.inferred, total.bare) == (5, 2, 1, 2)
    assert total.percent == 40
    assert share([]).percent == 100


SOUND = """---
id: KB0001
title: "error: it fails"
summary: "Upgrade."
components: [triton]
stage: runtime
severity: crash
signatures:
  - literal: "it fails"
---

## Symptom

It fails.

```python repro id=r1
raise SystemExit("it fails")
```

## Fix

Version 3.1 has the fix. The option is new in 2.9 [f1].

```python fix id=f1
print("sound")
```
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The folder of a knowledge base with two claims, one of them bare."""
    lay_out("kb320-receipt", tmp_path)
    for file in (tmp_path / "kb").glob("*.md"):
        file.unlink()
    (tmp_path / "kb" / "KB0001-it-fails.md").write_text(SOUND, "utf-8")
    return tmp_path


def test_notice_of_check(base: Path) -> None:
    """Check names the line of a bare claim and says what to write; it is no problem."""
    code, text = check(base)
    assert code == 0
    assert "kb/KB0001-it-fails.md:22: no receipt (version): “Version 3.1 has the fix.”" in text
    assert "end it with [r1] (a snippet), [owner/repo#12], [owner/repo@tag path], a link" in text
    assert "2.9" not in text
    assert text.endswith("1 file checked, no problems\n")


def test_many_bare_claims_are_counted(base: Path) -> None:
    """Where more than ten claims are bare, check prints their number and where to see them."""
    file = base / "kb" / "KB0001-it-fails.md"
    file.write_text(SOUND.replace("Version 3.1", "It is 3.0. " * 10 + "Version 3.1"), "utf-8")
    code, text = check(base)
    assert code == 0
    assert text.splitlines()[0] == (
        "11 claims in 1 article have no receipt; see: kbtools claims --bare"
    )


def run(base: Path, *words: str) -> str:
    """What `kbtools claims` prints."""
    result = CliRunner().invoke(main, ["-C", str(base), "claims", *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_claims_command(base: Path) -> None:
    """`kbtools claims` lists each claim with its line and what stands behind it, and the share."""
    text = run(base, "KB0001")
    assert "KB0001  1 of 2 claims have a receipt (50 %), 1 bare" in text
    assert "    22  Version 3.1 has the fix.\n        version: no receipt" in text
    assert "    22  The option is new in 2.9.\n        version: [f1]" in text
    assert text.endswith("1 article: 1 of 2 claims have a receipt (50 %), 1 bare\n")
    assert "2.9" not in run(base, "--bare")


def test_claims_command_for_programs(base: Path) -> None:
    """`--json` has the share, and every claim with its place, its kinds and its receipts."""
    value = json.loads(run(base, "--json"))
    assert value["share"] == {"claims": 2, "sourced": 1, "inferred": 0, "bare": 1}
    assert value["claims"][1] == {
        "article": "KB0001",
        "path": "kb/KB0001-it-fails.md",
        "line": 22,
        "section": "Fix",
        "text": "The option is new in 2.9.",
        "kinds": ["version"],
        "standing": "sourced",
        "receipts": [{"kind": "snippet", "text": "KB0001/f1", "url": "KB0001/logs/#f1"}],
    }


def test_claims_of_an_unknown_article(base: Path) -> None:
    """An id that no article has is named, and the exit code is 2."""
    result = CliRunner().invoke(main, ["-C", str(base), "claims", "KB0404"])
    assert result.exit_code == 2
    assert "no article `KB0404`" in result.output


def test_a_new_base_shows_how(tmp_path: Path) -> None:
    """The first article of `kbtools init` has a claim with its receipt, and check has no notice."""
    words = ["init", str(tmp_path / "new"), "--name", "examples", "--prefix", "TRY"]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert check(tmp_path / "new") == (0, "1 file checked, no problems\n")
    value = json.loads(run(tmp_path / "new", "--json"))
    assert value["share"] == {"claims": 1, "sourced": 1, "inferred": 0, "bare": 0}
