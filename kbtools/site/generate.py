"""`kb/` + `evidence/` + `docs/` → one tree of plain Markdown, which any generator can build."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kbtools.article import Article
from kbtools.checks import Base
from kbtools.config import Config
from kbtools.reading import Page
from kbtools.state import Seen, as_markdown, seen, state_of


def generate(base: Base, folder: Path) -> list[Path]:
    """Writes the tree; the files that changed. What is no longer generated is deleted."""
    pages = dict(tree(base))
    changed = []
    for name, text in pages.items():
        file = folder / name
        if not (file.is_file() and file.read_text("utf-8") == text):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
            changed.append(file)
    for file in folder.rglob("*.md"):
        if file.relative_to(folder).as_posix() not in pages:
            file.unlink()
    return changed


def tree(base: Base) -> Iterator[tuple[str, str]]:
    """Every page's path in the tree, and its text."""
    yield "index.md", index(base)
    for one in base.articles:
        yield f"{one.id}.md", article_page(base.page_of(one), one, base.config)
    docs = base.config.root / "docs"
    for file in sorted(docs.rglob("*.md")):
        yield file.relative_to(docs).as_posix(), file.read_text("utf-8")


def index(base: Base) -> str:
    """The list of articles, each with its computed state."""
    lines = [
        f"# {base.config.knowledge_base.name}",
        "",
        "Every failure and every fix on these pages was executed; the state follows from what was"
        " seen.",
        "",
        "| article | failure | what helps | state |",
        "| --- | --- | --- | --- |",
    ]
    for one in base.articles:
        matter, state = one.matter, state_of(one, base.config)
        cells = (f"[{one.id}]({one.id}.md)", cell(matter.title), cell(matter.summary), state.word)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """A text as the cell of a table: nothing in it is Markdown or HTML."""
    escaped = re.sub(r"([\\`*_{}\[\]()#+!|])", r"\\\1", text)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def article_page(page: Page, article: Article, config: Config) -> str:
    """An article's page: each snippet is headed by its role and what was seen of it."""
    lines = list(page.lines)
    found = seen(article, config)
    for snippet in article.snippets:
        at = snippet.place.line - 2
        opening = re.match(r"(?P<before>.*?)(?P<fence>`{3,}|~{3,})", lines[at])
        if opening:
            title = f"{snippet.id}, {snippet.role}: {heading(found, snippet.id)}"
            lines[at] = f'{opening[0]}{snippet.language} title="{title}"'
    text = "\n".join(lines)
    body = text.partition("\n---\n")[2].strip() + "\n"
    matter = "\n".join(["---", f"title: {article.id}", "---", ""])
    return matter + as_markdown(article, config, body)


def heading(found: tuple[Seen, ...], snippet: str) -> str:
    """What was seen of a snippet, in a few words."""
    verdicts = [one for one in found if one.snippet.id == snippet]
    if not verdicts:
        return "not run since it was edited"
    names = sorted({str(one.verdict.name) for one in verdicts})
    times = f" on {len(verdicts)} toolchains" if len(verdicts) > 1 else ""
    return " and ".join(names) + times
