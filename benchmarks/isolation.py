"""A fork of a warm zygote against a fresh interpreter, on the same snippets, in one run.

    python benchmarks/isolation.py [--jobs N] [--device cuda|cpu] [--count N] [--compile N]

Wall time of the whole command, start-up included; figures are ratios of one run on one machine.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SMALL = """\
import torch

x = torch.ones(8, device="{device}")
assert (x + {n}).sum().item() == 8 * (1 + {n})
"""
COMPILED = """\
import torch


@torch.compile
def f(x):
    return (x * {n} + 1).relu()


x = torch.ones(1024, device="{device}")
assert f(x).sum().item() == 1024 * ({n} + 1)
"""
CONFIG = """\
[knowledge-base]
name = "benchmark"
prefix = "KB"

"""
HERE = Path(__file__).parent
ARTICLE = """\
---
id: KB0001
title: "benchmark"
summary: "nothing"
components: [benchmark]
stage: runtime
severity: slow
signatures:
  - literal: "benchmark"
---

## Symptom

## Root cause

## Fix

"""


def knowledge_base(folder: Path, code: str, count: int, device: str) -> None:
    """A knowledge base with `count` snippets that hold."""
    requires = "gpu" if device == "cuda" else "cpu"
    ours = (HERE.parent / "kbtools.toml").read_text("utf-8")
    preload = re.search(r"^\[run.preload\]\n.*?(?=^\[)", ours, re.MULTILINE | re.DOTALL)
    assert preload, "kbtools.toml has no table [run.preload]"
    (folder / "kbtools.toml").write_text(CONFIG + preload[0], "utf-8")
    fences = [
        f"```python fix id=f{n} requires={requires} timeout=300\n"
        f"{code.format(n=n, device=device)}```\n"
        for n in range(1, count + 1)
    ]
    (folder / "kb").mkdir()
    text = ARTICLE + "\n".join(fences) + "\n## Best practice\n"
    (folder / "kb" / "KB0001-benchmark.md").write_text(text)


def wall(folder: Path, isolation: str, jobs: int) -> float:
    """Seconds that `kbtools verify` takes; every snippet must hold."""
    command = [sys.executable, "-m", "kbtools.cli", "-C", str(folder), "verify", "--all"]
    command += ["--isolation", isolation, "--jobs", str(jobs), "--json", "-"]
    started = time.perf_counter()
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    summary = json.loads(process.stdout)["summary"] if process.returncode == 0 else process.stderr
    if process.returncode or set(summary) != {"holds"}:
        raise SystemExit(f"the snippets do not hold: {summary}")
    return seconds


def main() -> None:
    """Prints a row for each kind of snippet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--count", type=int, default=20, help="small snippets")
    parser.add_argument("--compile", type=int, default=10, help="torch.compile snippets")
    options = parser.parse_args()
    print(f"{'snippets':<24} {'fork':>8} {'spawn':>8} {'fork/spawn':>11}   jobs={options.jobs}")
    for name, code, count in (
        ("small", SMALL, options.count),
        ("torch.compile", COMPILED, options.compile),
    ):
        if not count:
            continue
        with tempfile.TemporaryDirectory() as folder:
            knowledge_base(Path(folder), code, count, options.device)
            fork = wall(Path(folder), "fork", options.jobs)
            spawn = wall(Path(folder), "spawn", options.jobs)
        row = f"{count} {name} on {options.device}"
        print(f"{row:<24} {fork:7.1f}s {spawn:7.1f}s {fork / spawn:11.2f}", flush=True)


if __name__ == "__main__":
    main()
