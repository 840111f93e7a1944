"""A receipt on the page: a small mark that leads to the runs, the thread or the line of source."""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it.token import Token
from markupsafe import Markup, escape

from kbtools.articles.receipt_grammar import RELEASE, SOURCE, Kind, kind_of, label, url
from kbtools.articles.receipts import snippet_name
from kbtools.site.pages.frame import Frame

JOINER = "\u2060"
"""Keeps a mark on the line of the word before it; between Chinese characters a line may break."""


def with_marks(frame: Frame, tokens: Sequence[Token]) -> list[Token]:
    """The tokens of a line of text, in which receipts that stand side by side are one token.

    The blank before them goes, so that the mark stands at its word; what leads nowhere stays text.

    Args:
        frame: Of the page.
        tokens: As the parser gives them.
    """
    line: list[Token] = []
    for token in tokens:
        mark = _mark(frame, token.content) if token.type == "receipt" else None
        if mark is not None:
            _add(mark, line)
        elif token.type == "receipt":
            line.append(Token("text", "", 0, content=f"[{token.content}]"))
        else:
            line.append(token)
    return line


def _add(mark: Markup, line: list[Token]) -> None:
    """Adds a mark at the end of a line: to the marks there, or right after the last word."""
    while line and line[-1].type in ("text", "softbreak"):
        line[-1].content = line[-1].content.rstrip()
        if line[-1].content:
            break
        line.pop()
    marks = [*line.pop().meta["marks"], mark] if line and "marks" in line[-1].meta else [mark]
    html = Markup('{}<sup class="kb-receipts" data-pagefind-ignore>{}</sup>')
    content = html.format(JOINER, Markup(" ").join(marks))
    line.append(Token("html_inline", "", 0, content=content, meta={"marks": marks}))


def _mark(frame: Frame, text: str) -> Markup | None:
    """The mark of a receipt as HTML; None where it leads to nothing."""
    kind, words = kind_of(text), frame.words
    if kind is Kind.SNIPPET:
        article, _, snippet = snippet_name(text, frame.path.partition("/")[0]).partition("/")
        view = frame.model.by_id.get(article)
        if view is None or all(s.id != snippet for s in view.article.snippets):
            return None
        where = f"{article}/logs/#{snippet}" if view.observations_of(snippet) else None
        address = frame.in_language(where or f"{article}/#{snippet}")
        return _link(text, address, words("receipt.snippet"), kind)
    if kind is Kind.THREAD:
        short = f"#{text.partition('#')[2]}" if "#" in text else text.partition("@")[2][:7]
        return _link(short, url(text), words("receipt.thread", what=text), kind)
    if kind is Kind.SOURCE:
        about = words("receipt.source", what=_source(text))
        return _link(words("receipt.source-mark"), url(text), about, kind)
    if kind is Kind.PAGE:
        return _link(label(text), url(text), words("receipt.page", what=text), kind)
    if kind is Kind.INFERRED:
        html = Markup('<span class="kb-receipt kb-receipt--inferred" title="{}">{}</span>')
        return html.format(words("receipt.inferred"), words("receipt.inferred-mark"))
    return None


def _source(text: str) -> str:
    """The project and its tag; the file, and the first line, where the receipt names them."""
    if match := SOURCE.fullmatch(text):
        line = f":{match['first']}" if match["first"] else ""
        return f"{match['project']} {match['tag']}, {match['path']}{line}"
    match = RELEASE.fullmatch(text)
    return f"{match['project']} {match['tag']}" if match else text


def _link(short: str, address: str, about: str, kind: Kind) -> Markup:
    """A mark that leads somewhere; what is read aloud begins with what is seen.

    Args:
        short: What is seen.
        address: Where it leads.
        about: What is there, in words.
        kind: Of the receipt, for its colour.
    """
    return Markup(
        '<a class="kb-receipt kb-receipt--{}" href="{}" title="{}" aria-label="{}: {}">{}</a>'
    ).format(kind, escape(address), about, short, about, short)
