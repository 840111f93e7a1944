"""Whether a toolchain has what a snippet needs: a question about running it, not about a claim."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.version import InvalidVersion, Version

from kbtools.articles.needs import ANY, PROGRAM, in_words
from kbtools.toolchains.affected import parse_range, range_holds
from kbtools.toolchains.model import Toolchain


def check_need(name: str, text: str) -> None:
    """Looks whether a need can be understood.

    Args:
        name: Of a distribution, of a part of the machine, or of a program (`bin:cuobjdump`).
        text: Its range.

    Raises:
        ValueError: the range is not `*` or a PEP 440 specifier, or a program has a range.
    """
    if text == ANY:
        return
    if name.startswith(PROGRAM):
        raise ValueError(f"the version of the program `{name}` is not known: write `{ANY}`")
    parse_range(text)


def unmet_need(needs: Mapping[str, str], toolchain: Toolchain) -> str:
    """The first need that a toolchain does not meet, in words; empty if it meets all.

    A pre-release on the boundary of a range does not meet it: whether it has what the release has
    would be a guess.
    """
    for name, text in needs.items():
        if name.startswith(PROGRAM):
            # of a recorded toolchain it is not known, and whatever was recorded on it did run
            programs = toolchain.programs
            if programs is not None and name.removeprefix(PROGRAM) not in programs:
                return f"needs {in_words(name, text)}, none on the PATH"
            continue
        version = toolchain.version(name)
        if version is None:
            return f"needs {in_words(name, text)}, not here"
        if text != ANY and not _holds(text, version):
            return f"needs {in_words(name, text)}, this is {version}"
    return ""


def _holds(text: str, version: str) -> bool | None:
    try:
        return range_holds(text, Version(version))
    except InvalidVersion:
        return None
