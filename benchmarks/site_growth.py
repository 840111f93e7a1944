"""How the site grows: CPU seconds of each step of its build, and what a reader fetches of a page.

    python benchmarks/site_growth.py [COUNT ...]

For each COUNT (101, 500 and 1000) `synthetic.py` makes a knowledge base of the real articles, and
each step of `kbtools build` runs alone. The fit is a power of the number of articles: 1 is linear.
What every build does whatever the number (documents, reference pages) makes it smaller than 1. The
bytes are of a page and all that it loads, compressed as a server sends it.

`TMPDIR` says where the bases are: a thousand articles take 1 GB.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from pathlib import Path

from synthetic import make_base
from weights import compressed, page_weight, run

KBTOOLS = (sys.executable, "-m", "kbtools.cli")
STEPS = ("generate", "html", "search", "links")
PAGES = ("", "articles", "paste", "search", "status", "issues", "KB0002")
"""Pages whose weight is measured, one of each kind; the first is the home page."""
DATA = ("paste/signatures/head.json", "api/v1/signatures.json", "api/v1/index.json")


def measure(folder: Path, count: int) -> dict[str, float]:
    """All figures of a knowledge base of so many articles."""
    make_base(folder, count)
    figures: dict[str, float] = {"articles": count}
    for step in STEPS:
        figures[f"{step}, CPU s"] = run(*KBTOOLS, "build", "--only", step, cwd=folder)
    site = folder / "site"
    for page in PAGES:
        figures[f"/{page}, kB"] = page_weight(site, page) / 1000
    for name in DATA:
        figures[f"{name}, kB"] = compressed(site / name) / 1000
    return figures


def exponent(counts: list[float], values: list[float]) -> float:
    """Of the power of the count that fits the values best, by least squares of logarithms."""
    points = [(math.log(x), math.log(y)) for x, y in zip(counts, values, strict=True)]
    middle_x, middle_y = (sum(of) / len(points) for of in zip(*points, strict=True))
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("counts", nargs="*", type=int, default=[101, 500, 1000])
    os.environ["NO_COLOR"] = "1"
    rows = []
    for count in parser.parse_args().counts:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(Path(folder) / "base", count))
        print(f"{count} articles are measured", file=sys.stderr)
    counts = [row["articles"] for row in rows]
    for name in rows[0]:
        values = [row[name] for row in rows]
        fit = f"{exponent(counts, values):10.2f}" if len(rows) > 1 else ""
        print(f"{name:32}" + "".join(f"{value:10.1f}" for value in values) + fit)


if __name__ == "__main__":
    main()
