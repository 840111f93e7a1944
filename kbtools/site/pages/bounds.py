"""What stands behind the ends of an article's version range, as a list in its first card."""

from __future__ import annotations

from markupsafe import Markup, escape

from kbtools.articles.model import ABSENT
from kbtools.articles.receipt_grammar import split, url
from kbtools.evidence.bounds import Bound
from kbtools.evidence.tried import ENDS_ABOVE, ENDS_BELOW, operator_of
from kbtools.site.model import ArticleView
from kbtools.site.pages.frame import Frame


def lines(frame: Frame, view: ArticleView) -> list[Markup]:
    """A line for each bound, and one for each name whose range has no end on a side.

    Args:
        frame: The page that it is for.
        view: The article with its bounds; those of its fences are in `kbtools bounds`.
    """
    of_article = [bound for bound in view.bounds if not bound.snippet]
    shown: list[Markup] = []
    for key in dict.fromkeys((bound.alternative, bound.name) for bound in of_article):
        own = [bound for bound in of_article if (bound.alternative, bound.name) == key]
        shown += [_line(frame, bound) for bound in own]
        shown += _without_end(frame, own)
    return list(dict.fromkeys(shown))  # two alternatives may share a bound


def _line(frame: Frame, bound: Bound) -> Markup:
    code = Markup("<code>{}</code>").format(bound.text)
    if bound.standing == "reported":
        links = Markup(", ").join(
            Markup('<a href="{}">{}</a>').format(url(receipt), receipt)
            for receipt in split(bound.receipt)
        )
        return Markup("{} {} {}").format(code, frame.words("bounds.reported"), links)
    if bound.standing == "open":
        return Markup("{} {}").format(code, frame.words("bounds.open"))
    steps = [
        frame.words("bounds.wide" if step.untried else "bounds.step", below=step.below,
                    above=step.above, n=len(step.untried))
        for step in bound.steps
    ]  # fmt: skip
    return Markup("{} {}").format(code, escape(frame.words("site.comma").join(steps)))


def _without_end(frame: Frame, bounds: list[Bound]) -> list[Markup]:
    """What the oldest and the newest version tried are, where no bound ends the range."""
    tried = [trial.version for trial in bounds[0].tried if trial.version != ABSENT]
    if not tried or any(bound.clause == ABSENT for bound in bounds):
        return []
    decided = {operator_of(bound.clause) for bound in bounds if bound.standing != "open"}
    name = bounds[0].name
    words = []
    if not decided & {*ENDS_BELOW}:
        words.append(frame.words("bounds.oldest", name=name, version=tried[0]))
    if not decided & {*ENDS_ABOVE}:
        words.append(frame.words("bounds.newest", name=name, version=tried[-1]))
    return [escape(text) for text in words]
