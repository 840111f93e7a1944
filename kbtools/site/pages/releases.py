"""A page for each package, "known failures, and where they end", and one for each release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markupsafe import Markup

from kbtools.site.model import SiteModel
from kbtools.site.pages.frame import Frame
from kbtools.site.windows import Package, Window, packages

PATH = "known/"


def release_pages(model: SiteModel, language: str) -> Iterator[tuple[str, bytes]]:
    """The list of packages, and the pages of each."""
    all_packages = packages(model)
    frame = Frame(model, language, PATH)
    listed = [
        (frame.in_language(path_of(package)), package, _counts(package.windows))
        for package in all_packages
    ]
    title, lead = frame.words("known.title"), frame.words("known.lead")
    yield frame.plain("known.html", title, lead, packages=listed)
    for package in all_packages:
        yield package_page(Frame(model, language, path_of(package)), package)
        for release in package.releases:
            path = f"{path_of(package)}{release}/"
            yield release_page(Frame(model, language, path), package, str(release))


def path_of(package: Package) -> str:
    """The address of a package's page below that of the language, as in `known/numpy/`."""
    return f"{PATH}{Frame.slug(package.name)}/"


def package_page(frame: Frame, package: Package) -> tuple[str, bytes]:
    """A package's failures by the release in which they end."""
    groups: dict[str, list[Markup]] = {}
    for window in package.windows:
        groups.setdefault(_heading(frame, window), []).append(_row(frame, window))
    return frame.plain(
        "package.html",
        frame.words("known.package", name=package.title),
        frame.words("known.package-lead", **_counts(package.windows)),
        groups=groups,
        releases=[(str(r), frame.in_language(f"{path_of(package)}{r}/")) for r in package.releases],
        chosen="",
        back=frame.in_language(PATH),
    )


def release_page(frame: Frame, package: Package, release: str) -> tuple[str, bytes]:
    """What is known of one release of a package.

    Args:
        frame: The page that it is for.
        package: The package.
        release: One of its releases.
    """
    version = next(r for r in package.releases if str(r) == release)
    windows = [window for window in package.windows if window.holds(version)]
    return frame.plain(
        "package.html",
        frame.words("known.release", name=package.title, version=release),
        frame.words("known.package-lead", **_counts(windows)),
        groups={"": [_row(frame, window) for window in windows]},
        releases=[(str(r), frame.in_language(f"{path_of(package)}{r}/")) for r in package.releases],
        chosen=release,
        back=frame.in_language(path_of(package)),
    )


def _heading(frame: Frame, window: Window) -> str:
    """Where a window ends, in words."""
    if window.end is None:
        return frame.words("known.endless")
    key = "known.last" if window.is_included else "known.first-without"
    return frame.words(key, version=str(window.end))


def _row(frame: Frame, window: Window) -> Markup:
    """A failure in such a list."""
    day = window.notice.notice.matter.looked_up if window.notice else ""
    return Markup(
        frame.html(
            "window.html",
            view=window.view,
            text=window.view.text(frame.language),
            matter=window.view.article.matter,
            window=window.text,
            day=day,
        )
    )


def _counts(windows: Iterable[Window]) -> dict[str, int]:
    """How many of the windows are of articles and how many of notices."""
    notices = sum(window.notice is not None for window in windows)
    return {"articles": len(tuple(windows)) - notices, "notices": notices}
