"""What a store saves, and whether it changes a verdict: the same snippets three times.

    python benchmarks/store.py           (two small snippets alone)
    python benchmarks/store.py KB0004 KB0005 KB0066 [--rounds N] [--jobs N] [--without NAME]
    python benchmarks/store.py --all

In each round: without a store, then with an empty one, then with the full one. CPU seconds, because
wall time is disturbed by whatever else the machine does; figures are ratios of one run on one
machine. The exit code is 1 if a verdict differs.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
KINDS = ("without", "cold", "warm")
SMALL = """\
---
id: KB9999
title: "benchmark"
summary: "nothing"
components: [pytorch]
stage: runtime
severity: slow
signatures:
  - literal: "benchmark"
---

## Symptom

```python control id=fork
import torch

torch.compile(lambda x: x * 2 + 1)(torch.ones(8))
```

```python control id=fresh env="NAME=value"
import torch

torch.compile(lambda x: x * 2 + 1)(torch.ones(8))
```

## Root cause

## Fix

## Best practice
"""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("articles", nargs="*")
    parser.add_argument("--all", action="store_true", help="every article")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--without",
        action="append",
        default=["torch._inductor.cpu_vec_isa:valid_vec_isa_list"],
        metavar="NAME",
        help="of [run.preload], left out where there is no store",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kbs-") as folder:
        bases = {kind: Path(folder, "warm" if kind == "cold" else kind) for kind in KINDS}
        for kind in ("without", "warm"):
            articles = None if options.all else options.articles
            make_base(bases[kind], articles, None if kind == "warm" else options.without)
        rounds = []
        for _ in range(options.rounds):
            shutil.rmtree(bases["cold"] / ".kbtools" / "stores", ignore_errors=True)
            rounds.append({kind: measured(bases[kind], options.jobs) for kind in KINDS})
            raise_differences(rounds[-1])
    report(rounds)


def make_base(folder: Path, articles: list[str] | None, without: list[str] | None) -> None:
    """Copies the knowledge base, or these articles of it, and adds one small article.

    Args:
        folder: Where to.
        articles: As in `KB0004`; None: all.
        without: Names in `[run.preload]` to leave out, with the whole of `[run.store]`; None: the
            configuration stays as it is, but that a store is filled for any number of snippets.
    """
    (folder / "kb").mkdir(parents=True)
    for file in sorted((ROOT / "kb").glob("*.md")):
        if articles is None or file.name.split("-")[0] in articles:
            shutil.copy(file, folder / "kb")
    (folder / "kb" / "KB9999-benchmark.md").write_text(SMALL, "utf-8")
    for name in ("evidence", "stores", "toolchains.toml"):
        (folder / name).symlink_to(ROOT / name)
    text = (ROOT / "kbtools.toml").read_text("utf-8")
    if without is None:
        text = text.replace("[run.store]", "[run.store]\nat-least = 1")
    else:
        text = re.sub(r"^\[run\.store\]\n.*?(?=^\[)", "", text, flags=re.MULTILINE | re.DOTALL)
        lines = [line for line in text.splitlines() if not any(name in line for name in without)]
        text = "\n".join(lines) + "\n"
    (folder / "kbtools.toml").write_text(text, "utf-8")


def measured(base: Path, jobs: int) -> dict[str, object]:
    """One run of a base: its results, and the wall and CPU seconds of the whole command."""
    file = base / "results.json"
    before, started = cpu_seconds(), time.monotonic()
    words = ["verify", "--all", "--quiet", "--json", str(file), "--jobs", str(jobs)]
    subprocess.run(
        [sys.executable, "-m", "kbtools.cli", "-C", str(base), *words],
        check=False,
        stdout=subprocess.DEVNULL,
    )
    wall, cpu = time.monotonic() - started, cpu_seconds() - before
    results = json.loads(file.read_bytes())["results"]
    return {"wall": wall, "cpu": cpu, "results": {name_of(result): result for result in results}}


def cpu_seconds() -> float:
    """Of every process below this one that has ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def name_of(result: dict[str, str]) -> str:
    """As in `KB0004/r1`."""
    return f"{result['article']}/{result['snippet']}"


def raise_differences(runs: dict[str, dict]) -> None:
    """Ends the benchmark where a verdict with a store is not the one without."""
    verdicts = {
        kind: {name: result["verdict"] for name, result in run["results"].items()}
        for kind, run in runs.items()
    }
    for kind in ("cold", "warm"):
        for name, verdict in verdicts["without"].items():
            if verdicts[kind].get(name) != verdict:
                print(f"{name}: {verdict} without, {verdicts[kind].get(name)} {kind}")
    if not verdicts["without"] == verdicts["cold"] == verdicts["warm"]:
        raise SystemExit(1)


def report(rounds: list[dict[str, dict]]) -> None:
    """Prints CPU seconds for each article, the least of all rounds, and their ratios."""
    names = list(rounds[0]["without"]["results"])
    groups = {name: name if name.startswith("KB9999") else name.partition("/")[0] for name in names}
    print(f"{'CPU seconds':14}" + "".join(f"{kind:>10}" for kind in KINDS) + f"{'ratio':>8}")
    for group in dict.fromkeys(groups.values()):
        members = [name for name in names if groups[name] == group]
        row = {kind: min(total(run[kind], members) for run in rounds) for kind in KINDS}
        if row["without"] >= 1:
            print_row(group, row)
    for what in ("cpu", "wall"):
        print_row(
            f"command, {what}", {kind: min(run[kind][what] for run in rounds) for kind in KINDS}
        )
    print(f"{len(names)} snippets, all verdicts the same in {len(rounds)} rounds")


def total(run: dict, names: list[str]) -> float:
    """CPU seconds of these snippets together; one that was not run counts nothing."""
    outcomes = [run["results"][name].get("outcome") or {} for name in names]
    return sum(outcome.get("cpu_seconds") or 0.0 for outcome in outcomes)


def print_row(label: str, row: dict[str, float]) -> None:
    """One line of the table; the ratio is that of the full store to none."""
    cells = "".join(f"{row[kind]:10.1f}" for kind in KINDS)
    print(f"{label:14}{cells}{row['warm'] / row['without']:8.2f}")


if __name__ == "__main__":
    main()
