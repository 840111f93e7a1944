"""The page that lists articles by when they were refereed, and against what."""

from __future__ import annotations

from kbtools.articles.refereed import is_changed
from kbtools.site.model import ArticleView
from kbtools.site.pages.frame import Frame

PATH = "refereed/"


def refereed_page(frame: Frame) -> tuple[str, bytes]:
    """Every article: those read last first, then those that nobody but the author has read."""
    views = frame.model.views
    dated = [(v.article.matter.refereed.date, v) for v in views if v.article.matter.refereed]
    dated.sort(key=lambda entry: entry[0], reverse=True)  # a day's articles stay in their order
    changed = {view.id for _, view in dated if has_changed(view)}
    return frame.plain(
        "refereed.html",
        frame.words("refereed.title"),
        frame.words("refereed.lead"),
        total=len(views),
        current=len(dated) - len(changed),
        views=[view for _, view in dated],
        changed=changed,
        others=[view for view in views if not view.article.matter.refereed],
    )


def has_changed(view: ArticleView) -> bool:
    """Whether the words of an article have changed since it was refereed."""
    return is_changed(view.original.page, view.article)


def line(frame: Frame, view: ArticleView) -> str:
    """When an article was refereed and against what, as a sentence; empty if it was not."""
    refereed = view.article.matter.refereed
    if refereed is None:
        return ""
    key = "article.refereed-changed" if has_changed(view) else "article.refereed"
    return frame.words(key, day=refereed.date, against=refereed.against)
