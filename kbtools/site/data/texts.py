"""For programs that read text: every article as plain Markdown, `llms.txt`, sitemap, robots."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from html import escape

from kbtools.articles.notice_text import notice_markdown, window
from kbtools.evidence.markdown import Wording, article_markdown
from kbtools.site.model import ArticleView, NoticeView, SiteModel, prefix

SITEMAP_LIMIT = 50_000
"""Addresses in one sitemap at most, as its protocol has it."""


def files(model: SiteModel) -> Iterator[tuple[str, bytes]]:
    """Every article in every language it is written in, and `llms.txt`."""
    for view in model.views:
        for language in (view.original.language, *view.translations):
            path = f"{prefix(model, language)}{view.id}.md"
            yield path, article(model, view, language).encode()
    for notice in model.notices:
        text = notice_markdown(notice.notice, model.config, notice.view.state.word)
        yield f"{notice.id}.md", text.encode()
    yield "llms.txt", overview(model).encode()


def article(model: SiteModel, view: ArticleView, language: str) -> str:
    """An article as plain Markdown: its text, its snippets, and their verdicts.

    Args:
        model: The site.
        view: The article with its evidence.
        language: Of the text; the original's, where there is no translation.
    """
    text = view.text(language)
    folder = "" if language == model.languages[0] else language
    wording = Wording(text.title, text.summary, text.page.body, folder)
    return article_markdown(view.article, view.observations, model.config, wording)


def overview(model: SiteModel) -> str:
    """`llms.txt`: what this is, and every article with the fix, as llmstxt.org proposes."""
    config = model.config
    about = config.site.tagline or "Failures, each with what helps."
    lines = [
        f"# {_line(config.knowledge_base.name)}",
        "",
        f"> {_line(about)}",
        "",
        "The snippets were run: `reproduced` means that the failure was made to happen as"
        " described, `resolved` that it was seen not to happen where the article says so,"
        " `contradicted` that a run disagrees with the article. What is only reported stands in"
        " a list of its own.",
        "",
        "Receipts stand in brackets at the end of sentences: `[r3]` is a snippet of the article,"
        f" `[{model.config.article_id(10)}/r1]` one of another, `[owner/repo#12]` a thread,"
        " `[owner/repo@tag path]` a source."
        f" {model.share.sourced} of {model.share.claims} sentences that state a version, a limit,"
        " a default and the like have one.",
        "",
        "## Articles",
        "",
    ]
    for view in model.views:
        title, summary = (
            re.sub(r"([\[\]\\<>])", r"\\\1", _line(text))
            for text in (view.original.title, view.original.summary)
        )
        where_ = absolute(model, f"{view.id}.md")
        receipts = f"; {view.share.sourced} of {view.share.claims} claims with a receipt"
        state = view.state.word + (receipts if view.share.claims else "")
        lines.append(f"- [{view.id}: {title}]({where_}): {summary} ({state})")
    lines += list(_reported(model))
    lines += ["", "## Data", ""]
    for path, about in (
        ("api/v1/index.json", "every article, its state and where its documents are"),
        ("api/v1/notices.json", "every notice: reported, not run here"),
        ("api/v1/toolchains.json", "the toolchains that claims were run on"),
        ("api/v1/issues.json", "upstream threads, and the articles that speak of them"),
    ):
        lines.append(f"- [{path}]({absolute(model, path)}): {about}")
    return "\n".join(lines) + "\n"


def _reported(model: SiteModel) -> Iterator[str]:
    """The part of `llms.txt` about notices: by package, each with its window and its day."""
    if not model.notices:
        return
    yield from ("", "## Reported, not run here", "")
    yield "From threads: nobody here ran these. The day is that on which the thread was read."
    for package, notices in by_package(model):
        yield from ("", f"### {_line(package)}", "")
        for notice in notices:
            matter = notice.notice.matter
            title, summary = (
                re.sub(r"([\[\]\\<>])", r"\\\1", _line(text))
                for text in (matter.title, matter.summary)
            )
            where_ = absolute(model, f"{notice.id}.md")
            standing = f"{notice.view.state.word}; {window(notice.notice)}; {matter.looked_up}"
            yield f"- [{notice.id}: {title}]({where_}): {summary} ({standing})"


def by_package(model: SiteModel) -> list[tuple[str, list[NoticeView]]]:
    """The notices by the package that the first alternative of each names first."""
    groups: dict[str, list[NoticeView]] = {}
    for notice in model.notices:
        groups.setdefault(next(iter(notice.notice.matter.affected[0])), []).append(notice)
    return sorted(groups.items())


def absolute(model: SiteModel, path: str) -> str:
    """The address of a path of the site; the path itself if the site has no address."""
    url = model.config.knowledge_base.url.rstrip("/")
    return f"{url}/{path}" if url else path


def sitemaps(model: SiteModel, pages: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The sitemap of these pages, files of Markdown in the tree; none without an address.

    A page of an article has the day of its newest evidence; of others no day is known.
    """
    if not model.config.knowledge_base.url:
        yield "robots.txt", b"User-agent: *\nAllow: /\n"
        return
    newest = {view.id: view.newest for view in model.views}
    addresses = sorted(map(address, pages))
    parts = [addresses[i : i + SITEMAP_LIMIT] for i in range(0, len(addresses), SITEMAP_LIMIT)]
    for number, part in enumerate(parts, 1):
        name = "sitemap.xml" if len(parts) == 1 else f"sitemap-{number}.xml"
        yield name, sitemap(model, part, newest)
    if len(parts) > 1:
        names = (f"sitemap-{i}.xml" for i, _ in enumerate(parts, 1))
        inner = "".join(
            f"<sitemap><loc>{escape(absolute(model, n))}</loc></sitemap>" for n in names
        )
        yield "sitemap.xml", _xml("sitemapindex", inner)
    where_ = absolute(model, "sitemap.xml")
    yield "robots.txt", f"User-agent: *\nAllow: /\nSitemap: {where_}\n".encode()


def sitemap(
    model: SiteModel, addresses: Iterable[str], newest: dict[str, datetime.datetime | None]
) -> bytes:
    """A sitemap of these addresses, relative to the root of the site.

    Args:
        model: The site, which knows where it will be.
        addresses: Relative to the root of the site.
        newest: Id of an article to the date of its newest row; None where it has none.
    """
    urls = []
    for page in addresses:
        parts = [part for part in page.split("/") if part not in model.languages]
        when = newest.get(parts[0])
        day = f"<lastmod>{when.astimezone(datetime.UTC):%Y-%m-%d}</lastmod>" if when else ""
        urls.append(f"<url><loc>{escape(absolute(model, page))}</loc>{day}</url>")
    return _xml("urlset", "\n".join(urls))


def address(page: str) -> str:
    """Where a page of the tree answers: `KB0002/` for `KB0002.md`."""
    stem = page.removesuffix(".md")
    return stem.removesuffix("index") if stem.endswith("index") else f"{stem}/"


def _xml(root: str, inner: str) -> bytes:
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f'{head}<{root} xmlns="{space}">\n{inner}\n</{root}>\n'.encode()


def _line(text: str) -> str:
    """A text without line breaks and without the `|` of a table."""
    return " ".join(text.split()).replace("|", "\\|")
