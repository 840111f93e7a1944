"""How this kbtools was installed, and what installs an extra of it in the same way."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def command_for(extra: str, installed: Distribution | None = None) -> str:
    """What installs an extra of kbtools from where this kbtools came from.

    An installer writes that down (PEP 610). Only a kbtools that came from a package index can be
    had by its name; of one whose source is gone, the packages of the extra are named.

    Args:
        extra: As in `site`.
        installed: The distribution; by default the one that is running.
    """
    try:
        installed = installed or distribution("kbtools")
    except PackageNotFoundError:  # run from a folder that is not installed
        return f"pip install '.[{extra}]', in a checkout of kbtools"
    text = installed.read_text("direct_url.json")
    if text is None:
        return f"pip install {shlex.quote(f'kbtools[{extra}]')}"
    origin = json.loads(text)
    url = str(origin["url"])
    path = unquote(urlsplit(url).path) if url.startswith("file:") else ""
    if path and Path(path).exists():
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}{shlex.quote(f'{path}[{extra}]')}"
    if path:
        return f"pip install {shlex.join(str(need) for need in _needs(installed, extra))}"
    source = f"{origin['vcs_info']['vcs']}+{url}" if "vcs_info" in origin else url
    return f"pip install {shlex.quote(f'kbtools[{extra}] @ {source}')}"


def extra_with(module: str) -> str | None:
    """The extra of kbtools that brings a module; None if none does.

    `module` is as in `jinja2.sandbox`. It is looked for under the name of its distribution, which
    is the same for all that kbtools imports only where an extra is installed.
    """
    try:
        installed = distribution("kbtools")
    except PackageNotFoundError:
        return None
    name = canonicalize_name(module.partition(".")[0])
    extras = installed.metadata.get_all("Provides-Extra", [])
    # `quick` and `test` bring everything for those who work on kbtools itself
    for extra in sorted(extras, key=lambda extra: extra in ("quick", "test")):
        if name in [canonicalize_name(need.name) for need in _needs(installed, extra)]:
            return str(extra)
    return None


def _needs(installed: Distribution, extra: str) -> Iterator[Requirement]:
    """The requirements that only the extra has."""
    for text in installed.requires or ():
        need = Requirement(text)
        if need.marker and need.marker.evaluate({"extra": extra}):
            need.marker = None
            yield need
