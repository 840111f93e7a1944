"""A zygote, and the runs asked of it."""

from __future__ import annotations

import itertools
import json
import queue
import shutil
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

from kbtools.config import KbtoolsError, Running
from kbtools.outcome import Outcome
from kbtools.running import kept
from kbtools.running.environment import base_environment, snippet_environment
from kbtools.running.model import Run
from kbtools.running.outcomes import outcome_of, targets_of
from kbtools.running.output import Redaction, head_and_tail
from kbtools.running.protocol import Limits, Ready, Report, Request

FOLDER = Path(__file__).parent
ZYGOTE = FOLDER / "zygote.py"
REPRO = FOLDER.parent / "repro.py"
GIB = 1 << 30
OTHER_PROCESSES = 4096
"""Processes of the same user outside a run: the kernel's limit counts all of a user's."""
DYING = 30
"""Seconds that a zygote may take to end its keepers, and they their snippets."""
Reports = queue.SimpleQueue[Report]
Sandbox = Literal["required", "where allowed", "none"]
"""`required`: nothing is run where the kernel refuses a part; `where allowed`: snippets run without
the parts that it refuses; `none`: no part is used."""


class ZygoteFailed(KbtoolsError):
    """The toolchain's interpreter cannot be started, or not with the sandbox that is required."""


class PreloadWarning(UserWarning):
    """A module of `run.preload` could not be imported: each snippet imports it again, slowly."""


class Executor:
    """Runs snippets on one toolchain, any number at a time; safe to use from several threads.

    Use it as a context manager: leaving it ends every process and removes every file it made.

        with Executor(sys.executable, config.run) as executor:
            outcome = executor.run(Run("assert 1", "python", "kb/KB0001-an-article.md"))

    python: the toolchain's interpreter.
    running: the table `[run]`: limits, variables, readable folders.
    preload: modules that the zygote imports once, as in `torch` or `module:function`.
    sandbox: what to do where the kernel refuses a part of it.
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
        self._waiting: dict[int, tuple[subprocess.Popen[bytes], Reports]] = {}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        # removing a former mount point takes milliseconds; do it in the background
        self._sweeper = ThreadPoolExecutor(1, "sweeper")
        self._ready = Ready(sandbox={}, refused={})

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
        """Ends every run (each is then `lost`) and the zygote; may be called twice."""
        with self._lock:
            self._closed = True
            process = self._process
        if process is not None:
            _end(process)
        self._sweeper.shutdown(cancel_futures=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def unsandboxed(self) -> str:
        """What of the sandbox a snippet runs without, and why; empty where it has all of it."""
        if self.sandbox == "none":
            return "all of it (--no-sandbox)"
        parts = self._ready["sandbox"].items()
        return ", ".join(f"{part} ({state})" for part, state in parts if state is not True)

    def run(self, run: Run) -> Outcome:
        """Runs one snippet and says what it did.

        If its zygote or keeper dies meanwhile, the run is made once more: the kernel may have
        killed it because another process used up the memory.

        Raises:
            KeepError: the scratch folder could not be kept as the run asks.
            ZygoteFailed: the toolchain's interpreter cannot be started.
        """
        outcome = self._run_once(run)
        if outcome.status == "lost" and not self._closed:
            outcome = self._run_once(run)
        return outcome

    def _run_once(self, run: Run) -> Outcome:
        number = next(self._numbers)
        scratch = self.folder / f"run{number}"
        try:
            report = self._ask(run, number, scratch)
            outcome = self._outcome(run, report, scratch)
            if run.keep and scratch.exists():
                self._keep(run, run.keep.absolute(), scratch)
            return outcome
        finally:
            with suppress(RuntimeError):  # closed meanwhile: the parent folder is removed
                self._sweeper.submit(shutil.rmtree, scratch, ignore_errors=True)

    def _ask(self, run: Run, number: int, scratch: Path) -> Report:
        """Has the zygote run a snippet, and waits for the report."""
        if self._closed:
            return {"status": "lost", "message": "cancelled"}
        try:
            for folder in (scratch, scratch / "work", scratch / "cache", scratch / "tmp"):
                folder.mkdir()
            (scratch / run.file_name).write_text(run.source, "utf-8")
        except OSError as error:
            return {"status": "lost", "message": f"no scratch folder: {error}"}
        reports = Reports()
        request = json.dumps(self._request(run, number, scratch))
        try:
            with self._lock:
                process = self._zygote()
                self._waiting[number] = process, reports
                assert process.stdin is not None
                process.stdin.write(request.encode() + b"\n")
                process.stdin.flush()
        except OSError:
            return {"status": "lost", "message": "the zygote died"}
        return reports.get()

    def _request(self, run: Run, number: int, scratch: Path) -> Request:
        file, program = str(scratch / run.file_name), str(scratch / "program")
        is_python = run.language == "python"
        limits = self.running
        memory = limits.gpu_memory_gib if run.gpus else limits.memory_gib
        return Request(
            id=number,
            language=run.language,
            isolation=run.isolation,
            tool=list(run.tool) if is_python else [],
            commands=[] if is_python else run.commands(self.python, file, program),
            file=file,
            scratch=str(scratch),
            work=str(scratch / "work"),
            modules=str(self.path),
            output=str(scratch / "output"),
            shared_tmp=str(self.folder / "tmp"),
            env=snippet_environment(self._base, run, scratch, self.path),
            timeout=run.timeout,
            limits=Limits(
                memory=int(memory * GIB),
                file=int(limits.file_gib * GIB),
                processes=limits.processes,
                user_processes=limits.processes + OTHER_PROCESSES,
            ),
            sandbox=self.sandbox != "none",
            network=run.network,
        )

    def _outcome(self, run: Run, report: Report, scratch: Path) -> Outcome:
        paths = {
            str(scratch / run.file_name): run.display_path,
            str(scratch): "<scratch>",
            str(self.path / "kbtools"): "<kbtools>",  # the helper that snippets import
        }
        clean = self._redaction.with_paths(paths)
        if report.get("status") == "lost" and _is_full(self.folder):
            report = {**report, "message": "the disk is full"}
        observed = Outcome(
            "lost",
            output=clean(head_and_tail(scratch / "output", self.running.output_kib * 1024)),
            targets=targets_of(run, {**self._base, **run.env}, scratch),
            unsandboxed=self.unsandboxed,
        )
        return outcome_of(report, observed, clean)

    def _keep(self, run: Run, folder: Path, scratch: Path) -> None:
        """Moves the scratch folder of a run that has ended to the folder that it asks for.

        Raises:
            KeepError: the folder cannot be written.
        """
        again = folder / "again"
        kept.keep(
            folder,
            scratch=scratch,
            modules=self.path,
            file_name=run.file_name,
            source=run.source,
            article=run.display_path,
            environment=snippet_environment(self._base, run, again, folder / "path"),
            commands=run.commands(self.python, str(folder / run.file_name), str(again / "program")),
        )

    def _zygote(self) -> subprocess.Popen[bytes]:
        """The zygote, started if there is none; the caller holds the lock."""
        if self._closed:
            raise OSError("closed")
        if self._process is None or self._process.poll() is not None:
            self._process = self._start()
        return self._process

    def _start(self) -> subprocess.Popen[bytes]:
        log = self.folder / "zygote.log"
        readable = json.dumps(self.running.readable)
        with log.open("ab") as errors:
            process = subprocess.Popen(
                [self.python, str(ZYGOTE), ",".join(self.preload), str(self.folder), readable],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self._base
                | {
                    # torch then asks NVML whether there is a GPU, and a fork can still use CUDA
                    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
                    # a module may store this path: each snippet finds its own folder there
                    "TMPDIR": str(self.folder / "tmp"),
                },
                start_new_session=True,
            )
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            _end(process)
            text = log.read_text("utf-8", "replace")
            raise ZygoteFailed(f"{self.python} could not start:\n{text[-2000:]}")
        self._ready = msgspec.json.decode(line, type=Ready)
        if self.sandbox == "required" and self.unsandboxed:
            self._closed = True
            _end(process)
            raise ZygoteFailed(
                f"this machine does not let {self.python} shut snippets in, as --require-sandbox"
                f" demands: {self.unsandboxed}; docs/sandbox.md says what it takes"
            )
        for name, why in self._ready["refused"].items():
            warnings.warn(f"run.preload: `{name}`: {why}", PreloadWarning, stacklevel=2)
        threading.Thread(target=self._pump, args=(process,), daemon=True).start()
        return process

    def _pump(self, process: subprocess.Popen[bytes]) -> None:
        """Hands each report to the thread that waits for it, until the zygote has ended."""
        assert process.stdout is not None
        for line in process.stdout:
            try:
                report = msgspec.json.decode(line, type=Report)
            except msgspec.MsgspecError:  # nothing that it says can be relied upon any more
                process.kill()
                break
            with self._lock:
                waiting = self._waiting.pop(report["id"], None)
            if waiting:
                waiting[1].put(report)
        with self._lock:  # another zygote may be at work already
            orphans = [number for number, (zygote, _) in self._waiting.items() if zygote is process]
            queues = [self._waiting.pop(number)[1] for number in orphans]
        for reports in queues:
            reports.put({"status": "lost", "message": "the zygote died"})


def _is_full(folder: Path) -> bool:
    return shutil.disk_usage(folder).free < 1 << 20


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks the zygote to end by closing its input; it ends its keepers, they their snippets."""
    if process.stdin:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(DYING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
