"""Imports the heavy modules once, then forks one child per snippet. Standard library only.

Run by the toolchain's own interpreter, Python 3.9 or newer. Reads requests and writes replies,
one JSON object a line. Between the zygote and each snippet stands a *keeper*: a process that adopts
whatever the snippet leaves behind, holds it to its limits, ends it all, and reports what it saw.

    zygote ── keeper ── snippet ── anything it starts

A keeper has one snippet at a time and, when nothing of that one is left, the next: to fork keepers
anew for each would be two fifths of what a small snippet costs.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import shutil
import signal
import sys
import time
import types

import child
import filesystem_view
import sandbox

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
TICK = 0.5  # seconds between two looks at what a snippet holds
SWEEP = 20.0  # seconds that a killed process may take to be gone (a kernel on a GPU, say)


def main() -> None:
    """Serves requests, the modules named on the command line imported."""
    sys.path.pop(0)  # this folder, which no snippet should import from
    folder = sys.argv[2] if len(sys.argv) > 2 else ""
    readable = json.loads(sys.argv[3]) if len(sys.argv) > 3 else []
    serve([name for name in sys.argv[1].split(",") if name], prepared(folder, readable))
    if folder:  # its owner may have been killed
        shutil.rmtree(folder, ignore_errors=True)


# The zygote


def serve(preload: list[str], shared: types.SimpleNamespace) -> None:
    """Answers requests until standard input ends, then ends what still runs."""
    replies = os.dup(1)
    os.dup2(2, 1)  # whatever a module prints while it is imported is no reply
    os.set_inheritable(replies, False)
    imported, refused = [], {}
    for name in preload:
        try:
            module, _, function = name.partition(":")
            found = importlib.import_module(module)
            if function:
                getattr(found, function)()
            imported.append(name)
        except Exception as error:  # a broken module is the snippets' business, not ours
            refused[name] = "%s: %s" % (type(error).__name__, error)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise SystemExit("importing %s initialised CUDA: no child could use it" % imported)
    say(replies, ready=True, preloaded=imported, refused=refused, sandbox=shared.allowed)
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # for what a keeper had adopted, should one be killed
    compile("", "<nothing>", "exec")  # makes the compiler's 120 types, once and not in every fork
    gc.collect()
    gc.freeze()  # pages that the collector never touches stay shared with the children
    gc.disable()  # until a snippet's own code begins
    wake, woken = os.pipe()
    for end in (wake, woken):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us to handle
    keepers = Keepers(shared, replies)
    buffer = b""
    while True:
        readable, _, _ = select.select([0, wake, keepers.idle], [], [])
        if wake in readable:
            os.read(wake, 4096)
            keepers.reap()
        if keepers.idle in readable:
            keepers.note_idle()
        if 0 in readable:
            chunk = os.read(0, 1 << 20)
            if not chunk:
                break
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                keepers.ask(line + b"\n")
    keepers.end()
    sweep()


def say(replies: int, **message: object) -> None:
    """Writes one line; short enough (a pipe's atomic write) to need no lock between keepers."""
    os.write(replies, json.dumps(message).encode() + b"\n")


class Keepers:
    """The keepers there are. Each keeps one snippet at a time, and is asked again when idle."""

    def __init__(self, shared: types.SimpleNamespace, replies: int) -> None:
        self.shared, self.replies = shared, replies
        self.idle, self.told_idle = os.pipe()
        self.asked: dict[int, int] = {}  # process → the pipe that it is asked by
        self.busy: dict[int, int] = {}  # process → the number of what it was asked for

    def ask(self, line: bytes) -> None:
        """Hands a request to an idle keeper, or to a new one."""
        number = json.loads(line)["id"]
        while True:
            waiting = [pid for pid in self.asked if pid not in self.busy]
            pid = waiting[0] if waiting else self.start()
            try:
                os.write(self.asked[pid], line)
            except BrokenPipeError:  # it was killed, and is not buried yet
                os.close(self.asked.pop(pid))
                continue
            self.busy[pid] = number
            return

    def start(self) -> int:
        """Forks a keeper."""
        sys.stdout.flush()
        sys.stderr.flush()
        requests, asked = os.pipe()
        pid = os.fork()
        if pid:
            os.close(requests)
            self.asked[pid] = asked
            return pid
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for ours in (asked, self.idle, *self.asked.values()):
                os.close(ours)  # so that it sees the zygote's end, whatever other keepers live
            keep_all(requests, self.told_idle, self.shared, self.replies)
            status = 0
        finally:
            os._exit(status)

    def note_idle(self) -> None:
        """Reads which keepers have done what they were asked for."""
        for word in os.read(self.idle, 1 << 16).split():  # all that a pipe holds: no half word
            self.busy.pop(int(word), None)

    def reap(self) -> None:
        """Buries keepers, and what they had adopted; speaks for one that could not."""
        self.note_all_idle()
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.asked:
                os.close(self.asked.pop(pid))
            number = self.busy.pop(pid, None)
            if number is not None:
                message = "its keeper died (status %d)" % status
                say(self.replies, id=number, status="lost", message=message)

    def note_all_idle(self) -> None:
        """One that told its end and then died owes nothing."""
        while select.select([self.idle], [], [], 0)[0]:
            self.note_idle()

    def end(self) -> None:
        """Has every keeper end its snippet and itself."""
        for pid, asked in self.asked.items():
            os.close(asked)
            os.kill(pid, signal.SIGTERM)
        for pid in self.asked:
            os.waitpid(pid, 0)


# The keeper


def keep_all(requests: int, idle: int, shared: types.SimpleNamespace, replies: int) -> None:
    """Keeps one snippet after the other, until the zygote closes the pipe or is gone."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signals = {signal.SIGCHLD, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    for number in signals:
        signal.signal(number, signal.SIG_DFL)
    me = b"%d " % os.getpid()
    with os.fdopen(requests, "rb") as lines:
        for line in lines:
            report = keep(json.loads(line), shared, signals)
            os.write(idle, me)  # first: whoever hears the reply may ask again at once
            say(replies, **report)


def keep(request: dict, shared: types.SimpleNamespace, signals: set) -> dict:
    """Runs one snippet, holds it to its limits, ends all it leaves; what it did."""
    heard, told = os.pipe()
    started = time.monotonic()
    snippet = os.fork()
    if snippet == 0:
        try:
            os.dup2(told, child.TOLD)
            child.become_snippet(request, shared)
        except BaseException as error:  # never let a child run on as a second keeper
            why = "the snippet could not be started: %r" % error
            os.write(child.TOLD, json.dumps({"unstarted": why[:400]}).encode())
        finally:
            os._exit(125)
    os.close(told)
    os.set_blocking(heard, False)
    report: dict = {"id": request["id"]}
    pid, status, usage = watch(snippet, request, report, started, signals)
    report["seconds"] = round(time.monotonic() - started, 4)
    try:
        os.killpg(snippet, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    report["left"] = len(sweep() - {snippet})
    if not pid:  # ended by us: buried in the sweep
        status = None
    else:
        report["peak_kib"] = usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    report["wait"] = status
    try:
        report["told"] = json.loads(os.read(heard, 3000) or b"{}")
    except (BlockingIOError, ValueError):
        report["told"] = {}
    os.close(heard)
    if "unstarted" in report["told"]:
        report.update(status="lost", message=report["told"]["unstarted"])
    elif report.get("status") != "lost":
        report["isolation"] = request["isolation"]
    return report


def watch(snippet: int, request: dict, report: dict, started: float, signals: set) -> tuple:
    """Waits for the snippet, or for the reason to end it, which it notes in the report."""
    limits, deadline = request["limits"], started + request["timeout"]
    look = started + TICK
    while True:
        pid, status, usage = os.wait4(snippet, os.WNOHANG)
        if pid:
            return pid, status, usage
        now = time.monotonic()
        if now >= deadline:
            report.update(status="timeout", message="time limit of %g s" % request["timeout"])
            return 0, None, None
        if now >= look:
            look = now + TICK
            if len(family()) > limits["processes"]:
                message = "limit of %d processes" % limits["processes"]
                report.update(status="limit", message=message)
                return 0, None, None
        if wait_for(signals, max(0.0, min(deadline, look) - now)) == signal.SIGTERM:
            report.update(status="lost", message="cancelled")
            return 0, None, None


def wait_for(signals: set, seconds: float) -> int | None:
    """The signal that came within so many seconds, or None."""
    if hasattr(signal, "sigtimedwait"):
        info = signal.sigtimedwait(signals, seconds)
        return info.si_signo if info else None
    time.sleep(min(seconds, 0.01))  # macOS
    return next((n for n in signal.sigpending() if n == signal.SIGTERM), None)


def family() -> list[int]:
    """Process ids of everything below this process."""
    parents: dict[int, list[int]] = {}
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    for pid in pids:
        try:
            with open("/proc/%d/stat" % pid, "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(pid)
    below, new = [], [os.getpid()]
    while new:
        new = [offspring for pid in new for offspring in parents.get(pid, [])]
        below += new
    return below


def sweep() -> set[int]:
    """Kills and buries all below this process, the orphans it adopted too; their ids."""
    left: set[int] = set()
    deadline = time.monotonic() + SWEEP
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return left
        for pid in family():
            left.add(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.002)
    return left


def prctl(option: int, value: int) -> None:
    """A switch of this process; nothing where the system has none."""
    if sys.platform == "linux":
        filesystem_view.libc.prctl(option, int(value), 0, 0, 0)


# What the kernel allows


def prepared(folder: str, readable: list) -> types.SimpleNamespace:
    """What all snippets share of the sandbox: their view of the files, and what is allowed."""
    shared = types.SimpleNamespace(view=None, why="", readable=[], devices=[], allowed={})
    try:
        shared.view = filesystem_view.prepare(folder, readable)
        for there, wanted in zip((shared.view.user, shared.view.mounts), child.VIEW):
            os.dup2(there, wanted, inheritable=False)
            os.close(there)
        shared.view.user, shared.view.mounts = child.VIEW
    except OSError as error:
        shared.why = str(error)
    shared.allowed = sandbox_here(shared)
    if shared.allowed["sight"] is not True:  # then Landlock alone has to see to it
        shared.readable = filesystem_view.visible(readable)[0]
        shared.devices = [*filesystem_view.devices(), "/dev/shm", "/dev/pts", "/dev/ptmx"]
    return shared


def sandbox_here(shared: types.SimpleNamespace) -> dict:
    """What the kernel allows of the sandbox, tried in a child."""
    heard, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            found = sandbox.trial(shared)
        except BaseException as error:
            found = dict.fromkeys(("network", "sight", "files", "signals"), repr(error))
        try:
            os.write(told, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(told)
    os.waitpid(pid, 0)
    with os.fdopen(heard) as file:
        return json.loads(file.read())


if __name__ == "__main__":
    main()
