"""The lines below the output of a failed program: what failed first, and the article about it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kbtools import matching
from kbtools.integrations.program_versions import versions_beside, versions_of
from kbtools.matching import Index
from kbtools.reports import diagnosis


def brief_article(
    *outputs: str,
    index: Path | str | None = None,
    is_own_process: bool = False,
    command: Sequence[str] = (),
) -> str:
    """What failed first in one of these outputs, and the article about it, in a few lines.

    The article is that of the first output that has one. What failed first is left out where it
    is what the output ends with. Where there is neither, nothing is returned.

    Args:
        outputs: texts that a program printed, in the order in which they are looked at.
        index: the file or the address of a published index; None for that of KBTOOLS_INDEX, or
            else the knowledge base of the working folder, or the one that came with kbtools.
        is_own_process: whether this process printed the outputs. Then the versions of its packages
            count, whatever the outputs show.
        command: the words that started the program which printed the outputs. Where Python ran it,
            the versions of that Python's packages count in the same way; else those of the packages
            that a traceback in the output names.

    Raises:
        KbtoolsError: no knowledge base exists, or it cannot be read.
    """
    variable = os.environ.get("KBTOOLS_INDEX")
    knowledge = matching.load(Path(), index or variable or None)
    matcher = matching.Matcher(knowledge)
    versions = installed_versions(knowledge) if is_own_process else {}
    without_article = ""
    for text in filter(None, outputs):
        answer = matcher.diagnose(text, versions)
        if answer.matches and command:  # only now: to ask an interpreter takes longer than all else
            names = [name for name, _ in knowledge.versions]
            versions = versions_of(command, names) or versions_beside(text, names)
            answer = matcher.diagnose(text, versions)
        first = diagnosis.brief_first(answer, text)
        if answer.matches:
            article = answer.matches[0]
            lines = (first, f"kbtools: {diagnosis.brief(article, knowledge.address(article.id))}")
            return "\n".join(filter(None, lines))
        without_article = without_article or first
    return without_article


def installed_versions(index: Index) -> dict[str, str]:
    """Name → version, of what this process has of the packages that an index names."""
    import platform

    versions = {"python": platform.python_version()}
    for name, _ in index.versions:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
