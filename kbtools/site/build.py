"""The site in plain steps, each usable alone: Markdown, HTML, search index, link check.

A new site is built beside the last one and replaces it when it is complete: after an interrupted
build the last site is still there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import msgspec
from filelock import FileLock, Timeout

from kbtools.articles import links
from kbtools.checks.model import Base
from kbtools.config import Config, KbtoolsError
from kbtools.installation import command_for
from kbtools.site import data, reference, theming
from kbtools.site.data.texts import address
from kbtools.site.generate import tree, write
from kbtools.site.model import SiteModel, build_model

URL = "KBTOOLS_SITE_URL"
"""Variable by which `mkdocs.yml` learns the address of the site."""
EXCLUDED = "KBTOOLS_SITE_EXCLUDED"
"""Variable by which `mkdocs.yml` learns which pages another process builds."""


class SiteBuildError(KbtoolsError):
    """What builds the HTML is not installed or refuses a page, or an earlier step is missing."""


class BuildInProgressError(KbtoolsError):
    """Another process builds or serves the site of this knowledge base."""


class Folders(msgspec.Struct, frozen=True):
    """Where the parts of a site are, all below `root`, the folder of the knowledge base."""

    root: Path

    @property
    def pages(self) -> Path:
        """The Markdown that becomes HTML."""
        return self.root / "build" / "pages"

    @property
    def files(self) -> Path:
        """Finished files, which are copied into the site as they are."""
        return self.root / "build" / "files"

    @property
    def theme(self) -> Path:
        """The templates of the theme, filled in for this knowledge base."""
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


class Generated(msgspec.Struct, frozen=True):
    """What a site is built from."""

    pages: dict[str, bytes]
    """Path in the tree of pages → content; the tree's scripts, pictures and downloads, too."""
    changed: tuple[Path, ...]
    """The files that were written, since their content is new."""


def generate(base: Base, commands: click.Command, model: SiteModel | None = None) -> Generated:
    """Renders every page once and writes all files that the site is built from.

    Args:
        base: the knowledge base, whose articles can all be decoded.
        commands: the command line, of which the site may have a page.
        model: the model of the base, if the caller has it already.

    Raises:
        EvidenceError: a row of evidence cannot be read.
        SiteBuildError: two pages have one address.
    """
    folders = Folders(base.config.root)
    model = model or build_model(base)
    pages = by_address(tree_of(model, commands))
    names = [name for name in pages if name.endswith(".md")]
    changed = [
        *write(pages, folders.pages),
        *write(dict(data.files(model, names)), folders.files),
        *write(dict(theming.theme(model)), folders.theme),
    ]
    return Generated(pages, tuple(changed))


def by_address(pages: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """Path in the tree of pages → content.

    Raises:
        SiteBuildError: two of them have one path, or two Markdown files have one address.
    """
    tree: dict[str, bytes] = {}
    paths: dict[str, str] = {}
    for path, content in pages:
        place = address(path) if path.endswith(".md") else path
        if place in paths:
            first = f"{paths[place]} ({_title(tree[paths[place]])})"
            raise SiteBuildError(
                f"two pages have the address /{place}: {first} and {path} ({_title(content)});"
                " rename one of them"
            )
        paths[place], tree[path] = path, content
    return tree


def _title(content: bytes) -> str:
    """The title of a page, by which its author knows it; else how its content begins."""
    match = re.search(rb"^(?:title: |# )(.+)$", content, re.MULTILINE)
    text = (match[1] if match else content[:60].split(b"\n")[0]).decode("utf-8", "replace")
    return f"“{text.strip()}”"


def tree_of(model: SiteModel, commands: click.Command) -> Iterator[tuple[str, bytes]]:
    """Renders the tree of pages: path → content."""
    yield from tree(model)
    yield from reference.pages(model.config, commands)


def addresses(base: Base) -> list[str]:
    """The address of every article, in each language that it is written in."""
    first = base.config.knowledge_base.languages[0]
    return [
        links.path(str(page.matter["id"]), "" if page.language == first else page.language)
        for page in base.pages
    ]


def html(config: Config, *, into: Path | None = None, dirty: bool = False) -> Path:
    """Builds HTML of the generated pages, and adds the finished files.

    Args:
        config: of the knowledge base.
        into: the folder of the new site; by default `build/site`.
        dirty: build only the pages that changed, and leave all other files in the folder alone.

    Returns:
        The folder of the new site.

    Raises:
        SiteBuildError: nothing was generated; the builder is not installed, or refuses a page.
    """
    folders = Folders(config.root)
    into = into or folders.fresh
    if not folders.pages.is_dir():
        raise SiteBuildError("nothing was generated yet; see: kbtools build --only generate")
    parts = [Part(into)] if dirty else list(parts_of(config, into))
    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(lambda part: _build(config, part, dirty=dirty), parts))
    for part in parts[1:]:
        (part.into / part.folder).rename(into / part.folder)
        shutil.rmtree(part.into)
    if not config.knowledge_base.url:  # without an address MkDocs writes an empty sitemap
        for name in ("sitemap.xml", "sitemap.xml.gz"):
            (into / name).unlink(missing_ok=True)
    if not dirty:
        shutil.copytree(folders.files, into, copy_function=_link, dirs_exist_ok=True)
    return into


class Part(msgspec.Struct, frozen=True):
    """The pages that one process of the builder builds."""

    into: Path
    """The folder of the HTML."""
    folder: str = ""
    """The folder of the pages, below that of all pages; empty: all that is in no other part."""
    excluded: str = ""
    """Which pages are not built, as in a file `.gitignore`."""


def parts_of(config: Config, into: Path) -> Iterator[Part]:
    """A part for each language, if `mkdocs.yml` reads the variable; the first has all else, too.

    The builder uses one processor, and takes most of the time that a site takes.
    """
    file = config.root / "mkdocs.yml"
    languages = config.knowledge_base.languages[1:]
    if not file.is_file() or EXCLUDED not in file.read_text("utf-8"):
        languages = ()
    yield Part(into, "", "\n".join(f"/{language}/" for language in languages))
    for language in languages:
        yield Part(into.with_name(f"{into.name}-{language}"), language, f"/*\n!/{language}/")


def _build(config: Config, part: Part, *, dirty: bool) -> None:
    builder = config.site.builder
    command = [sys.executable, "-m", builder, "build", "--site-dir", str(part.into)]
    # a dirty build warns that it is dirty, and `--strict` takes any warning for an error
    command += ["--dirty"] if dirty else ["--clean", "--strict"]
    variables = {URL: config.knowledge_base.url, EXCLUDED: part.excluded, "NO_COLOR": "1"}
    run = subprocess.run(
        command,
        cwd=config.root,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    output = run.stdout + run.stderr
    if run.returncode:
        is_missing = f"No module named {builder}" in output
        hint = f"\ninstall what builds the site: {command_for('site')}" if is_missing else ""
        raise SiteBuildError(f"{builder} build failed:\n{_complaints(output)}{hint}")


def _link(source: str, target: str) -> None:
    """Gives a finished file a second name, or copies it where hard links are impossible.

    A hard link is safe: `write` replaces a file that changes, and never writes into it.
    """
    try:
        os.link(source, target)
    except FileExistsError:
        os.unlink(target)  # noqa: PTH108 - as `os.link`: there are thousands
        _link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _complaints(output: str) -> str:
    """The lines of a builder's output that say why it failed; all of it if none does."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    lines = re.findall(
        r"^(?:WARNING|ERROR|CRITICAL|Aborted|Error|Config value).*(?:\n[ \t].*)*",
        plain,
        re.MULTILINE,
    )
    return "\n".join(lines or [plain.strip()])


def publish(config: Config) -> Path:
    """Replaces the last site with the one that was just built; the folder of the site."""
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
    """Puts the last site back if a build was interrupted between the two renames of `publish`."""
    folders = Folders(config.root)
    if folders.last.exists() and not folders.site.exists():
        folders.last.rename(folders.site)


def build_lock(config: Config) -> FileLock:
    """The lock that keeps two builds of one knowledge base apart, acquired.

    Raises:
        BuildInProgressError: another process has it.
    """
    folder = config.root / ".kbtools" / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "build.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise BuildInProgressError("another build of this knowledge base is in progress") from error
    return lock
