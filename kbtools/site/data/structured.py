"""Data in a page's `<head>` for search engines and for previews of links."""

from __future__ import annotations

from typing import Any

import msgspec
from markupsafe import Markup

from kbtools.site.data import feeds
from kbtools.site.data.texts import absolute
from kbtools.site.model import ArticleView, SiteModel, page_path
from kbtools.site.rendering import LONG, cut


def head(model: SiteModel, view: ArticleView, language: str) -> str:
    """OpenGraph and JSON-LD of an article's page, on one line.

    Args:
        model: The site.
        view: The article with its evidence.
        language: Of the page.
    """
    text = view.text(language)
    address = page_path(model, view.id, language)
    described = plain_head(
        model, language, f"{view.id}: {cut(text.title)}", text.summary, address, kind="article"
    )
    return described + script(article(model, view, language))


def plain_head(
    model: SiteModel, language: str, title: str, about: str, address: str, *, kind: str = "website"
) -> str:
    """OpenGraph of a page.

    Args:
        model: of the site.
        language: of the page.
        title: of the page.
        about: its description.
        address: of the page, relative to the root of the site.
        kind: OpenGraph's `og:type`.
    """
    name = model.config.knowledge_base.name
    properties = {
        "og:type": kind,
        "og:title": cut(title),
        "og:description": cut(about, LONG),
        "og:site_name": name,
        "og:locale": language.replace("-", "_"),
    }
    if model.config.knowledge_base.url:
        properties["og:url"] = absolute(model, address)
    tags = [
        Markup('<meta property="{}" content="{}">').format(k, v) for k, v in properties.items() if v
    ]
    return "".join(tags)


def article(model: SiteModel, view: ArticleView, language: str) -> dict[str, Any]:
    """An article as schema.org's TechArticle; of dates only those of evidence.

    Args:
        model: The site.
        view: The article with its evidence.
        language: Of the page.
    """
    text, config = view.text(language), model.config
    matter = view.article.matter
    address = page_path(model, view.id, language)
    document: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "TechArticle",
        "headline": cut(text.title, 110),
        "name": f"{view.id}: {cut(text.title)}",
        "description": cut(text.summary, LONG),
        "identifier": view.id,
        "inLanguage": text.language,
        "about": [
            {"@type": "SoftwareApplication", "name": component} for component in matter.components
        ],
        "keywords": [*matter.components, matter.stage, matter.severity],
        "isPartOf": {"@type": "WebSite", "name": config.knowledge_base.name},
    }
    if matter.affected:
        alternatives = (
            " and ".join(f"{name} {range_}" for name, range_ in alternative.items())
            for alternative in matter.affected
        )
        document["dependencies"] = cut(" or ".join(alternatives))
    if view.newest:
        document["dateModified"] = feeds.stamp(view.newest)
    if config.site.licence:
        document["license"] = config.site.licence
    if config.knowledge_base.url:
        document["url"] = document["mainEntityOfPage"] = absolute(model, address)
        document["isPartOf"]["url"] = absolute(model, "")
    return document


def script(value: dict[str, Any]) -> str:
    """JSON-LD that cannot end its script: `<`, `>` and `&` are escaped as JSON has it."""
    text = msgspec.json.encode(value).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return f'<script type="application/ld+json">{text}</script>'
