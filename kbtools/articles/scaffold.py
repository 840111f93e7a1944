"""Skeletons: a new knowledge base, and a new article in one."""

from __future__ import annotations

import datetime
import json
import re
import string
from importlib import resources
from pathlib import Path

from filelock import FileLock

from kbtools.articles import placeholders
from kbtools.articles.links import slug
from kbtools.config import FILE, NOTICE, Config, KbtoolsError

TEMPLATES = resources.files("kbtools.articles") / "templates"


class ScaffoldError(KbtoolsError):
    """A knowledge base or an article cannot be started as it was asked for."""


def render(name: str, /, **values: str) -> str:
    """The text of a template with `$name` replaced by the value of that name.

    Nothing within a value is replaced: a title may hold a `$`.
    """
    return string.Template((TEMPLATES / name).read_text("utf-8")).substitute(values)


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


def next_notice_id(config: Config) -> str:
    """The id after the highest that any notice of the knowledge base has."""
    prefix = f"{config.knowledge_base.prefix}{NOTICE}"
    names = (file.name.removeprefix(prefix) for file in config.notices.glob(f"{prefix}*.md"))
    numbers = [int(match[0]) for name in names if (match := re.match(r"\d+", name))]
    return config.notice_id(max(numbers, default=0) + 1)


def new_article(config: Config, title: str) -> Path:
    """Writes the skeleton of an article, which is valid and can be verified; returns the file.

    Two articles that are started at the same moment get two ids.

    Raises:
        ScaffoldError: the title has no printable character.
    """
    title = printable(title)
    with starting(config, config.articles):
        identifier = next_id(config)
        file = config.articles / f"{identifier}-{slug(title)}.md"
        file.write_text(skeleton(config, identifier, title), "utf-8")
    return file


def new_notice(config: Config, title: str) -> Path:
    """Writes the skeleton of a notice, of which `check` names what is missing; returns the file.

    Raises:
        ScaffoldError: the title has no printable character.
    """
    title = printable(title)
    with starting(config, config.notices):
        identifier = next_notice_id(config)
        file = config.notices / f"{identifier}-{slug(title)}.md"
        text = render(
            "notice.md",
            section=placeholders.SECTION,
            receipt=placeholders.RECEIPT,
            window=placeholders.WINDOW,
            today=datetime.datetime.now(datetime.UTC).date().isoformat(),
            **first_lines(config, identifier, title),
        )
        file.write_text(text, "utf-8")
    return file


def printable(title: str) -> str:
    """A title on one line, without what no terminal shows.

    Raises:
        ScaffoldError: nothing is left of it.
    """
    title = " ".join("".join(c if c.isprintable() else " " for c in title).split())
    if not title:
        raise ScaffoldError("an empty title; write the text of the error that people search for")
    return title


def starting(config: Config, folder: Path) -> FileLock:
    """A lock under which an id is taken and its file is written to `folder`."""
    locks = config.memory.parent / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(locks / "new.lock")


def first_lines(config: Config, identifier: str, title: str) -> dict[str, str]:
    """What the front matter of an article and of a notice begins with."""
    form = config.article
    return {
        "id": identifier,
        "title": escape_quoted(title),
        "summary": placeholders.SUMMARY,
        "component": form.components[0] if form.components else placeholders.COMPONENT,
        "stage": form.stages[0],
        "severity": form.severities[0],
    }


def skeleton(config: Config, identifier: str, title: str) -> str:
    """The text of an article that is valid and can be verified.

    It has the sections that `config` demands. The snippets stand in those called Symptom and Fix;
    where a knowledge base has no section of that name they stand at the end.

    Args:
        config: Its form names the sections, the stages and the severities.
        identifier: Of the new article, as in `KB0102`.
        title: The error text, on one line.
    """
    form = config.article
    prose = {"fix": placeholders.FIX, "symptom": placeholders.SYMPTOM}
    snippets = {part: render(f"snippets-{part}.md", id=identifier) for part in prose}
    sections = []
    for name in form.sections:
        text = prose.get(slug(name), placeholders.SECTION)
        sections.append(f"## {name}\n\n{text}\n\n{snippets.pop(slug(name), '')}")
    rest = [snippets[part] for part in ("symptom", "fix") if part in snippets]
    return render(
        "article.md",
        body="\n".join([*sections, *rest]).strip(),
        signature=placeholders.SIGNATURE.format(id=identifier),
        **first_lines(config, identifier, title),
    )


def escape_quoted(text: str) -> str:
    """A text as it is written between double quotes in YAML, TOML and JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def new_base(folder: Path, name: str, prefix: str) -> list[Path]:
    """Starts a knowledge base in a folder; returns the files that it wrote.

    `name` is the one that readers see, `prefix` what ids begin with. A file that exists already is
    left as it is.

    Raises:
        ScaffoldError: the folder holds a knowledge base, or the prefix is not capital letters.
        OSError: a file could not be written.
    """
    if not re.fullmatch(r"[A-Z][A-Z-]{0,9}", prefix):
        raise ScaffoldError(f"invalid prefix `{prefix}`: one to ten capital letters, as in KB")
    if (folder / FILE).exists():
        raise ScaffoldError(f"{folder / FILE} exists already; nothing was written")
    values = {"prefix": prefix, "id": f"{prefix}0001", "name": escape_quoted(name)}
    plan = {
        FILE: "kbtools.toml",
        "toolchains.toml": "toolchains.toml",
        "mkdocs.yml": "mkdocs.yml",
        "README.md": "README.md",
        "requirements.txt": "requirements.txt",
        ".gitignore": "gitignore",
        ".github/workflows/verify.yml": "verify.yml",
        ".github/workflows/nightly.yml": "nightly.yml",
        ".github/workflows/publish.yml": "publish.yml",
        f"kb/{prefix}0001-division-by-zero.md": "first.md",
    }
    written = []
    for path, source in plan.items():
        file = folder / path
        if file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(source, **values), "utf-8")
        written.append(file)
    return written
