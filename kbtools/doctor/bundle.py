"""The probes of a knowledge base as one file that any Python from 3.9 runs: `doctor.pyz`.

Equal content makes equal bytes: the members stand in a fixed order, with one date, and are not
compressed, since two builds of zlib may compress differently.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from importlib import resources
from io import BytesIO
from pathlib import Path

import msgspec
import yaml

from kbtools import __version__
from kbtools.config import Config, KbtoolsError
from kbtools.doctor.collection import PACKAGE, ProbeError, load
from kbtools.doctor.probe import Probe
from kbtools.doctor.report import About

FILE = "doctor.pyz"
"""Its path in the site."""
PORTABLE = (
    *("__init__", "collection", "elf", "hardware", "installed", "loader", "machine", "main"),
    *("probe", "ranges", "redaction", "report"),
)
"""The modules of this package that it holds."""
SHEBANG = b"#!/usr/bin/env python3\n"
MAIN = """import sys
if sys.version_info < (3, 9):
    sys.exit("doctor.pyz needs Python 3.9 or newer, and this is " + sys.version.split()[0])
sys.dont_write_bytecode = True
from kbtools.doctor.main import main
sys.exit(main())
"""


class BundleError(KbtoolsError):
    """The probes of a knowledge base cannot be used."""


def probes_of(config: Config) -> list[Probe]:
    """The probes of a knowledge base; none if it has no folder of them.

    Its files are imported: they are trusted as kbtools is.

    Raises:
        BundleError: a file cannot be imported, or two probes have the same id.
    """
    if not (config.probes / "__init__.py").is_file():
        return []
    try:
        return load(str(config.probes))
    except ProbeError as error:
        raise BundleError(str(error)) from error


def about(config: Config, probes: Iterable[Probe]) -> About:
    """The knowledge base as a report names it, with the titles of what its probes are about.

    Raises:
        BundleError: there is no such article or notice.
    """
    base = config.knowledge_base
    ids = sorted({probe.article for probe in probes})
    return About(
        name=base.name,
        version=__version__,
        url=base.url,
        packages=list(config.toolchain.packages),
        titles={identifier: _titles(config, identifier) for identifier in ids},
    )


def _titles(config: Config, identifier: str) -> list[str]:
    """The title in the first language, and in Chinese if there is a translation."""
    folder = config.notices if config.is_notice_id(identifier) else config.articles
    files = sorted(folder.glob(f"{identifier}-*.md"), key=lambda file: (len(file.name), file.name))
    if not files:
        raise BundleError(f"a probe is about {identifier}, and there is no such article")
    titles = []
    for file in files:
        parts = file.read_text("utf-8").split("---\n", 2)
        matter = yaml.safe_load(parts[1]) if len(parts) == 3 else {}
        titles.append(str(matter.get("title", "")))
    return [titles[0], titles[-1]]


def build(config: Config, probes: Iterable[Probe]) -> bytes:
    """The archive, which is a program.

    Raises:
        BundleError: a probe is about an article that does not exist.
    """
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, text in members(config, probes):
            entry = zipfile.ZipInfo(name)  # of 1980-01-01, whenever it is built
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return SHEBANG + content.getvalue()


def members(config: Config, probes: Iterable[Probe]) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file of the archive."""
    package = resources.files("kbtools")
    yield "__main__.py", MAIN.encode()
    yield "kbtools/__init__.py", (package / "__init__.py").read_bytes()
    for name in PORTABLE:
        yield f"kbtools/doctor/{name}.py", (package / "doctor" / f"{name}.py").read_bytes()
    yield "kbtools/doctor/about.json", msgspec.json.encode(about(config, probes)._asdict())
    for file in sorted(Path(config.probes).glob("*.py")):
        yield f"{PACKAGE}/{file.name}", file.read_bytes()
