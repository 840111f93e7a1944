"""What the matcher knows of a knowledge base: one small value, made once, kept beside it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kbtools import __version__, config
from kbtools.articles import links
from kbtools.articles.model import FrontMatter, Signature
from kbtools.config import Config, KbtoolsError
from kbtools.files import write_whole
from kbtools.matching.cleaning import NOISE, PREFIXES
from kbtools.matching.rules import Rules
from kbtools.matching.versions import SHOWN

PACKAGED = Path(__file__).parent.parent / "packaged"
"""The knowledge base in an installed kbtools; a checkout has its own around the package."""


class IndexEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is to be known of an article to recognise its failure and to speak of it."""

    id: str
    title: str
    summary: str
    severity: str
    signatures: tuple[Signature, ...]
    affected: tuple[dict[str, str], ...] = ()
    confusable: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    retired: bool = False


class Index(msgspec.Struct, frozen=True):
    """All articles, and the patterns and limits by which a log is read.

    Published as `api/v1/signatures.json`; the browser matches with the same file, so nothing of it
    is left out for being the default.
    """

    schema: int
    name: str
    url: str
    articles: tuple[IndexEntry, ...]
    noise: str = NOISE
    prefixes: tuple[str, ...] = PREFIXES
    versions: tuple[tuple[str, tuple[str, ...]], ...] = SHOWN
    rules: Rules = Rules()

    def address(self, article: str) -> str:
        """Where to read an article: its page, or the command that shows it."""
        return links.url(article, self.url) if self.url else f"kbtools explain {article}"


def index_of(matters: Iterable[FrontMatter], settings: Config) -> Index:
    """The index of these articles."""
    base = settings.knowledge_base
    entries = tuple(
        IndexEntry(
            id=matter.id,
            title=matter.title,
            summary=matter.summary,
            severity=matter.severity,
            signatures=matter.signatures,
            affected=matter.affected,
            confusable=matter.confusable,
            components=matter.components,
            retired=matter.retired is not None,
        )
        for matter in matters
    )
    return Index(1, base.name, base.url, entries)


def load(start: Path, file: Path | None = None) -> Index:
    """The index to match with.

    It is that of `file` (as published on the site), or of the knowledge base that `start` lies
    in, or of the one that came with kbtools.

    Raises:
        KbtoolsError: `file` is no index, or no knowledge base can be read.
    """
    if file is not None:
        try:
            return msgspec.json.decode(file.read_bytes(), type=Index)
        except (OSError, msgspec.MsgspecError) as error:
            raise KbtoolsError(f"{file}: no index of a knowledge base: {error}") from error
    return of_base(settings_of(start))


def settings_of(start: Path) -> Config:
    """The knowledge base around `start`, else the one that came with kbtools."""
    if any(
        (folder / config.FILE).is_file() for folder in (start.resolve(), *start.resolve().parents)
    ):
        return config.find(start)
    return config.find(PACKAGED if PACKAGED.is_dir() else Path(__file__).parent)


def of_base(settings: Config) -> Index:
    """The index of a knowledge base on disk, remembered until one of its files changes."""
    files = sorted(file for file in settings.articles.glob("*.md") if file.name.count(".") == 1)
    known = hashlib.sha256(f"{__version__} {settings.root}".encode())
    for file in (settings.root / config.FILE, *files, *Path(__file__).parent.glob("*.py")):
        about = file.stat()
        known.update(f"{file.name} {about.st_size} {about.st_mtime_ns}\n".encode())
    cache = _cache() / f"index-{known.hexdigest()[:32]}.msgpack"
    try:
        return msgspec.msgpack.decode(cache.read_bytes(), type=Index)
    except (OSError, msgspec.MsgspecError):
        pass
    made = index_of(_matters(files, settings), settings)
    _remember(cache, msgspec.msgpack.encode(made))
    return made


def _matters(files: Iterable[Path], settings: Config) -> Iterable[FrontMatter]:
    """The front matter of every article that has one; what is broken is for `check` to say."""
    from kbtools.articles import decoding, parsing

    for file in files:
        values, wrong = decoding.decode_front_matter(parsing.read_page(file, settings))
        if not wrong:
            try:
                yield msgspec.convert(values, FrontMatter, from_attributes=True)
            except (msgspec.ValidationError, TypeError):
                continue


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kbtools"


def _remember(file: Path, content: bytes) -> None:
    """Keeps the index, if that can be done: it only saves time."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, content)
        for old in sorted(file.parent.glob("index-*"), key=lambda f: f.stat().st_mtime)[:-8]:
            old.unlink(missing_ok=True)
    except OSError:
        pass
