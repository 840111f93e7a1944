"""Runs a program as if nothing stood around it, and keeps both ends of what it prints.

The program gets the same standard input, process group and terminal. `streams` passes on what it
prints. Linux only. Beside it only the standard library is imported, and little of that: imports are
part of what `kbtools run` costs.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import Any, NamedTuple

from kbtools.integrations.streams import FileTail, StreamTee, copy_size, open_streams

PR_SET_PDEATHSIG = 1
"""From <sys/prctl.h>: the signal that a process gets when its parent dies."""

FAULTS = {
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT),
    *(signal.SIGTRAP, signal.SIGSYS, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGXCPU),
}
"""Signals that say what this process did itself: none of them is for the program."""
NOT_CAUGHT = {*FAULTS, signal.SIGKILL, signal.SIGSTOP, signal.SIGTTIN, signal.SIGTTOU}


class Sender(Enum):
    """Who sent us a signal."""

    KERNEL = auto()
    """Also for the terminal: Ctrl-C goes to the whole group, so the program has it already."""
    PROGRAM = auto()
    """The program or a process below it: what it sends to its group, it has itself."""
    OUTSIDE = auto()
    """Another process, to us alone: the program does not know of it."""


class Action(Enum):
    """What we do about a signal."""

    REAP = auto()
    """Look whether the program has ended or stopped."""
    RESIZE = auto()
    """Give the pseudo-terminals the new size, then forward the signal."""
    FORWARD = auto()
    """Send the signal to the program."""
    IGNORE = auto()
    """Do nothing: the program has had the signal."""


ACTIONS: dict[int, dict[Sender, Action]] = {
    signal.SIGCHLD: dict.fromkeys(Sender, Action.REAP),
    # also if the program has it from the terminal: it may have asked its own one for the size
    # before that had the new one
    signal.SIGWINCH: dict.fromkeys(Sender, Action.RESIZE),
    # a program that runs loses nothing by a second one; one that missed it would stay stopped
    signal.SIGCONT: dict.fromkeys(Sender, Action.FORWARD),
}
"""Signal → sender → action, where it is not OTHER_SIGNALS."""
OTHER_SIGNALS = {
    Sender.KERNEL: Action.IGNORE,
    Sender.PROGRAM: Action.IGNORE,
    Sender.OUTSIDE: Action.FORWARD,
}
"""Sender → action for all other signals: the program gets each of them exactly once."""


class ProgramEnd(NamedTuple):
    """How a program ended, and what it printed."""

    code: int
    """Its exit code; after a signal, 128 and the number of the signal, as in a shell."""
    signal: int
    """The signal that ended it; 0 if it exited."""
    out: bytes
    """Both ends of its standard output; empty where both streams are one."""
    err: bytes
    """Both ends of its standard error, or of the one stream that both are."""


def run(command: Sequence[str]) -> ProgramEnd:
    """Runs a program to its end; the program gets the signals that we get meanwhile.

    Raises:
        OSError: it cannot be started.
    """
    streams = open_streams()
    tees = {stream for stream in streams.values() if isinstance(stream, StreamTee)}
    caught = signal.valid_signals() - NOT_CAUGHT
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, caught)
    # if SIGCHLD were ignored, we could not wait for the program
    old_handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL) or signal.SIG_DFL
    try:
        program = _start(command, streams, _child_setup(old_mask, old_handler))
        for tee in tees:
            tee.start()
        code, number = _wait(program.pid, [tee for tee in tees if os.isatty(tee.target)])
        program.returncode = code  # `_wait` has reaped it: subprocess need not
        ends = {
            descriptor: stream.finish()
            for descriptor, stream in streams.items()
            if descriptor == stream.target
        }
        _copy_in_background([tee for tee in tees if tee.is_open])
        while signal.sigtimedwait(caught, 0):
            pass  # these came too late for the program
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
    if ends.keys() == {1} and streams.get(2):
        return ProgramEnd(code, number, b"", ends[1])
    return ProgramEnd(code, number, ends.get(1, b""), ends.get(2, b""))


def _start(
    command: Sequence[str],
    streams: dict[int, StreamTee | FileTail],
    child_setup: Callable[[], None],
) -> subprocess.Popen[bytes]:
    out, err = (
        stream.write_end if isinstance(stream, StreamTee) else None
        for stream in map(streams.get, (1, 2))
    )

    def start(words: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words, stdout=out, stderr=err, close_fds=False, preexec_fn=child_setup
        )

    try:
        return start(command)
    except OSError as error:
        # a script without a `#!` line: shells run it with /bin/sh
        if error.errno != errno.ENOEXEC or "/" not in command[0]:
            raise
        return start(["/bin/sh", *command])


def _child_setup(old_mask: set[int], old_handler: Any) -> Callable[[], None]:
    """What the program's process does first: it dies with us, and has our signals as they were."""
    import ctypes

    prctl = ctypes.CDLL(None).prctl

    def child_setup() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, old_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)

    return child_setup


def _wait(program: int, terminals: Sequence[StreamTee]) -> tuple[int, int]:
    """Waits for the end of the program, and acts on our signals meanwhile.

    Returns its exit code and the signal that ended it, as `ProgramEnd` has them.
    """
    caught = signal.valid_signals() - NOT_CAUGHT
    while True:
        received = signal.sigwaitinfo(caught)
        action = _action(received, program)
        if action is Action.REAP and (end := _reap(program)):
            return end
        if action is Action.RESIZE:
            for tee in terminals:
                copy_size(tee.target, tee.read_end)
        if action in (Action.RESIZE, Action.FORWARD):
            with suppress(ProcessLookupError):
                os.kill(program, received.si_signo)


def _action(received: signal.struct_siginfo, program: int) -> Action:
    if received.si_code > 0:  # negative or 0 (SI_USER): a process called kill() or the like
        sender = Sender.KERNEL
    elif _is_below(received.si_pid, program):
        sender = Sender.PROGRAM
    else:
        sender = Sender.OUTSIDE
    return ACTIONS.get(received.si_signo, OTHER_SIGNALS)[sender]


def _reap(program: int) -> tuple[int, int] | None:
    """The program's exit code and signal if it has ended; stops with it if it was stopped."""
    flags = os.WEXITED | os.WSTOPPED | os.WNOHANG
    while child := os.waitid(os.P_PID, program, flags):
        if child.si_code == os.CLD_EXITED:
            return child.si_status, 0
        if child.si_code in (os.CLD_KILLED, os.CLD_DUMPED):
            return 128 + child.si_status, child.si_status
        _stop(child.si_status)
    return None


def _stop(number: int) -> None:
    """Stops us as the program was stopped; returns when we are continued, with the program."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    if number != signal.SIGSTOP:
        signal.pthread_sigmask(signal.SIG_BLOCK, {number} - NOT_CAUGHT)


def _is_below(process: int, program: int) -> bool:
    """Whether a process is the program, or one that it started."""
    while process > 1 and process != program:
        try:
            with open(f"/proc/{process}/stat", "rb") as file:
                process = int(file.read().rpartition(b") ")[2].split()[1])
        except OSError:
            return False
    return process == program


def _copy_in_background(tees: Sequence[StreamTee]) -> None:
    """Leaves a process for each stream that children of the ended program may still print into."""
    for tee in tees:
        if os.fork() == 0:
            try:
                for sibling in {*tees} - {tee}:
                    os.close(sibling.read_end)
                tee.copy_to_end()
            finally:
                os._exit(0)
