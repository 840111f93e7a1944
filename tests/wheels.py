"""A package index in a folder whose wheels hold what a test says, and nothing else."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path


def _metadata(name: str, version: str, requires: Iterable[str], python: str) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Python: {python}"] if python else []
    return "\n".join([*lines, *(f"Requires-Dist: {text}" for text in requires), "", "about"])


class Shelf:
    """The index: a folder for each project, with its files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def url(self) -> str:
        """Its address, for `PIP_INDEX_URL`."""
        return self.root.as_uri()

    def wheel(
        self,
        name: str,
        version: str,
        *requires: str,
        tag: str = "py3-none-any",
        python: str = "",
        files: dict[str, str] | None = None,
    ) -> Path:
        """Adds a wheel with these requirements and members."""
        stem = f"{name.replace('-', '_')}-{version}"
        file = self._place(name) / f"{stem}-{tag}.whl"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, text in (files or {}).items():
                archive.writestr(path, text)
            text = _metadata(name, version, requires, python)
            info = stem.split("-")[0] + "-" + version.split("-")[0]
            archive.writestr(f"{info}.dist-info/METADATA", text)
        return file

    def source(self, name: str, version: str, *requires: str) -> Path:
        """Adds a source archive with these requirements."""
        file = self._place(name) / f"{name}-{version}.tar.gz"
        content = _metadata(name, version, requires, "").encode()
        with tarfile.open(file, "w:gz") as archive:
            entry = tarfile.TarInfo(f"{name}-{version}/PKG-INFO")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        return file

    def _place(self, name: str) -> Path:
        place = self.root / name
        place.mkdir(parents=True, exist_ok=True)
        return place
