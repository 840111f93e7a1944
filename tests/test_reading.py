"""Markdown → fences and snippets: what is run, from which line, and when it counts as edited."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbtools.articles.decoding import decode_snippets, parse_affected
from kbtools.articles.model import Snippet
from kbtools.articles.parsing import ArticleError, Fence, Page, parse_page, read_page
from kbtools.config import Config, decode

CONFIG: Config = decode('[knowledge-base]\nname = "a"\nprefix = "KB"\n', Path())
HEAD = "---\nid: KB0001\n---\n"


def page(text: str) -> Page:
    """A page with front matter of three lines and this text."""
    return parse_page(HEAD + text, "kb/KB0001-a.md", CONFIG)


def fence(text: str) -> Fence:
    """The only fence of a text."""
    [fence] = page(text).fences
    return fence


def snippet(text: str) -> Snippet:
    """The only snippet of a text."""
    [snippet] = decode_snippets(page(text), "KB0001")
    return snippet


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("```python repro\na = 1\nb = 2\n```\n", 5),
        ("   ```python repro\n   a = 1\n   b = 2\n   ```\n", 5),
        ("~~~python repro\na = 1\nb = 2\n~~~\n", 5),
        ("`````python repro\na = 1\nb = 2\n``````\n", 5),
        ("- item\n\n  ```python repro\n  a = 1\n  b = 2\n  ```\n", 7),
        ("12. item\n    ```python repro\n    a = 1\n    b = 2\n    ```\n", 6),
        ("- a\n  - b\n\n    ```python repro\n    a = 1\n    b = 2\n    ```\n", 8),
        ("> ```python repro\n> a = 1\n> b = 2\n> ```\n", 5),
        ("> - ```python repro\n>   a = 1\n>   b = 2\n>   ```\n", 5),
        ("<details>\n\n```python repro\na = 1\nb = 2\n```\n\n</details>\n", 7),
        ("text\n```python repro\na = 1\nb = 2\n```\ntext", 6),
        ("```python repro\r\na = 1\r\nb = 2\r\n```\r\n", 5),
    ],
    ids=[
        *("plain", "indented", "tilde", "longer", "in-list", "in-wide-list", "in-nested-list"),
        *("in-quotation", "in-list-in-quotation", "in-html", "in-paragraph", "crlf"),
    ],
)
def test_fence_is_a_snippet(text: str, line: int) -> None:
    """Wherever a fence stands, its code is without the marks around it, and its line is right."""
    assert fence(text).closed
    joined = snippet(text)
    assert (joined.code, joined.place.line) == ("a = 1\nb = 2\n", line)
    assert joined.source.split("\n")[line - 1 :] == ["a = 1", "b = 2", ""]


@pytest.mark.parametrize(
    "text",
    [
        "```python repro\na = 1\n",
        "```python repro\na = 1\n    ```",
        "```python repro\na = 1\n> ```\n",
        "````python repro\na = 1\n```\n",
        "~~~python repro\na = 1\n```\n",
        "```python repro\na = 1\n``` end\n",
        "- ```python repro\n  a = 1\n\ntext\n",
        "> ```python repro\n> a = 1\n\ntext\n",
        "```python repro",
    ],
)
def test_fence_is_not_closed(text: str) -> None:
    """What only looks like the end of a fence does not close it."""
    assert not fence(text).closed


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("````python fix\n```\ninner\n```\n````\n", "```\ninner\n```\n"),
        ("~~~python fix\n```\n~~~\n", "```\n"),
        ("```python fix\n    indented\n\n\n```\n", "    indented\n\n\n"),
        ("- ```python fix\n    two more\n  ```\n", "  two more\n"),
        ("```python fix\n\tTab\n```\n", "\tTab\n"),
        ("```python fix\n```\n", ""),
    ],
)
def test_code_is_kept(text: str, code: str) -> None:
    """Inner fences, blank lines, tabs and deeper indentation are code."""
    assert snippet(text).code == code


@pytest.mark.parametrize(
    ("info", "runs"),
    [
        ("", False),
        ("python", False),
        ('python title="it\'s prose"', False),
        ("python hl_lines=1", False),
        ("text", False),
        ("text whatever", False),
        ("c++ main", False),
        ("python repro", True),
        ("python repor", True),
        ("python id=r1", True),
        ('python title="x" id=r1', True),
        ("pyton repro", True),
        ("text repro", True),
        ("repro", True),
        ("repro python", True),
        ("cuda requires=nvcc", True),
    ],
)
def test_prose_or_snippet(info: str, runs: bool) -> None:
    """A fence with no role is prose; one with a role, a wrong one or a key of ours is run."""
    assert fence(f"```{info}\nx\n```\n").runs is runs


def test_info_string_is_split_as_a_shell_does() -> None:
    """Quotes hold blanks and other quotes, and a bare word is a key without a value."""
    text = '```bash fix env="A=\'1 2\' B=3" tool=\'x --y "z"\' sm=">=9.0" flaky\ntrue\n```\n'
    assert fence(text).keys == {
        "env": "A='1 2' B=3",
        "tool": 'x --y "z"',
        "sm": ">=9.0",
        "flaky": "",
    }
    assert snippet(text).env == {"A": "1 2", "B": "3"}


def test_affected_of_a_fence() -> None:
    """A fence may say where it fails: conditions joined by `;`, or always."""
    text = '```python repro affected="torch>=2.7,<2.8; flash-attn != 2.7.*;sm==9.0"\nx\n```\n'
    assert snippet(text).affected == (
        {"torch": ">=2.7,<2.8", "flash-attn": "!= 2.7.*", "sm": "==9.0"},
    )
    assert snippet(
        text.replace("torch>=2.7,<2.8; flash-attn != 2.7.*;sm==9.0", "always")
    ).affected == ({},)


def test_ids() -> None:
    """A snippet without an id is named for its role and its number among those of the role."""
    infos = ("python repro", "bash fix", "python repro id=x", "python repro")
    text = "".join(f"```{info}\n```\n" for info in infos)
    assert [snippet.name for snippet in decode_snippets(page(text), "KB0001")] == [
        *("KB0001/repro1", "KB0001/fix1", "KB0001/x", "KB0001/repro3")
    ]


def test_gpus() -> None:
    """`requires` says how many GPUs a snippet gets."""
    count = {"cpu": 0, "compile": 0, "nvcc": 0, "gpu": 1, "gpus:1": 1, "gpus:2": 2, "gpus:8": 8}
    text = "```python repro requires={}\n```\n"
    assert {word: snippet(text.format(word)).gpus for word in count} == count
    alone = {word for word in count if snippet(text.format(word)).alone}
    assert alone == {"gpus:1"}, "with the others it may have to share"


AFTER = """\
# Prose

```python repro id=r0
a = 1
```

Prose.

```python fix id=f1 after=r0
b = a
```

```python fix id=f2 after=f1
c = b
```
"""


def test_after() -> None:
    """A snippet that continues others is one file with them, every line at its own number."""
    _, _, last = decode_snippets(page(AFTER), "KB0001")
    assert [part.id for part in last.before] == ["r0", "f1"]
    lines = last.source.splitlines()
    assert {i: line for i, line in enumerate(lines, 1) if line} == {
        7: "a = 1",
        13: "b = a",
        17: "c = b",
    }


def digest(text: str) -> str:
    """The digest of the last snippet of a text."""
    return decode_snippets(page(text), "KB0001")[-1].digest


ONE = '```python repro id=r1 env="A=1" tool="strace -f"\nx = 1\n```\n'


@pytest.mark.parametrize(
    "moved",
    [
        "More prose.\n\n" + ONE,
        "- item\n\n" + "".join(f"  {line}\n" for line in ONE.splitlines()),
        ONE.replace("```", "~~~"),
        ONE.replace("\n", "\r\n"),
        ONE.replace("id=r1", "id=r2"),
        ONE.replace("repro", "deadend"),
        ONE.replace("id=r1", "id=r1 timeout=9 fails=timeout"),
        ONE.replace("id=r1", 'id=r1 affected="torch<2" sm=">=8.0"'),
        ONE.replace('"A=1"', "A=1"),
    ],
)
def test_digest_stays(moved: str) -> None:
    """Moving a snippet, or changing what is claimed of it, leaves its evidence valid."""
    assert moved != ONE
    assert digest(moved) == digest(ONE)


@pytest.mark.parametrize(
    "edited",
    [
        ONE.replace("x = 1", "x = 2"),
        ONE.replace("x = 1", "x = 1 "),
        ONE.replace("x = 1", "x = 1\n"),
        ONE.replace("A=1", "A=2"),
        ONE.replace("A=1", "A=1 B=2"),
        ONE.replace("A=1", "B=1"),
        ONE.replace("strace -f", "strace"),
        ONE.replace("python", "bash"),
        ONE.replace("id=r1", "id=r1 requires=gpu"),
    ],
)
def test_digest_changes(edited: str) -> None:
    """Editing the code, its environment, its tool, its language or its needs voids its evidence."""
    assert digest(edited) != digest(ONE)


def test_digest_of_what_continues() -> None:
    """Editing a snippet voids the evidence of those that continue it, moving them does not."""
    assert digest(AFTER.replace("a = 1", "a = 2")) != digest(AFTER)
    assert digest(AFTER.replace("Prose.", "Prose.\n\nMore of it.")) == digest(AFTER)
    assert digest(AFTER) != digest(AFTER.replace("id=f2 after=f1", "id=f2"))


def test_only_newlines_end_a_line() -> None:
    """A form feed or a Unicode line separator within a string is code, and moves no line."""
    code = 'text = "a\x0cb\u2028c\x85d"\nassert len(text) == 7\n'
    parsed = snippet(f"```python fix\n{code}```\n")
    assert parsed.source == "\n" * 4 + code


def test_bytes_of_a_file(tmp_path: Path) -> None:
    """A byte order mark and CRLF are no part of the text; what is not UTF-8 breaks the page."""
    file = tmp_path / "KB0001-a.md"
    file.write_bytes(b"\xef\xbb\xbf---\r\nid: KB0001\r\n---\r\n\r\n```python repro\r\nx\r\n```\r\n")
    page = read_page(file, CONFIG)
    assert page.matter == {"id": "KB0001"}
    assert page.broken == ()
    assert [(fence.line, fence.code) for fence in page.fences] == [(5, "x\n")]
    file.write_bytes(b"---\nid: \xff\n---\n")
    page = read_page(file, CONFIG)
    assert page.matter == {}
    assert [(invalid.line, invalid.why) for invalid in page.broken] == [
        (2, "the byte 0xFF is not UTF-8")
    ]


def test_missing_file(tmp_path: Path) -> None:
    """What the system cannot read is named."""
    with pytest.raises(ArticleError, match=r"KB0404-gone\.md.*No such file"):
        read_page(tmp_path / "KB0404-gone.md", CONFIG)


MATTER = """\
---
# first
id: KB0001
signatures:

  - literal: a
    regex: >-
      b
  - {literal: c,
     near: d}
---
"""


def test_lines_of_keys() -> None:
    """The line of every key is known, nested ones and those of flow style too."""
    page = parse_page(MATTER, "kb/KB0001-a.md", CONFIG)
    lines = {
        "id": 3,
        "signatures": 4,
        "signatures[0].literal": 6,
        "signatures[0].regex": 7,
        "signatures[1].literal": 9,
        "signatures[1].near": 10,
        "signatures[1].regex": 9,
        "signatures[2].regex": 4,
        "signatures[0][...]": 6,
        "absent": 1,
        "absent[0].too": 1,
    }
    assert {key: page.line_of(key) for key in lines} == lines


@pytest.mark.parametrize(
    ("matter", "line"),
    [
        ("title: a\nid: [KB0001", 4),
        ("title: a\n\tid: b", 3),
        ("title: a\nid: 'b\x07'", 3),
        ("title: a\ntitle: b", 3),
        ("a: 0x_", 1),
        ("- a", 1),
        ("", 1),
        ("? [a]\n: b", 2),
        ("a: &x [*x]", 1),
    ],
)
def test_front_matter_that_is_none(matter: str, line: int) -> None:
    """Front matter that cannot be a mapping of keys to values is broken, and says on which line."""
    page = parse_page(f"---\n{matter}\n---\n", "kb/KB0001-a.md", CONFIG)
    assert page.broken
    assert page.broken[0].line == line


def test_headings() -> None:
    """A section is a heading of level two, of either style, outside lists, quotes and fences."""
    text = "## One ##\n\nTwo\n---\n\n# no\n\n### no\n\n> ## no\n\n- ## no\n\n```\n## no\n```\n"
    assert [(h.text, h.line) for h in page(text).headings] == [("One", 4), ("Two", 6)]


def test_absent_distributions() -> None:
    """Conditions joined by `;`: ranges, and what must not be there."""
    text = "torch>=2.7,<2.8; nvidia-cuda-runtime-cu12 absent ; python ~= 3.11"
    conditions = {"torch": ">=2.7,<2.8", "nvidia-cuda-runtime-cu12": "absent", "python": "~= 3.11"}
    assert parse_affected(text) == (conditions,)
    for invalid in ("torchabsent", "torch", "absent", "torch absent 2"):
        with pytest.raises(ValueError, match="is not a name and a version"):
            parse_affected(invalid)
