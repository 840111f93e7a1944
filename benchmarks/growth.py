"""How the commands grow with the articles: CPU seconds at several sizes, and the power that fits.

    python benchmarks/growth.py [--sizes 100,500,1000] [--before FOLDER] [--rows TEXT]

Bases are made of the real articles (`synthetic.py`), in a temporary folder. FOLDER is a checkout of
another commit, whose kbtools takes turns with this one. The seconds are those of the command and of
the processes that it starts, so other programs on the machine disturb them little; the smallest of
the rounds counts. The power is that of the articles with which the seconds above those of an empty
base grow: 1 is linear, 2 is the square.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from synthetic import ROOT, make_base

from kbtools.config import Config

SETTLES = 2.5
"""Seconds after which a file that was written counts as settled."""
LOG = "error: operand #1 does not dominate this use\n"
EDITED = "KB0038"
"""An article with a fix in Python that runs anywhere, in a moment."""
Prepare = Callable[[Config], None]


def nothing(base: Config) -> None:
    """Leaves the base as it is."""


def forget(base: Config) -> None:
    """Deletes what commands keep to be faster the next time, but for what was run."""
    shutil.rmtree(base.cache, ignore_errors=True)
    shutil.rmtree(base.root / "cache", ignore_errors=True)


def edit(base: Config) -> None:
    """Adds a line to the code of one snippet; an empty base stays as it is."""
    files = base.articles.glob(f"{EDITED}-*.md")
    file = next((file for file in files if file.name.count(".") == 1), None)
    if file is None:
        return
    text = file.read_text("utf-8")
    head, fence, code = text.partition("\n```python fix")
    line, newline, rest = code.partition("\n")
    file.write_text(f"{head}{fence}{line}{newline}# edited {time.time_ns()}\n{rest}", "utf-8")


ROWS: Mapping[str, tuple[Prepare, tuple[str, ...]]] = {
    "check": (forget, ("check",)),
    "verify, nothing kept": (forget, ("verify", "-q")),
    "verify, nothing to do": (nothing, ("verify", "-q")),
    "verify, one edit": (edit, ("verify", "-q")),
    "list, nothing kept": (forget, ("list",)),
    "list": (nothing, ("list",)),
    "matrix": (nothing, ("matrix",)),
    "diagnose, no index": (forget, ("diagnose", "log.txt")),
    "diagnose": (nothing, ("diagnose", "log.txt")),
}
"""What is measured → what is done before, and the command."""


def cpu_seconds(checkout: Path, base: Config, words: tuple[str, ...]) -> float:
    """CPU seconds of a command, by the kbtools of a checkout."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kbtools", *words],
        cwd=base.root,
        env={
            **os.environ,
            "PYTHONPATH": str(checkout),
            "XDG_CACHE_HOME": str(base.root / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1, 3) or "Traceback" in done.stderr:
        raise SystemExit(f"{words} ended with {done.returncode}: {done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def power(seconds: Mapping[int, float], empty: float) -> float:
    """The power of the articles with which seconds grow, by least squares of the logarithms."""
    points = [(math.log(n), math.log(max(taken - empty, 1e-3))) for n, taken in seconds.items()]
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    over = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return over / sum((x - mean_x) ** 2 for x, _ in points)


def measure(
    base: Config, rows: Sequence[str], checkouts: Mapping[str, Path], rounds: int
) -> dict[tuple[str, str], float]:
    """The smallest CPU seconds of the rounds, in which the checkouts take turns.

    Args:
        base: What the commands work on.
        rows: Those of `ROWS` that are measured.
        checkouts: Name → the folder of a kbtools.
        rounds: How often each command is measured.

    Returns:
        Row and name of the checkout → seconds.
    """
    best: dict[tuple[str, str], float] = {}
    for row in rows:
        prepare, words = ROWS[row]
        for checkout in checkouts.values() if prepare is not forget else ():
            cpu_seconds(checkout, base, words)  # keeps what the command finds when it is measured
        for _ in range(rounds):
            for label, checkout in checkouts.items():
                prepare(base)
                taken = cpu_seconds(checkout, base, words)
                best[row, label] = min(taken, best.get((row, label), math.inf))
                time.sleep(SETTLES if prepare is edit else 0)
    return best


def main() -> None:
    """Prints a table: a row for each command and checkout, a column for each size, the power."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100,500,1000,2000")
    parser.add_argument("--before", type=Path, help="a checkout to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", default="", help="only rows with this text, as in `verify`")
    options = parser.parse_args()
    sizes = [int(word) for word in options.sizes.split(",")]
    checkouts = {"now": ROOT}
    if options.before:
        checkouts = {"before": options.before.resolve(), "now": ROOT}
    rows = [row for row in ROWS if options.rows in row]
    taken: dict[int, dict[tuple[str, str], float]] = {}
    for size in (0, *sizes):
        with tempfile.TemporaryDirectory() as folder:
            base = make_base(Path(folder) / "base", size, with_memory=True)
            (base.root / "log.txt").write_text(LOG, "utf-8")
            time.sleep(SETTLES)
            taken[size] = measure(base, rows, checkouts, options.rounds)
    print(f"{'CPU seconds':34}" + "".join(f"{size:>9}" for size in sizes) + "    power")
    for row in rows:
        for label in checkouts:
            seconds = {size: taken[size][row, label] for size in sizes}
            cells = "".join(f"{value:9.2f}" for value in seconds.values())
            print(f"{row + ', ' + label:34}{cells}{power(seconds, taken[0][row, label]):9.2f}")


if __name__ == "__main__":
    main()
