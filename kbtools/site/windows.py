"""Windows of versions by package: which failures begin and end where."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from packaging.version import InvalidVersion, Version

from kbtools.articles.model import ABSENT
from kbtools.evidence.state import has_end
from kbtools.site.model import ArticleView, NoticeView, SiteModel
from kbtools.toolchains.affected import parse_range, range_holds

NO_RELEASES = ("python", "sm", "gpus", "glibc")
"""Names of `affected` that get no page: nobody asks for the failures of a Python."""
FEW = 3
"""Failures that a release must have for a page of its own."""
MOST = 12
"""Releases of a package that have a page, the newest ones."""


class Window(msgspec.Struct, frozen=True):
    """A failure on a range of one package's versions."""

    view: ArticleView
    ranges: tuple[str, ...]
    """Of the package, one for each alternative."""
    text: str
    """The whole window, other packages included."""
    end: Version | None
    """The first release without the failure, or the last with it; None if none is known."""
    is_included: bool = False
    """Whether the failure is still in `end`."""
    notice: NoticeView | None = None

    def holds(self, release: Version) -> bool:
        """Whether a release lies in the window, as far as this package decides."""
        return any(range_holds(text, release) for text in self.ranges)


class Package(msgspec.Struct, frozen=True):
    """A package with the failures that its versions decide."""

    name: str
    """The name of a project of several distributions, or of the only one."""
    title: str
    windows: tuple[Window, ...]
    """Those that end nowhere first, then the one that ends last."""
    releases: tuple[Version, ...]
    """Those that have a page, the newest first."""


def packages(model: SiteModel) -> tuple[Package, ...]:
    """Every package that a window names, by title."""
    projects = {
        member: project
        for project, members in model.config.toolchain.families.items()
        for member in (project, *members)
    }
    by_project: dict[str, list[Window]] = {}
    notices = {notice.id: notice for notice in model.notices}
    decided = [view for view in model.views if has_end(view.article.matter.affected)]
    for view in (*decided, *(notice.view for notice in model.notices)):
        if view.article.matter.retired:
            continue
        names = {name for alternative in view.article.matter.affected for name in alternative}
        for project in sorted({projects.get(name, name) for name in names - {*NO_RELEASES}}):
            members = {name for name in names if projects.get(name, name) == project}
            if window := _window(view, members, notices.get(view.id)):
                by_project.setdefault(project, []).append(window)
    titles = model.config.site.packages
    listed = [
        Package(name, titles.get(name, name), _ordered(windows), _releases(model, name, windows))
        for name, windows in by_project.items()
    ]
    return tuple(sorted(listed, key=lambda package: package.title.casefold()))


def _window(view: ArticleView, members: set[str], notice: NoticeView | None) -> Window | None:
    """The window of a failure on the distributions of a project; None if it has no range there."""
    alternatives = view.article.matter.affected
    ranges = [
        text
        for alternative in alternatives
        for name, text in alternative.items()
        if name in members and text != ABSENT
    ]
    if not ranges:
        return None
    text = " or ".join(
        " and ".join(f"{name} {versions}" for name, versions in alternative.items())
        for alternative in alternatives
        if not members.isdisjoint(alternative)
    )
    ends = [_end(range_) for range_ in ranges]
    closed = [end for end in ends if end]
    if len(closed) < len(ends):
        return Window(view, tuple(ranges), text, None, notice=notice)
    version, is_included = max(closed)
    return Window(view, tuple(ranges), text, version, is_included, notice)


def _end(text: str) -> tuple[Version, bool] | None:
    """Where a range ends, and whether the failure is still there; None if it does not end."""
    ends = []
    for clause in parse_range(text):
        if clause.operator in ("<", "<=", "==", "~="):
            version = Version(clause.version.removesuffix(".*"))
            ends.append((version, clause.operator != "<"))
    return min(ends, default=None)


def _ordered(windows: Iterable[Window]) -> tuple[Window, ...]:
    """Windows without an end first, then by their ends, the last one first; then by id."""
    by_id = sorted(windows, key=lambda window: window.view.id)
    endless = [window for window in by_id if window.end is None]
    ending = [window for window in by_id if window.end is not None]
    ending.sort(key=lambda window: window.end or Version("0"), reverse=True)
    return (*endless, *ending)


def _releases(model: SiteModel, project: str, windows: list[Window]) -> tuple[Version, ...]:
    """The releases of a project that have a page: those in enough windows, the newest first."""
    names = {project, *model.config.toolchain.families.get(project, ())}
    versions = {
        Version(clause.version.removesuffix(".*"))
        for window in windows
        for text in window.ranges
        for clause in parse_range(text)
    }
    for toolchain in model.toolchains:
        for name in names:
            if text := toolchain.version(name):
                try:
                    versions.add(Version(Version(text).base_version))
                except InvalidVersion:
                    continue
    enough = [
        version
        for version in versions
        if not version.is_prerelease and sum(window.holds(version) for window in windows) >= FEW
    ]
    return tuple(sorted(enough, reverse=True)[:MOST])
