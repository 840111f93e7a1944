"""Templates → HTML that may stand in a page of Markdown: escaped, cut, on a line of its own.

A template is compiled once for each language: the site's own words are constants in it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Protocol

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from jinja2.runtime import Macro
from markupsafe import Markup, escape

from kbtools.site import words

SHORT, LONG = 300, 2000
"""Characters shown of a field in a list, and on a page of its own."""

CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)


def visible(text: str) -> str:
    """A text in which control codes and changes of direction are replaced by �."""
    if text.replace("\n", "").isprintable():  # as most are; much faster than the search
        return text
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def cut(text: object, length: int = SHORT) -> str:
    """The first so many characters, and a sign that there was more."""
    plain = visible(str(text))
    return plain if len(plain) <= length else f"{plain[:length].rstrip()}…"


def preformatted(text: str) -> Markup:
    """A text in a `pre`, every line break a character reference: the line does not end."""
    return Markup(str(escape(visible(text))).replace("\n", "&#10;"))


def with_code(text: str) -> Markup:
    """A line of text in which what stands between backticks is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    markup = [f"<code>{escape(p)}</code>" if i % 2 else str(escape(p)) for i, p in enumerate(parts)]
    return Markup("".join(markup))


def flat(text: str) -> Markup:
    """A text in an attribute, in which its lines go on as they are."""
    return preformatted(text)


def attribute_json(value: object) -> str:
    """A value as JSON, to be escaped like any other attribute."""
    return msgspec.json.encode(value, order="sorted").decode()


class Sign(Protocol):
    """What a mark shows: a sign, and the kind that gives it its colour."""

    sign: str
    kind: str


def mark(sign: Sign) -> Markup:
    """The sign of a mark; its words are beside it, for a screen reader."""
    return _mark(sign.kind, sign.sign)


@cache
def _mark(kind: str, sign: str) -> Markup:
    html = '<span class="kb-mark kb-mark--{}" aria-hidden="true">{}</span>'
    return Markup(html).format(kind, sign)


@cache
def environment(language: str) -> Environment:
    """The templates in a language: everything is escaped, a name that is not there is an error.

    Those of `macros.html` are known to all others.
    """
    own_words = words.of(language)
    templates = Environment(
        loader=PackageLoader("kbtools.site", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.filters |= {
        "cut": cut,
        "pre": preformatted,
        "json": attribute_json,
        "flat": flat,
        "code": with_code,
        "mark": mark,
        "words": own_words,
        "words_of": own_words.part,
        "word_for": lambda word, kind: own_words.word_for(kind, word),
    }
    macros = vars(templates.get_template("macros.html").module)
    templates.globals |= {name: macro for name, macro in macros.items() if isinstance(macro, Macro)}
    return templates


def render(language: str, template: str, /, **values: Any) -> str:
    """The HTML of a template as one line, which no rule of Markdown can take apart."""
    return single_line(_template(language, template).render(values))


@cache
def _template(language: str, name: str) -> Template:
    template = environment(language).get_template(name)
    template.globals = dict(template.globals)  # a `ChainMap`, which is copied for every rendering
    return template


def single_line(html: str) -> str:
    """HTML without line breaks. Those of a `pre` are character references already."""
    return " ".join(line for line in map(str.strip, html.split("\n")) if line)
