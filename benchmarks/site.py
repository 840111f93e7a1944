"""What the site costs: `kbtools build` against `mkdocs build` of the same pages; its weight.

    python benchmarks/site.py [COUNT ...]

For each COUNT (1000 and 5000) a knowledge base is started with `kbtools init`, its first article is
run, and so many articles of 6 kB are written that have the same snippets and thereby the same
evidence. Processor seconds of one run on one machine: what counts is their ratios. The limits are
those of the project: 1.3 times MkDocs, no growth per page, 100 kB a page, and in a thousand
articles 600 kB a first search, if all of its words are the most frequent ones.

Each is run twice, in turn, and the faster run counts. The files are in memory where there is a
`/dev/shm`: what a disk adds to the one or the other is chance, up to 3 s of ten thousand files.
`TMPDIR` says otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import string
import sys
import tempfile
from functools import cache
from itertools import accumulate
from pathlib import Path

from weights import compressed, page_weight, run

KBTOOLS = (sys.executable, "-m", "kbtools.cli")
RATIO, GROWTH, PAGE, SEARCH = 1.3, 1.1, 100_000, 600_000
LARGE = 1000
"""Articles; the search of more may weigh more."""
MEMORY = Path("/dev/shm")
VOCABULARY = 20_000
"""Words of all articles together. As in a language, the second is half as frequent as the first."""


@cache
def words() -> tuple[list[str], list[float]]:
    """The words of the articles, and how often each and those before it are there."""
    random_ = random.Random(0)
    letters = string.ascii_lowercase
    vocabulary = [
        "".join(random_.choices(letters, k=random_.randint(3, 10))) for _ in range(VOCABULARY)
    ]
    return vocabulary, list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))


def chosen(random_: random.Random, count: int) -> list[str]:
    """So many words."""
    vocabulary, weights = words()
    return random_.choices(vocabulary, cum_weights=weights, k=count)


def prose(random_: random.Random, size: int) -> str:
    """Paragraphs of about so many characters."""
    text = ""
    while len(text) < size:
        text += " ".join(chosen(random_, 60)).capitalize() + ".\n\n"
    return text


def knowledge_base(folder: Path, count: int) -> None:
    """A knowledge base of so many articles, each with evidence."""
    run(*KBTOOLS, "init", str(folder), "--name", "Benchmark", "--prefix", "SYN", cwd=folder.parent)
    config = folder / "kbtools.toml"
    config.write_text(config.read_text().replace('prefix = "SYN"', 'prefix = "SYN"\ndigits = 5'))
    first = next((folder / "kb").glob("SYN0001*"))
    text = first.read_text("utf-8").replace("SYN0001", "SYN00001")
    first.rename(first.with_name(first.name.replace("SYN0001", "SYN00001"))).write_text(text)
    run(*KBTOOLS, "verify", "--record", cwd=folder)
    evidence = folder / "evidence" / "SYN00001.jsonl"
    for number in range(2, count + 1):
        name, random_ = f"SYN{number:05}", random.Random(number)
        title = f"{' '.join(chosen(random_, 4))} {number:x}: division by zero"
        article = re.sub('title: ".*"', f'title: "{title}"', text.replace("SYN00001", name))
        article = re.sub(
            r"(?m)^(## .*\n)", lambda heading, r=random_: f"{heading[0]}\n{prose(r, 1300)}", article
        )
        (folder / "kb" / f"{name}-synthetic.md").write_text(article, "utf-8")
        shutil.copy(evidence, evidence.with_name(f"{name}.jsonl"))


def search_weight(site: Path, words: int = 6, results: int = 10) -> int:
    """Bytes that a first search of so many words fetches at most, and so many results."""
    bundle = site / "pagefind"
    entry = json.loads((bundle / "pagefind-entry.json").read_bytes())
    [language] = entry["languages"].values()
    names = ["pagefind.js", "pagefind-worker.js", "pagefind-entry.json"]
    names += [
        f"wasm.{language['wasm'] or 'unknown'}.pagefind",
        f"pagefind.{language['hash']}.pf_meta",
    ]
    total = sum(compressed(bundle / name) for name in names if (bundle / name).exists())
    for folder, count in (("index", words), ("fragment", results)):
        sizes = sorted((file.stat().st_size for file in (bundle / folder).iterdir()), reverse=True)
        total += sum(sizes[:count])
    return total


def measure(folder: Path, count: int) -> dict[str, float]:
    """All figures of a knowledge base of so many articles."""
    root = folder / f"base-{count}"
    knowledge_base(root, count)
    mkdocs = (sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet")
    ours, plain = [], []
    for _ in range(2):
        shutil.rmtree(root / "build", ignore_errors=True)
        shutil.rmtree(root / "site", ignore_errors=True)
        ours.append(run(*KBTOOLS, "build", "--no-search", cwd=root))
        plain.append(run(*mkdocs, "--site-dir", str(folder / "plain"), cwd=root))
        pages = sum(1 for _ in (folder / "plain").rglob("index.html"))
        shutil.rmtree(folder / "plain")
    search = run(*KBTOOLS, "build", "--only", "search", cwd=root)
    figures = {
        "articles": count,
        "pages": pages,
        "kbtools build, CPU s": round(min(ours), 1),
        "mkdocs build, CPU s": round(min(plain), 1),
        "ratio": round(min(ours) / min(plain), 3),
        "CPU ms a page": round(1000 * min(ours) / pages, 2),
        "search index, CPU s": round(search, 1),
        "article page, bytes": page_weight(root / "site", "SYN00002"),
        "first search, bytes at most": search_weight(root / "site"),
    }
    shutil.rmtree(root)
    return figures


def main() -> None:
    """Measures, prints a table, and exits with 1 if a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("counts", nargs="*", type=int, default=[1000, 5000])
    counts = parser.parse_args().counts
    os.environ["NO_COLOR"] = "1"
    memory = None if "TMPDIR" in os.environ or not MEMORY.is_dir() else MEMORY
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        rows = [measure(Path(folder), count) for count in counts]
    for name in rows[0]:
        print(f"{name:28}" + "".join(f"{row[name]:>12}" for row in rows))
    failed = []
    for row in rows:
        limits = {"ratio": RATIO, "article page, bytes": PAGE}
        if row["articles"] <= LARGE:
            limits["first search, bytes at most"] = SEARCH
        failed += [f"{row['articles']}: {k} > {v}" for k, v in limits.items() if row[k] > v]
    if rows[-1]["CPU ms a page"] > GROWTH * rows[0]["CPU ms a page"]:
        failed.append(f"CPU a page grows by more than {GROWTH}")
    print("\n".join(failed) or "every limit is kept")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
