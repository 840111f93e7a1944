"""The templates of the theme, filled in for a knowledge base, and the files that pages load."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from string import Template
from urllib.parse import urlsplit

from markupsafe import escape

from kbtools.site import words
from kbtools.site.data import feeds
from kbtools.site.model import SiteModel, prefix

SITE = resources.files("kbtools.site")
PARTS = ("kb-header", "kb-footer")


@cache
def assets() -> dict[str, bytes]:
    """Style sheets, scripts and pictures: path in the tree → content.

    Their folder is named for all of them: a browser never mixes two versions.
    """
    files = {path: file.read_bytes() for path, file in sorted(_files_below(SITE / "assets"))}
    return {f"{_folder(files)}/{name}": content for name, content in files.items()}


def _files_below(folder: Traversable, path: str = "") -> Iterator[tuple[str, Traversable]]:
    """The files of a folder and of those in it, each with its path below the first."""
    for file in folder.iterdir():
        if file.is_file():
            yield path + file.name, file
        else:
            yield from _files_below(file, f"{path}{file.name}/")


def _folder(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(name.encode() + b"\0" + content)
    return f"assets/kb-{digest.hexdigest()[:10]}"


def folder() -> str:
    """Where the assets are, below the root of the site."""
    return "/".join(next(iter(assets())).split("/")[:2])


def theme(model: SiteModel) -> Iterator[tuple[str, bytes]]:
    """The files of `theme.custom_dir`."""
    knowledge_base = model.config.knowledge_base
    first = model.languages[0]
    shared = {
        "assets": folder(),
        "first": first,
        "colour": model.config.site.colour,
        "colour-dark": model.config.site.colour_dark,
        "alternates": alternates(model),
        "feeds": feed_links(model),
        "base": urlsplit(knowledge_base.url).path.rstrip("/") + "/",
        "first-parts": first_parts(model),
    }
    for name in ("main.html", "404.html", "partials/language.html"):
        yield name, fill(model, (SITE / "theme" / name).read_text("utf-8"), first, shared).encode()
    for language in model.languages:
        values = shared | {
            "prefix": prefix(model, language),
            "languages": switches(model, language),
            "source": source(model, language),
            "machine": machine(model, language),
            "scripts": for_scripts(language),
            "promise": _inert(promise(model, language)),
        }
        for part in PARTS:
            text = (SITE / "theme" / "partials" / f"{part}.html").read_text("utf-8")
            yield f"partials/{part}-{language}.html", fill(model, text, language, values).encode()


def promise(model: SiteModel, language: str) -> str:
    """What was run, cited and measured, in figures; what there is none of is left out.

    Args:
        model: Of the site.
        language: Of the sentences.
    """
    own_words = words.of(language)
    snippets = sum(len(view.article.snippets) for view in model.views)
    bounds = [bound for view in model.views for bound in view.bounds]
    figures = {
        "site.footer-run": (snippets - sum(view.state.not_run for view in model.views), snippets),
        "site.footer-cited": (model.share.sourced, model.share.claims),
        "site.footer-measured": (sum(b.standing == "measured" for b in bounds), len(bounds)),
    }
    sentences = [own_words(key, n=n, all=total) for key, (n, total) in figures.items() if total]
    return " ".join((*sentences, own_words("site.footer")))


class ThemeTemplate(Template):
    """A template of the theme, with `@name@` for a value: MkDocs reads it as Jinja afterwards."""

    delimiter = "@"
    pattern = r"@(?:(?P<named>[a-z][a-z.-]*)@|(?P<escaped>(?!))(?P<braced>)(?P<invalid>))"  # type: ignore[assignment]


def fill(model: SiteModel, text: str, language: str, values: dict[str, str]) -> str:
    """A template of the theme, filled in.

    Args:
        model: of the site, whose name is the value of `site-name`.
        text: of the template.
        language: whose words stand for all names that have no value.
        values: name → markup, which is inserted as it is.
    """
    template, own_words = ThemeTemplate(text), words.of(language)
    name = model.config.knowledge_base.name
    escaped = {
        key: _inert(name if key == "site-name" else own_words(key))
        for key in template.get_identifiers()
        if key not in values
    }
    return template.substitute(values | escaped)


def _inert(text: str) -> str:
    """A text as HTML in which Jinja finds nothing to do."""
    return re.sub(r"[{}%#]", lambda match: f"&#{ord(match[0])};", str(escape(text)))


def alternates(model: SiteModel) -> str:
    """Links to the same page in the other languages, for search engines."""
    if not model.languages[1:]:
        return ""
    links = "".join(
        f'<link rel="alternate" hreflang="{language}" '
        f"href=\"{{{{ ('{prefix(model, language)}' ~ page.meta.kb_path or './') | url }}}}\">"
        for language in model.languages
    )
    return f"{{% if page and page.meta and page.meta.kb_language %}}{links}{{% endif %}}"


def feed_links(model: SiteModel) -> str:
    """The feed in the language of the page, where a feed reader looks for it."""
    first, *others = model.languages
    language = f"(page.meta.kb_language if page and page.meta else '') or '{first}'"
    name = _inert(model.config.knowledge_base.name)
    links = "".join(
        f"{{% if kb_feed == '{each}' %}}"
        f'<link rel="alternate" type="application/atom+xml" '
        f'title="{name}: {_inert(words.of(each)("site.feed"))}" '
        f"href=\"{{{{ '{feeds.path(model, each)}' | url }}}}\">{{% endif %}}"
        for each in (first, *others)
    )
    return f"{{% set kb_feed = {language} %}}{links}"


def switches(model: SiteModel, language: str) -> str:
    """Links to the same page in the other languages, for readers."""
    switches = []
    for target in model.languages:
        if target == language:
            continue
        name = escape(words.of(target)("name")) if target in words.KNOWN else escape(target)
        switches.append(
            f'<a class="kb-language" lang="{target}" hreflang="{target}" '
            f"href=\"{{{{ ('{prefix(model, target)}' ~ page.meta.kb_path or './') | url }}}}\">"
            f"{name}</a>"
        )
    return "".join(switches)


def source(model: SiteModel, language: str) -> str:
    """A link to the repository, if the configuration names one."""
    url = model.config.knowledge_base.repository
    if not url.startswith(("https://", "http://")):
        return ""
    return f' · <a href="{escape(url)}">{escape(words.of(language)("site.source"))}</a>'


def machine(model: SiteModel, language: str) -> str:
    """Links to the data for programs and to the feed."""
    own_words = words.of(language)
    path = feeds.path(model, language)
    feed = f"<a href=\"{{{{ '{path}' | url }}}}\">{escape(own_words('site.feed'))}</a>"
    texts = f"<a href=\"{{{{ 'llms.txt' | url }}}}\">{escape(own_words('site.machine'))}</a>"
    return f" · {feed} · {texts}"


def for_scripts(language: str) -> str:
    """The words that the scripts of every page show, as JSON within a script."""
    own_words = words.of(language)
    values = {
        "copy": own_words("site.copy"),
        "copied": own_words("site.copied"),
        "hint": own_words("site.search-hint"),
        "search": own_words.part("search"),
    }
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&%":  # ends no script, and no block of the template
        text = text.replace(char, f"\\u{ord(char):04x}")
    return "{% raw %}" + text + "{% endraw %}"


def first_parts(model: SiteModel) -> str:
    """Matches the first part of every address of the site, as JavaScript."""
    knowledge_base = model.config.knowledge_base
    pages = (
        "articles",
        "paste",
        "status",
        "guide",
        "maintainers",
        "refereed",
        "probes",
        "search",
        "issues",
        "by",
    )
    files = ("api", "badges")
    return "|".join([rf"{knowledge_base.prefix}\d+", *model.languages[1:], *pages, *files])
