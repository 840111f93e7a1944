"""Which versions a program had that was just run: those of the interpreter that ran it.

Where the command names no interpreter, as a shell script does not, they are those of the packages
whose files a traceback names.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from importlib.metadata import distributions
from pathlib import Path

from packaging.utils import canonicalize_name

PYTHON = re.compile(r"python[\d.]*t?")
"""The name of an interpreter's file."""
LONGEST = 10.0
"""Seconds that an interpreter may take to tell its versions."""
PACKAGES = re.compile(r'\bFile "(/[^"\n]{1,300}?/(?:site|dist)-packages)/', re.ASCII)
"""The folder of installed packages that a frame of a traceback is in."""
SCRIPT = """
import sys
from importlib import metadata
print("python==%d.%d.%d" % sys.version_info[:3])
for name in sys.argv[1:]:
    try:
        print(name + "==" + metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
"""


def versions_of(command: Sequence[str], names: Iterable[str]) -> dict[str, str]:
    """Name → version, of what a program had; nothing if it was not run by Python.

    Args:
        command: the words that started it.
        names: distributions that are asked for.
    """
    python = interpreter_of(command[0])
    if python is None:
        return {}
    try:
        # -I: the program's own folder and variables must not change what is imported here
        asked = [python, "-I", "-c", SCRIPT, *names]
        done = subprocess.run(
            asked, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = done.stdout.splitlines() if done.returncode == 0 else ()
    return {name: version for name, _, version in (line.partition("==") for line in lines)}


def versions_beside(output: str, names: Iterable[str]) -> dict[str, str]:
    """Name → version, of the packages beside those that a traceback names; nothing is run for it.

    `names` are distributions that are asked for.
    """
    frame = PACKAGES.search(output)
    if frame is None:
        return {}
    wanted = {canonicalize_name(name): name for name in names}
    return {
        wanted[canonicalize_name(distribution.name)]: distribution.version
        for distribution in distributions(path=[frame[1]])
        if distribution.name and canonicalize_name(distribution.name) in wanted
    }


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
