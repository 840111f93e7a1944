"""Rules for the bounds of version ranges: measured on both sides, reported, or not there."""

from __future__ import annotations

from collections.abc import Iterator

from kbtools.articles.model import Article, Problem
from kbtools.checks.model import Base
from kbtools.evidence.bounds import Bound, key_of, name_of


def kb330_open_bound(base: Base) -> Iterator[Problem]:
    """A bound of a version range is measured on both sides, or reported with a receipt.

    A bound is one clause of an `affected`, or of a fact's `holds`. For `<2.6` the evidence has a
    run below 2.6 that fails as documented, and one from 2.6 on that passes, with the alternative's
    other conditions met; for `>=2.2` the other way round. Rows of code that was edited since do not
    count. A bound that cannot be run has its receipt in the front matter:
    `bounds: [{bound: "package<2.6", basis: reported, receipt: "owner/repo#12"}]`. A bound that
    nobody measured or reported is left out: the page says what the oldest tried release is. What
    only has to be there for a snippet to run is written as `needs`, which claims nothing.

    An article without any evidence is not held to it yet: it says "not run" everywhere.
    """
    articles = {article.id: article for article in base.articles}
    for bound in base.bounds:
        if bound.standing == "open" and bound.article in base.with_evidence:
            article = articles[bound.article]
            yield base.page_of(article).problem(
                _line(base, article, bound),
                f"nothing stands behind the bound `{bound.text}`: it needs {bound.missing}"
                f" ({bound.span})",
                "record that run, add it to `bounds` with the thread that reports it, or leave the"
                " bound out",
            )


def kb331_reported_bound(base: Base) -> Iterator[Problem]:
    """An entry of `bounds` names a bound of the article that no run has measured yet.

    It is a name and one clause, as it stands in `affected`. Once runs measure the bound, the entry
    is deleted: evidence says more than a report.
    """
    for article in base.articles:
        own = [bound for bound in base.bounds if bound.article == article.id]
        for i, entry in enumerate(article.matter.bounds):
            page = base.page_of(article)
            line = page.line_of(f"bounds[{i}].bound")
            named = [bound for bound in own if (name_of(bound), bound.clause) == key_of(entry)]
            if not named:
                message = f"`{entry.bound}` is not a bound of this article"
                yield page.problem(line, message, "write the clause as it stands in `affected`")
            elif all(bound.steps for bound in named):
                step = named[0].steps[0]
                message = f"runs measure `{entry.bound}`: {step.below} | {step.above}"
                yield page.problem(line, message, "delete the entry: the runs say more")


def _line(base: Base, article: Article, bound: Bound) -> int:
    """The line of the fence or of the key that has the bound."""
    for snippet in article.snippets:
        if snippet.id == bound.snippet:
            return snippet.place.line - 1
    return base.page_of(article).line_of(f"affected[{bound.alternative}].{bound.name}")
