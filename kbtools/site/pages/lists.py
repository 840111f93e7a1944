"""Lists of articles: the index with its filters, a page for every filter, and the home page."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from markupsafe import Markup

from kbtools.articles.model import Role
from kbtools.evidence.board import CONTRADICTED, FAILS, WORKS
from kbtools.site.model import ArticleView, SiteModel, cells_of
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.strip import names_of, strip
from kbtools.site.rendering import cut
from kbtools.tables import declared as tables

NEWEST = 8


class Facet(msgspec.Struct, frozen=True):
    """A way to choose among articles: `kind`, as in `stage`, and each of its values."""

    kind: str
    values: tuple[tuple[str, str, int], ...]
    """Value, in words, and how many articles have it."""


def values_of(model: SiteModel, view: ArticleView) -> dict[str, list[str]]:
    """Kind of facet → the values that an article has."""
    matter = view.article.matter
    ran_on = {
        observed[0].row.toolchain.brief(model.headline) for observed in view.by_toolchain.values()
    }
    return {
        "component": [*matter.components],
        "stage": [matter.stage],
        "severity": [matter.severity],
        "state": [view.state.word],
        "toolchain": [brief for brief in model.briefs if brief in ran_on],
    }


def facets(frame: Frame) -> list[Facet]:
    """Every facet, with the values that occur, in the order of the configuration."""
    model, form = frame.model, frame.model.config.article
    counts: dict[str, dict[str, int]] = {}
    for view in model.views:
        for kind, values in values_of(model, view).items():
            for value in dict.fromkeys(values):
                of_kind = counts.setdefault(kind, {})
                of_kind[value] = of_kind.get(value, 0) + 1
    orders = {
        "component": [*form.components],
        "stage": [*form.stages],
        "severity": [*form.severities],
        "toolchain": [*model.briefs],
    }
    result = []
    for kind, count_of in counts.items():
        order = orders.get(kind, [])
        names = sorted(
            count_of, key=lambda name: (order.index(name) if name in order else 10**6, name)
        )
        labelled = tuple((name, label_of(frame, kind, name), count_of[name]) for name in names)
        result.append(Facet(kind, labelled))
    return result


def label_of(frame: Frame, kind: str, value: str) -> str:
    """A value in the site's words, or as it is if the site has no words for it.

    Args:
        frame: The page that it is for.
        kind: What the value is, as in `severity`.
        value: As the front matter has it.
    """
    return cut(frame.words.word_for(kind, value), 80)


def row(frame: Frame, view: ArticleView, *, filtered: bool) -> Markup:
    """The entry of an article in a list; `filtered` adds the values that the filters compare.

    Args:
        frame: The page that it is for.
        view: The article with its evidence.
        filtered: Whether to add the values that the filters compare.
    """
    facets = values_of(frame.model, view) if filtered else {}
    html = frame.html(
        "row.html",
        view=view,
        text=view.text(frame.language),
        matter=view.article.matter,
        facets={kind: [frame.slug(value) for value in values] for kind, values in facets.items()},
    )
    return Markup(html)


def index_page(frame: Frame) -> tuple[str, bytes]:
    """All articles, with filters; without JavaScript each filter is a page of its own."""
    views = frame.model.views
    return frame.plain(
        "index.html",
        frame.words("index.title"),
        frame.words("index.lead", n=len(views)),
        facets=facets(frame),
        rows=[row(frame, view, filtered=True) for view in views],
        chosen=("", ""),
    )


def facet_pages(model: SiteModel, language: str) -> Iterator[tuple[str, bytes]]:
    """A page for each value of each facet."""
    chosen: dict[tuple[str, str], list[ArticleView]] = {}
    for view in model.views:
        for kind, values in values_of(model, view).items():
            for value in dict.fromkeys(values):
                chosen.setdefault((kind, value), []).append(view)
    all_facets = facets(Frame(model, language, "articles/"))
    # the rows are the same on all these pages: their addresses have the same depth
    shared = Frame(model, language, "by/kind/value/")
    rows = {view.id: row(shared, view, filtered=False) for view in model.views}
    for (kind, value), views in chosen.items():
        frame = Frame(model, language, f"by/{kind}/{Frame.slug(value)}/")
        label = label_of(frame, kind, value)
        title = frame.words("index.facet-title", kind=frame.words(f"index.{kind}"), value=label)
        yield frame.plain(
            "index.html",
            title,
            frame.words("index.shown", n=len(views), all=len(model.views)),
            facets=all_facets,
            rows=[rows[view.id] for view in views],
            chosen=(kind, value),
        )


def telling(model: SiteModel) -> ArticleView | None:
    """The example on the home page: the article with most toolchains on which it fails or works."""
    candidates = [
        (sum(cell.mark in (FAILS, WORKS) for cell in cells), model.by_id[article])
        for article, cells in model.board.rows
        if {FAILS, WORKS} <= {cell.mark for cell in cells}
        and not any(cell.mark == CONTRADICTED for cell in cells)
    ]
    return max(candidates, key=lambda candidate: candidate[0])[1] if candidates else None


def home_page(frame: Frame) -> tuple[str, bytes]:
    """The home page: search, new states, filters, numbers, and how articles are verified."""
    model = frame.model
    example = next((e for e in model.views if e.state.word == "reproduced"), None)
    sample = telling(model)
    title, tagline = model.config.knowledge_base.name, model.config.site.tagline
    return frame.plain(
        "home.html",
        title,
        tagline if tagline and frame.language == model.languages[0] else frame.words("home.lead"),
        changes=[(change, model.by_id[change.article]) for change in model.changes[:NEWEST]],
        facets={facet.kind: facet for facet in facets(frame)},
        numbers=(
            ("articles", len(model.views)),
            (
                "snippets",
                sum(len({s.snippet.id for s in view.observations}) for view in model.views),
            ),
            ("runs", sum(len(view.observations) for view in model.views)),
            ("toolchains", len(model.toolchains)),
        ),
        example=cut(example.original.title, 120) if example else "",
        sample=sample,
        sample_names=", ".join(names_of(sample)) if sample else "",
        strip=strip(frame, sample, cells_of(sample, model.toolchains)) if sample else [],
        roles=tuple(Role),
        has_probes=(model.config.probes / "__init__.py").is_file(),
        has_tables=(model.config.root / tables.FILE).is_file(),
    )
