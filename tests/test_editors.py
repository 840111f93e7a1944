"""What docs/editors.md has to paste, applied to what kbtools really prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from bases import Base, fence, git

ROOT = Path(__file__).parent.parent
PAGES = ("editors.md", "editors.zh.md")
HOOKS = {
    hook["id"]: hook
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
}


SOUND = fence("python repro", 'raise RuntimeError("the failure")'), fence("python fix", "1")


def tasks(page: str) -> dict[str, Any]:
    """The tasks of VS Code on a page, by the command that each runs."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    block = re.search(r"```json\n(.*?)```", text, re.DOTALL)
    assert block
    return {task["command"]: task for task in json.loads(block[1])["tasks"]}


def problems(task: dict[str, Any], printed: str) -> list[dict[str, str]]:
    """What VS Code lists: it applies the pattern to each line, as JavaScript would."""
    pattern = task["problemMatcher"]["pattern"]
    assert set(pattern) == {"regexp", "file", "line", "code", "message"}
    matches = [re.match(pattern["regexp"], line) for line in printed.splitlines()]
    return [
        {key: match[group] for key, group in pattern.items() if key != "regexp"}
        for match in matches
        if match
    ]


@pytest.mark.parametrize("page", PAGES)
def test_problems_of_check(base: Base, page: str) -> None:
    """Each problem of `kbtools check` is listed with its file, line, rule and message."""
    file = base.article(fence("python reproo id=r1", "assert True"))
    text = file.read_text("utf-8").replace("severity: ", "severity: x")
    file.write_text(text, "utf-8")
    printed = base.kbtools("check").out
    listed = problems(tasks(page)["kbtools check"], printed)
    count = re.search(r"(\d+) problems?$", printed.strip())
    assert count and len(listed) == int(count[1]) >= 2
    lines = text.splitlines()
    role = next(problem for problem in listed if problem["code"] == "KB008")
    assert role["file"] == f"kb/{file.name}"
    assert lines[int(role["line"]) - 1].startswith("```python reproo")
    assert role["message"].startswith("unknown role `reproo`")
    assert all((base.root / problem["file"]).is_file() for problem in listed)


@pytest.mark.parametrize("page", PAGES)
def test_problems_of_verify(base: Base, page: str) -> None:
    """Each red verdict of `kbtools verify` is listed once, at the snippet."""
    file = base.article(
        fence("python repro id=r1", 'raise RuntimeError("the failure")'),
        fence("python fix id=f1", "assert False"),
    )
    listed = problems(tasks(page)["kbtools verify"], base.kbtools("verify").out)
    [problem] = listed
    assert (problem["file"], problem["code"]) == (f"kb/{file.name}", "KB0001/f1")
    assert problem["message"] == "broken KB0001/f1 (fix)"
    lines = file.read_text("utf-8").splitlines()
    assert "assert False" in lines[int(problem["line"]) - 1 : int(problem["line"]) + 1]


def test_hooks_take_what_check_takes(base: Base) -> None:
    """The files that a hook selects are those that its command takes; nothing else is selected."""
    article = base.article(*SOUND)
    pattern = re.compile(HOOKS["kbtools-check"]["files"])
    assert pattern.search(f"kb/{article.name}") and pattern.search(f"base/kb/{article.name}")
    assert pattern.search("kb/notices/KBN0001-hang.md")
    for path in ("README.md", "kbx/a.md", "kb/sub/a.md", "evidence/KB0001.jsonl", "kb/a.txt"):
        assert not pattern.search(path)
    everything = re.compile(HOOKS["kbtools-check-all"]["files"])
    for path in (f"kb/{article.name}", "evidence/KB0001.jsonl", "published.txt", "x/kbtools.toml"):
        assert everything.search(path)
    assert not everything.search("docs/kbtools.toml.md")
    for hook in HOOKS.values():
        words = hook["entry"].split()
        assert words == ["kbtools", "check"]
        names = [f"kb/{article.name}"] if hook.get("pass_filenames", True) else []
        assert base.kbtools(*words[1:], *(str(base.root / name) for name in names)).code == 0


def test_pre_commit_runs_the_hooks(base: Base) -> None:
    """pre-commit itself, with our hooks as programs of this machine: red, then green."""
    pytest.importorskip("pre_commit", reason="the test extra brings it")
    sound = base.article(*SOUND)
    git(base, "init", "-q")
    program = f"{sys.executable} -m kbtools check"
    hooks = [{**hook, "language": "system", "entry": program} for hook in HOOKS.values()]
    config = {"repos": [{"repo": "local", "hooks": hooks}]}
    (base.root / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    broken = base.article(fence("python fixx id=f1", "1"), literal="another failure", number=2)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        git(base, "add", "-A")
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", *words],
            cwd=base.root,
            env=base.environment(HOME=str(base.root / "home")),
            capture_output=True,
            text=True,
            check=False,
        )

    done = run("kbtools-check", "--files", f"kb/{broken.name}")
    assert (done.returncode, "unknown role `fixx`" in done.stdout) == (1, True)
    assert run("kbtools-check", "--files", f"kb/{sound.name}").returncode == 0
    assert run("kbtools-check-all", "--files", f"kb/{sound.name}").returncode == 1
    broken.unlink()
    assert run("--all-files").returncode == 0
