"""The page that offers `doctor.pyz`, and lists what it looks for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from kbtools.doctor import bundle
from kbtools.doctor.probe import Probe
from kbtools.doctor.report import in_language
from kbtools.site.model import SiteModel
from kbtools.site.pages.frame import Frame

PATH = "probes/"


class Row(msgspec.Struct, frozen=True):
    """A probe as the page shows it."""

    id: str
    article: str
    level: str
    summary: str
    when: str


def probe_pages(model: SiteModel, language: str) -> Iterator[tuple[str, bytes]]:
    """The page in one language, if the knowledge base has probes."""
    probes = bundle.probes_of(model.config)
    if not probes:
        return
    frame = Frame(model, language, PATH)
    content = bundle.build(model.config, probes)
    site = model.config.knowledge_base.url.rstrip("/")
    address = f"{site}/{bundle.FILE}" if site else bundle.FILE
    yield frame.plain(
        "probes.html",
        frame.words("probes.title"),
        frame.words("probes.lead"),
        file=frame.to(bundle.FILE),
        name=bundle.FILE,
        size=f"{len(content) / 1000:.0f} kB",
        digest=hashlib.sha256(content).hexdigest(),
        commands="\n".join(
            [
                *([f"curl -O {address}"] if site else []),
                f"python3 {bundle.FILE}",
                f"python3 {bundle.FILE} --python /path/to/venv/bin/python",
                f"python3 {bundle.FILE} --paste",
            ]
        ),
        rows=[row_of(probe, language) for probe in probes],
    )


def row_of(probe: Probe, language: str) -> Row:
    """A probe in a language, `en` or `zh`."""
    return Row(
        probe.id,
        probe.article,
        probe.level,
        in_language(probe.summary, language),
        in_language(probe.when, language),
    )
