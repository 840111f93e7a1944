"""The pages of `docs/` and `CONTRIBUTING.md`, and the list of them."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import normpath, relpath

import msgspec
from markupsafe import escape

from kbtools.site.data import feeds
from kbtools.site.model import SiteModel, prefix
from kbtools.site.pages import maintainers, probes, refereed
from kbtools.site.pages.frame import Frame
from kbtools.site.rendering import cut

HOW_TO_WRITE = "contributing.md"
"""Where the root's `CONTRIBUTING.md` stands among the pages of `docs/`."""


class Document(msgspec.Struct, frozen=True):
    """A page of documentation as it was written."""

    text: str
    """Markdown."""
    language: str


def documents(model: SiteModel, language: str) -> dict[str, Document]:
    """`CONTRIBUTING.md` and the pages of `docs/`, by their paths below it.

    `x.zh.md` is the translation of `x.md`; a page without one is given in the first language.
    """
    folder, first = model.config.root / "docs", model.languages[0]
    files = {file.relative_to(folder).as_posix(): file for file in sorted(folder.rglob("*.md"))}
    pages = {}
    for path, file in ({HOW_TO_WRITE: model.config.root / "CONTRIBUTING.md"} | files).items():
        if not file.is_file() or file.suffixes[:-1]:
            continue
        translation = file.with_suffix(f".{language}.md")
        if language != first and translation.is_file():
            pages[path] = Document(translation.read_text("utf-8"), language)
        else:
            pages[path] = Document(file.read_text("utf-8"), first)
    return pages


def guide_page(frame: Frame, pages: dict[str, Document]) -> tuple[str, bytes]:
    """The list of all pages of documentation; `pages` is what `documents` found."""
    words = frame.words
    handwritten = [
        (
            frame.in_language(address_of(path)),
            heading_of(document.text, path),
            opening_of(document.text),
        )
        for path, document in pages.items()
    ]
    title, lead = words("maintainers.title"), words("maintainers.lead")
    handwritten.append((frame.in_language(maintainers.PATH), title, lead))
    if (frame.model.config.probes / "__init__.py").is_file():
        title, lead = words("probes.title"), words("probes.lead")
        handwritten.insert(0, (frame.in_language(probes.PATH), title, lead))
    title, lead = words("refereed.title"), words("refereed.lead")
    handwritten.append((frame.in_language(refereed.PATH), title, lead))
    generated = [
        (frame.to(f"reference/{name}/"), words(f"guide.{name}"), words(f"guide.{name}-about"))
        for name in frame.model.config.site.reference
    ]
    data = [
        (frame.to("llms.txt"), "llms.txt", words("guide.texts-about")),
        (frame.to("api/v1/index.json"), "api/v1/index.json", words("guide.json-about")),
        (
            frame.to(feeds.path(frame.model, frame.language)),
            words("site.feed"),
            words("guide.feed-about"),
        ),
    ]
    parts = [
        (words("guide.how"), handwritten),
        (words("guide.reference"), generated),
        (words("site.machine"), data),
    ]
    return frame.plain("guide.html", words("guide.title"), words("guide.lead"), parts=parts)


def address_of(path: str) -> str:
    """The address of a page of documentation: `format/` for `format.md`."""
    return re.sub(r"(?:^|(?<=/))index/$", "", path.removesuffix(".md") + "/")


def heading_of(text: str, path: str) -> str:
    """The first heading of a page, or the name of its file."""
    match = re.search(r"^# (.+)$", text, re.MULTILINE)
    return cut(re.sub(r"[`*]", "", match[1])) if match else Path(path).stem


def opening_of(text: str) -> str:
    """The first sentence of a page's prose, without its links; empty if it has none."""
    body = re.sub(r"\A.*?^# [^\n]+\n|^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n", body))
    paragraph = next((block for block in blocks if re.match(r"[\w`*\"“《「]", block)), "")
    sentence = re.match(r".*?(?:[.:](?=\s|$)|[。：]|$)", paragraph)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence[0] if sentence else "")
    return plain.replace("**", "").rstrip(":：")


def doc_page(model: SiteModel, language: str, path: str, document: Document) -> tuple[str, bytes]:
    """A page of documentation, with the front matter that the theme reads.

    Args:
        model: of the site.
        language: of the page; the document's own may be another one, which a notice then says.
        path: of the document, below `docs/`.
        document: what is on the page.
    """
    frame = Frame(model, language, address_of(path))
    below = "docs" if path != HOW_TO_WRITE else "."
    text = MARKDOWN_LINK.sub(lambda match: _moved(frame, path, below, match), document.text)
    translated = document.language == language
    if not translated:
        note = frame.words("site.untranslated", language=frame.name_of(document.language))
        text = f'<p class="kb-notice">{escape(note)}</p>\n\n{text}'
    _, content = frame.page(heading_of(text, path), text, searched=translated)
    return prefix(model, language) + path, content


MARKDOWN_LINK = re.compile(
    r"\[(?P<text>[^\[\]]*)\]"
    r"\((?P<target>(?!https?:|mailto:|[#/])[^)\s#]+\.md)(?P<anchor>#[^)\s]*)?\)"
)
"""A link to another file of Markdown."""


def _moved(frame: Frame, path: str, below: str, match: re.Match[str]) -> str:
    """A link of a page of documentation, to where its target is in the tree of pages.

    A file of the repository that is no page of the site is linked there; without an address of the
    repository only the link's text remains.

    Args:
        frame: of the page.
        path: of the page, below `docs/`.
        below: the folder that `path` is relative to, itself relative to the root.
        match: of `MARKDOWN_LINK`.
    """
    model, folder = frame.model, Path(path).parent.as_posix()
    text, anchor = match["text"], match["anchor"] or ""
    target = normpath(f"{below}/{path}/../{match['target']}")
    article = model.config.id_pattern.match(target.rpartition("/")[2])
    if article and article[0] in model.linked:
        moved = relpath(f"{article[0]}.md", folder)
    elif target == "CONTRIBUTING.md":
        moved = relpath(HOW_TO_WRITE, folder)
    elif target.startswith("docs/") and (model.config.root / target).is_file():
        moved = relpath(target.removeprefix("docs/"), folder)
    elif (model.config.root / target).is_file():
        repository = model.config.knowledge_base.repository
        if not repository.startswith(("https://", "http://")):
            return text
        moved = f"{repository.rstrip('/')}/blob/HEAD/{target}"
    else:  # MkDocs reports it
        up = "" if frame.language == model.languages[0] else "../"
        moved = f"{up}{match['target']}"
    return f"[{text}]({moved}{anchor})"
