"""What is verified, and what came of it: the nouns of this package."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from kbtools.articles.model import Article, Role, Snippet
from kbtools.evidence.verdicts import Expectation, Verdict, expect
from kbtools.outcome import Outcome
from kbtools.running.executor import Sandbox
from kbtools.toolchains.model import Toolchain

OnTaskStart = Callable[["Task", tuple[int, ...]], None]
"""Called when the run of a task begins, with the indices of its GPUs."""


class Task(msgspec.Struct, frozen=True):
    """A snippet to be verified on a toolchain, and what the article's claims imply there."""

    article: Article
    snippet: Snippet
    toolchain: Toolchain
    expected: Expectation
    name: str | None = None
    """Of the toolchain, where it has one."""
    interpreter: str = ""
    """What `--toolchain` takes for a toolchain without a name; empty for that of kbtools."""

    @property
    def runs(self) -> bool:
        """Whether there is something to run: the toolchain allows it and the claims say more."""
        return self.expected.what in ("fails", "passes")

    def on(self, toolchain: Toolchain | None) -> Task:
        """The same snippet on the toolchain that it was run on, where that is another."""
        if toolchain is None or toolchain == self.toolchain:
            return self
        expected = expect(self.snippet, toolchain, self.name)
        return msgspec.structs.replace(self, toolchain=toolchain, expected=expected)


class Result(msgspec.Struct, frozen=True):
    """What came of a task."""

    task: Task
    verdict: Verdict
    outcome: Outcome | None = None
    """None where nothing was run."""
    remembered: bool = False
    """Whether the outcome is that of an earlier run on this machine."""
    trouble: str = ""
    """Why the outcome could not be written down."""
    scratch: Path | None = None
    """The folder in which `--keep` left what the run made."""


class LeftOut(msgspec.Struct, frozen=True):
    """Snippets that could have been run on a toolchain, and that `--quick` left out."""

    snippets: tuple[str, ...]
    """As in `KB0002/r1`."""
    minutes: float
    """What running them is expected to take."""
    command: str
    """Runs them."""

    def __str__(self) -> str:
        count = len(self.snippets)
        return "1 slower snippet left" if count == 1 else f"{count} slower snippets left"


class ToolchainRun(msgspec.Struct, frozen=True):
    """What came of all tasks on one toolchain."""

    name: str | None
    """Its name in `toolchains.toml`, where it has one."""
    toolchain: Toolchain
    results: tuple[Result, ...]
    seconds: float
    """Wall time."""
    headline: tuple[str, ...] = ()
    """The distributions by which the toolchain is named."""
    left_out: LeftOut | None = None
    """None where nothing was left out: what cannot be run here is among the results."""

    @property
    def brief(self) -> str:
        """The toolchain in a few words."""
        return self.toolchain.brief(self.headline)

    @property
    def software(self) -> str:
        """The toolchain on a line, without its GPU."""
        return self.toolchain.software(self.headline)

    @property
    def label(self) -> str:
        """The toolchain on a line."""
        return self.toolchain.label(self.headline)

    @property
    def colours(self) -> set[str]:
        """The colours of the verdicts."""
        return {result.verdict.colour for result in self.results}

    @property
    def left_out_names(self) -> tuple[str, ...]:
        """The snippets that `--quick` left out."""
        return self.left_out.snippets if self.left_out else ()

    @property
    def unsandboxed(self) -> str:
        """What of the sandbox its snippets ran without, and why; empty where they had all of it."""
        outcomes = [r.outcome for r in self.results if r.outcome and not r.remembered]
        return "; ".join(sorted({outcome.unsandboxed for outcome in outcomes} - {""}))


class RunOptions(msgspec.Struct, frozen=True):
    """How the snippets of a toolchain are run."""

    jobs: int | None = 2
    """Snippets at once; None: as many as there is room for."""
    rerun_remembered: bool = False
    """Also run snippets whose outcome this machine remembers."""
    record: bool = False
    """Write evidence, not only what this machine remembers."""
    spawn: bool = False
    """`--isolation spawn`: an interpreter for every snippet."""
    timeout: float | None = None
    """Seconds, instead of what configuration and fence say."""
    fail_fast: bool = False
    """Stop at the first red verdict."""
    sandbox: Sandbox = "where allowed"
    keep: Path | None = None
    """A folder below which the scratch folder of each snippet that is run is kept."""


def plan(
    articles: Iterable[Article], toolchain: Toolchain, name: str | None, roles: Iterable[Role]
) -> tuple[Task, ...]:
    """Every snippet of some roles, with what is expected of it on a toolchain.

    Args:
        articles: Of which snippets are taken; a retired article has none to be run.
        toolchain: What they are to be run on.
        name: The toolchain's name in `toolchains.toml`, where it has one.
        roles: Those of the snippets that are taken.
    """
    selected = set(roles)
    return tuple(
        Task(article, snippet, toolchain, expect(snippet, toolchain, name), name)
        for article in articles
        for snippet in article.snippets
        if snippet.role in selected and not article.matter.retired
    )
