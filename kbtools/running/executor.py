"""The runs of one toolchain, each asked of a zygote."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from kbtools.config import Running
from kbtools.outcome import Isolation, Outcome
from kbtools.running import kept
from kbtools.running.environment import base_environment, gpu_names, snippet_environment
from kbtools.running.gpu_devices import files_of_others, gpu_devices
from kbtools.running.model import Run
from kbtools.running.outcomes import outcome_of, targets_of
from kbtools.running.output import Redaction, head_and_tail
from kbtools.running.protocol import Limits, Report, Request, SandboxParts
from kbtools.running.store_keeper import StoreKeeper
from kbtools.running.toolchain_store import OpenStore, StoreError, StoreOrder
from kbtools.running.zygote_process import ZygoteFailed, ZygoteProcess

FOLDER = Path(__file__).parent
REPRO = FOLDER.parent / "repro.py"
GIB = 1 << 30
OTHER_PROCESSES = 4096
"""Processes of the same user outside a run: the kernel's limit counts all of a user's."""
Sandbox = Literal["required", "where allowed", "none"]
"""`required`: nothing is run where the kernel refuses a part; `where allowed`: snippets run without
the parts that it refuses; `none`: no part is used."""


class PreloadWarning(UserWarning):
    """A module of `run.preload` could not be imported: each snippet imports it again, slowly."""


class StoreWarning(UserWarning):
    """The store of a toolchain cannot be filled or used: every snippet makes its files anew."""


class Executor:
    """Runs snippets on one toolchain, any number at a time; safe to use from several threads.

    Use it as a context manager: leaving it ends every process and removes every file it made.

        with Executor(sys.executable, config.run) as executor:
            outcome = executor.run(Run("assert 1", "python", "kb/KB0001-an-article.md"))

    python: the toolchain's interpreter.
    running: the table `[run]`: limits, variables, readable folders.
    preload: modules that the zygote imports once, as in `torch` or `module:function`.
    sandbox: what to do where the kernel refuses a part of it.
    store: what is made once for all snippets. Without the sandbox it is neither filled nor used.
    stored_preload: modules for the zygote of the runs that use the store.
    """

    def __init__(
        self,
        python: str,
        running: Running,
        *,
        preload: Sequence[str] = (),
        sandbox: Sandbox = "where allowed",
        store: StoreOrder | None = None,
        stored_preload: Sequence[str] = (),
    ) -> None:
        self.python = python
        self.running = running
        self.sandbox = sandbox
        self._store_order = store if sandbox != "none" else None
        self.preload, self.stored_preload = tuple(preload), tuple(stored_preload)
        if self._store_order is None:  # one zygote for all
            self.preload = tuple(dict.fromkeys((*preload, *stored_preload)))
        self._store_keeper: StoreKeeper | None = None
        self._numbers = itertools.count(1)
        self._zygotes: dict[tuple[tuple[str, ...], bool], ZygoteProcess] = {}
        """By the modules that they import first, and whether they show the store."""
        self._warned_of: set[ZygoteProcess] = set()
        self._lock = threading.Lock()
        self._closed = False
        # removing a former mount point takes milliseconds; do it in the background
        self._sweeper = ThreadPoolExecutor(1, "sweeper")
        self._sandbox_parts: SandboxParts = {}

    def __enter__(self) -> Self:
        self._redaction = Redaction(self.python)
        self._base = base_environment(self.python, self.running)
        self._gpu_devices = gpu_devices()
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
        if self._store_order:
            self._store_keeper = StoreKeeper(self._store_order, self.python, self._base)
            self._opener = threading.Thread(target=self._store, name="store")
            self._opener.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends every run (each is then `lost`) and the zygotes; may be called twice."""
        with self._lock:
            self._closed = True
            zygotes = list(self._zygotes.values())
        if self._store_keeper:
            self._store_keeper.stop()
        for zygote in zygotes:
            zygote.ask_to_end()
        for zygote in zygotes:
            zygote.end()
        if self._store_keeper:
            self._store_keeper.close()
        self._sweeper.shutdown(cancel_futures=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def unsandboxed(self) -> str:
        """What of the sandbox a snippet runs without, and why; empty where it has all of it."""
        if self.sandbox == "none":
            return "all of it (--no-sandbox)"
        parts = self._sandbox_parts.items()
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

    def prepare_forks(self, *, stored: bool = False) -> None:
        """Starts a zygote that preloads, unless there is one, and waits until it can fork.

        Args:
            stored: Whether it is the one for snippets that use the store, which is waited for.

        Raises:
            ZygoteFailed: the toolchain's interpreter cannot be started.
        """
        with suppress(OSError):  # closed meanwhile
            self._zygote("fork", stored=stored)

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
            for name, content in run.files.items():
                (scratch / "work" / name).write_bytes(content)
        except OSError as error:
            return {"status": "lost", "message": f"no scratch folder: {error}"}
        try:
            zygote = self._zygote(run.isolation, stored=run.stored)
            store = self._store() if zygote.ready()["store"] else None
            if store:
                store.link_into(scratch)
        except OSError:
            return {"status": "lost", "message": "the zygote died"}
        base = self._base | (self._store_variables if store else {})
        return zygote.ask(self._request(run, number, scratch, base))

    @property
    def _store_variables(self) -> dict[str, str]:
        """Variables of whatever finds the store."""
        return self._store_order.settings.environment if self._store_order else {}

    def _store(self) -> OpenStore | None:
        """The toolchain's store; filled first if it is worth it, for which the caller waits."""
        try:
            return self._store_keeper.open() if self._store_keeper else None
        except StoreError as error:
            if not self._closed:
                warnings.warn(f"run.store: {error}", StoreWarning, stacklevel=2)
            return None

    def _request(self, run: Run, number: int, scratch: Path, base: dict[str, str]) -> Request:
        file, program = str(scratch / run.file_name), str(scratch / "program")
        is_python = run.language == "python"
        limits = self.running
        memory = limits.gpu_memory_gib if run.gpus else limits.memory_gib
        hidden = self._other_gpus(run)
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
            env=snippet_environment(
                base, run, scratch, self.path, self.running, others_hidden=bool(hidden)
            ),
            timeout=run.timeout,
            limits=Limits(
                memory=int(memory * GIB),
                file=int(limits.file_gib * GIB),
                processes=limits.processes,
                user_processes=limits.processes + OTHER_PROCESSES,
            ),
            sandbox=self.sandbox != "none",
            network=run.network,
            hidden_devices=hidden,
        )

    def _other_gpus(self, run: Run) -> list[str]:
        """The device files of GPUs that are not the run's, if its sandbox can hide them."""
        if not run.gpus or self.sandbox == "none" or self._sandbox_parts.get("sight") is not True:
            return []
        return files_of_others(self._gpu_devices, gpu_names(self._base, run), run.gpus)

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
            files=run.files,
            article=run.display_path,
            environment=snippet_environment(self._base, run, again, folder / "path", self.running),
            commands=run.commands(self.python, str(folder / run.file_name), str(again / "program")),
        )

    def _zygote(self, isolation: Isolation | None, *, stored: bool) -> ZygoteProcess:
        """The zygote for a run, ready to fork; started if there is none.

        A run that is no fork of what was preloaded waits neither until that is imported nor until
        the store is filled.

        Args:
            isolation: Of the run.
            stored: Whether the run uses the store.

        Raises:
            OSError: the executor is closed.
            ZygoteFailed: the toolchain's interpreter cannot be started.
        """
        stored, forks = stored and self._store_keeper is not None, isolation == "fork"
        preload = (self.stored_preload if stored else self.preload) if forks else ()
        store = None
        if stored and self._store_keeper:
            store = self._store() if forks else self._store_keeper.open_unless_filling()
        key = preload, store is not None
        with self._lock:
            if self._closed:
                raise OSError("closed")
            zygote = self._zygotes.get(key)
            if zygote is None or not zygote.is_alive:
                zygote = self._zygotes[key] = self._start(preload, store)
        try:
            ready = zygote.ready()
        except ZygoteFailed:
            if self._closed:  # it was ended before it could fork
                raise OSError("closed") from None
            raise
        self._sandbox_parts = ready["sandbox"]
        if self.sandbox == "required" and self.unsandboxed:
            self._closed = True
            raise ZygoteFailed(
                f"this machine does not let {self.python} shut snippets in, as --require-sandbox"
                f" demands: {self.unsandboxed}; docs/sandbox.md says what it takes"
            )
        self._warn_of(zygote, ready["refused"])
        return zygote

    def _start(self, preload: Sequence[str], store: OpenStore | None) -> ZygoteProcess:
        # a module may store this path: each snippet finds its own folder there
        shared = {"TMPDIR": str(self.folder / "tmp")}
        environment = self._base | shared | self.running.preload_variables
        readable, guards = self.running.readable, self.running.preload_guards
        shown = (str(store.folder), self._store_variables) if store else ("", {})
        return ZygoteProcess(
            self.python, preload, self.folder, readable, environment, shown, guards
        )

    def _warn_of(self, zygote: ZygoteProcess, refused: dict[str, str]) -> None:
        """Says once what a zygote could not import, and why."""
        with self._lock:
            is_new = zygote not in self._warned_of
            self._warned_of.add(zygote)
        for name, why in refused.items() if is_new else ():
            warnings.warn(f"run.preload: `{name}`: {why}", PreloadWarning, stacklevel=2)


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < 1 << 20
    except FileNotFoundError:  # closed meanwhile
        return False
