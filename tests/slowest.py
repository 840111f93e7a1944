"""`pytest --slowest-files 20 tests`: which files of tests take the longest, and how much they work.

Seconds of CPU are those of the worker and of every process below it, so that a browser, a zygote
and Ray count where they are used. Where a file has many more seconds than seconds of CPU, it waits.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROPERTY = "cpu-seconds"
TICKS = os.sysconf("SC_CLK_TCK")


def add_option(parser: pytest.Parser) -> None:
    """Adds the option that prints the table."""
    parser.addoption(
        "--slowest-files",
        type=int,
        default=0,
        metavar="N",
        help="Print the N files whose tests take the longest, with their seconds of CPU.",
    )


def cpu_seconds(root: int) -> float:
    """Seconds of CPU of a process, those that it waited for, and all that live below it."""
    parents, seconds = {}, {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            parents[int(process.name)] = int(fields[1])
            # its own in user and kernel mode, and those of its children that it waited for
            seconds[int(process.name)] = sum(map(int, fields[11:15])) / TICKS
    below = {root}
    for process_id in seconds:
        line = [process_id]
        while line[-1] in parents and line[-1] not in below:
            line.append(parents[line[-1]])
        if line[-1] in below:
            below.update(line)
    return sum(seconds.get(process_id, 0.0) for process_id in below)


@dataclass
class Spent:
    """What the tests of a file took."""

    tests: int = 0
    seconds: float = 0.0
    cpu: float = 0.0


class Files:
    """Measures every phase of every test, and prints the table of files."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.spent: defaultdict[str, Spent] = defaultdict(Spent)
        self._before = cpu_seconds(os.getpid())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Adds to a report the seconds of CPU since the last report of this process."""
        report = yield
        now = cpu_seconds(os.getpid())
        report.user_properties.append((PROPERTY, now - self._before))
        self._before = now
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Counts a phase of a test, of whichever worker."""
        spent = self.spent[report.nodeid.partition("::")[0]]
        spent.tests += report.when == "setup"
        spent.seconds += report.duration
        spent.cpu += sum(cpu for name, cpu in report.user_properties if name == PROPERTY)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints the table: seconds, seconds of CPU and tests of each file, longest first."""
        terminalreporter.section(f"the {self.count} slowest files")
        files = sorted(self.spent.items(), key=lambda row: -row[1].seconds)
        whole = Spent(
            sum(spent.tests for _, spent in files),
            sum(spent.seconds for _, spent in files),
            sum(spent.cpu for _, spent in files),
        )
        terminalreporter.write_line(f"{'seconds':>9} {'of CPU':>8} {'tests':>6}")
        for name, spent in [*files[: self.count], ("all files", whole)]:
            terminalreporter.write_line(
                f"{spent.seconds:9.1f} {spent.cpu:8.1f} {spent.tests:6}  {name}"
            )


def register(config: pytest.Config) -> None:
    """Measures, if the table is asked for."""
    count = config.getoption("--slowest-files")
    if count:
        config.pluginmanager.register(Files(count))
