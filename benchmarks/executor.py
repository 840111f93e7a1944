"""What a trivial snippet costs: our executor here and on Ray, and others, in one run.

    python benchmarks/executor.py [--count N] [--jobs N] [CONTENDER...]

Each contender runs N snippets and one, as a command of its own; a snippet's cost is the
difference over N - 1, so that no start-up is in it. CPU is user and system time of the command and
all its children (Ray's daemons take theirs along: of it only the driver is counted).
pytest-codeblocks and pytest-markdown-docs are run where they are installed: both exec() a block in
pytest's own process, one after the other.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from isolation import ARTICLE, CONFIG

from kbtools import config
from kbtools.running import Run
from kbtools.verification import ray as ray_engine
from kbtools.verification.machines import EngineRequest, MachinePool, ThisMachine

SNIPPET = "assert 1\n"


def through(pool: MachinePool, count: int, jobs: int) -> None:
    """Runs snippets through an engine of ours."""
    with pool:
        [environment], _ = pool.toolchains(None)
        pool.describe(environment)
        with (
            pool.engine(environment, EngineRequest(runs=count, jobs=jobs)) as engine,
            ThreadPoolExecutor(jobs) as threads,
        ):
            run = Run(source=SNIPPET, language="python", display_path="kb/an-article.md")
            started: tuple[int, ...] = ()
            futures = [threads.submit(engine.run, run, 0, lambda _: started) for _ in range(count)]
            ended = {future.result().outcome.status for future in futures}
    if ended != {"passed"}:
        raise SystemExit(f"a trivial snippet: {ended}")


def local(folder: Path, count: int, jobs: int) -> None:
    """The local executor: a process for each, forked from a zygote that preloads nothing."""
    through(ThisMachine(config.find(folder)), count, jobs)


def ray(folder: Path, count: int, jobs: int) -> None:
    """The same in the workers of a Ray cluster of this machine."""
    through(ray_engine.ray_pool(config.find(folder), "ray"), count, jobs)


def verify(folder: Path, count: int, jobs: int) -> None:
    """The whole command: read, run, judged, remembered."""
    command = ["-m", "kbtools.cli", "-C", str(folder), "verify", "--all", "-q", "-j", str(jobs)]
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)


def fresh(folder: Path, count: int, jobs: int) -> None:
    """An interpreter for each, and nothing around it."""
    file = folder / "snippet.py"
    file.write_text(SNIPPET, "utf-8")
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda _: subprocess.run([sys.executable, file], check=True), range(count)))


def codeblocks(folder: Path, count: int, jobs: int) -> None:
    """pytest-codeblocks."""
    pytest("--codeblocks", folder)


def markdown_docs(folder: Path, count: int, jobs: int) -> None:
    """pytest-markdown-docs."""
    pytest("--markdown-docs", folder)


def pytest(option: str, folder: Path) -> None:
    """Runs the articles of a folder as tests."""
    command = ["-m", "pytest", "-q", "-p", "no:kbtools", "-p", "no:cacheprovider", option]
    place = {"cwd": folder, "stdout": subprocess.DEVNULL}
    subprocess.run([sys.executable, *command, "blocks.md"], check=True, **place)


CONTENDERS = {
    "local": (local, ""),
    "ray": (ray, "ray"),
    "verify": (verify, ""),
    "fresh": (fresh, ""),
    "codeblocks": (codeblocks, "pytest_codeblocks"),
    "markdown-docs": (markdown_docs, "pytest_markdown_docs"),
}
"""Name → how snippets are run, and the module it needs."""


def measured(name: str, count: int, jobs: int) -> tuple[float, float]:
    """Wall and CPU seconds of a contender, in a process of its own, over so many snippets."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "kbtools.toml").write_text(CONFIG, "utf-8")
        (folder / "kb").mkdir()
        fences = [f"```python control id=c{n}\n{SNIPPET}```\n" for n in range(count)]
        text = ARTICLE + "\n".join(fences) + "\n## Best practice\n"
        (folder / "kb" / "KB0001-benchmark.md").write_text(text, "utf-8")
        (folder / "blocks.md").write_text(f"```python\n{SNIPPET}```\n\n" * count, "utf-8")
        words = [sys.executable, __file__, "--one", name, "--in", place]
        words += ["--count", str(count), "--jobs", str(jobs)]
        started = time.perf_counter()
        process = subprocess.Popen(words)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
    if status:
        raise SystemExit(f"{name} failed")
    return seconds, usage.ru_utime + usage.ru_stime


def main() -> None:
    """Prints a row for each contender."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contenders", nargs="*", default=[], metavar="CONTENDER")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--one", dest="contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--in", dest="folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        CONTENDERS[options.contender][0](options.folder, options.count, options.jobs)
        return
    load = os.getloadavg()[0]
    print(f"{options.count} snippets, jobs={options.jobs}, {os.cpu_count()} CPUs, load {load:.1f}")
    print(f"{'':<14} {'wall':>9} {'CPU':>9} {'start-up':>9} {'wall/local':>11}")
    base = None
    for name in options.contenders or CONTENDERS:
        module = CONTENDERS[name][1]
        if module and find_spec(module) is None:
            print(f"{name:<14} {module} is not installed")
            continue
        single, many = (measured(name, count, options.jobs) for count in (1, options.count))
        wall, cpu = (
            1000 * (m - o) / (options.count - 1) for o, m in zip(single, many, strict=True)
        )
        base = base or wall
        row = f"{name:<14} {wall:6.2f} ms {cpu:6.2f} ms {single[0]:7.2f} s {wall / base:11.2f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
