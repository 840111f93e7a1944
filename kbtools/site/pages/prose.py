"""An author's Markdown → Markdown that is text and nothing else, whoever wrote it.

What passes: paragraphs, headings, lists, quotations, tables, emphasis, code, and links to the web
or to an article. Anything that could become HTML or an attribute is shown as it was typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from markupsafe import escape

from kbtools.articles.links import slug, upstream_url
from kbtools.articles.parsing import Fence, Page
from kbtools.site.pages.frame import Frame
from kbtools.site.rendering import visible

CODE_LIMIT, PROSE_LIMIT = 64_000, 250_000
"""Characters of a block of code and of an article that are shown: more is no article."""

WEB = r"https?://[^\s<>\"'`{}\\\[\]()]{1,500}"
LINK = re.compile(
    r"\\(?P<escaped>[<>&\[\]{}`])"
    rf"|\[(?P<text>[^\[\]\n]{{1,300}})\]\((?P<target>{WEB}|[\w./#-]{{1,200}})\)"
    rf"|<(?P<auto>{WEB})>"
    r"|(?<![\w./#@-])(?P<reference>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(?:#[1-9]\d*|@[0-9a-f]{7,40}))(?![\w/])"
    r"|(?P<entity>&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30});)"
    r"|(?P<special>[<&\[\]{}`])"
)
IN_LINK = re.compile(r"[\\<&\[\]{}`/]")
"""What stands in all that `LINK` finds; most paragraphs are done when it is not there."""
TICKS = re.compile("`+")
ACTS = re.compile(r"[^\w\s.,;/=+-]|_")
"""What Markdown might act on within code."""

Replace = Callable[[Fence], str | None]
"""The block of Markdown to show in place of a fence; None for the fence as it stands."""


def body(frame: Frame, page: Page, sections: dict[str, str], replace: Replace) -> str:
    """The Markdown below a page's front matter.

    `sections` are the ids of its headings of level two, by their texts.
    """
    headings = {heading.line: heading.text for heading in page.headings}
    out: list[str] = []
    pending: list[str] = []
    length = 0

    def flush() -> None:
        out.append(text(frame, "\n".join(pending)))
        pending.clear()

    fences = {fence.line: fence for fence in page.fences}
    number = page.opening + 1
    while number <= len(page.lines):
        line = page.lines[number - 1]
        length += len(line)
        if length > PROSE_LIMIT:
            pending.append("\n" + frame.words("article.cut"))
            break
        if number in fences:
            flush()
            fence = fences[number]
            out.append(replace(fence) or code_block(fence, page))
            number += fence.code.count("\n") + 2
            continue
        if number in headings:
            flush()
            name = headings[number]
            anchor = sections.get(name) or slug(name)
            out.append(f"\n## {text(frame, name)} {{#{anchor}}}\n")
        else:
            pending.append(line)
        number += 1
    flush()
    return "\n".join(out)


def code_block(fence: Fence, page: Page, language: str | None = None) -> str:
    """A fence as a fence again: its fence marks are its own, its words but one are gone."""
    before = re.match(r"[\s>]*", page.lines[fence.line - 1])
    indent = before[0] if before else ""
    code = visible(fence.code)
    if len(code) > CODE_LIMIT:
        code = code[:CODE_LIMIT] + "\n…\n"
    ticks = "`" * max(3, *(len(run) + 1 for run in TICKS.findall(code) or [""]))
    named = language or fence.language
    word = named if re.fullmatch(r"[A-Za-z][\w+-]{0,20}", named) else "text"
    lines = [f"{ticks}{word}", *code.removesuffix("\n").split("\n"), ticks]
    return "\n".join(["", *(indent + line for line in lines), ""])


def text(frame: Frame, prose: str) -> str:
    """Prose without fences, made safe, with what it mentions linked."""
    parts = []
    for is_code, part in spans(visible(prose)):
        if is_code:
            parts.append(f"<code>{inert(part)}</code>")
        elif IN_LINK.search(part):
            parts.append(LINK.sub(lambda match: _linked(frame, match), part))
        else:
            parts.append(part)
    return linked_ids(frame, "".join(parts))


def spans(prose: str) -> Iterator[tuple[bool, str]]:
    """The spans of code in a text, and what stands between them, in order."""
    if "`" not in prose:
        yield False, prose
        return
    for number, paragraph in enumerate(re.split(r"(\n[ \t]*\n)", prose)):
        if number % 2:
            yield False, paragraph
            continue
        runs = [(match.start(), match.end()) for match in TICKS.finditer(paragraph)]
        later: dict[int, list[int]] = {}
        for i in reversed(range(len(runs))):
            later.setdefault(runs[i][1] - runs[i][0], []).append(i)
        at, i = 0, 0
        while i < len(runs):
            start, end = runs[i]
            same = later[end - start]
            while same and same[-1] <= i:
                same.pop()
            if not same or (start and paragraph[start - 1] == "\\"):
                i += 1
                continue
            closing = same[-1]
            yield False, paragraph[at:start]
            yield True, paragraph[end : runs[closing][0]]
            at, i = runs[closing][1], closing + 1
        yield False, paragraph[at:]


def inert(code: str) -> str:
    """Code of a span, in characters that Markdown does not act on."""
    plain = " ".join(code.replace("\\|", "|").split("\n")).strip()
    return ACTS.sub(lambda match: f"&#{ord(match[0])};", plain)


def _linked(frame: Frame, match: re.Match[str]) -> str:
    kind, source = match.lastgroup, match[0]
    if kind == "target":
        words = str(LINK.sub(lambda inner: _plain(inner[0]), match["text"]))
        url = _url(frame, match["target"])
        return f'<a href="{url}">{words}</a>' if url else words
    if kind == "auto":
        return f'<a href="{escape(match["auto"])}">{_plain(match["auto"])}</a>'
    if kind == "reference":
        return f'<a href="{escape(upstream_url(source))}">{_plain(source)}</a>'
    if kind == "escaped":
        return _plain(match["escaped"])
    return source if kind == "entity" else _plain(source)


def _url(frame: Frame, target: str) -> str:
    """Where a link of an author goes: to the web, to a heading or to an article; else nowhere."""
    if target.startswith(("http://", "https://", "#")):
        return str(escape(target))
    article = frame.model.config.id_pattern.match(target.rpartition("/")[2])
    if article and article[0] in frame.model.by_id:
        return f"{frame.in_language(article[0])}/"
    return ""


def _plain(words: str) -> str:
    return re.sub(r"[<>&\[\]{}`_*#]", lambda match: f"&#{ord(match[0])};", words)


def linked_ids(frame: Frame, html: str) -> str:
    """Every id of an article linked, unless it stands in a tag, a link or code."""
    pattern, own_id = frame.model.config.id_pattern, frame.path.partition("/")[0]
    if not pattern.search(html):
        return html
    pieces = re.split(r"(<a .*?</a>|<code>.*?</code>)", html, flags=re.DOTALL)
    for i in range(0, len(pieces), 2):
        pieces[i] = pattern.sub(
            lambda match: (
                f'<a href="{frame.in_language(match[0])}/">{match[0]}</a>'
                if match[0] in frame.model.by_id and match[0] != own_id
                else match[0]
            ),
            pieces[i],
        )
    return "".join(pieces)
