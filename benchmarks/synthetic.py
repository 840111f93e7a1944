"""Knowledge bases of any size, made of this one's articles, for benchmarks of growth.

    from synthetic import make_base
    config = make_base(folder, 1000)

The first articles are the real ones. Those that follow are copies of them with ids of their own,
their translations, their evidence and, if asked for, a memory that leaves `kbtools verify` nothing
to do. The snippets of a copy are the original's, so the rows of its evidence still count. So that
the words and the signatures grow with the articles, as they do in a real base, a copy differs:

- a word that only one article has is replaced by an invented word of the same length;
- each signature's literal is a text of its own, which stands in the recorded outputs.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kbtools import __version__, config
from kbtools.articles import links
from kbtools.articles.model import Article
from kbtools.articles.parsing import Page
from kbtools.articles.signatures import recognises
from kbtools.articles.translations import edition
from kbtools.checks.base import load_base
from kbtools.checks.model import Base
from kbtools.checks.together import permanent_addresses
from kbtools.config import Config
from kbtools.evidence import store
from kbtools.evidence.rows import SCHEMA, Row
from kbtools.evidence.verdicts import expect, judge
from kbtools.outcome import Outcome
from kbtools.running.executor import REPRO
from kbtools.toolchains.environments import Environment, toolchain_of
from kbtools.toolchains.model import Toolchain

ROOT = Path(__file__).parent.parent
BESIDE = ("docs", "kbtools.toml", "toolchains.toml", "mkdocs.yml", "*.md", "LICENSE*")
"""What of this repository a copy needs beside articles and evidence; the site has links to it."""
WORD = re.compile(r"[A-Za-z]{7,}")
KEPT = re.compile(r"(\[[^\]]*\](?:\([^)]*\))?|<[^>]*>|\S*[/@]\S*|`[^`]*`)")
"""Links, addresses and code, whose words stay as they are."""
SYNTAX = re.compile(r"[\\^$.*+?()\[\]{}|/]")
"""What stands for itself in a regular expression of a browser only after a backslash."""
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def make_base(folder: Path, articles: int, *, with_memory: bool = False) -> Config:
    """Writes a knowledge base of so many articles; its configuration.

    Args:
        folder: Does not exist yet, or is empty.
        articles: How many, translations not counted. Fewer than the real ones are the first ones.
        with_memory: Whether each snippet that can be run here is remembered as green.
    """
    real = load_base(config.find(ROOT))
    free = int(real.articles[-1].id.removeprefix(real.config.knowledge_base.prefix)) + 1
    if not real.config.id_pattern.fullmatch(real.config.article_id(free + articles)):
        raise SystemExit(f"ids have too few digits for {articles} articles")
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in BESIDE:
        for source in ROOT.glob(pattern):
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, folder / source.name)
    settings = config.find(folder)
    for place in (settings.articles, settings.evidence, settings.memory):
        place.mkdir(parents=True)
    _write(real, settings, articles, free)
    base = load_base(settings)
    if base.problems:
        raise SystemExit(f"a copy is not valid: {base.problems[0]}")
    links.publish(permanent_addresses(base), settings)
    if with_memory:
        _remember(base)
    return settings


def _write(real: Base, settings: Config, count: int, free: int) -> None:
    """Writes articles, their translations and their evidence; `free` is the first free number."""
    pages: dict[str, list[Page]] = {}
    for page in real.pages:
        pages.setdefault(str(page.matter["id"]), []).append(page)
    rare = _rare_words(real)
    literals = tuple({s.literal for a in real.articles for s in a.matter.signatures})
    for number in range(count):
        article = real.articles[number % len(real.articles)]
        turn = number // len(real.articles)
        name = article.id if not turn else settings.article_id(free + number - len(real.articles))
        rows = store.read(real.config.evidence, article.id)
        if not turn:
            for page in pages[article.id]:
                shutil.copy2(ROOT / page.path, settings.root / page.path)
        else:
            _write_copy(pages[article.id], settings, name, turn, rare)
            rows = tuple(_row_of_copy(row, article, literals, name) for row in rows)
        lines = [msgspec.json.encode(row) + b"\n" for row in rows]
        store.file_of(settings.evidence, name).write_bytes(b"".join(lines))


def _rare_words(real: Base) -> frozenset[str]:
    """The words that only one article has."""
    counts: Counter[str] = Counter()
    for page in real.pages:
        counts.update({word for line in page.prose for word in WORD.findall(line)})
    return frozenset(word for word, number in counts.items() if number == 1)


def _write_copy(
    pages: Sequence[Page], settings: Config, name: str, turn: int, rare: frozenset[str]
) -> None:
    """Writes the copy of an article and its translations; `turn` is the number of the copy."""
    originals = sorted(pages, key=lambda page: page.translates)
    follows = ""
    for page in originals:
        prose = set(_numbers_of_prose(page))
        below = [
            _invented(line, rare, turn) if number in prose else line
            for number, line in enumerate(page.lines[page.opening :], page.opening + 1)
        ]
        matter: dict[str, Any] = {**page.matter, "id": name}
        for key in ("title", "summary"):
            matter[key] = _invented(str(matter[key]), rare, turn)
        if page.translates:
            matter["follows"] = follows
        else:
            matter.pop("confusable", None)  # the copies' literals are their own
            matter["signatures"] = [
                _signature_of_copy(signature, name) for signature in matter["signatures"]
            ]
            above = ("",) * page.opening
            follows = edition(msgspec.structs.replace(page, matter=matter, lines=(*above, *below)))
        head = yaml.dump(matter, Dumper=DUMPER, allow_unicode=True, sort_keys=False, width=10_000)
        file = settings.articles / Path(page.path).name.replace(str(page.matter["id"]), name)
        file.write_text(f"---\n{head}---\n" + "\n".join(below) + "\n", "utf-8")


def _numbers_of_prose(page: Page) -> Iterator[int]:
    """The numbers of the lines of prose, those of no fence and no heading."""
    code = {
        number
        for fence in page.fences
        for number in range(fence.line, fence.line + fence.code.count("\n") + 2)
    }
    for number, line in enumerate(page.lines[page.opening :], page.opening + 1):
        if number not in code and not line.startswith("#"):
            yield number


def _invented(line: str, rare: frozenset[str], turn: int) -> str:
    """A line in which each rare word is replaced by one with other letters."""
    parts = KEPT.split(line)
    for i in range(0, len(parts), 2):
        parts[i] = WORD.sub(
            lambda match: _shifted(match[0], turn) if match[0] in rare else match[0], parts[i]
        )
    return "".join(parts)


def _shifted(word: str, turn: int) -> str:
    """The word with its first and last letters moved on in the alphabet, by the copy's number."""
    first, last = chr(97 + turn % 26), chr(97 + turn // 26 % 26)
    return first + word[1:-1] + last


def literal_of_copy(literal: str, name: str) -> str:
    """The literal of a copy's signature: the original's, with the copy's id in its middle."""
    middle = len(literal) // 2
    return f"{literal[:middle]}{name}{literal[middle:]}"


def _signature_of_copy(signature: dict[str, Any], name: str) -> dict[str, Any]:
    """The signature of a copy: no text of it is another article's."""
    literal = literal_of_copy(signature["literal"], name)
    copied = {**signature, "literal": literal}
    if "regex" in signature:
        escaped = SYNTAX.sub(r"\\\g<0>", literal)
        copied["regex"] = f"{signature['regex']}|{escaped}"
    if "near" in signature:
        copied["near"] = f"{signature['near']}|{name}"
    return copied


def _row_of_copy(row: Row, article: Article, literals: tuple[str, ...], name: str) -> Row:
    """A row whose output has literals of the copy where it had those of any real article."""
    output = row.outcome.output
    for literal in _held(output, literals):
        output = output.replace(literal, literal_of_copy(literal, name))
    for signature in article.matter.signatures:
        if recognises(signature, row.outcome.output):
            output += f"\n{literal_of_copy(signature.literal, name)}\n"
    outcome = msgspec.structs.replace(row.outcome, output=output)
    return msgspec.structs.replace(row, outcome=outcome)


@functools.cache
def _held(output: str, literals: tuple[str, ...]) -> tuple[str, ...]:
    """The literals that an output has. Cached: each copy of an article has the same outputs."""
    return tuple(literal for literal in literals if literal in output)


def _remember(base: Base) -> None:
    """Writes a memory in which the snippets that can be run here were run, and are green."""
    toolchain = toolchain_of(Environment(base.config, sys.executable))
    for article in base.articles:
        rows = list(_remembered_rows(article, toolchain, base.config))
        content = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        store.file_of(base.config.memory, article.id).write_bytes(content)


def _remembered_rows(article: Article, toolchain: Toolchain, settings: Config) -> Iterator[Row]:
    """A row for each snippet that can be run on a toolchain, with a green outcome.

    It is one that was recorded on some toolchain, or that of a run to the snippet's end.
    """
    recorded = store.read(settings.evidence, article.id)
    helper = hashlib.sha256(REPRO.read_bytes()).hexdigest()
    for snippet in article.snippets:
        expected = expect(snippet, toolchain, None)
        outcomes = [row.outcome for row in store.of_snippet(recorded, snippet)]
        if expected.what not in ("fails", "passes"):
            continue
        for outcome in (*outcomes, Outcome("passed", exit=0)):
            if judge(article, snippet, expected, outcome).colour == "green":
                yield Row(
                    schema=SCHEMA,
                    snippet=snippet.id,
                    code=snippet.digest,
                    toolchain=toolchain,
                    outcome=outcome,
                    when=datetime.datetime.now(datetime.UTC).replace(microsecond=0),
                    kbtools=__version__,
                    helper=helper if snippet.uses_helper else "",
                )
                break
        else:
            raise SystemExit(f"{snippet.name}: no recorded outcome is green on this toolchain")
