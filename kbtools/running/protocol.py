"""What an executor and its zygote write to each other: JSON objects, one a line.

The executor checks what it reads against these types. The processes of the toolchain's interpreter
know them in annotations only: they have the standard library of Python 3.9 and no kbtools.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from kbtools.outcome import Isolation

SandboxParts = dict[str, bool | str]
"""`network`, `sight`, `files`, `signals` → True where the kernel allows that part, else why not."""


class Limits(TypedDict):
    """What a snippet may use."""

    memory: int
    """Bytes of address space."""
    file: int
    """Bytes of one file."""
    processes: int
    """Processes below the keeper at once."""
    user_processes: int
    """Processes of the user at once: the kernel counts those outside the run, too."""


class Request(TypedDict):
    """A run that the executor asks for."""

    id: int
    """Its number; the report bears it, too."""
    language: str
    isolation: Isolation | None
    """None where the snippet is not Python."""
    tool: list[str]
    """Words that go before those that start the interpreter of a Python snippet."""
    commands: list[list[str]]
    """What runs a snippet that is not Python, one command after another."""
    file: str
    """Path of the snippet's file."""
    scratch: str
    """Its folder."""
    work: str
    """Its working folder."""
    modules: str
    """The folder that holds the package `kbtools` of snippets."""
    output: str
    """Path of the file that standard output and error go to."""
    shared_tmp: str
    """The zygote's temporary folder, whose name its modules may have stored."""
    env: dict[str, str]
    timeout: float
    """Seconds of wall time."""
    limits: Limits
    sandbox: bool
    network: bool
    """Whether the snippet may reach more than its own loopback."""
    hidden_devices: list[str]
    """Device files that the sandbox covers: those of GPUs that are not the snippet's."""


class Ending(TypedDict, total=False):
    """How a snippet ended, in its own words: nothing in here can be relied upon."""

    end: bool
    """It reached its last line."""
    raised: list[str]
    """Names of the uncaught exception's type and of its bases."""
    message: str
    """The uncaught exception's text."""
    unstarted: str
    """Why its code was not begun."""


class Report(TypedDict, total=False):
    """What a keeper says of a run that has ended."""

    id: int
    status: Literal["timeout", "limit", "lost"]
    """Why the keeper ended it; absent where it ended by itself."""
    message: str
    wait: int | None
    """Its status as `waitpid` gives it; None where the keeper ended it."""
    seconds: float
    cpu_seconds: float
    """Of the snippet and of all that it left behind, in user and system mode."""
    peak_kib: int
    isolation: Isolation | None
    ending: Ending


class Ready(TypedDict):
    """What a zygote says when it can fork."""

    sandbox: SandboxParts
    refused: dict[str, str]
    """Name in `run.preload` → why it could not be imported or called."""
    store: bool
    """Whether snippets find the toolchain's store, read-only."""
