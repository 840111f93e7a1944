"""An author's Markdown → HTML that is text and nothing else, whoever wrote it.

It is read by the rules of CommonMark, as `articles.parsing` reads it. What passes: paragraphs,
headings, lists, quotations, tables, emphasis, code, and links to the web or to an article. All that
could become other HTML or an attribute is shown as it was typed. Headings and blocks of code stay
Markdown: MkDocs makes the table of contents of the headings, and colours the code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import escape

from kbtools.articles.links import slug, upstream_url
from kbtools.articles.parsing import Fence, Page
from kbtools.articles.receipts import understand_receipts
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.receipts import with_marks
from kbtools.site.rendering import preformatted, single_line, visible

CODE_LIMIT, PROSE_LIMIT = 64_000, 250_000
"""Characters of a block of code, and of an article, that are shown; the rest is cut off."""

REFERENCE = re.compile(
    r"(?<![\w./#@-])[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(?:#[1-9]\d*|@[0-9a-f]{7,40})(?![\w/])"
)
"""A thread or commit of a project, as in `owner/repo#12`."""
TICKS = re.compile("`+")
ACTS = re.compile(r"<[^>]*>|&[#\w]+;|([^\w\s.,;/=+-]|_)")
"""In the HTML of a heading, what Markdown might act on; tags and entities come first."""

Replace = Callable[[Fence], str | None]
"""The block of Markdown to show in place of a fence; None for the fence as it stands."""

_markdown = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False})
_markdown.enable("table").disable("image")  # a page loads nothing that an author names
understand_receipts(_markdown)


def body(frame: Frame, page: Page, sections: dict[str, str], replace: Replace) -> str:
    """What is below a page's front matter, as a page for MkDocs.

    Args:
        frame: of the page that it becomes.
        page: the article or its translation.
        sections: ids of the headings of level two, by their texts.
        replace: gives the block of Markdown for a fence.
    """
    lines = _shown_lines(page)
    tokens = _markdown.parse(visible("\n".join(lines)))
    fences = {fence.line: fence for fence in page.fences}
    out: list[str] = []
    for block in _blocks(tokens):
        first = block[0]
        line = (first.map[0] if first.map else 0) + page.opening + 1
        if first.type == "heading_open":
            text = block[1].content
            name = sections.get(text) or (slug(text) if first.tag == "h2" else "")
            anchor = f" {{#{name}}}" if name else ""
            out.append(f"\n{'#' * int(first.tag[1])} {_inert(_html(frame, block[1:2]))}{anchor}\n")
        elif first.type == "fence" and line in fences:
            out.append(replace(fences[line]) or code_block(fences[line]))
        else:
            out.append(f"\n{single_line(_html(frame, block))}\n")
    if len(lines) < len(page.lines) - page.opening:
        out.append("\n" + frame.words("article.cut"))
    return "\n".join(out)


def code_block(fence: Fence, language: str | None = None) -> str:
    """A fence as Markdown again, whose info string is a language and nothing else."""
    code = visible(fence.code)
    if len(code) > CODE_LIMIT:
        code = code[:CODE_LIMIT] + "\n…\n"
    ticks = "`" * max(3, *(len(run) + 1 for run in TICKS.findall(code) or [""]))
    named = language or fence.language
    word = named if re.fullmatch(r"[A-Za-z][\w+-]{0,20}", named) else "text"
    return "\n".join(["", f"{ticks}{word}", *code.removesuffix("\n").split("\n"), ticks, ""])


def _shown_lines(page: Page) -> Sequence[str]:
    """The lines below the front matter, as far as they are shown."""
    lines, length = page.lines[page.opening :], 0
    for number, line in enumerate(lines):
        length += len(line)
        if length > PROSE_LIMIT:
            return lines[:number]
    return lines


def _blocks(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens of each block that is in no other block."""
    block: list[Token] = []
    depth = 0
    for token in tokens:
        block.append(token)
        depth += token.nesting
        if depth == 0:
            yield block
            block = []


def _html(frame: Frame, block: Sequence[Token]) -> str:
    """The HTML of a block, in which each mention of an article or a thread is a link."""
    for token in block:
        if token.children is not None:
            token.children = list(_linked(frame, with_marks(frame, token.children)))
        elif token.type in ("fence", "code_block"):  # within a list or quotation, or indented
            code = preformatted(token.content[:CODE_LIMIT].removesuffix("\n"))
            token.type = "html_block"
            token.content = f'<div class="highlight"><pre><code>{code}</code></pre></div>'
    return str(_markdown.renderer.render(block, _markdown.options, {}))


def _linked(frame: Frame, tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens of a line of text, without the links that must not be, with those to be added."""
    inside: list[bool] = []  # of each open link, whether it is shown
    for token in tokens:
        if token.type == "link_open":
            address = _address(frame, str(token.attrs.get("href", "")))
            inside.append(bool(address))
            if address:
                token.attrs = {"href": address}
                yield token
        elif token.type == "link_close":
            if inside.pop():
                yield token
        elif token.type == "text" and not any(inside):
            yield Token("html_inline", "", 0, content=_mentions(frame, token.content))
        else:
            yield token


def _address(frame: Frame, target: str) -> str:
    """Where a link of an author goes: to the web, to a heading or to an article; else nowhere."""
    if target.startswith(("http://", "https://", "#")):
        return target
    article = frame.model.config.id_pattern.match(target.rpartition("/")[2])
    if article and article[0] in frame.model.linked:
        return f"{frame.in_language(article[0])}/"
    return ""


def _mentions(frame: Frame, text: str) -> str:
    """A text as HTML, in which references to threads and the ids of other articles are links."""
    parts, end = [], 0
    for match in REFERENCE.finditer(text):
        parts.append(_article_ids(frame, text[end : match.start()]))
        parts.append(f'<a href="{escape(upstream_url(match[0]))}">{escape(match[0])}</a>')
        end = match.end()
    return "".join([*parts, _article_ids(frame, text[end:])])


def _article_ids(frame: Frame, text: str) -> str:
    """A text as HTML, in which the ids of other articles are links."""
    pattern, own_id = frame.model.config.id_pattern, frame.path.partition("/")[0]
    return pattern.sub(
        lambda match: (
            f'<a href="{frame.in_language(match[0])}/">{match[0]}</a>'
            if match[0] in frame.model.linked and match[0] != own_id
            else match[0]
        ),
        str(escape(text)),
    )


def _inert(html: str) -> str:
    """HTML in characters that Markdown does not act on; its tags stay."""
    return ACTS.sub(
        lambda match: f"&#{ord(match[1])};" if match[1] else match[0], single_line(html)
    )
