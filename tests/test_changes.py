"""What changed between two nights, and the one issue that an article has."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from bases import Base, Finished, fence, git

MATTER = """
affected: [{msgspec: '>=0'}]
upstream: [{report: owner/repo#12}, {fix: owner/repo#34}, {related: other/thing#5}]
"""
GH = """\
#!{python}
# stands in for gh: keeps issues in a file, and what it was called with
import json, os, sys
from pathlib import Path
file = Path(os.environ["GH_FILE"])
state = json.loads(file.read_text()) if file.exists() else {{"issues": [], "calls": []}}
words = sys.argv[1:]
stdin = sys.stdin.read()
state["calls"].append(words)
value = lambda name: words[words.index(name) + 1]
open_ = [issue for issue in state["issues"] if issue["state"] == "open"]
if words[:2] == ["issue", "list"]:
    labelled = [issue for issue in open_ if value("--label") in issue["labels"]]
    print(json.dumps([{{"number": o["number"], "body": o["body"]}} for o in labelled]))
elif words[:2] == ["issue", "create"]:
    number = len(state["issues"]) + 1
    state["issues"].append(dict(number=number, title=value("--title"), body=stdin, state="open",
                                labels=[value("--label")], comments=[]))
    print(f"https://github.com/a/b/issues/{{number}}")
elif words[:2] == ["label", "create"]:
    pass
else:
    issue = state["issues"][int(words[2]) - 1]
    if words[1] == "edit":
        issue.update(title=value("--title"), body=stdin)
    elif words[1] == "comment":
        issue["comments"].append(stdin)
    elif words[1] == "close":
        issue["state"] = "closed"
    else:
        sys.exit(f"unknown: {{words}}")
file.write_text(json.dumps(state))
"""


class Night:
    """A knowledge base whose evidence is committed, and a `gh` that keeps issues in a file."""

    def __init__(self, base: Base, folder: Path) -> None:
        self.base, self.file = base, folder / "issues.json"
        gh = folder / "bin" / "gh"
        gh.parent.mkdir()
        gh.write_text(GH.format(python=sys.executable))
        gh.chmod(0o755)
        self.path = f"{gh.parent}{os.pathsep}{os.environ['PATH']}"
        base.article(
            fence("python repro id=r1", "raise ValueError('the failure')"),
            fence("python fix id=f1", "x = 1"),
            fence("python deadend id=d1", "raise TypeError('the failure')"),
            matter=MATTER,
        )
        assert base.verify("--record").code == 0
        git(base, "init", "-q", "-b", "main")
        git(base, "add", "kb", "kbtools.toml", "evidence")
        git(base, "commit", "-qm", "the night before")

    def record(self, snippet: str, **outcome: Any) -> None:
        """Has a later run of a snippet end in another way."""
        rows = self.base.rows()
        for row in rows:
            if row["snippet"] == snippet:
                row["outcome"] = {"seconds": 1.0, "output": "", **outcome}
                row["when"] = "2026-12-24T00:00:00Z"
        file = self.base.root / "evidence" / "KB0001.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def over(self) -> None:
        """Commits the evidence: the next night is compared with it."""
        git(self.base, "commit", "-qam", "a night")

    def changes(self, *words: str) -> Finished:
        """Runs `kbtools evidence changes`."""
        more = {"PATH": self.path, "GH_FILE": str(self.file)}
        return self.base.kbtools("evidence", "changes", "--since", "HEAD", *words, **more)  # type: ignore[arg-type]

    @property
    def issues(self) -> list[dict[str, Any]]:
        """What the tracker holds."""
        return list(json.loads(self.file.read_text())["issues"]) if self.file.exists() else []


@pytest.fixture
def night(base: Base, tmp_path: Path) -> Night:
    """The night after one on which all was well."""
    return Night(base, tmp_path)


FAILED = {
    "status": "failed",
    "exit": 1,
    "exceptions": ["TypeError"],
    "message": "@you, owner/repo#12",
}
PASSED = {"status": "passed", "exit": 0}


def test_nothing_changed(night: Night) -> None:
    """Evidence that was only seen again is no news, and opens nothing."""
    night.record("f1", **PASSED)
    done = night.changes("--issues")
    assert (done.code, done.out) == (0, "nothing changed\n")
    assert night.issues == []


@pytest.mark.parametrize(
    ("snippet", "outcome", "verdicts", "meaning"),
    [
        ("f1", FAILED, "holds → broken", "what helped does not help any more"),
        ("r1", PASSED, "reproduced → not-reproduced", "a failure is gone where"),
        ("r1", FAILED, "reproduced → other-failure", "it fails in another way"),
        ("d1", PASSED, "no-help → not-reproduced", "advice that did not help now does"),
    ],
)
def test_changes(
    night: Night, snippet: str, outcome: dict[str, Any], verdicts: str, meaning: str
) -> None:
    """Each change is a line that says what was, what is, where, and what that means."""
    night.record(snippet, **outcome)
    done = night.changes()
    assert done.code == 0
    [line] = done.out.splitlines()
    assert line.startswith(f"KB0001/{snippet} (")
    assert f": {verdicts} on Python 3" in line
    assert meaning in line


def test_a_failure_came_back(night: Night) -> None:
    """Where the article says that it is not affected, its failure is one that came back."""
    file = night.base.root / "kb" / "KB0001-an-article.md"
    file.write_text(file.read_text("utf-8").replace("'>=0'", "'<0.1'"), "utf-8")
    night.record("r1", **PASSED)
    night.over()
    night.record("r1", status="failed", exit=1, output="the failure")
    assert "resolved → regressed" in night.changes().out
    assert "a failure came back" in night.changes().out


def test_one_issue(night: Night) -> None:
    """A change opens one issue, the next one updates it, and the end of it closes it."""
    night.record("f1", **FAILED)
    done = night.changes("--issues")
    assert "KB0001: opened https://github.com/a/b/issues/1" in done.out
    [issue] = night.issues
    assert issue["title"].startswith("KB0001: what helped does not help any more (")
    assert issue["body"].startswith("<!-- kbtools:KB0001 -->\n")
    assert issue["labels"] == ["kbtools"]
    night.over()
    night.record("r1", **PASSED)
    assert "KB0001: updated #1" in night.changes("--issues").out
    [issue] = night.issues
    assert "| f1 | broken |" in issue["body"], "what was red before still stands there"
    assert "| r1 | not-reproduced |" in issue["body"]
    assert len(issue["comments"]) == 1
    assert "f1" not in issue["comments"][0]
    night.over()
    assert night.changes("--issues").out == "nothing changed\n"
    night.record("f1", **PASSED)
    night.record("r1", status="failed", exit=1, output="the failure")
    assert "KB0001: closed #1" in night.changes("--issues").out
    [issue] = night.issues
    assert issue["state"] == "closed"
    assert "Nothing that was run contradicts KB0001 any more." in issue["comments"][-1]
    night.over()
    night.record("f1", **FAILED)
    assert "KB0001: opened" in night.changes("--issues").out, "a closed one is not opened again"
    assert len(night.issues) == 2


def test_a_second_try_opens_no_second_issue(night: Night) -> None:
    """A night that is run again, because a later step failed, finds the issue it opened."""
    night.record("f1", **FAILED)
    night.changes("--issues")
    night.changes("--issues")
    assert len(night.issues) == 1


def test_an_issue_of_a_stranger(night: Night) -> None:
    """An issue with our mark but without the label, which no stranger can set, is not ours."""
    stranger = {"number": 1, "title": "x", "body": "<!-- kbtools:KB0001 -->", "state": "open"}
    stranger |= {"labels": [], "comments": []}
    night.file.write_text(json.dumps({"issues": [stranger], "calls": []}))
    night.record("f1", **FAILED)
    night.changes("--issues")
    assert night.issues[0] == stranger
    assert len(night.issues) == 2


def test_text_of_a_failure_mentions_nobody(night: Night) -> None:
    """What a snippet printed, and names of other threads, stand in an issue as code only."""
    night.record("f1", **FAILED)
    [entry] = json.loads(night.changes("--json").out)
    body = entry["issue"]["body"]
    prose = "\n".join(
        "".join(line.split("``")[::2]) for line in body.partition("~~~")[0].splitlines()
    )
    assert "@you" in body
    assert "@you" not in prose
    assert "owner/repo#" not in prose


def test_replies(night: Night) -> None:
    """A reply is ready for each thread about the failure or its fix, and for no other."""
    night.record("r1", **PASSED)
    [entry] = json.loads(night.changes("--json").out)
    body = entry["issue"]["body"]
    assert "https://github.com/owner/repo/issues/12" in body
    assert "https://github.com/owner/repo/issues/34" in body
    assert "other/thing" not in body
    assert "the failure is not seen any more with Python 3" in body
    assert "with dated evidence.\n~~~" in body  # a stranger cannot run what is in no repository


def test_a_folder_of_old_evidence(night: Night, tmp_path: Path) -> None:
    """The old state may be a folder, too; and one of the two is to be named."""
    (tmp_path / "old").mkdir()
    done = night.base.kbtools("evidence", "changes", "--old", str(tmp_path / "old"))
    assert (done.code, done.out) == (0, "nothing changed\n"), "seen first, and all well: no news"
    night.record("f1", **FAILED)
    done = night.base.kbtools("evidence", "changes", "--old", str(tmp_path / "old"))
    assert "not run → broken" in done.out
    assert night.base.kbtools("evidence", "changes").code == 2


def test_gh_fails(night: Night) -> None:
    """Where gh cannot be run or refuses, that is said, and the exit code is 2."""
    night.record("f1", **FAILED)
    night.file.write_text("[]")
    done = night.changes("--issues")
    assert done.code == 2
    assert "gh label create" in done.err
    (Path(night.path.partition(os.pathsep)[0]) / "gh").unlink()
    done = night.changes("--issues")
    assert done.code == 2
    assert "gh, the program of GitHub, cannot be run" in done.err
    assert "holds → broken" in done.out, "the changes are printed all the same"
