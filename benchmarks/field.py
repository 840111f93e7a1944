"""Sixty failures that people post: where each was shown, and with what its first fix ran.

    python benchmarks/field.py            # count what the table of docs/field.md says
    python benchmarks/field.py --write    # write its last two columns and the counts again

Which page answers a failure, whether its repro runs the thing that fails or a stand-in, and what
its first fix runs, are decided by hand in that table. The rest follows from evidence.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from kbtools import config  # noqa: E402
from kbtools.articles.model import Article, Role  # noqa: E402
from kbtools.checks.base import load_base, readable_articles  # noqa: E402
from kbtools.evidence.state import Observation, observations  # noqa: E402

PAGE = ROOT / "docs" / "field.md"
ROW = re.compile(r"\| \d+ \|")
COUNTED = "\nCounted on "
DISTRIBUTIONS = {
    "NCCL": ("nvidia-nccl-cu13", "nvidia-nccl-cu12"),
    "NVSHMEM": ("nvidia-nvshmem-cu13",),
    "CuTe DSL": ("nvidia-cutlass-dsl",),
    "FlashInfer": ("flashinfer-python",),
    "vLLM": ("vllm",),
    "TensorFlow": ("tensorflow-cpu",),
    "sgl-kernel": ("sglang-kernel", "sgl-kernel"),
}
"""Where the name of a library is not that of its distribution."""


def release(row: Observation, library: str) -> str | None:
    """Which release of a library a run had; `pip`'s is not recorded."""
    toolchain = row.row.toolchain
    machine = {"nvcc": toolchain.cuda, "driver": toolchain.driver, "pip": "0"}
    if library in machine:
        return machine[library]
    packages = (toolchain.packages.get(n) for n in DISTRIBUTIONS.get(library, (library,)))
    return next((version.partition("+")[0] for version in packages if version), None)


def first_fix(article: Article, rows: tuple[Observation, ...], library: str) -> str:
    """What the first fix of an article ran with; `no` if it did not run with the library."""
    fix = next(snippet.id for snippet in article.snippets if snippet.role is Role.FIX)
    seen = (r for r in rows if r.snippet.id == fix and r.verdict.colour == "green")
    ends = sorted({version for r in seen if (version := release(r, library))}, key=Version)
    releases = "" if library == "pip" else " " + " to ".join(dict.fromkeys(ends[:1] + ends[-1:]))
    return f"`{fix}`: {library}{releases}" if ends else "no"


def where(rows: tuple[Observation, ...]) -> str:
    """Where a repro was seen to fail as documented."""
    failed = [r for r in rows if r.snippet.role is Role.REPRO and r.verdict.name == "reproduced"]
    return "GPU" if any(r.snippet.gpus for r in failed) else "CPU" if failed else "nowhere"


def written_again(text: str) -> str:
    """The page, with what follows from evidence."""
    base = load_base(config.find(ROOT))
    articles = {article.id: article for article in readable_articles(base)[0]}
    lines: list[str] = []
    kinds: list[tuple[str, bool]] = []
    for line in text.partition(COUNTED)[0].splitlines():
        if not ROW.match(line):
            lines.append(line)
            continue
        cells = [cell.strip() for cell in line.strip("|").split(" | ")][:5]
        page, kind, library = cells[2:]
        article = articles[page[1:7]]
        rows = observations(article, base.config)
        fixed = "no" if library.startswith("not ") else first_fix(article, rows, library)
        place = "" if kind == "reported" else where(rows)
        lines.append("| " + " | ".join([*cells, place, fixed]) + " |")
        kinds.append((kind, fixed != "no"))
    sentences = [
        f"- of the first {first}: {kind.count('itself')} are shown by the thing itself,"
        f" {kind.count('stand-in')} by a stand-in, {kind.count('reported')} by no run;"
        f" the first fix of {sum(fixed for _, fixed in kinds[:first])} ran with what people run"
        for first in (40, 60)
        for kind in [[name for name, _ in kinds[:first]]]
    ]
    counted = f"{COUNTED}{datetime.date.today()}:\n\n" + "\n".join(sentences) + "\n"
    return "\n".join(lines).rstrip("\n") + "\n" + counted


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Sixty failures, and the page that answers each.")
    parser.add_argument("--write", action="store_true", help="write docs/field.md")
    arguments = parser.parse_args()
    page = written_again(PAGE.read_text("utf-8"))
    if arguments.write:
        PAGE.write_text(page, "utf-8")
    sys.stdout.write(page.partition(COUNTED)[2])
