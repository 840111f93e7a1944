"""What `kbtools diagnose` costs: one pass for all literals against a regex for each signature.

    python benchmarks/diagnose.py [--articles 10000] [--megabytes 1] [--rounds 5]

First within this process, after loading: synthetic articles of three signatures each, like those of
a knowledge base, and a log of a training run with one failure in it. The naive loop searches the
log with each compiled expression in turn. Then logs in which nothing failed, the usual ones, and
this knowledge base. Then the command, from its start to its end, with 200 articles on disk and a
log of 50 kB; the first time it reads every article, afterwards it has an index. Then the logs of
tests/test_hostile_logs.py; if one takes more than 2 s, the benchmark exits with 1. CPU seconds are
the least of the rounds, since other programs can only add to them.

On two cores that others used as well (2026-11-21): 10,000 articles and 1 MB take 0.14 s, the naive
loop 146 times that; the command with 200 articles takes 0.14 s of CPU, and as much by the clock.
On 2026-11-22 a healthy log of 2 MB took 0.40 s of CPU; 0.93 s when each joint cleaned it again.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kbtools.articles.model import Signature
from kbtools.articles.signatures import pattern
from kbtools.matching import Index, IndexEntry, Matcher, load

VOCABULARY = """
tensor kernel launch operand layout stride block warp grid stream event graph cache buffer index
shape dtype device host shared memory pointer mask tile pipeline barrier cluster scale
"""
WORDS = VOCABULARY.split()
ROOT = Path(__file__).parent.parent


def entry(number: int, words: random.Random) -> IndexEntry:
    """An article with three signatures of its own, two of them with an expression."""
    first, second = (" ".join(words.choices(WORDS, k=4)) for _ in range(2))
    return IndexEntry(
        id=f"KB{number:05}",
        title=f"error: {first} {number}",
        summary="Upgrade.",
        severity="crash",
        signatures=(
            Signature(f"{first} {number}", rf"(?:Runtime|Value)Error: {first} {number}, got \d+"),
            Signature(f"{second} [{number}]"),
            Signature(
                f"cannot {second}", rf"cannot {second} of \w+ {number}\b", near="sm_90|triton"
            ),
        ),
        affected=({"triton": ">=2.2,<3.0"},),
    )


def log(size: int, failure: str, words: random.Random) -> str:
    """A log of `size` characters of `words`, with a failure three quarters down, or without one."""
    lines, length = [], 0
    while length < size:
        message = " ".join(words.choices(WORDS, k=9))
        lines.append(f"2026-11-21 10:00:00,000 INFO [loop.py:77] step {len(lines)}: {message}")
        length += len(lines[-1]) + 1
    if failure:
        lines.insert(len(lines) * 3 // 4, f"[rank0]: RuntimeError: {failure}, got 512")
    return "\n".join(lines)


def naive(index: Index, text: str) -> set[str]:
    """The articles of which an expression is found, one after the other."""
    return {
        article.id
        for article in index.articles
        for signature in article.signatures
        if (pattern(signature.regex).search(text) if signature.regex else signature.literal in text)
    }


def least(work: Callable[[], object], rounds: int) -> float:
    """CPU seconds of the best round."""
    seconds = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return min(seconds)


def within(articles: int, megabytes: float, rounds: int) -> None:
    """Prints what the matcher and the naive loop cost, and that both find the failure."""
    words = random.Random(7)
    index = Index(1, "bench", "", tuple(entry(n, words) for n in range(articles)))
    target = index.articles[articles // 2]
    text = log(int(megabytes * 1_000_000), target.signatures[0].literal, words)
    started = time.process_time()
    matcher = Matcher(index)
    loaded = time.process_time() - started
    ids = [match.id for match in matcher.diagnose(text).matches]
    assert ids[0] == target.id, ids
    assert target.id in naive(index, text)  # compiles every expression, too
    ours = least(lambda: matcher.diagnose(text), rounds)
    theirs = least(lambda: naive(index, text), 1)
    print(f"{articles} articles, {megabytes:g} MB: one Aho-Corasick automaton {loaded:.2f} s")
    print(f"  diagnose     {ours:8.3f} s of CPU")
    print(f"  naive loop   {theirs:8.3f} s of CPU   × {theirs / ours:.0f}")


def healthy(rounds: int) -> None:
    """Prints what logs cost in which nothing failed."""
    matcher = Matcher(load(ROOT))
    print("logs in which nothing failed, and this knowledge base")
    for megabytes in (1, 2, 10):
        text = log(megabytes * 1_000_000, "", random.Random(7))
        assert not matcher.diagnose(text).matches
        seconds = least(lambda text=text: matcher.diagnose(text), rounds)  # type: ignore[misc]
        print(f"  {megabytes:2} MB        {seconds:8.3f} s of CPU")


def start_up(articles: int, rounds: int) -> None:
    """Prints what the command costs from its start to its end."""
    ours = sorted(file for file in (ROOT / "kb").glob("*.md") if file.name.count(".") == 1)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "kb").mkdir()
        text = (ROOT / "kbtools.toml").read_text("utf-8")
        (base / "kbtools.toml").write_text(text, "utf-8")
        for number in range(1, articles + 1):
            model = ours[number % len(ours)]
            name = f"KB{number:04}"
            article = model.read_text("utf-8").replace(model.name.partition("-")[0], name)
            (base / "kb" / f"{name}-copy.md").write_text(article, "utf-8")
        words = random.Random(7)
        (base / "job.log").write_text(log(50_000, "mat1 and mat2 must have", words), "utf-8")
        command = [sys.executable, "-m", "kbtools.cli", "-C", folder, "diagnose", "job.log"]
        environment = {**os.environ, "XDG_CACHE_HOME": folder, "PYTHONPATH": str(ROOT)}

        def run() -> tuple[float, float]:
            before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            return time.perf_counter() - started, cpu

        first = run()
        wall, cpu = (min(all_of) for all_of in zip(*(run() for _ in range(rounds)), strict=True))
    print(f"kbtools diagnose, {articles} articles, 50 kB: the process from start to end")
    print(f"  first        {first[0]:8.3f} s, {first[1]:.3f} s of CPU")
    print(f"  afterwards   {wall:8.3f} s, {cpu:.3f} s of CPU")


def hostile(limit: float = 2.0) -> float:
    """Prints which logs of 10 MB that mean harm cost most; the seconds of CPU of the worst."""
    sys.path.insert(0, str(ROOT / "tests"))
    from hostile_logs import LOGS, SIZE, index_and_matcher

    _, matcher = index_and_matcher()
    seconds = {}
    for name, make in LOGS.items():
        text = make(SIZE)
        seconds[name] = least(lambda text=text: matcher.diagnose(text), 1)  # type: ignore[misc]
    worst = sorted(seconds, key=lambda name: seconds[name], reverse=True)
    print(f"{len(LOGS)} hostile logs of 10 MB and this knowledge base; the limit is {limit:g} s")
    for name in worst[:3]:
        print(f"  {name:24} {seconds[name]:.3f} s of CPU")
    return seconds[worst[0]]


def main() -> None:
    """Measures all four, and prints them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--articles", type=int, default=10_000)
    parser.add_argument("--megabytes", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    within(options.articles, options.megabytes, options.rounds)
    healthy(options.rounds)
    start_up(200, options.rounds)
    if hostile() > 2:
        sys.exit("a hostile log takes too long")


if __name__ == "__main__":
    main()
