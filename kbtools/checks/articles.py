"""Rules that a decoded article must keep."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import suppress

from packaging.ranges import VersionRange
from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import Version

from kbtools.articles.decoding import parse_affected
from kbtools.articles.model import ABSENT, Article, Problem, Role
from kbtools.articles.parsing import Page
from kbtools.checks.model import fatal
from kbtools.config import Config
from kbtools.toolchains.affected import parse_range
from kbtools.toolchains.model import MACHINE
from kbtools.toolchains.needs import check_need


def kb101_no_repro(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """An article shows its failure: it has a snippet of role `repro`."""
    if not any(snippet.role is Role.REPRO for snippet in article.snippets):
        yield page.problem(1, "no snippet reproduces the failure", "add a fence ```python repro")


def kb102_no_fix(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """An article shows what helps: it has a snippet of role `fix`."""
    if not any(snippet.role is Role.FIX for snippet in article.snippets):
        yield page.problem(1, "no snippet shows a fix", "add a fence ```python fix")


@fatal
def kb103_version_range(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """A range in `affected` is a PEP 440 specifier, `*`, or `absent` for a distribution.

    `*` is every version: it claims no bound, only that the distribution is installed. In `needs` it
    is a specifier, or `*`: any version will do. The version of a program (`bin:…`) is not known, so
    that it has `*`.
    """
    for i, alternative in enumerate(article.matter.affected):
        for name, text in alternative.items():
            if text == ABSENT and name not in MACHINE:
                continue
            try:
                parse_range(text)
            except ValueError as error:
                line = page.line_of(f"affected[{i}].{name}")
                yield page.problem(line, f"`{name}`: {error}", 'write it as ">=2.2,<3.0" or "*"')

    for name, text in article.matter.needs.items():
        try:
            check_need(name, text)
        except ValueError as error:
            line = page.line_of(f"needs.{name}")
            yield page.problem(line, f"`{name}`: {error}", 'write it as ">=2.2", or as "*"')


def kb104_version_gap(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """A range holds some version, and two ranges that meet leave out none between them.

    `>=2.8,<2.7` holds nothing. Nor does `>=2.8.0.dev20250401,<2.8.0`, though it looks like "the
    nightlies of April": by PEP 440, `<2.8.0` leaves out the pre-releases of 2.8.0. Name the last
    pre-release: `>=2.8.0.dev20250401,<2.8.0.dev20250501`. In the same way two alternatives of one
    package that meet at a release, `<3.0` and `>=3.0`, leave its pre-releases to neither.
    """
    clauses: dict[str, list[tuple[Specifier, int]]] = {}
    covered: dict[str, VersionRange] = {}
    for i, alternative in enumerate(article.matter.affected):
        for name, text in alternative.items():
            line = page.line_of(f"affected[{i}].{name}")
            try:
                versions = parse_range(text)
            except ValueError:
                continue  # KB103 says so
            if versions.is_unsatisfiable():
                yield page.problem(line, *_holds_nothing(text, versions))
            clauses.setdefault(name, []).extend((clause, line) for clause in versions)
            covered[name] = covered.get(name, VersionRange.empty()).union(versions.to_range())
    for name, text, line in ranges_of_needs_and_fences(page, article):
        with suppress(ValueError):  # KB103 or KB008 says so
            if (versions := parse_range(text)).is_unsatisfiable():
                why, step = _holds_nothing(text, versions)
                yield page.problem(line, f"`{name}`: {why}", step)
    for name, bounds in clauses.items():
        begins = {Version(clause.version) for clause, _ in bounds if clause.operator == ">="}
        for clause, line in bounds:
            if clause.operator == "<" and (release := Version(clause.version)) in begins:
                below, above = SpecifierSet(f"<{release}"), SpecifierSet(f">={release}")
                between = below.to_range().union(above.to_range()).complement()
                if not between.is_empty and between.is_disjoint(covered[name]):
                    yield page.problem(
                        line,
                        f"the pre-releases of {name} {release} are in neither of two alternatives",
                        "join the two into one range",
                    )


def ranges_of_needs_and_fences(page: Page, article: Article) -> Iterator[tuple[str, str, int]]:
    """Name, range and line of each condition beside the article's `affected`."""
    for name, text in article.matter.needs.items():
        yield name, text, page.line_of(f"needs.{name}")
    for snippet in article.snippets:
        line = snippet.place.line - 1
        claim = snippet.keys.affected or snippet.keys.holds
        for alternative in parse_affected(claim) if claim else ():
            for name, text in alternative.items():
                yield name, text, line
        for name, text in snippet.needs.items() if snippet.keys.needs else ():
            yield name, text, line


def _holds_nothing(text: str, versions: SpecifierSet) -> tuple[str, str]:
    """What is wrong with a range that holds no version, and the next step."""
    bounds = [(clause, Version(clause.version.removesuffix(".*"))) for clause in versions]
    releases = {Version(bound.base_version) for _, bound in bounds if bound.is_prerelease}
    for clause, bound in bounds:
        if clause.operator == "<" and bound in releases:
            return (
                f"`{text}` holds no version: <{bound} leaves out its pre-releases",
                f"name the first fixed pre-release: <{bound}.dev…",
            )
    return (
        f"`{text}` holds no version",
        'write a lower bound below the upper one, as in ">=2.2,<3.0"',
    )


def kb105_upstream_reference(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """An upstream entry names one thread or commit, by what it is to this failure.

    `{report: owner/repo#12}`, or `fix`, `cause`, `related`; a commit is `owner/repo@1a2b3c4`. Its
    `basis` is `stated` where upstream says so, `inferred` where only we do.
    """
    for i, entry in enumerate(article.matter.upstream):
        kinds = [k for k in ("report", "fix", "cause", "related") if getattr(entry, k)]
        if len(kinds) != 1:
            yield page.problem(
                page.line_of(f"upstream[{i}]"),
                f"an upstream entry names one thread, but this one names {len(kinds) or 'none'}",
                "write one of report, fix, cause, related: owner/repo#number",
            )


def kb106_retired(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """A retired article says why, or which article took its place; its page stays for ever."""
    retired = article.matter.retired
    if retired is None:
        return
    line = page.line_of("retired")
    if not (retired.reason or retired.replaced_by):
        yield page.problem(
            line, "retired without a reason or a successor", "add `reason:` or `replaced_by:`"
        )
    if retired.since > datetime.date.today():
        yield page.problem(line, "retired in the future", "`since` is the day of its retirement")
