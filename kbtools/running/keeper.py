"""The keeper: it runs a snippet, holds it to its limits and reports what it did.

A keeper adopts whatever the snippet leaves behind, and ends it all before the next snippet. It is
a fork of the zygote. Standard library only.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time

import child
import filesystem_view

TYPE_CHECKING = False  # see zygote.py
if TYPE_CHECKING:
    from sandbox import Shared

    from kbtools.running.protocol import Ending, Ready, Report, Request

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
TICK = 0.5
"""Seconds between two looks at how many processes a snippet has."""
SWEEP = 20.0
"""Seconds that killed processes may take to end; one with a kernel on a GPU takes longest."""
LONGEST_ENDING = 3000
"""Bytes of what a snippet says of its end. A report of this size fits a pipe's atomic write."""


def keep_all(requests: int, idle: int, shared: Shared, replies: int) -> None:
    """Keeps one snippet after the other, until the zygote closes the pipe or is gone.

    requests, idle, replies: the pipes of requests, of ids of idle keepers, and of reports.
    """
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signals = {signal.SIGCHLD, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    for number in signals:
        signal.signal(number, signal.SIG_DFL)
    own_id = b"%d " % os.getpid()
    with os.fdopen(requests, "rb") as lines:
        for line in lines:
            report = keep(json.loads(line), shared, signals)
            os.write(idle, own_id)  # first: who reads the report may ask again at once
            write_line(replies, report)


def keep(request: Request, shared: Shared, signals: set[signal.Signals]) -> Report:
    """Runs one snippet, holds it to its limits, ends all that it leaves; what it did.

    Args:
        request: What to run, and its limits.
        shared: The part of the sandbox that all snippets share.
        signals: Blocked in this process and waited for.
    """
    reading, writing = os.pipe()
    started, used_before = time.monotonic(), cpu_seconds_of_children()
    snippet = os.fork()
    if snippet == 0:
        try:
            os.dup2(writing, child.ENDING)
            child.become_snippet(request, shared)
        except BaseException as error:  # never let a child run on as a second keeper
            why = "the snippet could not be started: %r" % error
            os.write(child.ENDING, json.dumps({"unstarted": why[:400]}).encode())
        finally:
            os._exit(125)
    os.close(writing)
    os.set_blocking(reading, False)
    report: Report = {"id": request["id"]}
    status, usage = watch(snippet, request, report, started, signals)
    report["seconds"] = round(time.monotonic() - started, 4)
    try:
        os.killpg(snippet, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    end_descendants()
    # what the keeper reaps counts, too: `wait4` says nothing of a snippet that had to be ended
    report["cpu_seconds"] = round(cpu_seconds_of_children() - used_before, 4)
    report["wait"] = status
    if usage:
        report["peak_kib"] = usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    report["ending"] = read_ending(reading)
    os.close(reading)
    if "unstarted" in report["ending"]:
        report.update({"status": "lost", "message": report["ending"]["unstarted"]})
    elif report.get("status") != "lost":
        report["isolation"] = request["isolation"]
    return report


def watch(
    snippet: int,
    request: Request,
    report: Report,
    started: float,
    signals: set[signal.Signals],
) -> tuple[int | None, resource.struct_rusage | None]:
    """Waits for the snippet, or for the reason to end it, which it notes in the report.

    Returns the snippet's status and what it used; None where it has to be ended.

    Args:
        snippet: The process id of the child.
        request: Its limits; the time limit is in seconds.
        report: Takes the reason, where the child has to be ended.
        started: Seconds of the monotonic clock at the fork.
        signals: Blocked in this process and waited for.
    """
    limits, deadline = request["limits"], started + request["timeout"]
    look = started + TICK
    while True:
        pid, status, usage = os.wait4(snippet, os.WNOHANG)
        if pid:
            return status, usage
        now = time.monotonic()
        if now >= deadline:
            report.update(
                {"status": "timeout", "message": "time limit of %g s" % request["timeout"]}
            )
            return None, None
        if now >= look:
            look = now + TICK
            if len(descendants()) > limits["processes"]:
                message = "limit of %d processes" % limits["processes"]
                report.update({"status": "limit", "message": message})
                return None, None
        if wait_for(signals, max(0.0, min(deadline, look) - now)) == signal.SIGTERM:
            report.update({"status": "lost", "message": "cancelled"})
            return None, None


def cpu_seconds_of_children() -> float:
    """CPU seconds of every process below this one that was waited for, and of those it reaped."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def read_ending(descriptor: int) -> Ending:
    """What the snippet said of its end. It may have written anything there."""
    try:
        text = os.read(descriptor, LONGEST_ENDING)
        ending = json.loads(text)
    except (BlockingIOError, ValueError, RecursionError):
        return {}
    if not isinstance(ending, dict):
        return {}
    raised = ending.get("raised", [])
    well_formed = (
        isinstance(ending.get("end", False), bool)
        and isinstance(raised, list)
        and all(isinstance(name, str) for name in raised)
        and isinstance(ending.get("message", ""), str)
        and isinstance(ending.get("unstarted", ""), str)
        and len(json.dumps(ending)) <= LONGEST_ENDING  # what is not ASCII is written longer
    )
    return ending if well_formed else {}  # type: ignore[return-value]


def wait_for(signals: set[signal.Signals], seconds: float) -> int | None:
    """The signal that came within so many seconds, or None."""
    if sys.platform == "linux":
        info = signal.sigtimedwait(signals, seconds)
        return info.si_signo if info else None
    time.sleep(min(seconds, 0.01))  # macOS has no sigtimedwait
    return next((number for number in signal.sigpending() if number == signal.SIGTERM), None)


def descendants() -> list[int]:
    """Process ids of everything below this process."""
    offspring: dict[int, list[int]] = {}
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
        offspring.setdefault(int(fields[1]), []).append(pid)
    below: list[int] = []
    generation = [os.getpid()]
    while generation:
        generation = [born for pid in generation for born in offspring.get(pid, [])]
        below += generation
    return below


def end_descendants() -> None:
    """Kills and reaps everything below this process, adopted orphans too."""
    deadline = time.monotonic() + SWEEP
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        for pid in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.002)


def prctl(option: int, value: int) -> None:
    """A switch of this process; nothing where the system has none."""
    if sys.platform == "linux":
        filesystem_view.libc.prctl(option, int(value), 0, 0, 0)


def write_line(replies: int, message: Ready | Report) -> None:
    """Writes one line; a pipe's atomic write, so that keepers need no lock between them."""
    os.write(replies, json.dumps(message).encode() + b"\n")
