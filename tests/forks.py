"""The real `kbtools` in a process of its own, forked from one that has imported it already.

Most tests run many commands on small knowledge bases, and most of such a command's time is the
start of an interpreter and its imports, once more and with the measurement of coverage. So one
process a worker imports kbtools, and forks for each command: a fork has a session, environment,
working folder, standard streams and an end of its own, as `python -m kbtools.cli` has. What a fresh
interpreter does is still tested on one: by `Base.start`, and by whatever runs `bases.KBTOOLS`.
"""

from __future__ import annotations

import array
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

AT_START = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "MALLOC_", "COVERAGE_")
"""Beginnings of variables that are read as a process starts: a fork cannot have other values."""
ELSEWHERE = ("running.", "verification.ray", "repro", "hook", "integrations.pytest", "site.live")
"""Modules of other interpreters, of extras, and what waits for files: a command imports its own."""
LENGTH = 8


class Parent:
    """A process that has imported kbtools, and forks for each command."""

    def __init__(self) -> None:
        self._socket, other = socket.socketpair()
        self._alone = threading.Lock()
        self._environment = dict(os.environ)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(other.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
            )

    def can(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork can have this environment: what is read at the start is as it was."""
        names = {name for name in {*environment, *self._environment} if name.startswith(AT_START)}
        return all(environment.get(name) == self._environment.get(name) for name in names)

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], seconds: float
    ) -> tuple[int, str, str]:
        """Runs `kbtools` with these arguments: its exit code, output and errors.

        Args:
            words: the arguments.
            environment: all variables that it has.
            seconds: after which it is killed.

        Raises:
            subprocess.TimeoutExpired: it took longer.
        """
        deadline = time.monotonic() + seconds
        request = json.dumps([[*words], dict(environment), str(Path.cwd())]).encode()
        with self._alone:
            readers, writers = zip(*(os.pipe() for _ in range(2)), strict=True)
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", writers))
            self._socket.sendmsg([len(request).to_bytes(LENGTH, "big")], [rights])
            self._socket.sendall(request)
            for writer in writers:
                os.close(writer)
            pid = self._number()
            outputs = [b"", b""]
            threads = [
                threading.Thread(target=_read, args=(reader, outputs, index), daemon=True)
                for index, reader in enumerate(readers)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(max(0, deadline - time.monotonic()))
            late = any(thread.is_alive() for thread in threads)
            if late:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            code = self._number()
        out, err = (_text(output) for output in outputs)
        if late:
            raise subprocess.TimeoutExpired(["kbtools", *words], seconds, out, err)
        return code, out, err

    def close(self) -> None:
        """Ends the process."""
        self._socket.close()
        self._process.wait()

    def _number(self) -> int:
        data = self._socket.recv(LENGTH, socket.MSG_WAITALL)
        assert len(data) == LENGTH, "the process that forks has ended"
        return int.from_bytes(data, "big", signed=True)


@functools.cache
def parent() -> Parent:
    """The process that forks for this one."""
    return Parent()


def close() -> None:
    """Ends the process that forks for this one, if there is one, and waits for what it measured."""
    if parent.cache_info().currsize:
        parent().close()
        parent.cache_clear()


def _read(reader: int, outputs: list[bytes], index: int) -> None:
    with open(reader, "rb") as pipe:
        outputs[index] = pipe.read()


def _text(output: bytes) -> str:
    return output.decode().replace("\r\n", "\n").replace("\r", "\n")


def _import() -> None:
    import kbtools
    import kbtools.cli

    for module in pkgutil.walk_packages(kbtools.__path__, "kbtools."):
        name = module.name.removeprefix("kbtools.")
        if not name.startswith(ELSEWHERE) and not name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def _serve(requests: socket.socket) -> bool:
    """Forks for each request; returns in the fork with True, and False when no more will come."""
    while True:
        size, rights, _, _ = requests.recvmsg(LENGTH, socket.CMSG_SPACE(2 * 4))
        if not size:
            return False
        descriptors = array.array("i")
        descriptors.frombytes(rights[0][2][:8])
        left, pieces = int.from_bytes(size, "big"), []
        while left:
            pieces.append(requests.recv(left))
            left -= len(pieces[-1])
        pid = os.fork()
        if not pid:
            requests.close()
            os.setsid()
            for number, descriptor in enumerate(descriptors, 1):
                os.dup2(descriptor, number)
                os.close(descriptor)
            words, environment, folder = json.loads(b"".join(pieces))
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(folder)
            sys.path[0] = folder
            sys.argv = ["kbtools", *words]
            return True
        for descriptor in descriptors:
            os.close(descriptor)
        requests.sendall(pid.to_bytes(LENGTH, "big", signed=True))
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        requests.sendall(code.to_bytes(LENGTH, "big", signed=True))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path[0] = str(Path.cwd())  # as `python -m` has it
    _import()
    if _serve(socket.socket(fileno=int(sys.argv[1]))):
        # the rest is what `python -m kbtools.cli` does, and its end is the interpreter's own
        from kbtools.cli import main

        main(prog_name="kbtools")
