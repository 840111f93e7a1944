"""Examples in `tests/problems`: an article or a folder of a knowledge base, and what check says.

An example is `NAME.md`, put into a knowledge base as `kb/KB0001-NAME.md`, or a folder `NAME` with
`kb/` and, where a rule needs them, `evidence/` and `output/KB0001.r1.txt`: what the snippet r1 of
KB0001 printed when it failed. Beside it stands `NAME.expected`.
"""

from __future__ import annotations

import datetime
import os
import shutil
from pathlib import Path

import msgspec
from click.testing import CliRunner

from kbtools.checks.base import load_base
from kbtools.cli import main
from kbtools.config import Config, find
from kbtools.evidence import store
from kbtools.evidence.rows import SCHEMA, Row
from kbtools.outcome import Outcome
from kbtools.toolchains.model import Toolchain

PROBLEMS = Path(__file__).parent / "problems"
EXAMPLES = sorted(path.stem for path in PROBLEMS.iterdir() if path.is_dir() or path.suffix == ".md")
TOOLCHAIN = Toolchain(python="3.11.7", packages={"triton": "2.3.0"})
UPDATE = os.environ.get("KBTOOLS_UPDATE_GOLDENS") == "1"


def lay_out(name: str, root: Path) -> Config:
    """Makes a knowledge base of an example, its recorded output included."""
    (root / "kb").mkdir(parents=True)
    shutil.copy(PROBLEMS / "kbtools.toml", root)
    folder = PROBLEMS / name
    if folder.is_dir():
        shutil.copytree(folder, root, dirs_exist_ok=True)
    else:
        shutil.copy(PROBLEMS / f"{name}.md", root / "kb" / f"KB0001-{name}.md")
    config = find(root)
    for file in sorted((root / "output").glob("*.txt")):
        article, snippet, _ = file.name.split(".")
        record_failure(config, article, snippet, file.read_text("utf-8"))
    return config


def record_failure(
    config: Config, article: str, snippet: str, output: str, triton: str = ""
) -> None:
    """Records evidence of a snippet that failed and printed this, on a version of triton."""
    packages = {**TOOLCHAIN.packages, **({"triton": triton} if triton else {})}
    base = load_base(config)
    [code] = [
        s.digest for a in base.runnable for s in a.snippets if s.name == f"{article}/{snippet}"
    ]
    row = Row(
        schema=SCHEMA,
        snippet=snippet,
        code=code,
        toolchain=msgspec.structs.replace(TOOLCHAIN, packages=packages),
        outcome=Outcome("failed", exit=1, output=output),
        when=datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC),
        kbtools="0",
    )
    store.record(config.evidence, article, row, config)


def check(root: Path, *paths: str) -> tuple[int, str]:
    """Runs `kbtools check` in this process; its exit code and what it printed, errors included."""
    result = CliRunner().invoke(main, ["-C", str(root), "check", *paths])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def golden(file: Path, text: str) -> str:
    """The text that is expected, of a file; KBTOOLS_UPDATE_GOLDENS=1 makes it what was found."""
    if UPDATE:
        file.write_text(text, "utf-8")
    return file.read_text("utf-8") if file.exists() else f"there is no {file.name}"
