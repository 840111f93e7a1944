"""The page of an article."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from markupsafe import Markup, escape

from kbtools.articles import links, replies
from kbtools.articles.links import slug
from kbtools.articles.model import Snippet
from kbtools.articles.needs import ANY, PROGRAM, parse_needs
from kbtools.articles.parsing import Fence, Heading, Page
from kbtools.articles.replies import command_for_strangers
from kbtools.articles.translations import is_outdated
from kbtools.evidence.board import Cell
from kbtools.evidence.state import Observation, ran_on
from kbtools.evidence.tried import tried_ranges
from kbtools.site.model import ArticleView, download_path, issue_path
from kbtools.site.pages import bounds, marks, prose, refereed, tried
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.remedy import first_card
from kbtools.site.pages.strip import names_of, strip
from kbtools.site.rendering import LONG, cut

MEASURED = ("fails", "works", "contradicted")
"""The kinds of marks that say what a run of the article's own claim showed."""
FEW = 2
"""Cells of the strip that are shown although all say the same: they read as fast as a sentence."""


def article_page(
    frame: Frame, view: ArticleView, cells: tuple[Cell, ...], head: str = ""
) -> tuple[str, bytes]:
    """The page of an article.

    Args:
        frame: of the page, with its language.
        view: the article.
        cells: its row of the board, in the order of the model's toolchains.
        head: HTML to add to the page's `<head>`.
    """
    text = view.text(frame.language)
    sections = sections_of(view, text.page)
    parts = [
        fold(frame, view, cells),
        prose.body(frame, text.page, sections, snippets(frame, view, text.page)),
        texts(frame, view),
        section(frame, "evidence", evidence(frame, view)),
        section(frame, "upstream", upstream(frame, view)),
        section(frame, "link", link(frame, view)),
    ]
    body = "\n".join(parts)
    searched = text.language == frame.language  # the original is searched in its own language
    title = f"{view.id}: {text.title}"
    return frame.page(title, body, about=text.summary, head=head, searched=searched)


def snippets(frame: Frame, view: ArticleView, page: Page) -> prose.Replace:
    """What a page shows in place of a fence: of a snippet, its bar and its code.

    Args:
        frame: The page that it is for.
        view: The article with its evidence.
        page: The original or a translation, whose fences are replaced.
    """
    running = [fence for fence in page.fences if fence.runs]
    by_line = {  # a translation has the same snippets, byte for byte, at other lines
        fence.line: snippet
        for fence, snippet in zip(running, view.article.snippets, strict=False)
        if fence.code == snippet.code
    }

    def replace(fence: Fence) -> str | None:
        snippet = by_line.get(fence.line)
        if snippet is None:
            return prose.code_block(fence)
        language = {"cuda": "cpp"}.get(snippet.language, snippet.language)
        return f"\n{bar(frame, view, snippet)}\n{prose.code_block(fence, language)}"

    return replace


def section(frame: Frame, name: str, html: str) -> str:
    """A section that is computed; the search leaves it out.

    Args:
        frame: The page that it is for.
        name: The key of its heading in the site's words.
        html: Its content, escaped.
    """
    title = frame.words(f"article.{name}")
    return f'\n## {title} {{#{name} data-pagefind-ignore="all"}}\n\n{html}\n'


def texts(frame: Frame, view: ArticleView) -> str:
    """A section with the texts of signatures that the page does not show, for the search."""
    text = view.text(frame.language)
    prose_text = " ".join(f"{text.title} {text.summary} {text.page.body}".split())
    more = [
        signature.literal
        for signature in view.article.matter.signatures
        if " ".join(signature.literal.split()) not in prose_text
    ]
    return section(frame, "texts", frame.html("texts.html", texts=more)) if more else ""


def sections_of(view: ArticleView, page: Page) -> dict[str, str]:
    """The heading of each section → its id, the same in every language."""
    original: tuple[Heading, ...] = view.original.page.headings
    ids = [slug(heading.text) for heading in original]
    if len(page.headings) != len(ids):
        return {}
    return {heading.text: name for heading, name in zip(page.headings, ids, strict=True)}


def fold(frame: Frame, view: ArticleView, cells: tuple[Cell, ...]) -> str:
    """The first card: the failure, the fix, the box for the reader's versions, and the state.

    Args:
        frame: The page that it is for.
        view: The article with its evidence.
        cells: The article's cells of the board, one for each toolchain.
    """
    text, matter = view.text(frame.language), view.article.matter
    by_id, marks_of_versions = frame.model.linked, strip(frame, view, cells)
    measured = sum(mark.kind in MEASURED for mark in marks_of_versions)
    return frame.html(
        "fold.html",
        view=view,
        matter=matter,
        title=cut(text.title),
        summary=cut(text.summary, LONG),
        text=text,
        behind=text is not view.original and is_outdated(text.page, view.original.page),
        word=view.state.word,
        remedy=first_card(view.original.page, view.article.snippets),
        claim=claim(frame, view),
        bounds=bounds.lines(frame, view),
        strip=marks_of_versions,
        tried=tried.sentence(frame, view, cells) if measured > FEW else "",
        own=bool(view.observations) and not measured,
        scope=tried.scope(frame, view),
        strip_names=", ".join(names_of(view)),
        confusable=[by_id[name] for name in matter.confusable if name in by_id],
        you=you(frame, view),
        notices=frame.model.notices_of.get(view.id, ()),
    )


def claim(frame: Frame, view: ArticleView) -> Markup:
    """The ranges of versions that the article calls affected, as HTML."""
    alternatives = view.article.matter.affected
    if not alternatives:
        return escape(frame.words("article.claim-always"))
    code = Markup("<code>{}</code>")
    ranges = [code.format(cut(_condition(alternative))) for alternative in alternatives]
    joined = Markup(" {} ").format(frame.words("site.or")).join(ranges)
    return Markup("{}").format(escape(frame.words("article.claim"))).format(range=joined)


def _condition(alternative: Mapping[str, str]) -> str:
    """As in `torch >=2.7 and python >=3.12`; of any release whatever, the name alone."""
    parts = (name if range_ == "*" else f"{name} {range_}" for name, range_ in alternative.items())
    return " and ".join(parts)


def you(frame: Frame, view: ArticleView) -> dict[str, object]:
    """What the box "is this you?" needs: the claim, and versions to pick from."""
    versions_of: dict[str, list[str]] = {}
    for name in names_of(view):
        versions = dict.fromkeys(
            version.partition("+")[0]
            for toolchain in frame.model.toolchains
            if (version := toolchain.version(name)) is not None
        )
        versions_of[name] = list(versions)
    gpus = {gpu.name: gpu.sm for toolchain in frame.model.toolchains for gpu in toolchain.gpus}
    return {
        "id": view.article.id,
        "affected": view.article.matter.affected,
        "tried": tried_ranges(view.article, view.bounds),
        "versions": versions_of,
        "texts": {
            name: [text.partition("{version}")[0] for text in texts]
            for name, texts in frame.model.config.toolchain.version_texts.items()
        },
        **({"gpus": gpus} if "sm" in versions_of else {}),
        "words": frame.words.part("you"),
    }


def bar(frame: Frame, view: ArticleView, snippet: Snippet) -> str:
    """The bar above a snippet: its role, its verdicts, and how to run it.

    Args:
        frame: The page that it is for.
        view: The article with its evidence.
        snippet: One of the article's.
    """
    return frame.html(
        "bar.html",
        snippet=snippet,
        marks=marks.counted(frame, view.observations_of(snippet.id)),
        needs=needs(frame, snippet),
        command=command_for_strangers(snippet.name, frame.model.config.knowledge_base)
        or f"kbtools verify {snippet.name}",
        download=frame.to(download_path(snippet)),
        logs=frame.in_language(f"{view.id}/logs/#{snippet.id}"),
    )


def needs(frame: Frame, snippet: Snippet) -> str:
    """What a machine must have to run a snippet, in words; empty if any machine will do."""
    kind, needed = snippet.keys.requires, []
    if kind == "gpus:1":
        needed.append(frame.words("article.needs-gpu-alone"))
    elif kind.startswith("gpus:"):
        needed.append(frame.words("article.needs-gpus", n=kind[5:]))
    elif kind == "compile":
        compiler = frame.model.config.run.compile_needs.items()
        needed += [*(need(frame, *item) for item in compiler), frame.words("article.needs-no-gpu")]
    elif kind != "cpu":
        needed.append(frame.words(f"article.needs-{kind}"))
    if snippet.keys.needs:
        needed += [need(frame, *item) for item in parse_needs(snippet.keys.needs).items()]
    if snippet.keys.net:
        needed.append(frame.words("article.needs-net"))
    return ", ".join(needed)


def need(frame: Frame, name: str, text: str) -> str:
    """What must be there, in words: a program, a distribution, or one with its range.

    Args:
        frame: The page that it is for.
        name: As `needs` has it.
        text: Its range, or `*`.
    """
    if name.startswith(PROGRAM):
        return frame.words("article.needs-program", name=name.removeprefix(PROGRAM))
    words = frame.words("article.needs-version", name=name, range="" if text == ANY else text)
    return words.rstrip()


def needs_to_run(frame: Frame, view: ArticleView) -> str:
    """What must be there to run the article's snippets, as a sentence; empty if nothing must."""
    needs = view.article.matter.needs
    if not needs:
        return ""
    listed = frame.words("site.comma").join(need(frame, *item) for item in needs.items())
    return frame.words("article.needs-to-run", what=listed)


def evidence(frame: Frame, view: ArticleView) -> str:
    """The table of evidence: toolchains × snippets."""
    columns = [snippet for snippet in view.article.snippets if view.observations_of(snippet.id)]
    headline = frame.model.headline
    rows: dict[str, dict[str, object]] = {}
    for identity, observed in view.by_toolchain.items():
        toolchain = observed[0].row.toolchain
        on_gpu = any(observation.snippet.gpus for observation in observed)
        rows[identity] = {
            "machine": ran_on(toolchain, headline, on_gpu=on_gpu),
            "compiled": compiled(frame, observed, on_gpu=on_gpu),
            "cells": {o.snippet.id: marks.of_run(frame, o) for o in observed},
            "day": max(observation.row.when for observation in observed),
        }
    position = {toolchain.identity: i for i, toolchain in enumerate(frame.model.toolchains)}
    ordered = sorted(rows.items(), key=lambda item: position.get(item[0], len(position)))
    return frame.html(
        "evidence.html",
        view=view,
        columns=columns,
        rows=[row for _, row in ordered],
        needs=needs_to_run(frame, view),
        refereed=refereed.line(frame, view),
    )


def compiled(frame: Frame, observed: Sequence[Observation], *, on_gpu: bool) -> str:
    """What the snippets that used no GPU were compiled for on a toolchain; empty if for nothing.

    Args:
        frame: The page that it is for.
        observed: The runs of an article on the toolchain.
        on_gpu: Whether others of these runs used a GPU, so that it has to be said which did not.
    """
    ahead = [o for o in observed if o.row.outcome.targets and not o.snippet.gpus]
    targets = {target for observation in ahead for target in observation.row.outcome.targets}
    if not targets:
        return ""
    text = frame.words("logs.compiled-for", what=", ".join(sorted(targets)))
    names = ", ".join(dict.fromkeys(observation.snippet.id for observation in ahead))
    return frame.words("logs.compiled-only", names=names, compiled=text) if on_gpu else text


def upstream(frame: Frame, view: ArticleView) -> str:
    """The upstream threads, each with its relation to this failure."""
    threads = [
        (
            thread,
            links.upstream_url(thread.reference),
            frame.to(issue_path(frame.model, thread.reference, frame.language)),
        )
        for thread in view.article.matter.upstream
    ]
    return frame.html("upstream.html", threads=threads)


def link(frame: Frame, view: ArticleView, reported: str = "") -> str:
    """Ways to link to this page: its address, Markdown, a badge, a reply to an issue.

    Args:
        frame: The page that it is for.
        view: The article or notice.
        reported: Of a notice that nobody has run, the day on which it was looked up.
    """
    knowledge_base, matter = frame.model.config.knowledge_base, view.article.matter
    language = "" if frame.language == frame.model.languages[0] else frame.language
    site = knowledge_base.url or "/"  # site.js puts the address at which the page is read before it
    return frame.html(
        "link.html",
        view=view,
        ways={
            "url": links.url(view.id, site, language),
            "markdown": links.markdown(matter, site),
            "badge": links.badge(matter, site),
            "reply": replies.reply(
                matter, msgspec.structs.replace(knowledge_base, url=site), reported=reported
            ),
        },
    )
