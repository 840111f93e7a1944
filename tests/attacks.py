"""What a stranger's snippet might try. Each attack raises an OSError when the sandbox stops it."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bases import fence


class Attack(NamedTuple):
    """Code that runs to its end where nothing stops it."""

    name: str
    code: str
    """`{secret}` and the like stand for what `plant` makes."""
    sure: bool = True
    """Whether it must succeed without the sandbox, whatever the machine and the user."""


ATTACKS = (
    Attack("reads-a-secret-in-the-home", "assert open({secret!r}).read() == 'hunter2'"),
    Attack(
        "lists-the-home",
        """
        import os

        if os.path.basename({secret!r}) not in os.listdir(os.path.dirname({secret!r})):
            raise FileNotFoundError
        """,
    ),
    Attack("reads-the-knowledge-base", "open({base!r} + '/kbtools.toml').read()"),
    Attack(
        "reads-another-run",
        "import os\n\nopen(os.path.dirname(os.path.dirname(__file__)) + '/zygote.log').read()",
    ),
    Attack(
        "reads-the-environment-of-a-process",
        "assert b'hunter2' in open('/proc/{pid}/environ', 'rb').read()",
    ),
    Attack("goes-through-the-root-of-a-process", "open('/proc/{pid}/root' + {secret!r}).read()"),
    Attack("reads-the-memory-of-a-process", "open('/proc/{pid}/mem', 'rb')"),
    Attack("looks-at-the-files-of-a-process", "import os\n\nos.stat('/proc/{pid}/fd/0')"),
    Attack("signals-a-process", "import os, signal\n\nos.kill({pid}, signal.SIGCONT)"),
    Attack(
        "connects-to-a-listener",
        "import socket\n\nsocket.create_connection(('127.0.0.1', {port}), timeout=5)",
    ),
    Attack(
        "connects-to-an-abstract-socket",
        "import socket\n\nsocket.socket(socket.AF_UNIX).connect('\\0{abstract}')",
    ),
    Attack(
        "connects-to-a-socket-file",
        "import socket\n\nsocket.socket(socket.AF_UNIX).connect({socket!r})",
    ),
    Attack(
        "speaks-to-the-host-of-the-machine",
        "import socket\n\nsocket.socket(socket.AF_VSOCK)",
        sure=False,  # only where the kernel has it
    ),
    Attack(
        "looks-into-its-keyring",
        """
        import ctypes, os

        number = {{"x86_64": 250, "aarch64": 219}}[os.uname().machine]
        if ctypes.CDLL(None).syscall(number, 0, -3, 1) < 0:  # the id of the session's
            raise PermissionError
        """,
        sure=False,  # only where the kernel has them
    ),
    Attack(
        "opens-shared-memory",
        """
        import ctypes

        if ctypes.CDLL(None).shmget({key}, 1, 0) < 0:
            raise FileNotFoundError
        """,
    ),
    Attack("overwrites-a-file", "open({victim!r}, 'a')"),
    Attack("takes-a-file-s-rights", "import os\n\nos.chmod({victim!r}, 0o644)"),
    # if the toolchain belongs to the user, nothing but the sandbox stops these two
    Attack("writes-to-the-toolchain", "import os\n\nopen(os.__file__, 'r+')", sure=False),
    Attack("touches-the-toolchain", "import os, sys\n\nos.utime(sys.prefix)", sure=False),
    Attack(
        "reads-a-secret-of-the-system",
        """
        import os

        if not open("/etc/shadow").read():
            raise FileNotFoundError
        """,
        sure=False,  # as root only
    ),
    Attack("changes-the-kernel", "open('/proc/sys/kernel/core_pattern', 'r+')", sure=False),
    Attack(
        "reads-a-disk",
        """
        import os

        with open("/proc/partitions") as table:
            disks = [words[3] for line in table if len(words := line.split()) == 4]
        os.close(os.open("/dev/" + disks[-1], os.O_RDONLY))
        """,
        sure=False,
    ),
)

WORKS = {
    "tmp": """
        import os, tempfile

        with open("/tmp/written", "w") as file:
            file.write("unchanged")
        assert "written" in os.listdir("/tmp")
        assert os.listdir(tempfile.gettempdir()) == []
        """,
    "tmp-again": "import os\n\nassert not os.path.exists('/tmp/written')",
    "names-a-thread": """
        import subprocess

        # as CUDA does for its threads, in a process that the snippet has started
        subprocess.run(["bash", "-c", "echo mine > /proc/self/comm"], check=True)
        """,
    "terminal": "import os, pty\n\nassert os.isatty(pty.openpty()[1])",
    "sockets": """
        import socket

        for address in ("own.sock", "\\0own"):
            with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
                server.bind(address)
                server.listen()
                client.connect(address)
        """,
    "loopback": """
        import socket

        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
        """,
    "spawn": """
        import multiprocessing

        def double(x):
            return 2 * x

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                assert pool.map(double, range(3)) == [0, 2, 4]
        """,
    "forkserver-and-manager": """
        import multiprocessing

        if __name__ == "__main__":
            with multiprocessing.get_context("forkserver").Manager() as manager:
                shared = manager.list([1])
                shared.append(2)
                assert list(shared) == [1, 2]
        """,
    "shared-memory": """
        from multiprocessing import shared_memory

        block = shared_memory.SharedMemory(create=True, size=1 << 20)
        shared_memory.SharedMemory(block.name).close()
        block.close()
        block.unlink()
        """,
    "signals-within": """
        import signal, subprocess

        child = subprocess.Popen(["sleep", "60"])
        child.terminate()
        assert child.wait() == -signal.SIGTERM
        """,
    "who-am-i": "import getpass, os, pwd\n\nassert pwd.getpwuid(os.getuid()).pw_name",
}


@contextmanager
def plant(folder: Path) -> Iterator[dict[str, Any]]:
    """Makes things that a snippet must not reach; name → path, address or number."""
    handle, secret = tempfile.mkstemp(prefix=".kbtools-test-", dir=Path.home())
    os.write(handle, b"hunter2")
    os.close(handle)
    (folder / "victim").write_text("unchanged", "utf-8")
    sockets = tempfile.mkdtemp(prefix="kbt-")  # short: the path of a socket has 107 bytes at most
    process = subprocess.Popen(["sleep", "900"], env={**os.environ, "TOKEN": "hunter2"})
    libc, key = ctypes.CDLL(None), 0x6B000000 | os.getpid() & 0xFFFFFF
    segment = libc.shmget(key, 4096, 0o1600)
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            socket.socket(socket.AF_UNIX) as abstract,
            socket.socket(socket.AF_UNIX) as path,
        ):
            abstract.bind(f"\0kbtools-{os.getpid()}")
            path.bind(f"{sockets}/socket")
            for server in (abstract, path):
                server.listen(64)
            yield {
                "secret": secret,
                "victim": str(folder / "victim"),
                "pid": process.pid,
                "port": listener.getsockname()[1],
                "abstract": f"kbtools-{os.getpid()}",
                "socket": f"{sockets}/socket",
                "key": key,
            }
    finally:
        libc.shmctl(segment, 0, None)  # IPC_RMID
        process.kill()
        process.wait()
        shutil.rmtree(sockets)
        Path(secret).unlink()


def snippets(words: dict[str, Any]) -> list[str]:
    """The attacks as repros that end in an OSError."""
    return [
        fence(
            f"python repro fails=OSError id={attack.name}",
            textwrap.dedent(attack.code).format(**words),
        )
        for attack in ATTACKS
    ]
