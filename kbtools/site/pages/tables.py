"""The pages of tables: what releases declare and contain, statements, and what goes together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from kbtools.site.model import SiteModel
from kbtools.site.pages.frame import Frame
from kbtools.tables import store
from kbtools.tables.changes import came_and_went, release_before
from kbtools.tables.files import pythons_of
from kbtools.tables.fitting import Search
from kbtools.tables.machines import PLATFORMS, Machine
from kbtools.tables.model import CUDA, Origin, Release, Statement, requirement_of
from kbtools.tables.store import Base
from kbtools.toolchains.model import MACHINE

PATH = "tables/"
FITS = "fits/"
PYTHONS = tuple(f"3.{minor}" for minor in range(8, 16))
"""Those that a page compares wheels with."""
OLDEST = 4
"""Of the Pythons that a platform's newest wheels are for, how many a table of answers has."""
PLATFORM = "linux-x86_64"
"""Of the answers on the page; the command answers for others."""


class Line(msgspec.Struct, frozen=True):
    """A row of a table as a page shows it."""

    head: str
    cells: tuple[str, ...]
    source: Origin
    basis: str
    day: str


def table_pages(model: SiteModel, language: str) -> Iterator[tuple[str, bytes]]:
    """The list of tables, a page for each that was read, and the page of answers."""
    base = store.read(model.config)
    if not base.tables.names:
        return
    frame = Frame(model, language, PATH)
    listed = []
    for name in base.tables.names:
        rows = len(base.releases.get(name, ())) + len(base.statements.get(name, ()))
        if rows:
            listed.append((frame.in_language(f"{PATH}{name}/"), title_of(base, name), rows))
    lead = frame.words("tables.lead")
    yield frame.plain("tables.html", frame.words("tables.title"), lead, tables=listed)
    for name in base.tables.names:
        page = Frame(model, language, f"{PATH}{name}/")
        if base.releases.get(name):
            yield _page(page, base, name, *_of_releases(page, base, name))
        elif base.statements.get(name):
            yield _page(page, base, name, *_of_statements(page, base.statements[name]))
    yield fits_page(Frame(model, language, FITS), base)


def title_of(base: Base, name: str) -> str:
    """How a table is called."""
    tables = base.tables
    titles = {key: table.title for key, table in tables.distributions.items()}
    titles |= {key: table.title for key, table in tables.programs.items()}
    titles |= {key: table.title for key, table in tables.reported.items()}
    return titles[name] or name


def _page(
    frame: Frame, base: Base, name: str, columns: Sequence[str], lines: Sequence[Line]
) -> tuple[str, bytes]:
    return frame.plain(
        "table.html",
        title_of(base, name),
        frame.words("tables.rows", n=len(lines)),
        columns=columns,
        lines=lines,
        notes=_notes(frame, base, name) if name in base.releases else (),
        back=frame.in_language(PATH),
    )


def shown_fact(base: Base, table: str, release: Release, name: str) -> str:
    """The values of a fact; of names, those that came (+) and went (−) since the release before.

    Of the oldest release, the number of names.
    """
    values = release.facts.get(name, ())
    fact = base.tables.distributions[table].facts.get(name)
    if fact is None or not fact.names:
        return " ".join(values)
    previous = release_before(release, base.releases[table])
    if previous is None or name not in previous.facts:
        return str(len(values) or "")
    added, removed = came_and_went(previous.facts[name], values)
    return " ".join([*(f"+{name}" for name in added), *(f"−{name}" for name in removed)])


def _notes(frame: Frame, base: Base, table: str = "") -> tuple[str, ...]:
    """What a page of releases says below its rows; first, how columns of names are written."""
    facts = base.tables.distributions[table].facts if table else {}
    columns = ", ".join(name for name, fact in facts.items() if fact.names)
    signs = (frame.words("tables.names", columns=columns),) if columns else ()
    return (*signs, *base.tables.notes_in.get(frame.language, base.tables.notes))


def _of_releases(frame: Frame, base: Base, table: str) -> tuple[tuple[str, ...], tuple[Line, ...]]:
    """The columns and rows of a distribution; a column that is empty everywhere is left out."""
    releases = base.releases[table]
    rows = [(release, _pins(base, release)) for release in releases]
    pins = [name for name in base.tables.columns if any(name in of for _, of in rows)]
    facts = list(dict.fromkeys(name for release, _ in rows for name in release.facts))
    lines = []
    for release, own in rows:
        pythons = pythons_of(release.tags, PYTHONS) if release.tags else ()
        known = [shown_fact(base, table, release, name) for name in facts]
        lines.append(
            Line(
                release.version,
                (
                    release.platform,
                    ", ".join(pythons) or release.requires_python,
                    *known,
                    *(own.get(name, "") for name in pins),
                    str(release.uploaded or ""),
                ),
                release.source,
                release.basis,
                str(release.date),
            )
        )
    fixed = tuple(frame.words(f"tables.{key}") for key in ("release", "platform", "pythons"))
    return (*fixed, *facts, *pins, frame.words("tables.uploaded")), tuple(lines)


def _pins(base: Base, release: Release) -> dict[str, str]:
    """Column → the range that a release requires, on any of its Pythons, of the first in it."""
    pythons = pythons_of(release.tags, PYTHONS) or PYTHONS[-1:]
    platform = release.platform if release.platform in PLATFORMS else PLATFORM
    environments = [Machine(python, platform).markers for python in reversed(pythons)]
    ranges: dict[str, str] = {}
    for text in release.requires or ():
        requirement = requirement_of(text)
        marker = requirement.marker
        if marker and not any(marker.evaluate(environment) for environment in environments):
            continue
        name: str = canonicalize_name(requirement.name)
        if name != release.package:
            ranges.setdefault(name, str(requirement.specifier) or "*")
    pins = {}
    for column, names in base.tables.columns.items():
        first = next((name for name in names if name in ranges), "")
        if first:
            pins[column] = ranges[first].removeprefix("==")
    return pins


def _of_statements(
    frame: Frame, statements: Sequence[Statement]
) -> tuple[tuple[str, ...], tuple[Line, ...]]:
    facts = list(dict.fromkeys(name for row in statements for name in row.facts))
    about = dict.fromkeys(name for row in statements for name in row.about)
    names = sorted(about, key=lambda name: name in MACHINE)  # distributions first
    with_verdict = any(row.works is not None for row in statements)
    with_needs = any(row.needs for row in statements)
    with_note = any(row.note for row in statements)
    lines = []
    for row in statements:
        first, *others = (row.about.get(name, "").removeprefix("==") for name in names)
        word = {True: "works", False: "fails", None: "blank"}[row.works]
        cells = [*others]
        cells += [frame.words(f"tables.{word}")] if with_verdict else []
        cells += [", ".join(f"{k} {v}" for k, v in row.needs.items())] if with_needs else []
        cells += [" ".join(row.facts.get(name, ())) for name in facts]
        cells += [row.note] if with_note else []
        lines.append(Line(first, tuple(cells), row.source, row.basis, str(row.date)))
    columns = [*names]
    columns += [frame.words("tables.result")] if with_verdict else []
    columns += [frame.words("tables.needs")] if with_needs else []
    columns += [*facts, *([frame.words("tables.note")] if with_note else [])]
    return tuple(columns), tuple(lines)


def fits_page(frame: Frame, base: Base) -> tuple[str, bytes]:
    """For each GPU and Python the newest release of what is asked for most, by driver."""
    gpus: dict[str, list[str]] = {}
    for name, sm in frame.model.config.toolchain.gpus.items():
        gpus.setdefault(sm, []).append(name)
    drivers = drivers_of(base)
    groups = []
    for package in base.tables.default:
        pythons = _pythons(base, package)
        for driver, newer in zip(drivers, ("", *drivers), strict=False):
            rows = [
                (sm, ", ".join(names), [_newest(base, package, p, sm, driver) for p in pythons])
                for sm, names in sorted(gpus.items(), key=lambda item: Version(item[0]))
            ]
            groups.append((title_of(base, package), driver, newer, pythons, rows))
    return frame.plain(
        "fits.html",
        frame.words("tables.fits"),
        frame.words("tables.fits-lead", platform=PLATFORM),
        groups=groups,
        notes=_notes(frame, base),
        tables=frame.in_language(PATH),
    )


def drivers_of(base: Base) -> tuple[str, ...]:
    """The oldest drivers that statements name, new to old; one of no version if they name none."""
    oldest = {
        clause.version
        for rows in base.statements.values()
        for row in rows
        if CUDA in row.about
        for clause in SpecifierSet(row.needs.get("driver", ""))
    }
    return tuple(sorted(oldest, key=Version, reverse=True)) or ("",)


def _pythons(base: Base, package: str) -> tuple[str, ...]:
    """The Pythons of the newest wheels on the platform, and a few before them."""
    rows = [row for row in base.releases.get(package, ()) if row.platform == PLATFORM]
    newest = pythons_of(rows[0].tags, PYTHONS) if rows else ()
    first = PYTHONS.index(newest[0]) if newest else 0
    last = PYTHONS.index(newest[-1]) + 1 if newest else 0
    return PYTHONS[max(0, first - OLDEST + 2) : last]


def _newest(base: Base, package: str, python: str, sm: str, driver: str) -> str:
    release = Search(base, Machine(python, PLATFORM, sm=sm, driver=driver)).newest(package)
    return release.version if release else ""
