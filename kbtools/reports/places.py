"""Where a report points: the line of the Markdown, and the path as the whole checkout has it."""

from __future__ import annotations

import re

from kbtools.config import Config
from kbtools.verification.model import Result


def failing_line(result: Result) -> int:
    """The line of the Markdown that an outcome is about.

    The innermost line of the snippet that its output names, as tracebacks and compilers do; its
    first line of code where none is named.
    """
    snippet = result.task.snippet
    path, first = re.escape(snippet.place.path), snippet.place.line
    output = result.outcome.output if result.outcome else ""
    numbers = re.findall(rf"{path}(?:\", line |:|\()(\d+)", output)
    inside = range(first, first + snippet.code.count("\n") + 1)
    return next((n for n in map(int, reversed(numbers)) if n in inside), first)


def in_checkout(config: Config) -> str:
    """The path of a knowledge base in its repository, to be put before its own paths.

    Empty where it is the root, or where there is no repository; else as in `docs/known-failures/`.
    """
    root = config.root.resolve()
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            below = root.relative_to(folder).as_posix()
            return "" if below == "." else f"{below}/"
    return ""
