"""Markdown → Page: the parts of a file, not yet judged. The only user of markdown-it-py."""

from __future__ import annotations

import re
import shlex
import typing
from pathlib import Path

import msgspec
from markdown_it import MarkdownIt

from kbtools.articles import data_files
from kbtools.articles.front_matter import InvalidValue, parse_front_matter
from kbtools.articles.model import LANGUAGES, Keys, Place, Problem, Role
from kbtools.config import Config, KbtoolsError

QUOTED = re.compile(r"""["'\\]|[^ -~]""")
"""Matches an info string that is more than words between blanks."""
ROLES = tuple(str(role) for role in Role)
KEYS = Keys.__struct_fields__
"""The keys that a fence may have."""

# Block rules only: 1.7 times as fast as with inline rules (benchmarks/decoding.py), with the very
# same fences.
_blocks = MarkdownIt("commonmark")
_blocks.core.ruler.enableOnly(["normalize", "block"])


class Fence(msgspec.Struct, frozen=True):
    """A fenced block of a page, with nothing judged yet."""

    words: tuple[str, ...]
    """The info string, split as a shell does; at blanks where a quote is not closed."""
    info: str
    code: str
    line: int
    """Of the opening fence."""
    closed: bool
    markup: str = "```"
    """The characters that open it."""

    @property
    def language(self) -> str:
        """The first word of the info string; empty if there is none."""
        return self.words[0] if self.words else ""

    @property
    def role(self) -> str | None:
        """The second word of the info string, unless it is `key=value`."""
        return self.words[1] if len(self.words) > 1 and "=" not in self.words[1] else None

    @property
    def keys(self) -> dict[str, str]:
        """The `key=value` words; a word without `=` has the value ``""``."""
        words = self.words[2 if self.role else 1 :]
        return {key: value for key, _, value in (word.partition("=") for word in words)}

    @property
    def runs(self) -> bool:
        """Whether it claims to be a snippet. Without a role and a key it is prose."""
        if self.language not in LANGUAGES:
            return self.role in ROLES or self.language in ROLES
        return self.role is not None or any(key in KEYS for key in self.keys)


class Heading(msgspec.Struct, frozen=True):
    """A heading of level two."""

    text: str
    line: int


class Page(msgspec.Struct, frozen=True):
    """A file of `kb/`: its parts, not yet judged."""

    path: str
    language: str
    lines: tuple[str, ...]
    matter: dict[str, object]
    matter_lines: dict[str, int]
    """Line of every key of the front matter, as in `title` or `signatures[0].regex`."""
    broken: tuple[InvalidValue, ...]
    """Why the front matter cannot be read; empty if it can."""
    fences: tuple[Fence, ...]
    headings: tuple[Heading, ...]
    opening: int
    """Number of lines of the front matter, the two `---` included."""
    body: str
    data_files: dict[str, str] = {}
    """Name → SHA-256 of the data files that its fences name, of those that exist."""

    def place(self, line: int) -> Place:
        """The place of a line of this page, which counts from 1."""
        return Place(self.path, line)

    def line_of(self, key: str) -> int:
        """Line of a key of the front matter, or of the nearest key that holds it, or 1."""
        while key and key not in self.matter_lines:
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return self.matter_lines.get(key, 1)

    def problem(self, line: int, message: str, help: str) -> Problem:
        """A problem on a line; `Rule.problems` adds the code of the rule.

        `message` is what is wrong, `help` the next step.
        """
        source = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return Problem(self.place(line), "", message, help, source)

    @property
    def prose(self) -> list[str]:
        """The lines below the front matter that do not belong to a snippet."""
        code = {
            line
            for fence in self.fences
            if fence.runs
            for line in range(fence.line, fence.line + fence.code.count("\n") + 2)
        }
        below = enumerate(self.lines[self.opening :], self.opening + 1)
        return [line for number, line in below if number not in code]

    @property
    def is_notice(self) -> bool:
        """Whether the file stands in `kb/notices/`."""
        return Path(self.path).parent.name == "notices"

    @property
    def translates(self) -> bool:
        """Whether the file's name is that of a translation: `….zh.md`."""
        return Path(self.path).name.count(".") > 1


class ArticleError(KbtoolsError):
    """The file of an article cannot be opened or read."""


def read_page(path: Path, config: Config) -> Page:
    """Parses a file of `kb/`.

    A byte that is not UTF-8 breaks the page (KB001), and no other one.

    Raises:
        ArticleError: the system cannot read it.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArticleError(f"{path}: {error}") from error
    name = _relative_path(path, config.root)
    try:
        # without a byte order mark
        return _with_data_files(parse_page(content.decode("utf-8-sig"), name, config), config)
    except UnicodeDecodeError as error:
        page = parse_page(content.decode("utf-8-sig", "replace"), name, config)
        before, byte = error.object[: error.start], error.object[error.start]
        why = f"the byte 0x{byte:02X} is not UTF-8"
        invalid = InvalidValue("", why, before.count(b"\n") + 1, "save the file as UTF-8")
        # what the front matter says is not to be relied on, so the page has none
        return msgspec.structs.replace(page, matter={}, broken=(invalid, *page.broken))


def _with_data_files(page: Page, config: Config) -> Page:
    """The page, with the digests of the data files that its fences name.

    Raises:
        ArticleError: the system cannot read one of them.
    """
    texts = [fence.keys.get("files") for fence in page.fences if fence.runs]
    names = [name for text in texts if text for name in data_files.words_of(text)]
    if not names:
        return page
    try:
        digests = data_files.digests_of(config, names)
    except OSError as error:
        raise ArticleError(str(error)) from error
    return msgspec.structs.replace(page, data_files=digests)


def _relative_path(path: Path, root: Path) -> str:
    """A path relative to the root of the knowledge base, if it is below it."""
    if path.is_relative_to(root) and ".." not in path.parts:
        return path.relative_to(root).as_posix()
    try:
        return path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return path.as_posix()


def parse_page(text: str, path: str, config: Config) -> Page:
    """Parses the text of a file of `kb/`.

    `path` is what the places of its problems will say, and tells the language: `….zh.md`. `config`
    has the language of a file without one.
    """
    lines = tuple(text.replace("\r\n", "\n").removesuffix("\n").split("\n"))
    matter = parse_front_matter(lines)
    end = matter.length
    tokens = _blocks.parse("\n".join(("",) * end + lines[end:]) + "\n")
    suffixes = Path(path).suffixes
    return Page(
        path=path,
        language=suffixes[0][1:] if len(suffixes) > 1 else config.knowledge_base.languages[0],
        lines=lines,
        matter=matter.values,
        matter_lines=matter.lines,
        broken=matter.broken,
        fences=tuple(_fence(t) for t in tokens if t.type == "fence"),
        headings=tuple(
            Heading(tokens[i + 1].content, token.map[0] + 1)
            for i, token in enumerate(tokens)
            if token.type == "heading_open" and token.tag == "h2" and token.level == 0 and token.map
        ),
        opening=end,
        body="\n".join(lines[end:]).strip() + "\n",
    )


def _fence(token: typing.Any) -> Fence:
    start, end = token.map
    try:
        split = shlex.split if QUOTED.search(token.info) else str.split
        words = tuple(split(token.info))
    except ValueError:
        words = tuple(token.info.split())
    return Fence(
        words=words,
        info=token.info,
        code=token.content,
        line=start + 1,
        # of its lines, the first and the last are no code
        closed=end - start == token.content.count("\n") + 2,
        markup=token.markup,
    )
