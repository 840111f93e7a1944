"""The GitHub Action: its steps, executed on events that GitHub would send, hostile ones too."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from bases import KBTOOLS, Base

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"]}
FAILURE = "RuntimeError: the failure of the day"
TRACEBACK = f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n{FAILURE}'
SURE = f"It fails:\r\n\r\n```pytb\r\n{TRACEBACK}\r\n```\r\n"
OTHER = "ValueError: another failure of that day"


class Job:
    """A job of GitHub Actions on one machine, with a stand-in for `gh` that records its calls."""

    def __init__(self, folder: Path, base: Base) -> None:
        self.folder = folder
        self.base = base
        programs = folder / "bin"
        programs.mkdir()
        record = f'#!/bin/sh\nfor word; do printf "%s\\n" "$word" >> {folder}/called; done\n'
        # a comment is sent as the file is at that moment
        record += f'for word; do last=$word; done; cp "$last" {folder}/posted\n'
        ours = f'#!/bin/sh\nexec {shlex.join(KBTOOLS)} "$@"\n'
        for name, text in {"gh": record, "kbtools": ours}.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(folder),
            "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_PATH": str(folder / "path"),
        }

    def run(self, event: Any, index: str = "") -> tuple[str, dict[str, str]]:
        """Runs the steps that answer and post; what they print, and their outputs."""
        (self.folder / "event.json").write_text(json.dumps(event))
        (self.folder / "output").touch()
        expressions = {
            "inputs.index": index,
            "inputs.token": "a-token",
            "runner.temp": str(self.folder),
            "github.repository": "owner/repo",
            "github.event.issue.number": str(event["issue"]["number"]),
        }
        printed = ""
        outputs: dict[str, str] = {}
        for name in ("answer", "post"):
            step = STEPS[name]
            if "if" in step:
                assert step["if"] == "steps.answer.outputs.sure == 'true'"
                if outputs["sure"] != "true":
                    continue
            filled = {
                key: re.sub(r"\$\{\{ *(.*?) *\}\}", lambda match: expressions[match[1]], value)
                for key, value in step["env"].items()
            }
            process = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.base.root,
                env={**self.environment, **filled},
                capture_output=True,
                text=True,
                timeout=60,
            )
            printed += process.stdout + process.stderr
            assert process.returncode == 0, printed
            lines = (self.folder / "output").read_text().splitlines()
            outputs = dict(line.split("=", 1) for line in lines)
        return printed, outputs

    @property
    def called(self) -> list[str]:
        """The words that `gh` was called with."""
        file = self.folder / "called"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def job(tmp_path: Path, base: Base) -> Job:
    """A job in a checkout of a knowledge base of three articles, which has an address."""
    base.article(literal=FAILURE)
    base.article(literal=OTHER, number=2)
    base.article(
        literal="TypeError: of another release", number=3, matter='affected: [{"torch": "<2"}]'
    )
    file = base.root / "kbtools.toml"
    text = file.read_text("utf-8")
    file.write_text(text.replace("\n\n[run]", '\nurl = "https://example.org/kb"\n\n[run]'), "utf-8")
    return Job(tmp_path, base)


def opened(body: str | None, **more: Any) -> dict[str, Any]:
    """The event of an issue that was opened."""
    issue = {"number": 12, "title": "It fails", "body": body, **more.pop("issue", {})}
    return {"action": "opened", "issue": issue, **more}


def test_a_sure_match_is_answered(job: Job) -> None:
    """A traceback in a block of code: one comment, with the article, its fix and its address."""
    printed, outputs = job.run(opened(SURE))
    assert outputs == {"sure": "true", "article": "KB0001"}
    assert job.called[:5] == ["issue", "comment", "12", "--repo", "owner/repo"]
    posted = (job.folder / "posted").read_text("utf-8")
    assert posted.startswith(
        "This looks like [KB0001: article 1](https://example.org/kb/KB0001/).\n\n"
        "**What helps:** Do it right.\n"
    )
    assert printed == ""


def test_plain_text_is_looked_at(job: Job) -> None:
    """A traceback that was pasted with no block around it counts, too."""
    assert job.run(opened(TRACEBACK))[1]["sure"] == "true"


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (opened("It does not work."), "no article is about it"),
        (opened(""), "no article is about it"),
        (opened(None), "no article is about it"),
        (opened(SURE, action="edited"), "only when they are opened"),
        (opened(SURE, action="labeled"), "only when they are opened"),
        (opened(SURE, issue={"pull_request": {}}), "only issues are answered"),
        (opened(f"<!-- paste it here, as in\n{TRACEBACK}\n-->\nI forgot."), "no article is about"),
        (opened(f"{OTHER}\n\n```\n{TRACEBACK}\n```\n"), "KB0002 and KB0001 may be about it"),
        (opened("torch==2.7.0\nTypeError: of another release"), "KB0003 may be about it, but"),
        (opened("Does it print RuntimeError: the\nfailure?"), "no article is about it"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value[:20],
)
def test_silent_otherwise(job: Job, event: dict[str, Any], why: str) -> None:
    """What is not new, no issue, not known or not sure is not answered, and the log says why."""
    printed, outputs = job.run(event)
    assert why in printed
    assert outputs["sure"] == "false"
    assert job.called == []


def test_silent_without_an_address(job: Job) -> None:
    """A knowledge base that is not published has nothing to link to."""
    file = job.base.root / "kbtools.toml"
    file.write_text(re.sub("url = .*", "", file.read_text()))
    assert "has no address yet" in job.run(opened(SURE))[0]
    assert job.called == []


HOSTILE = [
    "$(touch pwned) `touch pwned` ; touch pwned\n",
    "'; touch pwned; '\" && touch pwned #\n",
    "${{ github.token }} ${GH_TOKEN} $GH_TOKEN\n",
    "::set-output name=sure::true\n::add-mask::x\n::error::x\nsure=true\narticle=KB9999\n",
    "EOF\nsure=true\nGH_TOKEN=x\n",
    "@everyone [click](https://evil.example) ![x](https://evil.example/x.png)<script>\n",
    "\x00\x1b]0;title\x07\x1b[2J\u202e\ud7ff\ufffe\n",
    "```\n" * 5000,
    "`" * 100_000,
    "<!--" * 20_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("has_failure", [False, True], ids=["alone", "with a failure"])
def test_hostile_bodies(job: Job, text: str, has_failure: bool) -> None:
    """Nothing of an issue's text is executed, printed, written to an output or posted."""
    body = f"{text}\n\n{TRACEBACK} {text}" if has_failure else text
    printed, outputs = job.run(opened(body, issue={"title": text}))
    assert set(outputs) == {"sure", "article"}
    assert outputs["article"] in ("", "KB0001")
    assert outputs["sure"] == "false" or has_failure
    posted = job.folder / "posted"
    visible = printed + (posted.read_text("utf-8") if posted.exists() else "")
    for part in ("evil", "everyone", "pwned", "::", "\x1b", "a-token", "KB9999", "```"):
        assert part not in visible.replace("https://example.org", "")
    assert not list(job.base.root.rglob("pwned")) and not list(job.folder.rglob("pwned"))
    assert len(job.called) in (0, 7)


def test_no_text_of_an_event_is_part_of_a_command() -> None:
    """No `run` has an expression in it: all are variables; only the last step has the token."""
    for name, step in STEPS.items():
        assert "${{" not in step["run"]
        assert ("token" in json.dumps(step).casefold()) is (name == "post")
        assert not re.search(r"issue\.(title|body)|head_ref|user", json.dumps(step))


def test_what_is_no_event(tmp_path: Path, base: Base) -> None:
    """Another file than that of an event about an issue is an error, with exit code 2."""
    for text in ("", "[]", "{}", '{"issue": 1}', '{"issue": {"number": "x"}}', '{"zen": "\ud83d"}'):
        (tmp_path / "event.json").write_bytes(text.encode("utf-8", "surrogatepass"))
        words = ["--event", str(tmp_path / "event.json"), "--reply", str(tmp_path / "reply")]
        finished = base.kbtools("answer", *words)
        assert (finished.code, finished.out) == (2, "")
        assert "not an event about an issue" in finished.err
    assert not (tmp_path / "reply").exists()


def test_the_steps_set_kbtools_up(tmp_path: Path) -> None:
    """The first step makes an environment and asks pip for the action's own folder."""
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "python3"
    fake.write_text(
        '#!/bin/sh\nmkdir -p "$3/bin"\n'
        'printf \'#!/bin/sh\\necho "$@" > "%s/asked"\\n\' "$FOLDER" > "$3/bin/python"\n'
        'chmod +x "$3/bin/python"\n'
    )
    fake.chmod(0o755)
    variables = {"PATH": f"{programs}:{os.environ['PATH']}", "GITHUB_PATH": str(tmp_path / "path")}
    subprocess.run(
        ["bash", "-eo", "pipefail", "-c", STEPS["install"]["run"]],
        env={**variables, "FOLDER": str(tmp_path), "KBTOOLS": str(ROOT)},
        check=True,
    )
    assert (tmp_path / "asked").read_text() == f"-m pip install --quiet {ROOT}\n"
    assert (tmp_path / "path").read_text() == f"{tmp_path}/kbtools/bin\n"
