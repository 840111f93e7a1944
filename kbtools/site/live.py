"""The site while it is being written: what was saved is built at once, and open pages reload.

An article's own pages come first, what lists it a moment later, the search index when nothing was
saved for a while.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
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

Stamps = dict[Path, tuple[int, int]]
POLL = 0.1
"""Seconds between two looks at the files."""
SETTLE = 0.03
"""Seconds that the files must stay as they are."""
QUIET = 3.0
"""Seconds without a change before the search index is made again."""


class Live:
    """A site in `build/live`, kept up to date; `version` counts its states."""

    def __init__(
        self, settings: Config, commands: click.Command, say: Callable[[str], None]
    ) -> None:
        self.folder = settings.root / "build" / "live"
        self.version = 0
        self.problem = ""
        """Why the newest text could not be built; empty when it was."""
        self._config = settings
        self._commands = commands
        self._say = say
        self._model: SiteModel | None = None
        self._pages: dict[str, bytes] = {}
        self._news = threading.Condition()
        self._searched = threading.Lock()

    def run(self, stop: threading.Event) -> None:
        """Watches and builds until it is told to stop."""
        seen = stamps(self._config)
        self._attempt(self._everything)
        lists, last = False, time.monotonic()
        indexed = False
        while not stop.is_set():
            now = stamps(self._config)
            while now != seen and not stop.wait(SETTLE):  # an editor may empty a file, then fill it
                before, now = now, stamps(self._config)
                if now == before:
                    break
            changed = {file for file in now.keys() | seen.keys() if now.get(file) != seen.get(file)}
            if changed:
                seen, last, indexed = now, time.monotonic(), False
                lists = self._attempt(partial(self._changed, changed)) or lists
            elif lists:
                lists = False
                self._attempt(self._lists)
            elif not indexed and time.monotonic() - last > QUIET:
                indexed = True
                threading.Thread(target=self._search, daemon=True).start()
            else:
                stop.wait(POLL)

    def wait(self, version: int, seconds: float) -> int:
        """Waits for another version than this one, at most so long; the version there is then."""
        with self._news:
            self._news.wait_for(lambda: self.version != version, seconds)
            return self.version

    def _attempt(self, work: Callable[[], None]) -> bool:
        """Does a part of the work; whether it went well. What did not is told to everyone."""
        began = time.monotonic()
        try:
            work()
            self.problem = ""
            self._say(f"built in {time.monotonic() - began:.1f} s")
        except (KbtoolsError, OSError) as error:
            self.problem = str(error)
            self._say(self.problem)
        with self._news:
            self.version += 1
            self._news.notify_all()
        return not self.problem

    def _everything(self) -> None:
        self._config = config.find(self._config.root)
        base = load_base(self._config)
        refuse(base.problems)
        self._model = build_model(base)
        build.generate(base, self._commands, self._model)
        self._pages = dict(build.tree_of(self._model, self._commands))
        build.html(self._config, into=self.folder)

    def _changed(self, files: set[Path]) -> None:
        """Builds the pages of the articles that these files are about, or everything."""
        ids = {self._article(file) for file in files}
        if self._model is None or None in ids:
            self._everything()
            return
        views = {view.id: view for view in self._model.views}
        for name in filter(None, ids):
            views.pop(name, None)
            views.update((view.id, view) for view in self._entry(name))
        ordered = tuple(view for _, view in sorted(views.items()))
        self._model = SiteModel(self._config, ordered, self._model.board)
        pages = dict(self._pages)
        for name in filter(None, ids & views.keys()):
            pages |= dict(article_pages(self._model, views[name]))
        self._put(pages)

    def _article(self, file: Path) -> str | None:
        if file.parent in (self._config.articles, self._config.evidence):
            found = self._config.id_pattern.match(file.name)
            return found[0] if found else None
        return None

    def _entry(self, name: str) -> tuple[ArticleView, ...]:
        base = load_base(self._config, sorted(self._config.articles.glob(f"{name}*.md")))
        refuse(base.problems)
        return build_model(base).views

    def _lists(self) -> None:
        """Builds what shows several articles, as they are now."""
        if self._model is None:
            return
        views = self._model.views
        made = self._model = SiteModel(self._config, views, board_of(views))
        own = {f"{view.id}{end}" for view in made.views for end in (".md", "/")}
        pages = {name: text for name, text in self._pages.items() if self._of(name, own)}
        pages |= dict(shared_pages(made))
        pages |= dict(reference.pages(self._config, self._commands))
        folders = build.Folders(self._config.root)
        write(dict(theming.theme(made)), folders.theme)
        names = [name for name in pages if name.endswith(".md")]
        for file in write(dict(data.files(made, names)), folders.files):
            self._copy(file, folders.files)
        self._put(pages)

    def _of(self, name: str, own: set[str]) -> bool:
        """Whether a file of the tree is an article's own that is still there."""
        parts = name.split("/")
        first = parts[1] if parts[0] in self._config.knowledge_base.languages else parts[0]
        return first in own or f"{first}/" in own

    def _put(self, pages: dict[str, bytes]) -> None:
        folders = build.Folders(self._config.root)
        gone = self._pages.keys() - pages.keys()
        changed = write(pages, folders.pages)
        self._pages = pages
        for name in gone:
            place = f"{address(name)}index.html" if name.endswith(".md") else name
            (self.folder / place).unlink(missing_ok=True)
        if changed:
            build.html(self._config, into=self.folder, dirty=True)

    def _copy(self, file: Path, folder: Path) -> None:
        target = self.folder / file.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())

    def _search(self) -> None:
        """Makes the search index, of which pages are not told: they fetch it when asked."""
        with self._searched:
            try:
                search_index.index(self.folder)
            except (KbtoolsError, OSError) as error:
                self._say(str(error))


def refuse(problems: tuple[Problem, ...]) -> None:
    """Raises KbtoolsError if there is any problem, with the text of all."""
    if problems:
        said = (f"{one.place}: {one.rule} {one.message}\nhelp: {one.help}" for one in problems)
        raise KbtoolsError("\n\n".join(said))


def stamps(settings: Config) -> Stamps:
    """When each file was written that the site is made from, and its size."""
    return {
        file: (status.st_mtime_ns, status.st_size)
        for file in sources(settings)
        if (status := _status(file))
    }


def sources(settings: Config) -> Iterator[Path]:
    """Every file that the site is made from."""
    yield from settings.articles.glob("*.md")
    yield from settings.evidence.glob("*.jsonl")
    yield from (settings.root / "docs").rglob("*")
    yield settings.root / "CONTRIBUTING.md"
    yield settings.root / config.FILE
    yield settings.root / "mkdocs.yml"


def _status(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except OSError:  # deleted meanwhile
        return None
