"""The pages of `docs/` and `CONTRIBUTING.md`, and the list of them."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import normpath, relpath

from markupsafe import escape

from kbtools.site.data import feeds
from kbtools.site.model import SiteModel, prefix
from kbtools.site.pages.frame import Frame
from kbtools.site.rendering import cut

HOW_TO_WRITE = "contributing.md"
"""Where the root's `CONTRIBUTING.md` stands among the pages of `docs/`."""


def documents(model: SiteModel, language: str) -> dict[str, tuple[str, str]]:
    """`CONTRIBUTING.md` and the pages of `docs/`: path below it → Markdown, and its language.

    `x.zh.md` is the translation of `x.md`.
    """
    folder, first = model.config.root / "docs", model.languages[0]
    files = {file.relative_to(folder).as_posix(): file for file in sorted(folder.rglob("*.md"))}
    found = {}
    for path, file in ({HOW_TO_WRITE: model.config.root / "CONTRIBUTING.md"} | files).items():
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
        for name in frame.model.config.site.reference
    ]
    machine = [
        (frame.to("llms.txt"), "llms.txt", words("guide.texts-about")),
        (frame.to("api/v1/index.json"), "api/v1/index.json", words("guide.json-about")),
        (
            frame.to(feeds.path(frame.model, frame.language)),
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


def doc_page(
    model: SiteModel, language: str, path: str, text: str, written: str
) -> tuple[str, bytes]:
    """A page of documentation, with the front matter that the theme reads."""
    frame = Frame(model, language, address_of(path))
    below = "docs" if path != HOW_TO_WRITE else "."
    text = MARKDOWN_LINK.sub(lambda match: _moved(frame, path, below, match), text)
    if written != language:
        note = frame.words("site.untranslated", language=frame.name_of(written))
        text = f'<p class="kb-notice">{escape(note)}</p>\n\n{text}'
    made = frame.page(heading_of(text, path), text, searched=written == language)
    return prefix(model, language) + path, made[1]


MARKDOWN_LINK = re.compile(r"(\]\()(?!https?:|mailto:|[#/])([^)\s#]+\.md)")


def _moved(frame: Frame, path: str, below: str, match: re.Match[str]) -> str:
    """A link of a page of documentation, which stood `below` the root: where its target is now."""
    model = frame.model
    target = normpath(f"{below}/{path}/../{match[2]}")
    article = model.config.id_pattern.match(target.rpartition("/")[2])
    if article and article[0] in model.by_id:
        now = f"{article[0]}.md"
    elif target == "CONTRIBUTING.md":
        now = HOW_TO_WRITE
    elif target.startswith("docs/") and (model.config.root / target).is_file():
        now = target.removeprefix("docs/")
    else:
        return match[0] if frame.language == model.languages[0] else f"{match[1]}../{match[2]}"
    return match[1] + relpath(now, Path(path).parent.as_posix())
