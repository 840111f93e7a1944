"""The GitHub Action: its steps, executed on events that GitHub would send, hostile ones too."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from bases import KBTOOLS, Base
from github_host import TOKEN, Host, refusal
from site_host import served, site

from kbtools import matching

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"]}
FAILURE = "RuntimeError: the failure of the day"
TRACEBACK = f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n{FAILURE}'
SURE = f"It fails:\r\n\r\n```pytb\r\n{TRACEBACK}\r\n```\r\n"
OTHER = "ValueError: another failure of that day"


class Job:
    """A job of GitHub Actions on one machine; the API that it speaks to is on this machine, too."""

    def __init__(self, folder: Path, base: Base, host: Host) -> None:
        self.folder, self.base, self.host = folder, base, host
        program = folder / "kbtools" / "bin" / "kbtools"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {shlex.join(KBTOOLS)} "$@"\n')
        program.chmod(0o755)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GITHUB_API_URL": host.url,
            "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "GITHUB_OUTPUT": str(folder / "output"),
        }

    def run(
        self, event: Any, index: str = "", token: str = TOKEN, code: int = 0
    ) -> tuple[str, dict[str, str]]:
        """Runs the steps that answer and post; what they print, and their outputs.

        `code` is that of the last step.
        """
        (self.folder / "event.json").write_text(json.dumps(event))
        (self.folder / "output").write_text("")
        (self.folder / "kbtools-reply.md").unlink(missing_ok=True)
        expressions = {
            "inputs.index": index,
            "inputs.token": token,
            "runner.temp": str(self.folder),
            "github.repository": "owner/repo",
            "github.event.issue.number": str(event["issue"]["number"]),
        }
        printed = ""
        outputs: dict[str, str] = {}
        ended = 0
        for name in ("answer", "post"):
            step = STEPS[name]
            if "if" in step:
                assert step["if"] == "steps.answer.outputs.sure == 'true'"
                if ended or outputs["sure"] != "true":
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
            ended = process.returncode
            lines = (self.folder / "output").read_text().splitlines()
            outputs = dict(line.split("=", 1) for line in lines)
        assert ended == code, printed
        return printed, outputs

    @property
    def posted(self) -> list[str]:
        """The texts of the comments on the issue."""
        return [comment["body"] for comment in self.host.comments]


@pytest.fixture
def host() -> Iterator[Host]:
    """A repository without comments."""
    host = Host()
    yield host
    host.close()


@pytest.fixture
def job(tmp_path: Path, base: Base, host: Host) -> Job:
    """A job in a checkout of a knowledge base of three articles, which has an address."""
    base.article(literal=FAILURE)
    base.article(literal=OTHER, number=2)
    base.article(
        literal="TypeError: of another release", number=3, matter='affected: [{"torch": "<2"}]'
    )
    file = base.root / "kbtools.toml"
    text = file.read_text("utf-8")
    file.write_text(text.replace("\n\n[run]", '\nurl = "https://example.org/kb"\n\n[run]'), "utf-8")
    return Job(tmp_path, base, host)


def opened(body: str | None, **more: Any) -> dict[str, Any]:
    """The event of an issue that was opened."""
    issue = {
        "number": 12,
        "title": "It fails",
        "body": body,
        "updated_at": "2026-01-01T00:00:00Z",
        **more.pop("issue", {}),
    }
    return {"action": "opened", "issue": issue, **more}


def test_a_sure_match_is_answered(job: Job) -> None:
    """A traceback in a block of code: one comment, with the article, its fix and its address."""
    printed, outputs = job.run(opened(SURE))
    [comment] = job.host.comments
    assert outputs == {
        "sure": "true",
        "article": "KB0001",
        "comment": comment["html_url"],
        "action": "created",
    }
    assert comment["body"].startswith(
        "<!-- kbtools:reply KB0001 https://example.org/kb 2026-01-01T00:00:00Z -->\n"
        "This looks like [KB0001: article 1](https://example.org/kb/KB0001/).\n\n"
        "**What helps:** Do it right.\n"
    )
    assert "A program wrote this" in comment["body"]
    assert printed == ""


def test_a_job_that_is_run_again(job: Job) -> None:
    """Nothing is posted twice: not by a second run, and not when the issue is edited."""
    job.run(opened(SURE))
    first = list(job.posted)
    assert job.run(opened(SURE))[1]["action"] == "left"
    later = {"updated_at": "2026-01-02T00:00:00Z"}
    printed, outputs = job.run(opened(SURE + "more", action="edited", issue=later))
    assert (outputs["action"], outputs["sure"]) == ("left", "true")
    assert "the issue is answered" in printed
    assert job.posted == first
    other = opened(f"```\n{OTHER}\n```", action="edited", issue=later)
    assert job.run(other)[1]["action"] == "updated"
    assert [text.count("KB0002") > 0 for text in job.posted] == [True]
    assert job.host.notifications == 1


def test_an_issue_that_shows_the_error_later(job: Job) -> None:
    """An issue without an error is not answered; when one is added, it is."""
    assert job.run(opened("It does not work."))[1]["sure"] == "false"
    assert job.run(opened(SURE, action="edited"))[1]["action"] == "created"


def test_the_title_is_read(job: Job) -> None:
    """An error that stands in the title only is found; titles and bodies that differ are doubt."""
    titled = {"title": f"[Bug]: {FAILURE}"}
    assert job.run(opened("See the title.", issue=titled))[1]["article"] == "KB0001"
    assert len(job.posted) == 1
    printed, outputs = job.run(opened(f"```\n{OTHER}\n```", issue=titled))
    assert outputs == {"sure": "false", "article": ""}
    assert "KB0001 and KB0002 may be about it" in printed


def test_versions_beside_the_block_count(job: Job) -> None:
    """The block alone shows no version: what the body rules out is not sure."""
    body = "torch==2.7.0\n\n```\nTypeError: of another release\n```\n"
    printed, outputs = job.run(opened(body))
    assert (outputs["sure"], outputs["article"]) == ("false", "KB0003")
    assert "the versions in the log are not affected" in printed


def test_plain_text_is_looked_at(job: Job) -> None:
    """A traceback that was pasted with no block around it counts, too."""
    assert job.run(opened(TRACEBACK))[1]["sure"] == "true"


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (opened("It does not work."), "no article is about it"),
        (opened(""), "no article is about it"),
        (opened(None), "no article is about it"),
        (opened(SURE, action="labeled"), "when they are opened or edited"),
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
    assert job.posted == []


@pytest.mark.parametrize("body", [SURE, "It does not work."])
def test_red_without_an_address(job: Job, body: str) -> None:
    """Without an address every job fails, from the first issue on, and says what to set."""
    file = job.base.root / "kbtools.toml"
    file.write_text(re.sub("url = .*", "", file.read_text()))
    job.environment["GITHUB_ACTIONS"] = "true"
    printed, outputs = job.run(opened(body), code=2)
    assert "\n::error title=kbtools::the knowledge base" in f"\n{printed}"
    assert "has no address" in printed
    assert "set `url` of [knowledge-base] in kbtools.toml, or give the action `index:" in printed
    assert (outputs, job.posted) == ({}, [])


def test_red_without_a_permission(job: Job) -> None:
    """A token that only reads, as a fork has it, fails the job, which says what it needs."""
    job.host.next_answers = [None, refusal(403, "Resource not accessible by integration")]
    printed, _ = job.run(opened(SURE), code=2)
    assert "permissions: {issues: write}" in printed
    assert "::error" not in printed
    job.environment["GITHUB_ACTIONS"] = "true"
    assert (
        "::error title=kbtools::no token: set GH_TOKEN"
        in job.run(opened(SURE), token="", code=2)[0]
    )
    assert job.posted == []


def test_an_index_by_its_address(job: Job, tmp_path: Path) -> None:
    """A published index, or its site, serves in place of a checkout; links lead to that site."""
    index = matching.load(job.base.root)
    nameless = msgspec.json.encode(msgspec.structs.replace(index, url=""))
    for content, linked in ((msgspec.json.encode(index), "https://example.org/kb"), (nameless, "")):
        with site(served(content)) as address:
            for end in ("/kb/api/v1/signatures.json", "/kb/", "/kb"):
                job.host.comments.clear()
                (job.base.root / "kbtools.toml").unlink(missing_ok=True)
                assert job.run(opened(SURE), index=address + end)[1]["article"] == "KB0001"
                assert f"]({linked or address + '/kb'}/KB0001/)" in job.posted[0]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("{}/kb/api/v1/nothing.json", "answers 404"),
        ("{}/kb/api/v1/signatures.json", "not the index of a knowledge base"),
        ("http://127.0.0.1:9/kb/", "could not be fetched"),
        ("http://kb.example/", "use https://"),
        ("no/such/file", "does not exist"),
    ],
)
def test_red_without_an_index(job: Job, address: str, message: str) -> None:
    """An index that cannot be had fails the job, whatever the issue says."""
    with site(served(b'{"schema": 1}')) as running:
        printed, outputs = job.run(opened("hello"), index=address.format(running), code=2)
    assert message in printed
    assert outputs == {}


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
    assert set(outputs) <= {"sure", "article", "comment", "action"}
    assert outputs["article"] in ("", "KB0001")
    assert outputs["sure"] == "false" or has_failure
    visible = printed + "".join(job.posted)
    for part in ("evil", "everyone", "pwned", "::", "\x1b", "a-token", "KB9999", "```"):
        assert part not in visible.replace("https://example.org", "")
    assert not list(job.base.root.rglob("pwned")) and not list(job.folder.rglob("pwned"))
    assert len(job.posted) == (outputs["sure"] == "true")


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
        '#!/bin/sh\n[ "$1" = -c ] && exit 0\nmkdir -p "$3/bin"\n'
        'printf \'#!/bin/sh\\necho "$@" > "%s/asked"\\n\' "$FOLDER" > "$3/bin/python"\n'
        'chmod +x "$3/bin/python"\n'
    )
    fake.chmod(0o755)
    variables = {"PATH": f"{programs}:{os.environ['PATH']}"}
    command = ["bash", "-eo", "pipefail", "-c", STEPS["install"]["run"]]
    variables |= {"FOLDER": str(tmp_path), "KBTOOLS": str(ROOT)}
    subprocess.run(command, env=variables, check=True)
    assert (tmp_path / "asked").read_text() == f"-m pip install --quiet {ROOT}\n"
    fake.write_text("#!/bin/sh\nexit 1\n")  # an interpreter that is too old
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "::error::kbtools needs Python 3.11 or newer; put actions/setup-python" in done.stdout
