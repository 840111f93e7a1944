"""The tree of Markdown → HTML."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kbtools.config import Config, Unreadable


def build(config: Config) -> Path:
    """Runs `mkdocs build --strict` on the generated tree; the folder with the site.

    Raises:
        Unreadable: MkDocs is not installed, or it refuses the tree.
    """
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(command, cwd=config.root, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr).strip()
        hint = ""
        if "No module named mkdocs" in said:
            hint = "\ninstall what builds the site: pip install 'kbtools[site]'"
        raise Unreadable(f"mkdocs build failed:\n{said}{hint}")
    return config.root / "site"
