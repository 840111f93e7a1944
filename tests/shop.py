"""A knowledge base with toolchains to build, and packages of a few bytes to build them of."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import textwrap
import time
import zipfile
from pathlib import Path
from typing import Any

from bases import Base, Finished

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
SLOW = """
    import os, time

    with open(os.environ["KBT_STARTED"], "a") as file:
        file.write("started\\n")
    while not os.path.exists(os.environ["KBT_GO"]):
        time.sleep(0.05)
    raise SystemExit("slow, and no package in the end")
"""


def toml(value: Any) -> str:
    """A value as it stands in TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {toml(item)}' for key, item in value.items()) + "}"
    return json.dumps(value)


def source_archive(file: Path, files: dict[str, str]) -> None:
    """Writes a source archive of these files."""
    stem = file.name.removesuffix(".tar.gz")
    with tarfile.open(file, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"{stem}/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


class Shop:
    """A knowledge base, packages to install, and the folder that environments are built in."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.wheels = base.root / "wheels"
        self.home = base.root / "toolchains"
        self.started, self.go = base.root / "started", base.root / "go"
        self.wheels.mkdir()

    def wheel(self, name: str, version: str = "1.0", **files: bytes) -> None:
        """Makes a wheel; each file is named by its stem, `data` for the program `NAME/data.bin`."""
        info = f"{name}-{version}.dist-info"
        parts = {f"{name}/__init__.py": b""}
        parts |= {f"{name}/{stem}.bin": content for stem, content in files.items()}
        parts[f"{info}/METADATA"] = (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
        )
        parts[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        rows = []
        for path, content in parts.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            rows.append(f"{path},sha256={digest},{len(content)}\n")
        parts[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
        file = self.wheels / f"{name}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in parts.items():
                entry = zipfile.ZipInfo(path)
                entry.compress_type = zipfile.ZIP_DEFLATED
                mode = 0o755 if path.endswith(".bin") else 0o644
                entry.external_attr = (0o100000 | mode) << 16
                archive.writestr(entry, content)

    def slow(self) -> None:
        """Makes a source archive that says when its build begins, waits to be let go, and fails."""
        project = (
            '[build-system]\nrequires = []\nbuild-backend = "slow"\nbackend-path = ["."]\n\n'
            '[project]\nname = "slow"\nversion = "1.0"\n'
        )
        head = "Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n"
        files = {"pyproject.toml": project, "slow.py": textwrap.dedent(SLOW), "PKG-INFO": head}
        source_archive(self.wheels / "slow-1.0.tar.gz", files)

    def declare(self, name: str, *packages: str, **keys: Any) -> None:
        """Adds a toolchain to `toolchains.toml`."""
        offline = ["--no-index", f"--find-links={self.wheels}"]
        table = {"python": VERSION, "packages": packages, "options": offline, **keys}
        lines = [f"{key.replace('_', '-')} = {toml(value)}" for key, value in table.items()]
        with (self.base.root / "toolchains.toml").open("a") as file:
            file.write("\n".join([f"[{name}]", *lines, "", ""]))

    def forget(self) -> None:
        """Declares nothing any more."""
        (self.base.root / "toolchains.toml").write_text("")

    @property
    def variables(self) -> dict[str, Any]:
        """Of the environment that kbtools is started in."""
        return {
            "KBTOOLS_TOOLCHAINS": str(self.home),
            "KBT_STARTED": str(self.started),
            "KBT_GO": str(self.go),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_FIND_LINKS": "",
            "UV_CACHE_DIR": str(self.base.root / "uv-cache"),
        }

    @property
    def offline(self) -> dict[str, Any]:
        """Variables with which uv sees our packages only: pip's, which kbtools hands on."""
        return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}

    def run(self, *words: str, **more: str) -> Finished:
        """Runs `kbtools toolchain` to its end."""
        return self.base.kbtools("toolchain", *words, **{**self.variables, **more})

    def start_until_slow(self, *words: str) -> subprocess.Popen[str]:
        """Starts `kbtools toolchain` and returns when it builds the slow package."""
        process = self.base.start("toolchain", *words, **{**self.variables, **self.offline})
        deadline = time.monotonic() + 30
        while not self.started.exists():
            assert time.monotonic() < deadline, process.communicate()
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        return process

    def builds(self, name: str = "one") -> list[str]:
        """The builds of a name, whole or not."""
        return sorted(p.name for p in (self.home / ".builds" / name).glob("env-*"))

    def states(self) -> dict[str, str]:
        """Name → state, as `list --json` has them."""
        rows = json.loads(self.run("list", "--json").out)
        return {row["name"]: row["state"] for row in rows}

    def packages(self, name: str = "one") -> dict[str, str]:
        """Distribution → version, as the environment's own interpreter sees them."""
        code = (
            "import importlib.metadata as m, json; "
            "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
        )
        python = self.home / name / "bin" / "python"
        process = subprocess.run([python, "-I", "-c", code], capture_output=True, check=True)
        return dict(json.loads(process.stdout))
