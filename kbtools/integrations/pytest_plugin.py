"""`pytest kb/`: every snippet is an item, run by the same executor and judged by the same judge.

Only Markdown in the article folder of a knowledge base is collected; everywhere else the plugin
does nothing and imports nothing of kbtools. `--diagnose` adds articles to the reports of any test.
Roles are markers (`-m repro`), and `--toolchain` takes what `kbtools verify --toolchain` takes.
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
    from kbtools.toolchains.environments import Environment
    from kbtools.toolchains.model import Toolchain
    from kbtools.verification.model import Result, Task
    from kbtools.verification.verifier import Verifier


class RedVerdict(Exception):
    """A snippet contradicts its article."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.verdict.reason)
        self.result = result


class Verifiers:
    """A verifier for each toolchain of each knowledge base, made once the snippets are known."""

    def __init__(self, selection: str | None) -> None:
        """No verifier yet; `selection` is what `--toolchain` selects."""
        self._selection = selection
        self._stack = ExitStack()
        self._verifiers: dict[tuple[Path, str], Verifier] = {}
        self._toolchains: dict[Path, list[tuple[Environment, Toolchain]]] = {}

    def toolchains(self, config: Config) -> list[tuple[Environment, Toolchain]]:
        """The selected environments and what they hold, read once for each knowledge base.

        Raises:
            KbtoolsError: a toolchain is not declared, not built, or cannot be run.
        """
        from kbtools.toolchains import environments

        if config.root not in self._toolchains:
            selected, _ = environments.select_environments(config, self._selection)
            self._toolchains[config.root] = [
                (environment, environments.toolchain_of(environment)) for environment in selected
            ]
        return self._toolchains[config.root]

    def name(self, environment: Environment) -> str:
        """What an item's name says of the toolchain; nothing without `--toolchain`."""
        return f"@{environment.name or environment.python}" if self._selection else ""

    def of(self, item: SnippetItem) -> Verifier:
        """The verifier that an item runs on."""
        if item.place not in self._verifiers:
            items = [i for i in item.session.items if isinstance(i, SnippetItem)]
            tasks = [i.task for i in items if i.place == item.place]
            self._verifiers[item.place] = self._start(item.environment, tasks)
        return self._verifiers[item.place]

    def _start(self, environment: Environment, tasks: list[Task]) -> Verifier:
        from kbtools.verification.machines import ThisMachine
        from kbtools.verification.model import RunOptions
        from kbtools.verification.verifier import Verifier

        config = environment.config
        engine = partial(ThisMachine(config).engine, environment)
        verifier = Verifier(config, tasks, RunOptions(rerun_remembered=True), engine)
        return self._stack.enter_context(verifier)

    def close(self) -> None:
        """Ends every process of every verifier."""
        self._stack.close()


VERIFIERS = pytest.StashKey[Verifiers]()
HAS_MARKERS = pytest.StashKey[bool]()
"""Whether the roles are known as markers."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--diagnose` and its setting, and `--toolchain`."""
    about = "show the article of kbtools about the failure of a test"
    group = parser.getgroup("kbtools")
    group.addoption("--diagnose", action="store_true", help=about)
    parser.addini("kbtools_diagnose", about, type="bool", default=False)
    group.addoption(
        "--toolchain",
        metavar="NAME|PYTHON",
        help="run the snippets of a knowledge base on these toolchains: names of toolchains.toml or"
        " paths of interpreters, separated by commas; all: every one that is built"
        " [default: the interpreter that runs pytest]",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Prepares the verifiers of the session, and the reports of `--diagnose`."""
    config.stash[VERIFIERS] = Verifiers(config.getoption("toolchain"))
    if config.getoption("markers") and knowledge_base_around(config.invocation_params.dir):
        add_markers(config)  # in a run, the first article brings them
    if config.getoption("diagnose") or config.getini("kbtools_diagnose"):
        config.pluginmanager.import_plugin("kbtools.integrations.pytest_diagnose")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuses a `--toolchain` that is not here once, and not at every article.

    Raises:
        pytest.UsageError: it is not declared, not built, or cannot be run.
    """
    root = knowledge_base_around(session.config.invocation_params.dir)
    if root is None or not session.config.getoption("toolchain"):
        return
    from kbtools import config

    try:
        session.config.stash[VERIFIERS].toolchains(config.find(root))
    except config.KbtoolsError as error:
        raise pytest.UsageError(f"--toolchain: {error}") from error


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends what still runs."""
    verifiers = config.stash.get(VERIFIERS, None)
    if verifiers:
        verifiers.close()


def knowledge_base_around(folder: Path) -> Path | None:
    """The root of the knowledge base that a folder lies in."""
    folders = (folder, *folder.parents)
    return next((root for root in folders if (root / "kbtools.toml").is_file()), None)


def add_markers(config: pytest.Config) -> None:
    """Makes a marker of every role: elsewhere than in a knowledge base the names are not ours."""
    from kbtools.articles.model import Role

    if not config.stash.get(HAS_MARKERS, False):
        config.stash[HAS_MARKERS] = True
        for role in Role:
            config.addinivalue_line("markers", f"{role}: snippets of kbtools with the role {role}")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ArticleFile | None:
    """Collects the articles of a knowledge base, and no other file."""
    if file_path.suffix != ".md" or file_path.name.count(".") > 1:
        return None
    root = knowledge_base_around(file_path.parent)
    if root is None or file_path.parent != root / "kb":
        return None
    add_markers(parent.config)
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
        verifiers = self.config.stash[VERIFIERS]
        try:
            toolchains = verifiers.toolchains(knowledge_base)
        except config.KbtoolsError as error:
            raise self.CollectError(str(error)) from error
        for environment, toolchain in toolchains:
            for task in plan(articles, toolchain, environment.name, list(Role)):
                # no brackets: pytest 9.2 takes what stands in them for parameters, and does not
                # find the item again for --lf
                name = f"{task.snippet.name}-{task.snippet.role}{verifiers.name(environment)}"
                item: SnippetItem = SnippetItem.from_parent(
                    self, name=name, task=task, environment=environment
                )
                yield item


class SnippetItem(pytest.Item):
    """One snippet."""

    def __init__(self, *, task: Task, environment: Environment, **rest: Any) -> None:
        super().__init__(**rest)
        self.task = task
        self.environment = environment
        self.add_marker(str(task.snippet.role))

    @property
    def place(self) -> tuple[Path, str]:
        """The knowledge base that it is of, and the interpreter that it is run by."""
        return self.environment.config.root, self.environment.python

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
        """Where it is, the article's line, and its title in a report."""
        # not its name: pytest would show the dots in one as `::`
        title = f"{self.task.snippet.name} ({self.task.snippet.role})"
        on = self.name.partition("@")[2]
        return self.path, self.task.snippet.place.line - 1, f"{title} on {on}" if on else title
