"""Packs the knowledge base into the wheel: one archive, whose evidence is an extract.

The extract has what a verdict is computed from: every row, without the output that no verdict
depends on. `tests/test_packaging.py` compares all verdicts with those of the whole evidence.
"""

from __future__ import annotations

import json
import re
import tarfile
import tempfile
from collections.abc import Collection, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import yaml
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ARCHIVE = "kbtools/packaged.tar.xz"
ROUNDED = ("seconds", "cpu_seconds")
"""Keys of an outcome of which two digits are enough to plan a run."""


class PackKnowledgeBase(BuildHookInterface[Any]):
    """Adds the archive to a wheel; an editable installation has the checkout itself."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is built; `version` is `standard` or `editable`."""
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "packaged.tar.xz"
        pack(Path(self.root), file)
        build_data["force_include"][str(file)] = ARCHIVE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called after the wheel was built."""
        if version != "editable":
            self._folder.cleanup()


def pack(root: Path, file: Path) -> None:
    """Writes the archive of the knowledge base in `root`.

    The order and the dates of its members are always the same, so that equal content makes an
    equal archive.
    """
    # articles, then evidence: what resembles each other stands together, which halves the archive
    with tarfile.open(file, "w:xz", preset=9) as archive:
        for name, content in members(root):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, BytesIO(content))


def members(root: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file of the archive."""
    yield "kbtools.toml", (root / "kbtools.toml").read_bytes()
    if (root / "tables.toml").is_file():
        yield "tables.toml", (root / "tables.toml").read_bytes()
    for table in sorted((root / "tables").glob("*.jsonl")):
        yield f"tables/{table.name}", table.read_bytes()
    signatures: dict[str, list[dict[str, str]]] = {}
    for article in sorted((root / "kb").glob("*.md")):
        content = article.read_bytes()
        if article.name.count(".") == 1:
            matter = yaml.safe_load(content.split(b"---\n", 2)[1])
            signatures[matter["id"]] = matter["signatures"]
        yield f"kb/{article.name}", content
    for notice in sorted((root / "kb/notices").glob("*.md")):
        content = notice.read_bytes()
        if notice.name.count(".") == 1:
            matter = yaml.safe_load(content.split(b"---\n", 2)[1])
            signatures[matter["id"]] = matter.get("signatures", [])
        yield f"kb/notices/{notice.name}", content
    for probes in sorted((root / "kb/probes").glob("*.py")):
        yield f"kb/probes/{probes.name}", probes.read_bytes()
    for data_file in sorted((root / "kb/files").glob("*")):
        yield f"kb/files/{data_file.name}", data_file.read_bytes()
    for evidence in sorted((root / "evidence").glob("*.jsonl")):
        yield f"evidence/{evidence.name}", extract(evidence, signatures.get(evidence.stem, []))


def extract(evidence: Path, signatures: Collection[Mapping[str, str]]) -> bytes:
    """The rows of an article without what no verdict depends on, and each toolchain once.

    Args:
        evidence: A file of JSON Lines.
        signatures: Those of the article.
    """
    rows: list[bytes] = []
    toolchains: dict[str, int] = {}
    for line in evidence.read_bytes().splitlines():
        row = json.loads(line)
        first = toolchains.setdefault(json.dumps(row["toolchain"]), len(rows))
        if first < len(rows):
            row["toolchain"] = first
        outcome = row["outcome"]
        outcome.pop("peak_mib", None)
        outcome |= {key: float(f"{outcome[key]:.2g}") for key in ROUNDED if key in outcome}
        output = outcome.pop("output", "")
        if outcome["status"] != "passed" and (lines := decisive(output, signatures)):
            outcome["output"] = lines
        rows.append(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    return b"".join(rows)


def decisive(output: str, signatures: Collection[Mapping[str, str]]) -> str:
    """The lines of a failed run by which its signatures are recognised, in their order."""
    kept: set[int] = set()
    for signature in signatures:
        literal, regex = signature["literal"], signature.get("regex", "")
        match = re.search(f"(?m){regex}", output) if literal in output else None
        if match:
            at = output.index(literal)
            for start, end in ((at, at + len(literal)), match.span()):
                kept.update(range(output.count("\n", 0, start), output.count("\n", 0, end) + 1))
    return "\n".join(line for number, line in enumerate(output.split("\n")) if number in kept)
