"""Standard output and error of a program: passed on as they come, with both ends kept.

What the program prints goes through a pipe where our own stream is one, through a pseudo-terminal
where it is a terminal, and straight on where it is a file. Linux only. `kbtools run` imports this
module before the program starts, so it imports little, and from the standard library alone.
"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import termios
import threading
import time
from contextlib import suppress

HEAD, TAIL = 1 << 19, 3 << 19
"""Bytes kept of the beginning and of the end of a stream, as many as the matcher looks at."""
CHUNK = 1 << 20
"""Bytes read at once, and the size of a pipe."""
SMALL, PAUSE = 1 << 13, 0.001
"""After a read of fewer than SMALL bytes, wait PAUSE seconds for more.

Otherwise a program that prints line by line would wake the thread for every line.
"""


class StreamTee:
    """Copies what a program prints to a stream of ours, in a thread, and keeps both ends of it."""

    def __init__(self, target: int) -> None:
        self.target = target
        """Descriptor that everything is written to: 1 or 2."""
        terminal = os.isatty(target)
        self.read_end, self.write_end = _open_terminal(target) if terminal else _open_pipe()
        self.is_open = True
        """Whether a process may still print into it."""
        # closing the second of these two wakes the thread when the program has ended
        self._end, self._end_signal = os.pipe()
        self._head = bytearray()
        self._tail = bytearray()
        self._thread = threading.Thread(target=self._copy, daemon=True)

    def start(self) -> None:
        """Starts copying; the program must have its copy of the write end by now."""
        os.close(self.write_end)
        self._thread.start()

    def finish(self) -> bytes:
        """Copies what the ended program left in the stream; returns the bytes that are kept."""
        os.close(self._end_signal)
        self._thread.join()
        os.close(self._end)
        return bytes(self._head + self._tail[-TAIL:])

    def copy_to_end(self) -> None:
        """Copies until no process can print into the stream any more; keeps nothing."""
        while (chunk := _read(self.read_end)) and _write(self.target, chunk):
            pass

    def _copy(self) -> None:
        """Copies until no process can print any more, or the program has ended and all is read."""
        poller = select.poll()
        poller.register(self.read_end, select.POLLIN)
        poller.register(self._end, select.POLLIN)
        timeout = None
        while True:
            ready = [descriptor for descriptor, _ in poller.poll(timeout)]
            if self._end in ready:
                poller.unregister(self._end)
                timeout = 0
            elif not ready:
                return
            else:
                chunk = _read(self.read_end)
                self._keep(chunk)
                if not chunk or not _write(self.target, chunk):
                    # with the read end closed, the program gets SIGPIPE as it would without us
                    self.is_open = False
                    os.close(self.read_end)
                    return
                if len(chunk) < SMALL and timeout is None:
                    time.sleep(PAUSE)

    def _keep(self, chunk: bytes) -> None:
        if len(self._head) < HEAD:
            missing = HEAD - len(self._head)
            self._head += chunk[:missing]
            chunk = chunk[missing:]
        self._tail += chunk
        if len(self._tail) > 2 * TAIL:
            del self._tail[:-TAIL]


class FileTail:
    """What a program adds to a file that is our stream: read from the file afterwards."""

    def __init__(self, target: int) -> None:
        self.target = target
        """Descriptor of the file: 1 or 2."""
        appends = fcntl.fcntl(target, fcntl.F_GETFL) & os.O_APPEND
        self._start = os.fstat(target).st_size if appends else os.lseek(target, 0, os.SEEK_CUR)

    def finish(self) -> bytes:
        """Both ends of what was added; nothing if the file may not be read."""
        try:
            with open(f"/proc/self/fd/{self.target}", "rb") as file:
                file.seek(self._start)
                head = file.read(HEAD)
                end = file.seek(0, os.SEEK_END)
                file.seek(max(self._start + len(head), end - TAIL))
                return head + file.read(TAIL)
        except OSError:
            return b""


def open_streams() -> dict[int, StreamTee | FileTail]:
    """Descriptors 1 and 2 → what captures them; a closed one, and a device, is left out.

    Where both descriptors are one pipe, terminal or file, both have the same object, so that the
    order of what is printed is kept.
    """
    streams: dict[int, StreamTee | FileTail] = {}
    by_identity: dict[tuple[int, int, int], StreamTee | FileTail] = {}
    for descriptor in (1, 2):
        try:
            status = os.fstat(descriptor)
        except OSError:
            continue  # it is closed, and the program gets it closed
        identity = status.st_dev, status.st_ino, status.st_rdev
        if identity in by_identity:
            streams[descriptor] = by_identity[identity]
        elif stat.S_ISREG(status.st_mode):
            streams[descriptor] = by_identity[identity] = FileTail(descriptor)
        elif os.isatty(descriptor) or not stat.S_ISCHR(status.st_mode):
            streams[descriptor] = by_identity[identity] = StreamTee(descriptor)
    return streams


def copy_size(terminal: int, copy: int) -> None:
    """Gives a pseudo-terminal the size of the real one."""
    termios.tcsetwinsize(copy, termios.tcgetwinsize(terminal))


def _open_pipe() -> tuple[int, int]:
    read_end, write_end = os.pipe()
    with suppress(OSError):  # this user has no more memory for pipes: the usual size will do
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, CHUNK)
    return read_end, write_end


def _open_terminal(real: int) -> tuple[int, int]:
    """A pseudo-terminal like the real one, which alone turns a newline into what it needs."""
    read_end, write_end = os.openpty()
    attributes = termios.tcgetattr(real)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(write_end, termios.TCSANOW, attributes)
    copy_size(real, read_end)
    return read_end, write_end


def _read(source: int) -> bytes:
    try:
        return os.read(source, CHUNK)
    except OSError:
        return b""  # a pseudo-terminal that no process has open any more


def _write(target: int, chunk: bytes) -> bool:
    """Writes all of the chunk; returns whether somebody still reads the target."""
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
