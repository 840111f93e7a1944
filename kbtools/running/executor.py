"""A zygote, and the runs asked of it."""

from __future__ import annotations

import itertools
import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from kbtools.config import Running
from kbtools.outcome import Outcome
from kbtools.running import child, kept
from kbtools.running.environment import base_environment, snippet_environment
from kbtools.running.model import Run
from kbtools.running.output import Redaction, head_and_tail

HERE = Path(__file__).parent
ZYGOTE = HERE / "zygote.py"
REPRO = HERE.parent / "repro.py"
GIB = 1 << 30
Replies = queue.SimpleQueue[dict[str, Any]]
Sandbox = Literal["required", "where allowed", "none"]
"""Whether snippets are shut in: always or not at all run, as far as the kernel allows it, no."""


class Executor:
    """Runs snippets on one toolchain, any number at a time; safe to use from several threads.

    Use it as a context manager: leaving it ends every process and removes every file it made.
    """

    def __init__(
        self,
        python: str,
        running: Running,
        *,
        preload: Sequence[str] = (),
        sandbox: Sandbox = "where allowed",
    ) -> None:
        self.python = python
        self.running = running
        self.preload = tuple(preload)
        self.sandbox = sandbox
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[subprocess.Popen[bytes], Replies]] = {}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        # a folder that was mounted in a namespace takes milliseconds to be gone: nobody waits
        self._sweeper = ThreadPoolExecutor(1, "sweeper")
        self.ready: dict[str, Any] = {}
        """What the zygote said when it was ready."""

    def __enter__(self) -> Self:
        self._redaction = Redaction(self.python)
        self._base = base_environment(self.python, self.running.environment)
        self.folder = Path(tempfile.mkdtemp(prefix="kbtools-"))
        self.path = self.folder / "path"
        try:
            (self.path / "kbtools").mkdir(parents=True)
            (self.path / "kbtools" / "__init__.py").touch()
            if REPRO.exists():
                shutil.copy(REPRO, self.path / "kbtools")
            (self.folder / "tmp").mkdir()
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends every run (each is then `lost`) and the zygote."""
        with self._lock:
            self._closed = True
            process = self._process
        if process is not None:
            _end(process)
        self._sweeper.shutdown(cancel_futures=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, run: Run) -> Outcome:
        """Runs one snippet and says what it did.

        When its zygote or keeper dies meanwhile (the kernel may kill it when memory runs out),
        the run is made once more.

        Raises:
            KeepError: the scratch folder could not be kept as the run asks.
            ZygoteFailed: the toolchain's interpreter cannot be started.
        """
        for _ in range(2):
            reply, scratch = self._ask(run)
            if reply.get("status") != "lost" or self._closed:
                break
        try:
            outcome = self._outcome(run, reply, scratch)
            if run.keep and scratch.exists():
                self._keep(run, run.keep.absolute(), scratch)
            return outcome
        finally:
            with suppress(RuntimeError):  # closed meanwhile, and the whole folder with it
                self._sweeper.submit(shutil.rmtree, scratch, ignore_errors=True)

    def _ask(self, run: Run) -> tuple[dict[str, Any], Path]:
        number = next(self._numbers)
        scratch = self.folder / f"run{number}"
        if self._closed:
            return {"status": "lost", "message": "cancelled"}, scratch
        file, out = scratch / run.file_name, scratch / "output"
        try:
            for folder in (scratch, scratch / "work", scratch / "cache", scratch / "tmp"):
                folder.mkdir()
            file.write_text(run.source, "utf-8")
        except OSError as error:
            return {"status": "lost", "message": f"no scratch folder: {error}"}, scratch
        replies = Replies()
        request = self._request(run, number, scratch, file, out)
        try:
            with self._lock:
                process = self._zygote()
                self._waiting[number] = process, replies
                assert process.stdin is not None
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
        except OSError:
            return {"status": "lost", "message": "the zygote died"}, scratch
        return replies.get(), scratch

    def _request(
        self, run: Run, number: int, scratch: Path, file: Path, out: Path
    ) -> dict[str, Any]:
        limits = self.running
        memory = limits.gpu_memory_gib if run.gpus else limits.memory_gib
        return {
            "id": number,
            "language": run.language,
            "file": str(file),
            "scratch": str(scratch),
            "cwd": str(scratch / "work"),
            "path": str(self.path),
            "out": str(out),
            "env": snippet_environment(self._base, run, scratch, self.path),
            "timeout": run.timeout,
            "tool": list(run.tool),
            "flags": run.nvcc_flags,
            "compile_only": run.compile_only,
            "isolation": run.isolation,
            "sandbox": self.sandbox != "none",
            "network": run.network,
            "shared_tmp": str(self.folder / "tmp"),
            "limits": {
                "memory": int(memory * GIB),
                "file": int(limits.file_gib * GIB),
                "processes": limits.processes,
                "others": self.ready.get("others", 4096),
            },
        }

    def _keep(self, run: Run, folder: Path, scratch: Path) -> None:
        """Moves the scratch folder of a run that has ended to the folder that it asks for.

        Raises:
            KeepError: the folder cannot be written.
        """
        again = folder / "again"
        file, program = str(folder / run.file_name), str(again / "program")
        if run.language == "python":
            commands = [[*run.tool, self.python, file]]
        elif run.language == "bash":
            commands = [[*child.BASH, file]]
        else:
            commands = [child.nvcc(file, program, run.nvcc_flags, run.compile_only)]
            commands += [] if run.compile_only else [[*run.tool, program]]
        kept.keep(
            folder,
            scratch=scratch,
            modules=self.path,
            file_name=run.file_name,
            source=run.source,
            article=run.shown,
            environment=snippet_environment(self._base, run, again, folder / "path"),
            commands=commands,
        )

    def _zygote(self) -> subprocess.Popen[bytes]:
        """The zygote, started if there is none; the caller holds the lock."""
        if self._closed:
            raise OSError("closed")
        if self._process is None or self._process.poll() is not None:
            self._process = self._start()
        return self._process

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [
                *(self.python, str(ZYGOTE), ",".join(self.preload), str(self.folder)),
                json.dumps(self.running.readable),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "zygote.log").open("ab"),
            # asked through NVML, torch answers without spoiling the fork; and the temporary
            # folder that its modules note is one that each snippet finds its own behind
            env=self._base
            | {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "TMPDIR": str(self.folder / "tmp")},
            start_new_session=True,
        )
        assert process.stdout is not None
        first = process.stdout.readline()
        if not first:
            log = (self.folder / "zygote.log").read_text("utf-8", "replace")
            raise ZygoteFailed(f"{self.python} could not start:\n{log[-2000:]}")
        self.ready = json.loads(first)
        if self.sandbox == "required" and self.unsandboxed:
            self._closed = True
            _end(process)
            raise ZygoteFailed(
                f"this machine does not let {self.python} shut snippets in, as --require-sandbox"
                f" demands: {self.unsandboxed}; docs/sandbox.md says what it takes"
            )
        threading.Thread(target=self._pump, args=(process,), daemon=True).start()
        return process

    @property
    def unsandboxed(self) -> str:
        """What of the sandbox a snippet runs without, and why; empty where it has all of it."""
        if self.sandbox == "none":
            return "all of it (--no-sandbox)"
        parts = self.ready.get("sandbox", {}).items()
        return ", ".join(f"{part} ({state})" for part, state in parts if state is not True)

    def _pump(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            reply = json.loads(line)
            with self._lock:
                waiting = self._waiting.pop(reply["id"], None)
            if waiting:
                waiting[1].put(reply)
        with self._lock:  # another zygote may be at work already
            orphans = [n for n, (asked, _) in self._waiting.items() if asked is process]
            queues = [self._waiting.pop(number)[1] for number in orphans]
        for replies in queues:
            replies.put({"status": "lost", "message": "the zygote died"})

    def _outcome(self, run: Run, reply: dict[str, Any], scratch: Path) -> Outcome:
        paths = {
            str(scratch / run.file_name): run.shown,
            str(scratch): "<scratch>",
            str(self.path / "kbtools"): "<kbtools>",  # the helper that snippets import
        }
        clean = self._redaction.with_paths(paths)
        text = head_and_tail(scratch / "output", self.running.output_kib * 1024)
        seen = {"output": clean(text), "seconds": reply.get("seconds", 0.0)}
        seen["peak_mib"] = round(reply.get("peak_kib", 0) / 1024, 1)
        seen["targets"] = told_targets(scratch / "targets")
        seen["unsandboxed"] = self.unsandboxed
        seen["isolation"] = reply.get("isolation")
        if "status" in reply:
            message = reply["message"]
            if reply["status"] == "timeout" and reply["told"].get("end"):
                message += ", though it reached its last line: something keeps it alive"
            if reply["status"] == "lost" and _full(self.folder):
                message = "the disk is full"
            return Outcome(status=reply["status"], message=message, **seen)
        return _ended(reply["wait"], reply["told"], clean, seen)


def told_targets(file: Path) -> tuple[str, ...]:
    """The architectures that a snippet compiled for, as `kbtools.repro` and nvcc's flags tell."""
    try:
        return tuple(sorted(set(file.read_text("utf-8").split())))[:16]
    except (OSError, UnicodeDecodeError):
        return ()


class ZygoteFailed(Exception):
    """The toolchain's interpreter cannot even run the standard library."""


def _ended(wait: int, told: dict[str, Any], clean: Any, seen: dict[str, Any]) -> Outcome:
    code = os.waitstatus_to_exitcode(wait)
    if code < 0:
        name = _name_of(-code)
        why = {"SIGKILL": "not by kbtools: was memory short?", "SIGXFSZ": "file size limit"}
        return Outcome(status="signal", signal=name, message=why.get(name, ""), **seen)
    if code == 0:
        return Outcome(status="passed" if told.get("end") else "stopped", exit=0, **seen)
    return Outcome(
        status="failed",
        exit=code,
        exceptions=tuple(told.get("raised", ())),
        message=clean(told.get("message", "")),
        **seen,
    )


def _name_of(number: int) -> str:
    """As in `SIGKILL`, or `SIG40`: most of the real-time signals have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _full(folder: Path) -> bool:
    return shutil.disk_usage(folder).free < 1 << 20


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks the zygote to end by closing its input; it ends its keepers, they their snippets."""
    if process.stdin:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
