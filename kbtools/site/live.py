"""The site while it is being written: what is saved is built at once, and open pages reload.

The pages of an article are built first, the pages that list it a moment later, and the search index
when nothing was saved for a while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from kbtools import config
from kbtools.articles.model import Problem
from kbtools.checks.base import load_base
from kbtools.config import Config, KbtoolsError
from kbtools.site import build, data, reference, search_index, theming
from kbtools.site.data.texts import address
from kbtools.site.generate import article_pages, shared_pages, write
from kbtools.site.model import ArticleView, SiteModel, board_of, build_model
from kbtools.site.watching import changes_in, watched_folders

QUIET = 3.0
"""Seconds without a change before the search index is made again."""


class BrokenArticlesError(KbtoolsError):
    """Articles break rules, so that their pages cannot be built."""


class Live:
    """A site in `build/live`, kept up to date; `version` counts its states."""

    def __init__(
        self, settings: Config, commands: click.Command, report: Callable[[str], None]
    ) -> None:
        """Prepares a site; `run` builds it.

        Args:
            settings: of the knowledge base.
            commands: the command line, of which the site may have a page.
            report: called with each message, which is a line or several.
        """
        self.folder = settings.root / "build" / "live"
        self.version = 0
        self.problem = ""
        """Why the newest text could not be built; empty if it was built."""
        self._config = settings
        self._commands = commands
        self._report = report
        self._model: SiteModel | None = None
        self._pages: dict[str, bytes] = {}
        self._new_version = threading.Condition()
        self._indexing = threading.Lock()

    def run(self, stop: threading.Event) -> None:
        """Watches and builds until `stop` is set."""
        while not stop.is_set():
            self._watch(stop)

    def wait(self, version: int, seconds: float) -> int:
        """Waits until the version is another than this one; the version by then.

        Args:
            version: the version that the caller has.
            seconds: how long to wait at most.
        """
        with self._new_version:
            self._new_version.wait_for(lambda: self.version != version, seconds)
            return self.version

    def _watch(self, stop: threading.Event) -> None:
        """Builds everything, then what changes, until a folder appears or disappears."""
        folders = watched_folders(self._config)
        complete = lists_outdated = indexed = False
        last = time.monotonic()
        for files in changes_in(folders, self._config, stop):
            if not complete:  # nothing is missed: the folders are watched by now
                complete = True
                self._attempt(self._everything)
                last = time.monotonic()
            elif files:
                last, indexed = time.monotonic(), False
                lists_outdated = self._attempt(partial(self._changed, files)) or lists_outdated
            elif lists_outdated:
                lists_outdated = False
                self._attempt(self._lists)
            elif not indexed and time.monotonic() - last > QUIET:
                indexed = True
                threading.Thread(target=self._search, daemon=True).start()
            if files and watched_folders(self._config) != folders:
                return

    def _attempt(self, work: Callable[[], None]) -> bool:
        """Does a part of the work and reports its time or its problem; whether it succeeded."""
        began = time.monotonic()
        try:
            work()
            self.problem = ""
            self._report(f"built in {time.monotonic() - began:.1f} s")
        except (KbtoolsError, OSError) as error:
            self.problem = str(error)
            self._report(self.problem)
        with self._new_version:
            self.version += 1
            self._new_version.notify_all()
        return not self.problem

    def _everything(self) -> None:
        """Builds the whole site, by the configuration as it is now."""
        self._model = None  # if this fails, the next change tries it again
        self._config = config.find(self._config.root)
        base = load_base(self._config)
        refuse(base.problems)
        model = build_model(base)
        self._pages = build.generate(base, self._commands, model).pages
        build.html(self._config, into=self.folder)
        self._model = model

    def _changed(self, files: frozenset[Path]) -> None:
        """Builds the pages of the articles that these files belong to, or everything."""
        ids = {self._article_of(file) for file in files}
        if self._model is None or None in ids:
            self._everything()
            return
        views = {view.id: view for view in self._model.views}
        for name in filter(None, ids):
            views.pop(name, None)
            views.update((view.id, view) for view in self._views_of(name))
        ordered = tuple(view for _, view in sorted(views.items()))
        # the board is outdated until `_lists` makes it again: no article's own page shows it
        self._model = SiteModel(self._config, ordered, self._model.board, self._model.notices)
        pages = dict(self._pages)
        for name in filter(None, ids & views.keys()):
            pages |= dict(article_pages(self._model, views[name]))
        self._put(pages)

    def _article_of(self, file: Path) -> str | None:
        """The id of the article that a file belongs to: its text or its evidence."""
        if file.parent in (self._config.articles, self._config.evidence):
            match = self._config.id_pattern.match(file.name)
            return match[0] if match else None
        return None

    def _views_of(self, name: str) -> tuple[ArticleView, ...]:
        """The article of this id as it is now; none if it was deleted."""
        base = load_base(self._config, sorted(self._config.articles.glob(f"{name}*.md")))
        refuse(base.problems)
        return build_model(base).views

    def _lists(self) -> None:
        """Builds the pages and data files that show several articles, as they are now."""
        if self._model is None:
            return
        views = self._model.views
        board, notices = board_of(views, self._config), self._model.notices
        self._model = model = SiteModel(self._config, views, board, notices)
        of_articles = {f"{view.id}{end}" for view in model.linked.values() for end in (".md", "/")}
        pages = {
            name: content
            for name, content in self._pages.items()
            if self._belongs_to(name, of_articles)
        }
        pages |= dict(shared_pages(model))
        pages |= dict(reference.pages(self._config, self._commands))
        folders = build.Folders(self._config.root)
        write(dict(theming.theme(model)), folders.theme)
        names = [name for name in pages if name.endswith(".md")]
        for file in write(dict(data.files(model, names)), folders.files):
            self._copy(file, folders.files)
        self._put(pages)

    def _belongs_to(self, name: str, of_articles: set[str]) -> bool:
        """Whether a file of the tree belongs to an article that still exists.

        Args:
            name: path in the tree, as in `zh/KB0002/logs.md`.
            of_articles: how the paths of articles begin, as in `KB0002.md` and `KB0002/`.
        """
        parts = name.split("/")
        first = parts[1] if parts[0] in self._config.knowledge_base.languages else parts[0]
        return first in of_articles or f"{first}/" in of_articles

    def _put(self, pages: dict[str, bytes]) -> None:
        """Writes the tree of pages and builds the HTML of those that changed."""
        folders = build.Folders(self._config.root)
        obsolete = self._pages.keys() - pages.keys()
        changed = write(pages, folders.pages)
        self._pages = pages
        for name in obsolete:
            built = f"{address(name)}index.html" if name.endswith(".md") else name
            (self.folder / built).unlink(missing_ok=True)
        if changed:
            build.html(self._config, into=self.folder, dirty=True)

    def _copy(self, file: Path, folder: Path) -> None:
        """Copies a finished file below `folder` into the site."""
        target = self.folder / file.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())

    def _search(self) -> None:
        """Makes the search index; no page reloads for it, since each query fetches it."""
        with self._indexing:
            try:
                search_index.index(self.folder)
            except (KbtoolsError, OSError) as error:
                self._report(str(error))


def refuse(problems: tuple[Problem, ...]) -> None:
    """Raises an error with the text of all problems, if there is any.

    Raises:
        BrokenArticlesError: there is a problem.
    """
    if problems:
        texts = (
            f"{problem.place}: {problem.rule} {problem.message}\nhelp: {problem.help}"
            for problem in problems
        )
        raise BrokenArticlesError("\n\n".join(texts))
