"""`kbtools check` on every example of `tests/problems`: the rules, their words, their lines."""

from __future__ import annotations

import codecs
import itertools
import re
import subprocess
from pathlib import Path

import pytest
from bases import KBTOOLS
from click.testing import CliRunner
from examples import EXAMPLES, PROBLEMS, check, golden, lay_out

from kbtools.checks.base import check_base, load_base, readable_articles
from kbtools.checks.rules import RULES
from kbtools.cli import main


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path) -> None:
    """Of an example, check prints exactly the text beside it, and fails iff it finds a problem."""
    lay_out(name, tmp_path)
    code, text = check(tmp_path)
    assert text == golden(PROBLEMS / f"{name}.expected", text)
    assert code == (0 if "no problems" in text else 1)


@pytest.mark.parametrize("name", EXAMPLES)
def test_name_says_what_happens(name: str) -> None:
    """An example triggers the rule that it is named for; one named `sound…` triggers none."""
    text = (PROBLEMS / f"{name}.expected").read_text("utf-8")
    rule = name.partition("-")[0]
    if rule == "sound":
        assert "no problems" in text
    elif rule != "several":
        assert f": {rule.upper()} " in text


def test_every_rule_has_an_example() -> None:
    """No rule is without an example that breaks it, and no golden without its example."""
    named = {name.partition("-")[0].upper() for name in EXAMPLES}
    assert {rule.code for rule in RULES} - named == set()
    assert {file.stem for file in PROBLEMS.glob("*.expected")} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_file_from_windows(name: str, tmp_path: Path) -> None:
    """With CRLF line ends and a byte order mark the same problems are on the same lines."""
    config = lay_out(name, tmp_path)
    for file in config.articles.glob("*.md"):
        file.write_bytes(file.read_text("utf-8").replace("\n", "\r\n").encode("utf-8-sig"))
    _, text = check(tmp_path)
    assert text == (PROBLEMS / f"{name}.expected").read_text("utf-8")


@pytest.mark.parametrize("name", EXAMPLES)
def test_last_line_without_end(name: str, tmp_path: Path) -> None:
    """Whether the last line of a file is ended makes no difference."""
    config = lay_out(name, tmp_path)
    for file in config.articles.glob("*.md"):
        file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    _, text = check(tmp_path)
    assert text == (PROBLEMS / f"{name}.expected").read_text("utf-8")


@pytest.mark.parametrize("name", [name for name in EXAMPLES if not name.startswith("sound")])
def test_source_line(name: str, tmp_path: Path) -> None:
    """The line that is shown below a message is the line that it names."""
    lay_out(name, tmp_path)
    checked = 0
    printed = (PROBLEMS / f"{name}.expected").read_text("utf-8").splitlines()
    for head, below in itertools.pairwise(printed):
        if below.startswith("  | "):
            path, number, _ = head.split(":", 2)
            lines = (tmp_path / path).read_text("utf-8").splitlines()
            assert lines[int(number) - 1].strip() == below.removeprefix("  | ")
            checked += 1
        elif head.startswith("kb/"):  # no source line: an empty line of the file
            path, number, _ = head.split(":", 2)
            lines = (tmp_path / path).read_text("utf-8").splitlines()
            assert not lines[int(number) - 1].strip()
            checked += 1
    assert checked == sum(line.startswith("  help: ") for line in printed)


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_keeps_an_article_from_being_run(name: str, tmp_path: Path) -> None:
    """Before a run the fatal rules find what they find in `check`, and the rest finds nothing."""
    base = load_base(lay_out(name, tmp_path))
    fatal = {rule.code for rule in RULES if rule.fatal}
    expected = tuple(problem for problem in check_base(base) if problem.rule in fatal)
    articles, problems = readable_articles(base)
    assert problems == expected
    broken = {problem.place.path for problem in expected}
    assert [a.path for a in articles] == [a.path for a in base.articles if a.path not in broken]


def test_rules_say_which_of_them_are_fatal() -> None:
    """`kbtools rules` marks the rules without which no article is run, and only those."""
    printed = CliRunner().invoke(main, ["rules"]).output
    marked = [
        code
        for code, page in re.findall(r"(?ms)^(KB\d+)(.*?)(?=^KB|\Z)", printed)
        if "It is fatal" in page
    ]
    pages = [f"KB00{number}" for number in range(1, 10)]
    assert marked == [*pages, "KB103", "KB201", "KB301", "KB306"]


def test_a_single_file(tmp_path: Path) -> None:
    """Check of a path, or of an id, says only what is wrong there."""
    lay_out("several-files", tmp_path)
    code, text = check(tmp_path, "kb/KB0002-no-repro.md")
    assert (code, text) == check(tmp_path, "KB0002")
    assert code == 1
    assert "KB0002-no-repro.md:1: KB101" in text
    assert text.endswith("1 file checked, 1 problem\n")


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8], ids=["", "with a byte order mark"])
def test_not_utf8(mark: bytes, tmp_path: Path) -> None:
    """A byte that is not UTF-8 is a problem on its line; the other files are checked."""
    config = lay_out("several-files", tmp_path)
    article = (
        (config.articles / "KB0002-no-repro.md").read_text("utf-8").replace("KB0002", "KB0009")
    )
    content = mark + article.replace("title:", "title: café #").encode("latin-1")
    (config.articles / "KB0009-latin.md").write_bytes(content)
    code, text = check(tmp_path)
    assert code == 1
    assert "KB0009-latin.md:3: KB001 the byte 0xE9 is not UTF-8\n" in text
    assert "help: save the file as UTF-8" in text
    expected = (PROBLEMS / "several-files.expected").read_text("utf-8").rpartition("\n\n")[0]
    assert expected in text


def test_missing_file(tmp_path: Path) -> None:
    """A path or an id that is not there is named, and the exit code is 2."""
    lay_out("sound", tmp_path)
    for word in ("kb/KB0404-gone.md", "KB0404", ".."):
        code, text = check(tmp_path, word)
        assert code == 2
        assert f"no article `{word}`" in text


def test_folder_in_place_of_an_article(tmp_path: Path) -> None:
    """A folder that is named like an article is reported, and the exit code is 2."""
    config = lay_out("sound", tmp_path)
    (config.articles / "KB0002-folder.md").mkdir()
    code, text = check(tmp_path)
    assert code == 2
    assert "KB0002-folder.md" in text


def test_real_process(tmp_path: Path) -> None:
    """The command in a process of its own prints the same, to standard output, with no colours."""
    lay_out("several-files", tmp_path)
    command = [*KBTOOLS, "-C", str(tmp_path), "check"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert process.stdout == (PROBLEMS / "several-files.expected").read_text("utf-8")
    assert process.stderr == ""
