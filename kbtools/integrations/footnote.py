"""What stands under the traceback of a failed program: the article, or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kbtools import matching
from kbtools.matching.versions import SHOWN
from kbtools.reports import diagnosis


def of(*outputs: str, index: Path | None = None, versions: Iterable[str] = ()) -> str:
    """The article for the first of these texts that has one, in a few lines; empty where none has.

    `index` is the file of a published index, else that of KBTOOLS_INDEX; else the knowledge base
    is that of the working folder, or the one that came with kbtools. `versions` are lines as in
    `torch==2.13.0`, for where the texts do not say.

    Raises:
        KbtoolsError: there is no knowledge base, or none that can be read.
    """
    named = os.environ.get("KBTOOLS_INDEX")
    known = matching.load(Path(), index or (Path(named) if named else None))
    matcher = matching.Matcher(known)
    for text in outputs:
        found = matcher.diagnose("\n".join((text, *versions)) if text else "").matches
        if found:
            return f"kbtools: {diagnosis.brief(found[0], known.address(found[0].id))}"
    return ""


def here() -> Iterable[str]:
    """The versions in this process of what articles speak of, as in `torch==2.13.0`."""
    import platform

    yield f"Python {platform.python_version()}"
    for name, _ in SHOWN:
        try:
            yield f"{name}=={version(name)}"
        except PackageNotFoundError:
            continue
