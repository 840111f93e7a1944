"""What `kbtools run` costs a program that prints a lot: the same program alone and under it.

    python benchmarks/wrapping.py [--rounds 7]

Both take turns, with standard output in a pipe that is read as fast as it comes; the best round of
each counts, since whatever else the machine does only adds. What counts is the ratio. The start of
`kbtools run`, the same for every program, is a row of its own and part of the others.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

WORK = """
def work(n):
    for _ in range(n):
        pass
"""
PROGRAMS = {
    "nothing": "",
    "10,000 lines, each flushed, with work between": f"""{WORK}
for number in range(10_000):
    work(15_000)
    print("step", number, "loss 0.123456", flush=True)
""",
    "3,000,000 lines, buffered": """
for number in range(3_000_000):
    print("step", number, "loss 0.123456")
""",
    "1,000,000 lines, each flushed": """
for number in range(1_000_000):
    print("step", number, "loss 0.123456", flush=True)
""",
    "100 MB in lines of 100 bytes": """
import sys
line = "x" * 99
for _ in range(1_000_000):
    print(line)
""",
}
RUN = (sys.executable, "-m", "kbtools.cli", "run", "--")


def seconds(command: list[str]) -> float:
    """Wall time of a command whose output is read and dropped."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout
    while os.read(process.stdout.fileno(), 1 << 20):
        pass
    if process.wait():
        raise SystemExit(f"exit code {process.returncode}")
    return time.perf_counter() - started


def main() -> None:
    """Prints a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(f"{'program':<44} {'alone':>8} {'wrapped':>8} {'ratio':>6} {'median':>7}")
    for name, code in PROGRAMS.items():
        alone, wrapped = [], []
        for _ in range(rounds):
            alone.append(seconds([sys.executable, "-c", code]))
            wrapped.append(seconds([*RUN, sys.executable, "-c", code]))
        ratio = statistics.median(w / a for a, w in zip(alone, wrapped, strict=True))
        print(
            f"{name:<44} {min(alone):6.2f} s {min(wrapped):6.2f} s"
            f" {min(wrapped) / min(alone):6.2f} {ratio:7.2f}"
        )


if __name__ == "__main__":
    main()
