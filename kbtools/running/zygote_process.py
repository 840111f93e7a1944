"""A zygote as its executor sees it: a process, the first line that it says, and its reports."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from kbtools.config import KbtoolsError
from kbtools.running.protocol import Ready, Report, Request

ZYGOTE = Path(__file__).parent / "zygote.py"
DYING = 30
"""Seconds that a zygote may take to end its keepers, and they their snippets."""
Reports = queue.SimpleQueue[Report]


class ZygoteFailed(KbtoolsError):
    """The toolchain's interpreter cannot be started, or not with the sandbox that is required."""


class ZygoteProcess:
    """A zygote that was started. It may be asked for runs from several threads."""

    def __init__(
        self,
        python: str,
        preload: Sequence[str],
        folder: Path,
        readable: Sequence[str],
        environment: dict[str, str],
        store: tuple[str, dict[str, str]] = ("", {}),
        guards: Sequence[str] = (),
    ) -> None:
        """Starts it, and does not wait until it can fork.

        Args:
            python: The interpreter that runs it.
            preload: Modules that it imports first, as in `torch` or `module:function`.
            folder: Of the executor; it has the scratch folders of the runs.
            readable: Absolute paths that snippets may read beyond those of the system.
            environment: The variables that the zygote sees.
            store: The folder of the toolchain's store, and the variables that go with it.
            guards: What must be false after the imports, as in `module:function`.
        """
        self.python, self.preload = python, tuple(preload)
        self._log = folder / ("zygote-preloading.log" if preload else "zygote.log")
        self._waiting: dict[int, Reports] = {}
        self._is_over = False
        """Whether no report will come any more."""
        self._lock = threading.Lock()
        """Held to read or change these two, and to write to the zygote."""
        self._ready: Ready | None = None
        self._has_begun = threading.Event()
        """Set when it has said its first line, or has ended without one."""
        words = [",".join(preload), str(folder), json.dumps(readable), json.dumps(store)]
        words.append(json.dumps(list(guards)))
        with self._log.open("ab") as errors:
            self._process = subprocess.Popen(
                [python, str(ZYGOTE), *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                start_new_session=True,
            )
        threading.Thread(target=self._pump, daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def ready(self) -> Ready:
        """Waits for its first line, which says what it can do.

        Raises:
            ZygoteFailed: it ended without one.
        """
        self._has_begun.wait()
        if self._ready is None:
            self.end()
            text = self._log.read_text("utf-8", "replace") if self._log.exists() else ""
            raise ZygoteFailed(f"{self.python} could not start:\n{text[-2000:]}")
        return self._ready

    def ask(self, request: Request) -> Report:
        """Has it run a snippet, and waits for the report."""
        reports = Reports()
        line = json.dumps(request).encode() + b"\n"
        assert self._process.stdin is not None
        try:
            with self._lock:
                if self._is_over:
                    raise BrokenPipeError
                self._waiting[request["id"]] = reports
                self._process.stdin.write(line)
                self._process.stdin.flush()
        except (OSError, ValueError):  # it has ended, or its input was closed
            return {"status": "lost", "message": "the zygote died"}
        return reports.get()

    def ask_to_end(self) -> None:
        """Closes its input, whereupon it ends its keepers, and they their snippets."""
        if self._ready is None:  # it still imports modules, and has no keeper yet
            self._process.kill()
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.close()

    def end(self) -> None:
        """Asks it to end, and waits until it has."""
        self.ask_to_end()
        try:
            self._process.wait(DYING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _pump(self) -> None:
        """Hands each report to the thread that waits for it, until the zygote has ended."""
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                if self._ready is None:
                    self._ready = msgspec.json.decode(line, type=Ready)
                    self._has_begun.set()
                    continue
                report = msgspec.json.decode(line, type=Report)
                with self._lock:
                    reports = self._waiting.pop(report["id"], None)
                if reports:
                    reports.put(report)
        except msgspec.MsgspecError:  # nothing that it says can be relied upon any more
            self._process.kill()
        self._has_begun.set()
        with self._lock:
            self._is_over = True
            orphans, self._waiting = self._waiting, {}
        for reports in orphans.values():
            reports.put({"status": "lost", "message": "the zygote died"})
