"""The other pages: status board, traceback box, search, upstream threads, guide, downloads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from posixpath import normpath, relpath

from markupsafe import escape

from kbtools.articles import links
from kbtools.articles.model import Snippet
from kbtools.site.data import feeds
from kbtools.site.model import Book, Entry, download_path, issue_path, prefix
from kbtools.site.pages import marks
from kbtools.site.pages.frame import Frame
from kbtools.site.rendering import cut, visible


def board_page(frame: Frame) -> tuple[str, bytes]:
    """Articles × toolchains, without the columns that are one article's own."""
    book = frame.book
    columns = {one.identity for one in book.common}
    of_article = dict(book.board.rows)
    rows = [
        (
            entry,
            [
                marks.of_cell(frame, entry, found, toolchain)
                for found, toolchain in zip(of_article[entry.id], book.toolchains, strict=True)
                if toolchain.identity in columns
            ],
        )
        for entry in book.entries
    ]
    return frame.plain(
        "board.html",
        frame.words("board.title"),
        frame.words("board.lead"),
        rows=rows,
        own=[one for one in book.toolchains if one.identity not in columns],
    )


def paste_page(frame: Frame) -> tuple[str, bytes]:
    """The box for a traceback, with the words of the articles that are translated."""
    entries, language = frame.book.entries, frame.language
    own = {
        entry.id: [cut(text.title), cut(text.summary)]
        for entry in entries
        if (text := entry.translations.get(language))
    }
    return frame.plain(
        "paste.html",
        frame.words("paste.title"),
        frame.words("paste.lead"),
        example=next((one for entry in entries for one in _example(entry)), ""),
        own=own,
    )


def _example(entry: Entry) -> Iterator[str]:
    for one in entry.seen:
        if one.verdict.name == "reproduced" and 200 < len(one.row.outcome.output) < 4000:
            yield visible(one.row.outcome.output)


def search_page(frame: Frame) -> tuple[str, bytes]:
    """A page of results, for a query in the address."""
    return frame.plain("search.html", frame.words("search.title"))


def issue_pages(book: Book, language: str) -> Iterator[tuple[str, bytes]]:
    """For every upstream thread, the articles that speak of it."""
    for reference, entries in book.issues.items():
        path = issue_path(book, reference, language).removeprefix(prefix(book, language))
        frame = Frame(book, language, path)
        kinds = [
            (entry, [one for one in entry.article.matter.upstream if one.reference == reference])
            for entry in entries
        ]
        yield frame.plain(
            "issue.html",
            frame.words("issue.title", reference=reference),
            frame.words("issue.lead"),
            reference=reference,
            url=links.upstream_url(reference),
            entries=kinds,
        )


HOW_TO_WRITE = "contributing.md"
"""Where the root's `CONTRIBUTING.md` stands among the pages of `docs/`."""


def docs(book: Book, language: str) -> dict[str, tuple[str, str]]:
    """`CONTRIBUTING.md` and the pages of `docs/`: path below it → Markdown, and its language.

    `x.zh.md` is the translation of `x.md`.
    """
    folder, first = book.config.root / "docs", book.languages[0]
    files = {file.relative_to(folder).as_posix(): file for file in sorted(folder.rglob("*.md"))}
    found = {}
    for path, file in ({HOW_TO_WRITE: book.config.root / "CONTRIBUTING.md"} | files).items():
        if not file.is_file() or file.suffixes[:-1]:
            continue
        own = file.with_suffix(f".{language}.md")
        there = language != first and own.is_file()
        text = (own if there else file).read_text("utf-8")
        found[path] = (text, language if there else first)
    return found


def guide_page(frame: Frame, pages: dict[str, tuple[str, str]]) -> tuple[str, bytes]:
    """The list of all pages of documentation."""
    words = frame.words
    written = [
        (frame.here(address_of(path)), heading_of(text, path), opening_of(text))
        for path, (text, _) in pages.items()
    ]
    made = [
        (frame.to(f"reference/{name}/"), words(f"guide.{name}"), words(f"guide.{name}-about"))
        for name in frame.book.config.site.reference
    ]
    machine = [
        (frame.to("llms.txt"), "llms.txt", words("guide.texts-about")),
        (frame.to("api/v1/index.json"), "api/v1/index.json", words("guide.json-about")),
        (
            frame.to(feeds.path(frame.book, frame.language)),
            words("site.feed"),
            words("guide.feed-about"),
        ),
    ]
    parts = [(words("guide.how"), written), (words("guide.reference"), made)]
    parts.append((words("site.machine"), machine))
    return frame.plain("guide.html", words("guide.title"), words("guide.lead"), parts=parts)


def address_of(path: str) -> str:
    """Where a page of documentation answers: `format.md` at `format/`."""
    return re.sub(r"(?:^|(?<=/))index/$", "", path.removesuffix(".md") + "/")


def heading_of(text: str, path: str) -> str:
    """The first heading of a page, or the name of its file."""
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return cut(re.sub(r"[`*]", "", found[1])) if found else Path(path).stem


def opening_of(text: str) -> str:
    """The first sentence of a page's prose, without its links; empty where there is none."""
    body = re.sub(r"\A.*?^# [^\n]+\n|^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    prose = (" ".join(one.split()) for one in re.split(r"\n\s*\n", body))
    first = next((one for one in prose if re.match(r"[\w`*\"“《「]", one)), "")
    sentence = re.match(r".*?(?:[.:](?=\s|$)|[。：]|$)", first)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence[0] if sentence else "")
    return plain.replace("**", "").rstrip(":：")


def doc_page(book: Book, language: str, path: str, text: str, written: str) -> tuple[str, bytes]:
    """A page of documentation, with the front matter that the theme reads."""
    frame = Frame(book, language, address_of(path))
    below = "docs" if path != HOW_TO_WRITE else "."
    text = MARKDOWN_LINK.sub(lambda match: _moved(frame, path, below, match), text)
    if written != language:
        note = frame.words("site.untranslated", language=frame.name_of(written))
        text = f'<p class="kb-notice">{escape(note)}</p>\n\n{text}'
    made = frame.page(heading_of(text, path), text, searched=written == language)
    return prefix(book, language) + path, made[1]


MARKDOWN_LINK = re.compile(r"(\]\()(?!https?:|mailto:|[#/])([^)\s#]+\.md)")


def _moved(frame: Frame, path: str, below: str, match: re.Match[str]) -> str:
    """A link of a page of documentation, which stood `below` the root: where its target is now."""
    book = frame.book
    target = normpath(f"{below}/{path}/../{match[2]}")
    article = book.config.id_pattern.match(target.rpartition("/")[2])
    if article and article[0] in book.by_id:
        now = f"{article[0]}.md"
    elif target == "CONTRIBUTING.md":
        now = HOW_TO_WRITE
    elif target.startswith("docs/") and (book.config.root / target).is_file():
        now = target.removeprefix("docs/")
    else:
        return match[0] if frame.language == book.languages[0] else f"{match[1]}../{match[2]}"
    return match[1] + relpath(now, Path(path).parent.as_posix())


def download(book: Book, snippet: Snippet) -> tuple[str, bytes]:
    """A snippet as a file that runs by itself, without kbtools."""
    return download_path(snippet), stand_alone(book, snippet).encode()


def stand_alone(book: Book, snippet: Snippet) -> str:
    """The code of a snippet and of those it continues, headed by what it is and needs."""
    sign = "//" if snippet.language == "cuda" else "#"
    own = Path(download_path(snippet)).name
    run = {"python": f"python {own}", "bash": f"bash {own}", "cuda": f"nvcc {own} -o a && ./a"}
    variables = "".join(f"{name}='{value}' " for name, value in snippet.env.items())
    command = (
        f"{variables}{snippet.keys.tool + ' ' if snippet.keys.tool else ''}{run[snippet.language]}"
    )
    page = links.url(snippet.article, book.config.knowledge_base.url)
    head = [
        f"{snippet.name}, a {snippet.role}: {page}",
        f"needs: {snippet.keys.requires}{', the network' if snippet.keys.net else ''}",
        f"run: {command}",
    ]
    code = "\n".join(part.code.rstrip("\n") for part in (*snippet.before, snippet))
    lines = [f"{sign} {visible(line).replace(chr(10), ' ')}" for line in head]
    future = re.findall(r"^from __future__ import .*$", code, re.MULTILINE)
    if snippet.language == "python" and snippet.uses_helper:
        for line in future:
            code = code.replace(line, "", 1)
        lines += [*dict.fromkeys(future), *bundled()]
    return "\n".join([*lines, "", code]) + "\n"


def bundled() -> list[str]:
    """`kbtools.repro`, which a stand-alone file brings along."""
    source = (resources.files("kbtools") / "repro.py").read_text("utf-8")  # not to be run here
    return [
        "",
        "# The module kbtools.repro, so that this file runs without kbtools.",
        "import sys as _sys, types as _types",
        '_kbtools, _repro = _types.ModuleType("kbtools"), _types.ModuleType("kbtools.repro")',
        f"exec(compile({source!r}, 'kbtools/repro.py', 'exec'), _repro.__dict__)",
        "_kbtools.repro = _repro",
        '_sys.modules.update({"kbtools": _kbtools, "kbtools.repro": _repro})',
    ]
