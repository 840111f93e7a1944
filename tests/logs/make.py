"""Make the logs of this folder from their recipes: every one is the output of a real run.

    python make.py [NAME...]             make these, or all that need no GPU
    python make.py --missing             only those that have no log yet; all answers told again
    python make.py --gpu --out DIR       the recipes that need a GPU, on the interpreter at hand
    python make.py --adopt DIR           take over logs made on another machine

KBTOOLS_TOOLCHAINS names the folder of toolchains (`kbtools toolchain sync`), --tools a folder of
packages that toolchains lack (`pip install --target DIR ipython nbconvert ipykernel pytest
pytest-xdist rich loguru` and, with `--no-deps`, torchvision==0.20.1), KBTOOLS_PYTHONS a folder of
other Pythons by version. A recipe whose toolchain is not there makes no log.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import passages
import recipes
import runs
from recipes import Recipe

HERE = Path(__file__).parent
EXPECTED = "expected.toml"
HEADER = """\
# Written by make.py from recipes/: the right answers for the logs of this folder.
# expect: ids of articles, the best first; [] where none is right. hard: it quotes an error without
# being one, or is broken up, or holds no text of its own. truncated: lines were cut off on purpose.
# expect_tail: the same of the last 30 lines, where those hold nothing of what the whole log shows.
# first: part of the line that failed first, in logs of which that is asked.
"""


def entry(recipe: Recipe, toolchain: str) -> dict[str, Any]:
    """What expected.toml says of a log."""
    answer: dict[str, Any] = {
        "expect": list(recipe.expect),
        "made": f"python make.py {recipe.name}",
    }
    answer |= {"toolchain": toolchain, "truncated": passages.cuts(recipe.through)}
    answer |= {"hard": True} if recipe.hard else {}
    answer |= {} if recipe.expect_tail is None else {"expect_tail": list(recipe.expect_tail)}
    answer |= {"first": recipe.first} if recipe.first else {}
    answer |= {"note": recipe.note} if recipe.note else {}
    return answer


def read_expected(folder: Path) -> dict[str, dict[str, Any]]:
    """The entries of a folder's expected.toml."""
    file = folder / EXPECTED
    return tomllib.loads(file.read_text("utf-8")) if file.exists() else {}


def write_expected(folder: Path, entries: dict[str, dict[str, Any]]) -> None:
    """Write them, sorted; an entry whose log is gone goes too."""
    text = HEADER
    for name in sorted(entries):
        if (folder / name).exists():
            lines = [
                f"{key} = {json.dumps(value, ensure_ascii=False)}"
                for key, value in entries[name].items()
            ]
            text += "\n".join([f'\n["{name}"]', *lines]) + "\n"
    (folder / EXPECTED).write_text(text, "utf-8")


def adopt(folder: Path) -> None:
    """Copy logs and their entries from a folder that `--out` filled."""
    theirs = read_expected(folder)
    for name in theirs:
        shutil.copy(folder / name, HERE / name)
    write_expected(HERE, {**read_expected(HERE), **theirs})


def told_again(folder: Path, every: dict[str, Recipe]) -> dict[str, dict[str, Any]]:
    """The entries as recipes have them now: an answer is corrected without a new run."""
    entries = read_expected(folder)
    return {
        name: entry(every[name.removesuffix(".log")], answer["toolchain"])
        for name, answer in entries.items()
        if name.removesuffix(".log") in every
    }


def main() -> None:
    """Make what the command line asks for; exits with 1 where a recipe made no log."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--gpu", action="store_true", help="the recipes that need a GPU")
    parser.add_argument("--missing", action="store_true", help="only those that have no log yet")
    parser.add_argument("--out", type=Path, default=HERE, metavar="DIR")
    parser.add_argument("--adopt", type=Path, metavar="DIR")
    parser.add_argument("--tools", type=Path, metavar="DIR")
    parser.add_argument("--jobs", "-j", type=int, default=0, help="at once (8 with --gpu, else 1)")
    parser.add_argument("--within", type=int, default=0, metavar="SECONDS", help="be ready then")
    asked = parser.parse_args()
    if asked.adopt:
        adopt(asked.adopt)
        return
    asked.out.mkdir(parents=True, exist_ok=True)
    every = recipes.load(HERE / "recipes")
    chosen = [every[name] for name in asked.names] or [
        r for r in every.values() if r.gpu == asked.gpu
    ]
    if asked.missing:
        chosen = [recipe for recipe in chosen if not (asked.out / f"{recipe.name}.log").exists()]
    chosen.sort(key=lambda recipe: -recipe.limit)  # the slow ones must not be left to the end
    within = asked.within or (225 if asked.gpu else 3600)
    began, failed = time.monotonic(), 0

    def one(recipe: Recipe) -> tuple[bytes | None, str]:
        left = within - (time.monotonic() - began)
        if left < 5:
            return None, "not started: out of time"
        return runs.make(replace(recipe, limit=min(recipe.limit, int(left))), asked.tools)

    entries = told_again(asked.out, every)
    write_expected(asked.out, entries)
    with ThreadPoolExecutor(asked.jobs or (8 if asked.gpu else 1)) as pool:
        jobs = [(recipe, pool.submit(one, recipe)) for recipe in chosen]
        for recipe, job in jobs:
            try:
                log, toolchain = job.result()
            except Exception as error:  # one bad recipe must not stop the others
                log, toolchain = None, repr(error)
            if log is None:
                failed += 1
                print(f"{recipe.name}: no log: {toolchain}\n", flush=True)
                continue
            (asked.out / f"{recipe.name}.log").write_bytes(log)
            entries[f"{recipe.name}.log"] = entry(recipe, toolchain)
            write_expected(asked.out, entries)
            print(f"{recipe.name}: {len(log)} bytes ({toolchain})", flush=True)
    print(f"{len(chosen) - failed} made, {failed} not, {time.monotonic() - began:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
