"""Runs a program as if nothing stood around it, and keeps both ends of what it prints.

The program gets the same standard input, process group and terminal. What it prints goes through a
pipe where it would go to one, through a pseudo-terminal where it would go to a terminal, and
straight on where it goes to a file. Linux only. The standard library only, and little of it: its
imports are part of what `kbtools run` costs.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import stat
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

HEAD, TAIL = 1 << 19, 3 << 19
"""Bytes kept of the beginning and of the end of a stream, as many as the matcher looks at."""
CHUNK = 1 << 20
SMALL, PAUSE = 1 << 13, 0.001
"""After fewer bytes than that, seconds to wait for more: a program that prints line by line is not
held up by a reader that wakes for each. What comes first is passed on at once."""
PR_SET_PDEATHSIG = 1

FAULTS = {
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT),
    *(signal.SIGTRAP, signal.SIGSYS, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGXCPU),
}
NOT_TAKEN = {*FAULTS, signal.SIGKILL, signal.SIGSTOP, signal.SIGTTIN, signal.SIGTTOU}


class Ended(NamedTuple):
    """How a program ended: with a code, or by a signal (then the code is that of a shell)."""

    code: int
    signal: int
    out: bytes
    """The ends of what it printed on standard output; nothing, where both streams are one."""
    err: bytes
    """The same of standard error."""


class Tap:
    """Passes on what is printed into one stream, in a thread, and keeps both ends of it."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.read, self.write = _terminal(target) if os.isatty(target) else _pipe()
        self.ended, self._ended = os.pipe()
        self.is_open = True
        """Whether somebody may still print into it."""
        self._head = bytearray()
        self._tail = bytearray()
        self._thread = threading.Thread(target=self.pass_on, daemon=True)

    def start(self) -> None:
        """Begins, once the program has its side."""
        os.close(self.write)
        self._thread.start()

    def finish(self) -> bytes:
        """Passes on what the program has left in it, and gives what is kept."""
        os.close(self._ended)
        self._thread.join()
        os.close(self.ended)
        return bytes(self._head + self._tail[-TAIL:])

    def pass_on(self) -> None:
        """Until nobody can print any more, or the program has ended and nothing is left."""
        ready = select.poll()
        ready.register(self.read, select.POLLIN)
        ready.register(self.ended, select.POLLIN)
        patience = None
        while True:
            found = [one for one, _ in ready.poll(patience)]
            if self.ended in found:
                ready.unregister(self.ended)
                patience = 0
            elif not found:
                return
            else:
                chunk = _read(self.read)
                self._keep(chunk)
                if not chunk or not _write(self.target, chunk):
                    # with the reading end closed, the program learns of it as it would without us
                    self.is_open = False
                    os.close(self.read)
                    return
                if len(chunk) < SMALL and patience is None:
                    time.sleep(PAUSE)

    def pass_on_to_the_end(self) -> None:
        """Until nobody can print any more; keeps nothing."""
        while (chunk := _read(self.read)) and _write(self.target, chunk):
            pass

    def _keep(self, chunk: bytes) -> None:
        if len(self._head) < HEAD:
            missing = HEAD - len(self._head)
            self._head += chunk[:missing]
            chunk = chunk[missing:]
        self._tail += chunk
        if len(self._tail) > 2 * TAIL:
            del self._tail[:-TAIL]


class Written:
    """The part of a file that a program writes: read afterwards, from the file."""

    def __init__(self, target: int) -> None:
        self.target = target
        appends = fcntl.fcntl(target, fcntl.F_GETFL) & os.O_APPEND
        self._start = os.fstat(target).st_size if appends else os.lseek(target, 0, os.SEEK_CUR)

    def finish(self) -> bytes:
        """Both ends of it; nothing where the file may not be read."""
        try:
            with open(f"/proc/self/fd/{self.target}", "rb") as file:
                file.seek(self._start)
                head = file.read(HEAD)
                end = file.seek(0, os.SEEK_END)
                file.seek(max(self._start + len(head), end - TAIL))
                return head + file.read(TAIL)
        except OSError:
            return b""


def run(command: Sequence[str]) -> Ended:
    """Runs a program to its end; signals that come meanwhile are its own.

    Raises:
        OSError: it cannot be started.
    """
    streams = _streams()
    taps = {one for one in streams.values() if isinstance(one, Tap)}
    taken = signal.valid_signals() - NOT_TAKEN
    before = signal.pthread_sigmask(signal.SIG_BLOCK, taken)
    # were it ignored, nobody could wait for the program
    children = signal.signal(signal.SIGCHLD, signal.SIG_DFL) or signal.SIG_DFL
    try:
        program = _start(command, streams, _as_before(before, children))
        for tap in taps:
            tap.start()
        code, by = _wait(program.pid, [tap for tap in taps if os.isatty(tap.target)])
        program.returncode = code  # it was waited for here
        kept = {stream: one.finish() for stream, one in streams.items() if stream == one.target}
        _leave([tap for tap in taps if tap.is_open])
        while signal.sigtimedwait(taken, 0):
            pass  # what came too late for the program
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if kept.keys() == {1} and streams.get(2):
        return Ended(code, by, b"", kept[1])
    return Ended(code, by, kept.get(1, b""), kept.get(2, b""))


def _streams() -> dict[int, Tap | Written]:
    """What looks at standard output and error: one for both where both are one, to keep order."""
    found: dict[int, Tap | Written] = {}
    known: dict[tuple[int, int, int], Tap | Written] = {}
    for stream in (1, 2):
        try:
            about = os.fstat(stream)
        except OSError:
            continue  # closed, and so it stays
        which = about.st_dev, about.st_ino, about.st_rdev
        if which in known:
            found[stream] = known[which]
        elif stat.S_ISREG(about.st_mode):
            found[stream] = known[which] = Written(stream)
        elif os.isatty(stream) or not stat.S_ISCHR(about.st_mode):
            found[stream] = known[which] = Tap(stream)
    return found


def _start(
    command: Sequence[str], streams: dict[int, Tap | Written], first: Callable[[], None]
) -> subprocess.Popen[bytes]:
    out, err = (one.write if isinstance(one, Tap) else None for one in map(streams.get, (1, 2)))

    def start(words: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(words, stdout=out, stderr=err, close_fds=False, preexec_fn=first)

    try:
        return start(command)
    except OSError as error:
        # a script without a first line: as shells do
        if error.errno != errno.ENOEXEC or "/" not in command[0]:
            raise
        return start(["/bin/sh", *command])


def _as_before(mask: set[int], children: Any) -> Callable[[], None]:
    """What the program's process does first: it ends with us, and has our signals as they were."""
    import ctypes

    prctl = ctypes.CDLL(None).prctl

    def first() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, children)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    return first


def _wait(program: int, terminals: Sequence[Tap]) -> tuple[int, int]:
    """The code and the signal with which a program ends; until then it gets our signals."""
    taken = signal.valid_signals() - NOT_TAKEN
    while True:
        about = signal.sigwaitinfo(taken)
        if about.si_signo == signal.SIGCHLD:
            flags = os.WEXITED | os.WSTOPPED | os.WNOHANG
            while child := os.waitid(os.P_PID, program, flags):
                if child.si_code == os.CLD_EXITED:
                    return child.si_status, 0
                if child.si_code in (os.CLD_KILLED, os.CLD_DUMPED):
                    return 128 + child.si_status, child.si_status
                _stop(child.si_status)
        elif about.si_signo == signal.SIGWINCH:
            for one in terminals:
                _same_size(one.target, one.read)
            _send(program, signal.SIGWINCH)
        elif about.si_signo == signal.SIGCONT or (
            # sent by a process, to us alone. What the terminal sends goes to the whole group, and
            # so does what the program sends to its own
            about.si_code <= 0 and not _is_below(about.si_pid, program)
        ):
            _send(program, about.si_signo)


def _stop(number: int) -> None:
    """Stops us as the program was stopped; goes on when we are continued, with the program."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    if number != signal.SIGSTOP:
        signal.pthread_sigmask(signal.SIG_BLOCK, {number} - NOT_TAKEN)


def _send(program: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(program, number)


def _is_below(process: int, program: int) -> bool:
    """Whether a process is the program, or one that it started."""
    while process > 1 and process != program:
        try:
            with open(f"/proc/{process}/stat", "rb") as file:
                process = int(file.read().rpartition(b") ")[2].split()[1])
        except OSError:
            return False
    return process == program


def _leave(taps: Sequence[Tap]) -> None:
    """What the program left running can go on printing: a process of ours stays for that."""
    for tap in taps:
        if os.fork() == 0:
            try:
                for other in {*taps} - {tap}:
                    os.close(other.read)
                tap.pass_on_to_the_end()
            finally:
                os._exit(0)


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    with suppress(OSError):  # more than this user may have: the usual size will do
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, CHUNK)
    return read, write


def _terminal(real: int) -> tuple[int, int]:
    """A terminal like the real one, which alone turns a newline into what it needs."""
    read, write = os.openpty()
    attributes = termios.tcgetattr(real)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(write, termios.TCSANOW, attributes)
    _same_size(real, read)
    return read, write


def _same_size(real: int, ours: int) -> None:
    termios.tcsetwinsize(ours, termios.tcgetwinsize(real))


def _read(source: int) -> bytes:
    try:
        return os.read(source, CHUNK)
    except OSError:
        return b""  # of a terminal that nobody has open any more


def _write(target: int, chunk: bytes) -> bool:
    """Writes all of it; whether there is still somebody to read it."""
    rest = memoryview(chunk)
    while rest:
        try:
            rest = rest[os.write(target, rest) :]
        except BlockingIOError:
            room = select.poll()
            room.register(target, select.POLLOUT)
            room.poll()
        except OSError:
            return False
    return True
