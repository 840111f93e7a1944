"""New things: a knowledge base, and an article in it."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

from filelock import FileLock

from kbtools.articles.links import slug
from kbtools.config import FILE, Config, KbtoolsError

TEMPLATES = resources.files("kbtools.articles") / "templates"


def template(name: str, /, **values: str) -> str:
    """The text of a template, each `@NAME@` replaced by its value."""
    text = (TEMPLATES / name).read_text("utf-8")
    for key, value in values.items():
        text = text.replace(f"@{key.upper()}@", value)
    return text


def next_id(config: Config) -> str:
    """The id after the highest that any file of the knowledge base has; none is ever reused."""
    prefix = config.knowledge_base.prefix
    numbers = [
        int(match[1])
        for folder in (config.articles, config.evidence)
        for file in folder.glob(f"{prefix}*")
        if (match := re.match(rf"{re.escape(prefix)}(\d+)", file.name))
    ]
    return config.article_id(max(numbers, default=0) + 1)


def new_article(config: Config, title: str) -> Path:
    """Writes a skeleton that is valid, runs and is judged; the file.

    Two made at the same moment get two ids.

    Raises:
        KbtoolsError: the title says nothing.
    """
    title = " ".join("".join(c if c.isprintable() else " " for c in title).split())
    if not title:
        raise KbtoolsError("the title of an article is some text, the error that people search for")
    locks = config.memory.parent / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    config.articles.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / "new.lock"):
        identifier = next_id(config)
        file = config.articles / f"{identifier}-{slug(title)}.md"
        file.write_text(skeleton(config, identifier, title), "utf-8")
    return file


def skeleton(config: Config, identifier: str, title: str) -> str:
    """The text of an article that is valid, runs and is judged."""
    form = config.article
    prose = {
        "fix": "Say the one thing to do first.",
        "symptom": "What a person sees, word for word.",
    }
    sections = []
    for name in form.sections:
        snippets = TEMPLATES / f"snippets-{slug(name)}.md"
        text = snippets.read_text("utf-8") if snippets.is_file() else ""
        sections.append(f"## {name}\n\n{prose.get(slug(name), 'To be written.')}\n\n{text}")
    leftover = [
        (TEMPLATES / f"snippets-{part}.md").read_text("utf-8")
        for part in ("symptom", "fix")
        if part not in map(slug, form.sections)
    ]
    return template(
        "article.md",
        body="\n".join([*sections, *leftover]).strip(),
        id=identifier,
        component=form.components[0] if form.components else "component",
        stage=form.stages[0],
        severity=form.severities[0],
        title=quoted(title),  # the last: nothing in it is a placeholder
    )


def quoted(text: str) -> str:
    """A text as it stands between double quotes in YAML, TOML and JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def new_base(folder: Path, name: str, prefix: str) -> list[Path]:
    """Starts a knowledge base in a folder; the files written.

    Raises:
        KbtoolsError: the folder holds one already, or the prefix is not capital letters.
    """
    if not re.fullmatch(r"[A-Z][A-Z-]{0,9}", prefix):
        raise KbtoolsError(f"`{prefix}` is no prefix: one to ten capital letters, as in KB")
    if (folder / FILE).exists():
        raise KbtoolsError(f"{folder / FILE} is there already; nothing was written")
    values = {"prefix": prefix, "id": f"{prefix}0001", "name": quoted(name)}
    plan = {
        FILE: "kbtools.toml",
        "toolchains.toml": "toolchains.toml",
        "mkdocs.yml": "mkdocs.yml",
        ".gitignore": "gitignore",
        ".github/workflows/verify.yml": "verify.yml",
        f"kb/{prefix}0001-division-by-zero.md": "first.md",
    }
    written = []
    for path, source in plan.items():
        file = folder / path
        if file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(template(source, **values), "utf-8")
        written.append(file)
    return written
