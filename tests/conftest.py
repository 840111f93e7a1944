"""Fixtures for everyone: a knowledge base to run the real `kbtools` on."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import forks
import pytest
import slowest
from bases import Base, fence
from chromium import chromium, our_site, reader
from warm import WARM, warm_base

__all__ = ["base", "chromium", "new_base", "our_site", "reader"]

# a shell that runs the tests in the background has every child ignore Ctrl-C: tests send it
signal.signal(signal.SIGINT, signal.default_int_handler)


SLOW = frozenset(
    f"test_{name}.py"
    for name in (
        # a browser, V8, or a whole site
        *("browser_accessible", "browser_parity", "browser_paste", "browser_reading"),
        *("hostile_logs", "linkcheck", "serve", "site", "site_hostile"),
        # torch, Ray, toolchains that are built, the wheel
        *("building", "building_faults", "inside_a_snippet", "packaging", "ray", "targets"),
        # many runs of the real kbtools, one after the other
        *("answering", "bisecting", "changes", "corpus", "doors", "falsify", "faults", "forks"),
        *(
            "isolation",
            "jobs",
            "kept",
            "matrix",
            "mcp",
            "merging",
            "nothing_is_lost",
            "pytest_plugin",
            "reports",
            "run_command",
        ),
        *("sandbox", "several_toolchains", "sharding", "store_attacks", "store_filling", "verify"),
        "workflows",
    )
)
"""Files whose tests need torch, Ray or a browser, or start many programs: nothing is traced."""

LONG = frozenset(
    f"test_{name}.py"
    for name in (
        *("cached", "command_line", "commands", "first", "notebook", "quick", "releases"),
        *("search", "site_machine", "tables", "wordings_classes"),
    )
)
"""Other files whose tests take more than five seconds together (`--slowest-files` prints them)."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the slow and the long tests, which `make quick` leaves out."""
    for item in items:
        if item.path.name in SLOW:
            item.add_marker(pytest.mark.slow)
        if item.path.name in LONG:
            item.add_marker(pytest.mark.long)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of `tests/slowest.py`."""
    slowest.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    """On a runner of GitHub, too, a test says itself what kbtools is to see of it."""
    slowest.register(config)
    for name in [name for name in os.environ if name.startswith("GITHUB_")]:
        del os.environ[name]


def pytest_unconfigure() -> None:
    """Coverage is combined when this process has ended: all that it started has ended before."""
    forks.close()


@pytest.fixture(scope="session")
def new_base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Base]]:
    """Makes knowledge bases; the argument `run` is the text of the table `[run]`."""
    temporary: list[Path] = []

    def make(run: str = "") -> Base:
        # short: the path of a socket has 107 bytes at most
        temporary.append(Path(tempfile.mkdtemp(prefix="kbt-")))
        return Base.make(tmp_path_factory.mktemp("base"), temporary[-1], run)

    yield make
    for folder in temporary:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def filled(new_base: Callable[..., Base]) -> Base:
    """A knowledge base with one snippet, and a full store."""
    base = warm_base(new_base)
    base.article(fence("python control id=c1", WARM))
    done = base.verify()
    assert done.verdicts == {"KB0001/c1": "holds"}, (done.out, done.err)
    if "sight (" in done.json["unsandboxed"]:
        pytest.skip(done.json["unsandboxed"])
    return base


@pytest.fixture
def base(new_base: Callable[..., Base]) -> Base:
    """A knowledge base with no article yet."""
    return new_base()
