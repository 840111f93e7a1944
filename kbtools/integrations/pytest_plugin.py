"""`pytest kb/`: every snippet is an item, run by the same executor and judged by the same judge.

Only Markdown in the article folder of a knowledge base is collected; everywhere else the plugin
does nothing and imports nothing of kbtools. `--diagnose` adds articles to the reports of any test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kbtools.config import Config
    from kbtools.toolchains.model import Toolchain
    from kbtools.verification.model import Result, Task
    from kbtools.verification.verifier import Verifier


class RedVerdict(Exception):
    """A snippet contradicts its article."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.verdict.reason)
        self.result = result


class Verifiers:
    """A verifier for each knowledge base of the session, made once its snippets are known."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._verifiers: dict[Path, Verifier] = {}
        self._toolchains: dict[Path, Toolchain] = {}

    def toolchain(self, config: Config) -> Toolchain:
        """What the interpreter of pytest holds, read once for each knowledge base."""
        from kbtools.toolchains import environments

        if config.root not in self._toolchains:
            environment = environments.find_environment(config, None)
            self._toolchains[config.root] = environments.toolchain_of(environment)
        return self._toolchains[config.root]

    def of(self, item: SnippetItem) -> Verifier:
        """The verifier that an item runs on."""
        config = item.knowledge_base
        if config.root not in self._verifiers:
            items = [i for i in item.session.items if isinstance(i, SnippetItem)]
            tasks = [i.task for i in items if i.knowledge_base.root == config.root]
            self._verifiers[config.root] = self._start(config, tasks)
        return self._verifiers[config.root]

    def _start(self, config: Config, tasks: list[Task]) -> Verifier:
        from kbtools.toolchains import environments
        from kbtools.verification.machines import ThisMachine
        from kbtools.verification.model import RunOptions
        from kbtools.verification.verifier import Verifier

        environment = environments.find_environment(config, None)
        engine = partial(ThisMachine(config).engine, environment)
        verifier = Verifier(config, tasks, RunOptions(rerun_remembered=True), engine)
        return self._stack.enter_context(verifier)

    def close(self) -> None:
        """Ends every process of every verifier."""
        self._stack.close()


VERIFIERS = pytest.StashKey[Verifiers]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--diagnose` and its setting."""
    about = "show the article of kbtools about the failure of a test"
    parser.getgroup("kbtools").addoption("--diagnose", action="store_true", help=about)
    parser.addini("kbtools_diagnose", about, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Prepares the verifiers of the session, and the reports of `--diagnose`."""
    config.stash[VERIFIERS] = Verifiers()
    if config.getoption("diagnose") or config.getini("kbtools_diagnose"):
        config.pluginmanager.import_plugin("kbtools.integrations.pytest_diagnose")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends what still runs."""
    verifiers = config.stash.get(VERIFIERS, None)
    if verifiers:
        verifiers.close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ArticleFile | None:
    """Collects the articles of a knowledge base, and no other file."""
    if file_path.suffix != ".md" or file_path.name.count(".") > 1:
        return None
    root = next((p for p in file_path.parents if (p / "kbtools.toml").is_file()), None)
    if root is None or file_path.parent != root / "kb":
        return None
    file: ArticleFile = ArticleFile.from_parent(parent, path=file_path)
    return file


class ArticleFile(pytest.File):
    """One article."""

    def collect(self) -> Iterator[SnippetItem]:
        """Its snippets; a problem that keeps it from being read is an error of the collection."""
        import click

        from kbtools import config
        from kbtools.articles.model import Role
        from kbtools.checks.base import load_base, readable_articles
        from kbtools.reports import text
        from kbtools.verification.model import plan

        knowledge_base = config.find(self.path.parent)
        articles, problems = readable_articles(load_base(knowledge_base, [self.path]))
        if problems:
            report = "\n\n".join(text.problem(problem) for problem in problems)
            raise self.CollectError(click.unstyle(report))
        toolchain = self.config.stash[VERIFIERS].toolchain(knowledge_base)
        for task in plan(articles, toolchain, None, list(Role)):
            name = f"{task.snippet.name}[{task.snippet.role}]"
            item: SnippetItem = SnippetItem.from_parent(
                self, name=name, task=task, knowledge_base=knowledge_base
            )
            yield item


class SnippetItem(pytest.Item):
    """One snippet."""

    def __init__(self, *, task: Task, knowledge_base: Config, **rest: Any) -> None:
        super().__init__(**rest)
        self.task = task
        self.knowledge_base = knowledge_base  # `self.config` is pytest's

    def runtest(self) -> None:
        """Green passes, grey is skipped with its reason, red fails."""
        result = self.config.stash[VERIFIERS].of(self).verify_snippet(self.task, lambda *_: None)
        if result.verdict.colour == "red":
            raise RedVerdict(result)
        if result.verdict.colour == "grey":
            pytest.skip(f"{result.verdict.name}: {result.verdict.reason}")

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """The report of `kbtools verify` on a red verdict."""
        if isinstance(excinfo.value, RedVerdict):
            import click

            from kbtools.reports import text

            return click.unstyle(text.red(excinfo.value.result))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it is: the article's line."""
        return self.path, self.task.snippet.place.line - 1, self.name
