"""Markdown → Page: a file taken apart. The only user of markdown-it-py and of YAML."""

from __future__ import annotations

import re
import shlex
import typing
from pathlib import Path

import msgspec
import yaml
from markdown_it import MarkdownIt

from kbtools.articles.model import LANGUAGES, Keys, Place, Problem, Role
from kbtools.config import Config, KbtoolsError

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
QUOTED = re.compile(r"""["'\\]|[^ -~]""")
"""In what follows a fence: what makes it more than words between blanks."""
ROLES = tuple(str(role) for role in Role)
KEYS = Keys.__struct_fields__
"""What a fence may say of itself."""

# Block rules only: 1.7 times as fast as with inline rules (benchmarks/decoding.py), with the very
# same fences.
_blocks = MarkdownIt("commonmark")
_blocks.core.ruler.enableOnly(["normalize", "block"])


class InvalidValue(msgspec.Struct, frozen=True):
    """A value that its type refuses: the key, why, and the line."""

    key: str
    why: str
    line: int


class Fence(msgspec.Struct, frozen=True):
    """A fenced block as it stands: nothing is judged yet."""

    words: tuple[str, ...]
    """The info string, split like a shell does; empty when it cannot be split."""
    info: str
    code: str
    line: int
    """Of the opening fence."""
    closed: bool
    markup: str = "```"
    """What it opens with."""

    @property
    def language(self) -> str:
        """The first word of the info string, or nothing."""
        return self.words[0] if self.words else ""

    @property
    def role(self) -> str | None:
        """The second word, unless that is `key=value`."""
        return self.words[1] if len(self.words) > 1 and "=" not in self.words[1] else None

    @property
    def keys(self) -> dict[str, str]:
        """The `key=value` words; a word without `=` has the value ``""``."""
        words = self.words[2 if self.role else 1 :]
        return {key: value for key, _, value in (word.partition("=") for word in words)}

    @property
    def runs(self) -> bool:
        """Whether it claims to be a snippet. With no role and no key of ours it is prose."""
        if self.language not in LANGUAGES:
            return self.role in ROLES or self.language in ROLES
        return self.role is not None or any(key in KEYS for key in self.keys)


class Heading(msgspec.Struct, frozen=True):
    """A heading of level two."""

    text: str
    line: int


class Page(msgspec.Struct, frozen=True):
    """A file of `kb/`, taken apart and not yet judged."""

    path: str
    language: str
    lines: tuple[str, ...]
    matter: dict[str, object]
    matter_lines: dict[str, int]
    """Line of every key of the front matter, as in `title` or `signatures[0].regex`."""
    broken: tuple[InvalidValue, ...]
    """What keeps the front matter from being read at all."""
    fences: tuple[Fence, ...]
    headings: tuple[Heading, ...]
    opening: int
    """Lines that the front matter takes."""
    body: str

    def place(self, line: int) -> Place:
        """That line of this page."""
        return Place(self.path, line)

    def line_of(self, key: str) -> int:
        """Line of a key of the front matter, or of the nearest key around it."""
        while key and key not in self.matter_lines:
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return self.matter_lines.get(key, 1)

    def problem(self, line: int, message: str, help: str) -> Problem:
        """A problem on that line; the rule that found it adds its name."""
        source = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return Problem(self.place(line), "", message, help, source)

    @property
    def prose(self) -> list[str]:
        """The lines below the front matter that are no part of a snippet."""
        code = {
            line
            for fence in self.fences
            if fence.runs
            for line in range(fence.line, fence.line + fence.code.count("\n") + 2)
        }
        below = enumerate(self.lines[self.opening :], self.opening + 1)
        return [line for number, line in below if number not in code]

    @property
    def translates(self) -> bool:
        """Whether the file name says that it is a translation: `….zh.md`."""
        return Path(self.path).name.count(".") > 1


def read_page(path: Path, config: Config) -> Page:
    """Takes a file apart.

    Raises:
        KbtoolsError: it is not there, or it is not UTF-8.
    """
    try:
        text = path.read_text("utf-8-sig")  # a byte order mark is no part of the text
    except (OSError, UnicodeDecodeError) as error:
        raise KbtoolsError(f"{path}: {error}") from error
    return parse_page(text, _relative_path(path, config.root), config)


def _relative_path(path: Path, root: Path) -> str:
    """A path relative to the root of the knowledge base, if it is below it."""
    if path.is_relative_to(root) and ".." not in path.parts:
        return path.relative_to(root).as_posix()
    try:
        return path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return path.as_posix()


def parse_page(text: str, path: str, config: Config) -> Page:
    """Takes the text of a file apart; `path` is what its places will say."""
    lines = tuple(text.replace("\r\n", "\n").removesuffix("\n").split("\n"))
    matter, matter_lines, broken, end = _front_matter(lines)
    tokens = _blocks.parse("\n".join(("",) * end + lines[end:]) + "\n")
    suffixes = Path(path).suffixes
    return Page(
        path=path,
        language=suffixes[0][1:] if len(suffixes) > 1 else config.knowledge_base.languages[0],
        lines=lines,
        matter=matter,
        matter_lines=matter_lines,
        broken=broken,
        fences=tuple(_fence(t) for t in tokens if t.type == "fence"),
        headings=tuple(
            Heading(tokens[i + 1].content, token.map[0] + 1)
            for i, token in enumerate(tokens)
            if token.type == "heading_open" and token.tag == "h2" and token.level == 0 and token.map
        ),
        opening=end,
        body="\n".join(lines[end:]).strip() + "\n",
    )


def _front_matter(
    lines: tuple[str, ...],
) -> tuple[dict[str, object], dict[str, int], tuple[InvalidValue, ...], int]:
    """The mapping, the line of each key, what is broken, and how many lines it takes."""
    if lines[0].rstrip() != "---":
        why = "the file does not begin with front matter (a line `---`)"
        return {}, {}, (InvalidValue("", why, 1),), 0
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        return {}, {}, (InvalidValue("", "the front matter is never closed with `---`", 1),), 1
    text = "\n" + "\n".join(lines[1:end])
    places: dict[str, int] = {}
    broken: list[InvalidValue] = []
    try:
        loader = Loader(text)
        node = loader.get_single_node()  # read once, for its places and for its values
        _walk(node, "", places, broken)
        value = loader.construct_document(node) if node else None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # ValueError: a day such as 2026-02-30; RecursionError: an alias of what it stands in
        return {}, places, (_not_yaml(error, text),), end + 1
    if not isinstance(value, dict):
        broken.append(InvalidValue("", "the front matter is not a mapping of keys to values", 1))
        value = {}
    return {str(key): item for key, item in value.items()}, places, tuple(broken), end + 1


def _not_yaml(error: Exception, text: str) -> InvalidValue:
    mark = getattr(error, "problem_mark", None)
    if mark:
        return InvalidValue("", f"not YAML: {getattr(error, 'problem', error)}", mark.line + 1)
    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if found:
        why = f"not YAML: the character U+{ord(found[0]):04X}"
        return InvalidValue("", why, text.count("\n", 0, found.start()) + 1)
    return InvalidValue("", f"not YAML: {error}", 1)


def _walk(
    node: yaml.Node | None, at: str, places: dict[str, int], broken: list[InvalidValue]
) -> None:
    """Notes the line of every key, and every key that is there twice."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = f"{at}.{key.value}".lstrip(".")
            line = key.start_mark.line + 1
            if name in places:
                broken.append(InvalidValue(name, f"`{key.value}` is there twice", line))
            places[name] = line
            _walk(value, name, places, broken)
    elif isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            places[f"{at}[{i}]"] = item.start_mark.line + 1
            _walk(item, f"{at}[{i}]", places, broken)


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
