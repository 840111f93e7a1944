"""Snippets with a fault, and the verdict that each must have."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """A snippet with a fault, and the verdict that it must have."""

    name: str
    info: str
    verdict: str
    reason: str
    """Part of the verdict's reason."""
    code: str


FAULTS = (
    Fault(
        "endless-python-loop",
        "repro fails=timeout timeout=1",
        "reproduced",
        "time limit of 1 s",
        "while True:\n    pass",
    ),
    Fault(
        "endless-c-call",
        "repro fails=timeout timeout=1",
        "reproduced",
        "time limit of 1 s",
        "import re\n\nre.match(r'(a+)+$', 'a' * 64 + 'b')  # never lets go of the lock",
    ),
    Fault(
        "ignores-every-signal",
        "repro fails=timeout timeout=1",
        "reproduced",
        "time limit of 1 s",
        """
        import signal, time

        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(1)
        """,
    ),
    Fault(
        "stops-itself",
        "repro fails=timeout timeout=1",
        "reproduced",
        "time limit of 1 s",
        "import os, signal\n\nos.kill(os.getpid(), signal.SIGSTOP)",
    ),
    Fault(
        "live-thread",
        "repro fails=timeout timeout=1",
        "reproduced",
        "though it reached its last line",
        "import threading, time\n\nthreading.Thread(target=time.sleep, args=(300,)).start()",
    ),
    Fault("exit-3", "repro fails=exit:3", "reproduced", "exit code 3", "import os\n\nos._exit(3)"),
    Fault(
        "segfault",
        "repro fails=SIGSEGV",
        "reproduced",
        "killed by SIGSEGV",
        "import ctypes\n\nctypes.string_at(0)",
    ),
    Fault(
        "kills-itself",
        "repro fails=SIGKILL",
        "reproduced",
        "killed by SIGKILL (not by kbtools",
        "import os, signal\n\nos.kill(os.getpid(), signal.SIGKILL)",
    ),
    Fault(
        "os-exit-0-half-way",
        "fix",
        "broken",
        "ended before its last line",
        "import os\n\nos._exit(0)\nraise SystemError('never reached')",
    ),
    Fault(
        "sys-exit-0-half-way",
        "fix",
        "broken",
        "ended before its last line",
        "import sys\n\nsys.exit(0)\nraise SystemError('never reached')",
    ),
    Fault(
        "thirty-gigabytes-at-once",
        "repro fails=MemoryError",
        "reproduced",
        "MemoryError",
        "kept = bytearray(30 << 30)",
    ),
    Fault(
        "thirty-gigabytes-in-steps",
        "repro fails=MemoryError",
        "reproduced",
        "MemoryError",
        "kept = []\nwhile len(kept) < 30 * 16:\n    kept.append(bytearray(64 << 20))",
    ),
    Fault(
        "leaves-a-child",
        "control",
        "holds",
        "ran to its end",
        """
        import subprocess, sys

        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)", __file__])
        """,
    ),
    Fault(
        "leaves-a-child-in-a-session-of-its-own",
        "control",
        "holds",
        "ran to its end",
        """
        import subprocess, sys

        sleep = [sys.executable, "-c", "import time; time.sleep(300)", __file__]
        subprocess.Popen(sleep, start_new_session=True)
        """,
    ),
    Fault(
        "leaves-a-daemon-with-no-environment",
        "control",
        "holds",
        "ran to its end",
        """
        import os, sys

        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.chdir("/")
                sleep = [sys.executable, "-c", "import time; time.sleep(300)", __file__]
                os.execve(sys.executable, sleep, {})
            os._exit(0)
        os.wait()
        """,
    ),
    Fault(
        "too-many-processes",
        "fix",
        "broken",
        "limit of 40 processes",
        """
        import os, time

        for _ in range(80):
            if os.fork() == 0:
                os.setsid()
                time.sleep(30)
                os._exit(0)
        time.sleep(30)
        """,
    ),
    Fault(
        "prints-200-megabytes",
        "control",
        "holds",
        "ran to its end",
        """
        import sys

        print("the first line")
        for _ in range(200):
            sys.stdout.write(("x" * 99 + "\\n") * 10_000)
        print("the last line")
        """,
    ),
    Fault(
        "prints-bytes-that-are-not-utf-8",
        "control",
        "holds",
        "ran to its end",
        "import sys\n\nsys.stdout.buffer.write(b'caf\\xe9 \\xff\\n')",
    ),
    Fault("asks-for-input", "repro fails=EOFError", "reproduced", "EOFError", "input()"),
    Fault(
        "raises-keyboard-interrupt",
        "repro fails=KeyboardInterrupt",
        "reproduced",
        "KeyboardInterrupt",
        "raise KeyboardInterrupt",
    ),
    Fault(
        "deletes-its-folder",
        "control",
        "holds",
        "ran to its end",
        "import os, shutil\n\nshutil.rmtree(os.getcwd())",
    ),
    Fault("changes-its-folder", "control", "holds", "ran to its end", "import os\n\nos.chdir('/')"),
    Fault(
        "patches-modules",
        "control",
        "holds",
        "ran to its end",
        """
        import builtins, json, os, sys

        json.loads = json.dumps = os.write = os.getpid = sys.exit = None
        builtins.len = builtins.print = builtins.isinstance = builtins.open = None
        """,
    ),
    Fault(
        "changes-the-environment",
        "control",
        "holds",
        "ran to its end",
        "import os\n\nos.unsetenv('HOME')\nos.putenv('LANG', 'patched')\nos.umask(0o777)",
    ),
    Fault(
        "breaks-the-excepthook",
        "repro fails=ZeroDivisionError",
        "reproduced",
        "ZeroDivisionError",
        "import sys\n\nsys.excepthook = None\n1 / 0",
    ),
    Fault(
        "an-error-that-cannot-be-shown",
        "repro fails=Unspeakable",
        "reproduced",
        "Unspeakable",
        """
        class Unspeakable(Exception):
            def __str__(self):
                raise ValueError("no")

        raise Unspeakable
        """,
    ),
    Fault(
        "misstates-its-exception",
        "fix",
        "broken",
        "exit code 1",
        'import os\n\nos.write(200, b\'{"raised": 5, "message": []}\')\nos._exit(1)',
    ),
    Fault(
        "nests-its-ending-too-deeply",
        "fix",
        "broken",
        "exit code 1",
        "import os\n\nos.write(200, b'[' * 2999)\nos._exit(1)",
    ),
    Fault(
        "has-an-ending-that-grows-in-json",
        "fix",
        "broken",
        "exit code 1",
        """
        import os

        os.write(200, ('{"message": "' + 'é' * 1400 + '"}').encode())
        os._exit(1)
        """,
    ),
    Fault(
        "kills-its-keeper",
        "fix",
        "broken",
        "PermissionError",
        "import os, signal\n\nos.kill(os.getppid(), signal.SIGKILL)",
    ),
)

LOOKS_AROUND = """
import builtins, json, os, subprocess, sys

assert os.listdir(os.getcwd()) == [], os.listdir(os.getcwd())
assert os.getcwd() == os.getenv("HOME")
assert json.loads(json.dumps([1])) == [1]
assert all((os.write, os.getpid, sys.exit, builtins.len, sys.excepthook))
assert subprocess.check_output("printf $LANG", shell=True) == b"C.UTF-8"
open("file", "w").close()
assert os.access("file", os.R_OK)
"""
