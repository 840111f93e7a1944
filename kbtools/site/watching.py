"""Which files the site is made from, and when they change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

from watchfiles import Change, watch

from kbtools import config
from kbtools.config import Config
from kbtools.tables import declared, store

SETTLE = 30
"""Milliseconds without a further change after which a change is told: an editor may first empty a
file and then fill it.
"""
LONGEST = 1000
"""Milliseconds after which a change is told though more changes follow."""
IDLE = 50
"""Milliseconds without a change after which an empty set is told."""


def watched_folders(settings: Config) -> tuple[Path, ...]:
    """The folders that have the files that the site is made from, each without those in it.

    A folder and not a file is watched, since an editor may replace a file by another one.
    """
    docs = settings.root / "docs"
    inner = (path for path in docs.rglob("*") if path.is_dir())
    own = (settings.root, settings.articles, settings.data_files, settings.evidence)
    folders = (*own, settings.notices, settings.root / store.FOLDER, docs, *inner)
    return tuple(sorted({folder for folder in folders if folder.is_dir()}))


def changes_in(
    folders: tuple[Path, ...], settings: Config, stop: threading.Event
) -> Iterator[frozenset[Path]]:
    """The files that the site is made from that were saved or deleted together, time after time.

    An empty set means that nothing changed for a moment.

    Args:
        folders: what `watched_folders` found.
        settings: of the knowledge base.
        stop: ends the iteration when it is set.
    """

    def passes(_: Change, path: str) -> bool:
        return is_source(Path(path), settings)

    # not recursive: below the root there are also the site itself and virtual environments
    for changes in watch(
        *folders,
        watch_filter=passes,
        debounce=LONGEST,
        step=SETTLE,
        rust_timeout=IDLE,
        yield_on_timeout=True,
        stop_event=stop,
        recursive=False,
    ):
        yield frozenset(Path(path) for _, path in changes)


def is_source(file: Path, settings: Config) -> bool:
    """Whether the site is made from a file, or a watched folder has this path."""
    docs = settings.root / "docs"
    if file.parent in (settings.articles, settings.notices):
        return file.suffix == ".md"
    if file.parent in (settings.evidence, settings.root / store.FOLDER):
        return file.suffix == ".jsonl"
    if docs in file.parents or file.parent == settings.data_files:
        return True
    names = ("CONTRIBUTING.md", config.FILE, "mkdocs.yml", declared.FILE, store.FOLDER)
    return file in (
        settings.articles,
        settings.data_files,
        settings.evidence,
        settings.notices,
        docs,
        *(settings.root / name for name in names),
    )
