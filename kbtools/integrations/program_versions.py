"""Which versions a program had that was just run: those of the interpreter that ran it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

PYTHON = re.compile(r"python[\d.]*t?")
"""The name of an interpreter's file."""
LONGEST = 10.0
"""Seconds that an interpreter may take to tell its versions."""
SCRIPT = """
import sys
from importlib import metadata
print("Python %d.%d.%d" % sys.version_info[:3])
for name in sys.argv[1:]:
    try:
        print(name + "==" + metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
"""


def versions_of(command: Sequence[str], names: Iterable[str]) -> tuple[str, ...]:
    """The versions that a program had, as in `numpy==2.1.0`; none if it was not run by Python.

    Args:
        command: the words that started it.
        names: distributions that are asked for.
    """
    python = interpreter_of(command[0])
    if python is None:
        return ()
    try:
        # -I: the program's own folder and variables must not change what is imported here
        asked = [python, "-I", "-c", SCRIPT, *names]
        done = subprocess.run(
            asked, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(done.stdout.splitlines()) if done.returncode == 0 else ()


def interpreter_of(program: str) -> str | None:
    """The Python interpreter that a program is, or that its first line names; else None."""
    path = shutil.which(program)
    if path is None or PYTHON.fullmatch(Path(path).name):
        return path
    try:
        with Path(path).open("rb") as file:
            first = file.readline(1000).decode("utf-8", "replace")
        words = shlex.split(first.removeprefix("#!")) if first.startswith("#!") else []
    except (OSError, ValueError):
        return None
    if len(words) > 1 and Path(words[0]).name == "env":  # as in #!/usr/bin/env python3
        words = [shutil.which(words[1]) or ""]
    return words[0] if words and PYTHON.fullmatch(Path(words[0]).name) else None
