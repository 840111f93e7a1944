"""A knowledge base in a folder of its own, and the real `kbtools` run on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forks import parent

KBTOOLS = (sys.executable, "-m", "kbtools.cli")
SECTIONS = ("Root cause", "Fix", "Best practice")


def fence(info: str, code: str) -> str:
    """A fenced block; its code may be indented as a whole."""
    return f"```{info}\n{textwrap.dedent(code).strip()}\n```\n"


@dataclass(frozen=True)
class Finished:
    """What a run of `kbtools` left."""

    code: int
    out: str
    err: str
    json: dict[str, Any] = field(default_factory=dict)
    """What `verify --json` wrote; empty for other commands."""

    def result(self, name: str) -> dict[str, Any]:
        """The result of a snippet, named as in `KB0001/r1`, or `r1` for `KB0001/r1`."""
        article, _, snippet = name.rpartition("/")
        name_parts = (article or "KB0001", snippet)
        [row] = [r for r in self.json["results"] if (r["article"], r["snippet"]) == name_parts]
        return dict(row)

    @property
    def verdicts(self) -> dict[str, str]:
        """Snippet, as in `KB0001/r1` → verdict."""
        return {f"{r['article']}/{r['snippet']}": r["verdict"] for r in self.json["results"]}


@dataclass(frozen=True)
class Base:
    """A knowledge base with the prefix KB, and the folder that its runs use for temporary files."""

    root: Path
    temporary: Path
    """A short, unique path: what a run leaves behind, file or process, is found by it."""

    @classmethod
    def make(cls, root: Path, temporary: Path, run: str = "") -> Base:
        """Writes a `kbtools.toml`; `run` is the text of its table `[run]`."""
        (root / "kb").mkdir(parents=True)
        words = f'[knowledge-base]\nname = "a test"\nprefix = "KB"\n\n[run]\n{run}\n'
        (root / "kbtools.toml").write_text(words, "utf-8")
        return cls(root, temporary)

    def article(
        self, *fences: str, number: int = 1, literal: str = "the failure", matter: str = ""
    ) -> Path:
        """Writes an article of these blocks; `matter` is more front matter, as YAML."""
        name = f"KB{number:04}"
        file = self.root / "kb" / f"{name}-an-article.md"
        head = {
            "id": name,
            "title": f"article {number}",
            "summary": "Do it right.",
            "components": ["example"],
            "stage": "runtime",
            "severity": "crash",
            "signatures": [{"literal": literal}],
        }
        front = "".join(f"{key}: {json.dumps(value)}\n" for key, value in head.items())
        blocks = ["## Symptom\n", *fences, *(f"## {section}\n" for section in SECTIONS)]
        file.write_text(f"---\n{front}{matter}\n---\n\n" + "\n".join(blocks), "utf-8")
        return file

    def environment(self, **more: str) -> dict[str, str]:
        """The environment that `kbtools` is started in."""
        return {**os.environ, "TMPDIR": str(self.temporary), **more}

    def start(self, *words: str, **more: str) -> subprocess.Popen[str]:
        """Starts `kbtools` in a process group of its own and does not wait for it."""
        return subprocess.Popen(
            [*KBTOOLS, "-C", str(self.root), *words],
            env=self.environment(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def kbtools(self, *words: str, timeout: float = 60, **more: str) -> Finished:
        """Runs `kbtools` to its end, in a fork where that is the same; see `tests/forks.py`.

        Args:
            words: its arguments.
            timeout: seconds after which it is killed.
            more: variables of its environment.

        Raises:
            subprocess.TimeoutExpired: it was killed.
        """
        environment = self.environment(**more)
        if parent().can(environment):
            return Finished(*parent().run(["-C", str(self.root), *words], environment, timeout))
        process = self.start(*words, **more)
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        return Finished(process.returncode, out, err)

    def verify(self, *words: str, timeout: float = 60, **more: str) -> Finished:
        """Runs `kbtools verify --json` to its end."""
        file = self.root / "results.json"
        file.unlink(missing_ok=True)
        process = self.kbtools("verify", "--json", str(file), *words, timeout=timeout, **more)
        report = json.loads(file.read_bytes()) if file.exists() else {}
        return Finished(process.code, process.out, process.err, report)

    def rows(self, number: int = 1) -> list[dict[str, Any]]:
        """The recorded evidence of an article."""
        file = self.root / "evidence" / f"KB{number:04}.jsonl"
        return [json.loads(line) for line in file.read_bytes().splitlines()]

    def running(self) -> list[str]:
        """Processes that a run of this base started and that still live, as `pid command`."""
        token = os.fsencode(self.temporary)
        processes = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes()
                traces = (command, (process / "environ").read_bytes())
                places = os.fsencode((process / "cwd").readlink())
            except OSError:  # it ended meanwhile, or is not ours
                continue
            if any(token in trace for trace in (*traces, places)):
                processes.append(f"{process.name} {command.decode('utf-8', 'replace')[:200]}")
        return processes

    def running_after(self, seconds: float) -> list[str]:
        """What still runs when so many seconds have passed, or at once when nothing does."""
        deadline = time.monotonic() + seconds
        while (processes := self.running()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return processes


GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(base: Base, *words: str) -> str:
    """Runs git in a knowledge base."""
    done = subprocess.run([*GIT, *words], cwd=base.root, capture_output=True, text=True, check=True)
    return done.stdout


def rewrite(file: Path, old: str, new: str) -> None:
    """Changes a file to another one of the same size, and puts its modification time back."""
    status, text = file.stat(), file.read_text("utf-8")
    assert old in text
    assert len(old.encode()) == len(new.encode())
    file.write_text(text.replace(old, new), "utf-8")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (file.stat().st_mtime_ns, file.stat().st_size) == (status.st_mtime_ns, status.st_size)
