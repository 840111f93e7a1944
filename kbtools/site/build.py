"""The site in plain steps, each usable alone: Markdown, HTML, search index, link check.

A site is built beside the one that is there, and takes its place when it is whole: whoever
interrupts a build keeps the last one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
from filelock import FileLock, Timeout

from kbtools.articles import links
from kbtools.checks.model import Base
from kbtools.config import Config, KbtoolsError
from kbtools.site import data, reference, theming
from kbtools.site.generate import tree, write
from kbtools.site.model import SiteModel, build_model

URL = "KBTOOLS_SITE_URL"
"""Variable by which `mkdocs.yml` learns the address of the site."""
HINT = "install what builds the site: pip install 'kbtools[site]'"


class Folders(msgspec.Struct, frozen=True):
    """Where the parts of a site are, all below `root`."""

    root: Path

    @property
    def pages(self) -> Path:
        """The Markdown that becomes HTML."""
        return self.root / "build" / "pages"

    @property
    def files(self) -> Path:
        """Finished files, which stand in the site as they are."""
        return self.root / "build" / "files"

    @property
    def theme(self) -> Path:
        """What the theme has for these pages alone."""
        return self.root / "build" / "theme"

    @property
    def fresh(self) -> Path:
        """A site that is being built."""
        return self.root / "build" / "site"

    @property
    def last(self) -> Path:
        """The site that is being replaced."""
        return self.root / "build" / "last"

    @property
    def site(self) -> Path:
        """The site."""
        return self.root / "site"


def generate(base: Base, commands: click.Command, made: SiteModel | None = None) -> list[Path]:
    """Writes all that the site is built from; the files that changed.

    `commands` is the command line, of which there may be a page. `made` is the model of the
    knowledge base, where it is known already.

    Raises:
        KbtoolsError: a row of evidence cannot be read.
    """
    folders = Folders(base.config.root)
    made = made or build_model(base)
    pages = dict(tree_of(made, commands))
    names = [name for name in pages if name.endswith(".md")]
    return [
        *write(pages, folders.pages),
        *write(dict(data.files(made, names)), folders.files),
        *write(dict(theming.theme(made)), folders.theme),
    ]


def tree_of(made: SiteModel, commands: click.Command) -> Iterator[tuple[str, bytes]]:
    """The whole tree that is built: path → content."""
    yield from tree(made)
    yield from reference.pages(made.config, commands)


def addresses(base: Base) -> list[str]:
    """Where every article is, in each language it is written in."""
    first = base.config.knowledge_base.languages[0]
    return [
        links.path(str(page.matter["id"]), "" if page.language == first else page.language)
        for page in base.pages
    ]


def html(config: Config, *, into: Path | None = None, dirty: bool = False) -> Path:
    """Builds HTML of the generated pages, and adds the finished files; the folder.

    `dirty` builds only pages that changed, and leaves the rest of the folder alone.

    Raises:
        KbtoolsError: what builds it is not installed, or refuses a page.
    """
    folders = Folders(config.root)
    into = into or folders.fresh
    if not folders.pages.is_dir():
        raise KbtoolsError("nothing was generated yet; see: kbtools build --only generate")
    builder = config.site.builder
    command = [sys.executable, "-m", builder, "build", "--site-dir", str(into)]
    # a dirty build warns that it is one, which `--strict` would take for an error
    command += ["--dirty"] if dirty else ["--clean", "--strict"]
    done = subprocess.run(
        command,
        cwd=config.root,
        env={**os.environ, URL: config.knowledge_base.url, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    if done.returncode:
        hint = f"\n{HINT}" if f"No module named {builder}" in said else ""
        raise KbtoolsError(f"{builder} build failed:\n{_complaints(said)}{hint}")
    if not config.knowledge_base.url:  # without an address MkDocs writes one with no page in it
        for name in ("sitemap.xml", "sitemap.xml.gz"):
            (into / name).unlink(missing_ok=True)
    if not dirty:
        shutil.copytree(folders.files, into, copy_function=_link, dirs_exist_ok=True)
    return into


def _link(source: str, target: str) -> None:
    """A second name for a finished file, which is replaced, never changed; else a copy of it."""
    try:
        os.link(source, target)
    except FileExistsError:
        os.unlink(target)  # noqa: PTH108 - as `os.link`: there are thousands
        _link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _complaints(said: str) -> str:
    """What of a builder's output says why it failed: everything, if nothing does."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said)
    lines = re.findall(
        r"^(?:WARNING|ERROR|CRITICAL|Aborted|Error|Config value).*(?:\n[ \t].*)*",
        plain,
        re.MULTILINE,
    )
    return "\n".join(lines or [plain.strip()])


def publish(config: Config) -> Path:
    """Puts the site that was just built in the place of the last one; the folder."""
    folders = Folders(config.root)
    shutil.rmtree(folders.last, ignore_errors=True)
    try:
        if folders.site.exists():
            folders.site.rename(folders.last)
        folders.fresh.rename(folders.site)
    except BaseException:
        recover(config)
        raise
    shutil.rmtree(folders.last, ignore_errors=True)
    return folders.site


def recover(config: Config) -> None:
    """Puts the last site back where a build was interrupted at the very moment of its exchange."""
    folders = Folders(config.root)
    if folders.last.exists() and not folders.site.exists():
        folders.last.rename(folders.site)


def build_lock(config: Config) -> FileLock:
    """The lock that keeps two builds of one knowledge base apart.

    Raises:
        KbtoolsError: another build is under way.
    """
    folder = config.root / ".kbtools" / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "build.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise KbtoolsError("another build of this knowledge base is under way") from error
    return lock
