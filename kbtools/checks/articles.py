"""Rules that a decoded article must keep."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from packaging.version import Version

from kbtools.articles.model import ABSENT, Article, Problem, Role
from kbtools.articles.parsing import Page
from kbtools.checks.model import fatal
from kbtools.config import Config
from kbtools.toolchains.affected import parse_range
from kbtools.toolchains.model import MACHINE


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
    """A range in `affected` is a PEP 440 specifier that holds some version, or `absent`."""
    for i, alternative in enumerate(article.matter.affected):
        for name, text in alternative.items():
            if text == ABSENT and name not in MACHINE:
                continue
            try:
                parse_range(text)
            except ValueError as error:
                line = page.line_of(f"affected[{i}].{name}")
                yield page.problem(line, f"`{name}`: {error}", 'write it as ">=2.2,<3.0"')


def kb104_prerelease_gap(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """A range that begins at a pre-release may not end before the release itself.

    By PEP 440, `<2.8.0` leaves out the pre-releases of 2.8.0. So `>=2.8.0.dev20250401,<2.8.0` holds
    nothing at all, though it looks like "the nightlies of April". Name the last pre-release:
    `>=2.8.0.dev20250401,<2.8.0.dev20250501`. In the same way two alternatives of one package that
    meet at a release, `<3.0` and `>=3.0`, leave its pre-releases to neither.
    """
    ends: dict[tuple[str, Version], int] = {}
    begins: dict[tuple[str, Version], int] = {}
    for i, alternative in enumerate(article.matter.affected):
        for name, text in alternative.items():
            line = page.line_of(f"affected[{i}].{name}")
            try:
                clauses = list(parse_range(text))
            except ValueError:
                continue
            bounds = [(c.operator, Version(c.version.removesuffix(".*"))) for c in clauses]
            for operator, bound in bounds:
                if operator == "<" and not bound.is_prerelease:
                    ends[name, bound] = line
                    if any(
                        low.is_prerelease and Version(low.base_version) == bound
                        for sign, low in bounds
                        if sign in (">", ">=")
                    ):
                        yield page.problem(
                            line,
                            f"`{text}` holds no version: <{bound} leaves out its pre-releases",
                            f"name the first fixed pre-release: <{bound}.dev…",
                        )
                elif operator == ">=" and not bound.is_prerelease:
                    begins[name, bound] = line
    for (name, bound), line in ends.items():
        if (name, bound) in begins:
            yield page.problem(
                line,
                f"the pre-releases of {name} {bound} are in neither of two alternatives",
                "join the two into one range",
            )


def kb105_upstream_reference(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """An upstream entry names one thread or commit, by what it is to this failure.

    `{report: owner/repo#12}`, or `fix`, `cause`, `related`; a commit is `owner/repo@1a2b3c4`. Its
    `basis` is `stated` where upstream says so, `inferred` where only we do.
    """
    for i, one in enumerate(article.matter.upstream):
        named = [k for k in ("report", "fix", "cause", "related") if getattr(one, k)]
        if len(named) != 1:
            yield page.problem(
                page.line_of(f"upstream[{i}]"),
                f"an upstream entry names one thread, this one {len(named) or 'none'}",
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
        yield page.problem(line, "retired in the future", "`since` is the day it was retired")
