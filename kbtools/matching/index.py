"""What a matcher needs of a knowledge base, as one value that is built once and cached."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Literal

import msgspec

from kbtools import __version__, config
from kbtools.articles import links
from kbtools.articles.model import FrontMatter, Signature
from kbtools.articles.needs import PROGRAM
from kbtools.articles.notice_text import hardware_words
from kbtools.articles.notices import Notice
from kbtools.cache import file_state
from kbtools.config import Config, KbtoolsError, Texts
from kbtools.evidence.notices import standing_of
from kbtools.files import cache_folder, write_whole
from kbtools.matching import downloads
from kbtools.matching.cleaning import NOISE, PREFIXES
from kbtools.matching.first_rules import FirstRules
from kbtools.matching.rules import Rules
from kbtools.matching.tried import tried_of, with_tried
from kbtools.matching.versions import OF_MACHINE, VersionPatterns, version_patterns
from kbtools.packaged import settings_of
from kbtools.toolchains.model import MACHINE

Standing = Literal["executed", "reported", "seen", "measured"]
"""What stands behind an entry: runs of an article, or of a notice what `evidence.notices` says."""
PUBLISHED_AT = "api/v1/signatures.json"
"""Where the index stands below the address of a site."""


class IndexFileError(KbtoolsError):
    """The file of an index cannot be read, or holds no index."""


class IndexEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a matcher needs of an article, to recognise its failure and to describe it."""

    id: str
    title: str
    summary: str
    severity: str
    signatures: tuple[Signature, ...]
    affected: tuple[dict[str, str], ...] = ()
    tried: tuple[dict[str, str], ...] = ()
    """For each of `affected`, name → the versions of which something is known."""
    confusable: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    retired: bool = False
    standing: Standing = "executed"
    looked_up: str = ""
    """Of a notice: the day on which its threads were read, as in `2026-01-31`."""
    sm: str = ""
    """Of a notice: the range of compute capabilities on which it is reported; empty for any."""


class IndexNotice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A notice: what is reported of a failure, with what says so."""

    entry: IndexEntry
    bounds: tuple[tuple[str, str], ...]
    """Bound, as in `driver<550`, and its receipts."""
    remedies: tuple[tuple[str, str], ...]
    """What helps, and its receipts."""
    hardware: str = ""
    """In words; empty if nobody says."""
    article: str = ""
    """Id of the article about the same mechanism; empty if there is none."""


class Index(msgspec.Struct, frozen=True):
    """All articles, and the patterns and limits by which a log is read.

    Published as `api/v1/signatures.json`. The browser matches with the same file, so fields that
    have their default are written, too.
    """

    schema: int
    name: str
    url: str
    articles: tuple[IndexEntry, ...]
    notices: tuple[IndexNotice, ...] = ()
    """What is reported and was not run; no count of articles has them."""
    families: dict[str, tuple[str, ...]] = {}
    """A name for distributions that are one project → their names."""
    gpus: dict[str, str] = {}
    """A part of the name of a GPU → its compute capability."""
    repository: str = ""
    """Its address: replies say where to report that they are wrong."""
    install: str = ""
    """What installs it: replies have a command that anybody can type."""
    noise: str = NOISE
    prefixes: tuple[str, ...] = PREFIXES
    versions: VersionPatterns = OF_MACHINE
    rules: Rules = Rules()
    first: FirstRules = FirstRules()
    texts: Texts = Texts()
    """Of products, by which lines are known that report the failure of another program."""

    @property
    def entries(self) -> tuple[IndexEntry, ...]:
        """Everything that a log may be about: the articles, then the notices with signatures."""
        return (*self.articles, *(n.entry for n in self.notices if n.entry.signatures))

    def address(self, article: str) -> str:
        """Where to read an article: its page, or the command that shows it."""
        return links.url(article, self.url) if self.url else f"kbtools explain {article}"


def entry_of(matter: FrontMatter) -> IndexEntry:
    """What a matcher needs of an article."""
    return IndexEntry(
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


def notice_of(notice: Notice, settings: Config) -> IndexNotice:
    """What a matcher needs of a notice.

    Raises:
        EvidenceError: its evidence cannot be read.
    """
    matter = notice.matter
    hardware = matter.hardware
    return IndexNotice(
        entry=msgspec.structs.replace(
            entry_of(notice.article.matter),
            standing=standing_of(notice, settings),
            looked_up=str(matter.looked_up),
            sm=(hardware.sm or "") if hardware else "",
        ),
        bounds=tuple((bound.bound, bound.receipt) for bound in matter.bounds),
        remedies=tuple((remedy.do, remedy.receipt) for remedy in matter.remedies),
        hardware=hardware_words(notice),
        article=matter.article or "",
    )


def index_of(
    matters: Iterable[FrontMatter], settings: Config, notices: Iterable[Notice] = ()
) -> Index:
    """The index of these articles and notices.

    Args:
        matters: Of the articles.
        settings: Of the knowledge base.
        notices: Those that can be read.

    Raises:
        EvidenceError: the evidence of a notice cannot be read.
    """
    matters = tuple(matters)
    base = settings.knowledge_base
    entries = tuple(map(entry_of, matters))
    reported = tuple(notice_of(notice, settings) for notice in notices)
    claims = [matter.affected for matter in matters]
    claims += [notice.entry.affected for notice in reported]
    needs = (_packages(matter.needs) for matter in matters)
    versions = version_patterns((*chain.from_iterable(claims), *needs), settings.toolchain)
    return Index(
        schema=1,
        name=base.name,
        url=base.url,
        articles=entries,
        notices=reported,
        families=settings.toolchain.families,
        gpus=settings.toolchain.gpus,
        repository=base.repository,
        install=base.install,
        versions=versions,
        texts=settings.diagnose,
        rules=Rules(machine=tuple(name for name, _ in versions if name in MACHINE)),
    )


def _packages(needs: Mapping[str, str]) -> Mapping[str, str]:
    """What an article needs, without programs, whose versions nobody asks for."""
    return {name: span for name, span in needs.items() if not name.startswith(PROGRAM)}


def load(start: Path, source: Path | str | None = None) -> Index:
    """The index to match with.

    It is a published index, or that of the knowledge base that `start` lies in, or that of the
    knowledge base that came with kbtools.

    Args:
        start: a folder.
        source: a published index: its file, or its address or that of its site (`https://…`).

    Raises:
        IndexFileError: `source` holds no index, or could not be fetched.
        ConfigError: no knowledge base can be read.
    """
    if isinstance(source, str) and downloads.is_address(source):
        return _fetched(source)
    if source is not None:
        try:
            return msgspec.json.decode(Path(source).read_bytes(), type=Index)
        except (OSError, msgspec.MsgspecError) as error:
            raise IndexFileError(f"{source}: not the index of a knowledge base: {error}") from error
    return of_base(settings_of(start))


def _fetched(address: str) -> Index:
    """The index at an address. If it does not say where its site is, that follows from it."""
    try:
        site, content = downloads.fetch(address, PUBLISHED_AT)
        index = msgspec.json.decode(content, type=Index)
    except downloads.DownloadError as error:
        raise IndexFileError(f"{address}: {error}") from error
    except msgspec.MsgspecError as error:
        raise IndexFileError(
            f"{address}: the answer is not the index of a knowledge base ({error}); the address of"
            f" one ends in {PUBLISHED_AT}"
        ) from error
    return index if index.url else msgspec.structs.replace(index, url=site)


def of_base(settings: Config) -> Index:
    """The index of a knowledge base on disk, cached until one of its files changes."""
    files = sorted(file for file in settings.articles.glob("*.md") if file.name.count(".") == 1)
    key = hashlib.sha256(f"{__version__} {settings.root}".encode())
    notices = sorted(f for f in settings.notices.glob("*.md") if f.name.count(".") == 1)
    rows = sorted(settings.evidence.glob("*.jsonl"))
    for file in (
        settings.root / config.FILE,
        *files,
        *notices,
        *rows,
        *Path(__file__).parent.glob("*.py"),
    ):
        # the change time is part of it: a program may put the modification time back
        key.update(f"{file.name} {file_state(file)}\n".encode())
    cache = cache_folder() / f"index-{key.hexdigest()[:32]}.msgpack"
    try:
        return msgspec.msgpack.decode(cache.read_bytes(), type=Index)
    except (OSError, msgspec.MsgspecError):
        pass
    index = index_of(_matters(files, settings), settings, _notices(notices, settings))
    index = with_tried(index, tried_of(files, settings))
    _remember(cache, msgspec.msgpack.encode(index))
    return index


def _matters(files: Iterable[Path], settings: Config) -> Iterable[FrontMatter]:
    """The front matter of every article that can be read; `check` reports the others."""
    from kbtools.articles import decoding, parsing

    for file in files:
        values, problems = decoding.decode_front_matter(parsing.read_page(file, settings))
        if not problems:
            try:
                yield msgspec.convert(values, FrontMatter, from_attributes=True)
            except (msgspec.ValidationError, TypeError):
                continue


def _notices(files: Iterable[Path], settings: Config) -> Iterable[Notice]:
    """Every notice that can be read; `check` reports the others."""
    from kbtools.articles import decoding, parsing

    for file in files:
        page = parsing.read_page(file, settings)
        if not page.broken:
            try:
                yield decoding.decode_notice(page)
            except (msgspec.ValidationError, ValueError, TypeError):
                continue


def _remember(file: Path, content: bytes) -> None:
    """Writes the index into the cache, and ignores what fails: the cache only saves time."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, content)
        for old in sorted(file.parent.glob("index-*"), key=lambda f: f.stat().st_mtime)[:-8]:
            old.unlink(missing_ok=True)
    except OSError:
        pass
