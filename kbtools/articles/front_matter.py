"""The YAML block at the head of a file → raw values, the line of each. The only user of YAML."""

from __future__ import annotations

import msgspec
import yaml
from yaml.constructor import ConstructorError


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader, which says where a day is wrong, in the same words on every Python."""

    def construct_yaml_timestamp(self, node: yaml.ScalarNode) -> object:
        """A day or a time.

        Raises:
            ConstructorError: there is no such day.
        """
        try:
            return super().construct_yaml_timestamp(node)
        except ValueError as error:
            problem = f"`{node.value}` is not a day of the calendar"
            raise ConstructorError(None, None, problem, node.start_mark) from error


Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.construct_yaml_timestamp)


class InvalidValue(msgspec.Struct, frozen=True):
    """A value that its type refuses: the key, why, and the line."""

    key: str
    why: str
    line: int
    step: str = ""
    """What to write instead, where that depends on more than the key."""


class RawMatter(msgspec.Struct, frozen=True):
    """The front matter of a file, of which no value is judged yet."""

    values: dict[str, object] = {}
    lines: dict[str, int] = {}
    """Line of every key, as in `title` or `signatures[0].regex`."""
    broken: tuple[InvalidValue, ...] = ()
    """What keeps it from being read at all."""
    length: int = 0
    """Lines that it takes of the file, the two `---` included."""


def parse_front_matter(lines: tuple[str, ...]) -> RawMatter:
    """The front matter of a file of these lines."""
    if lines[0].rstrip() != "---":
        why = "the file does not begin with front matter (a line `---`)"
        step = "begin it with a line `---`, a line `key: value` for each key, and a line `---`"
        return RawMatter(broken=(InvalidValue("", why, 1, step),))
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        why = "the front matter is never closed with `---`"
        invalid = InvalidValue("", why, 1, "add a line `---` below its last key")
        return RawMatter(broken=(invalid,), length=1)
    text = "\n" + "\n".join(lines[1:end])
    places: dict[str, int] = {}
    broken: list[InvalidValue] = []
    try:
        loader = Loader(text)
        node = loader.get_single_node()  # read once, for its places and for its values
        _walk(node, "", places, broken)
        value = loader.construct_document(node) if node else None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # ValueError: a number too long to be one; RecursionError: an alias of what it stands in
        return RawMatter(lines=places, broken=(_not_yaml(error, text),), length=end + 1)
    if not isinstance(value, dict):
        why = "the front matter is not a mapping of keys to values"
        broken.append(InvalidValue("", why, 1, "write a line `key: value` for each key"))
        value = {}
    values = {str(key): item for key, item in value.items()}
    return RawMatter(values, places, tuple(broken), end + 1)


QUOTE = 'put the value between double quotes, with \\" and \\\\ for a quote and a backslash in it'
STEPS = {
    "mapping values are not allowed": QUOTE,  # title: RuntimeError: it fails
    "cannot start any token": QUOTE + "; if it is a tab, indent with spaces",  # or `, @, %
    "unknown escape character": QUOTE,
    "unexpected end of stream": "end the value with the quote that it begins with",
    "expected <block end>": "begin all keys of a mapping in one column; put texts in double quotes",
    "expected ',' or ']'": "end the list with `]`, with commas between its values",
    "expected ',' or '}'": "end the mapping with `}`, with commas between its keys",
    "undefined alias": QUOTE,  # a value that begins with *
    "could not determine a constructor": QUOTE,  # a value that begins with !
    "could not find expected ':'": "write `key: value`",
    "is not a day": "write a day of the calendar, as in 2026-01-31",
}
"""Part of what the YAML reader reports → the next step."""


def _not_yaml(error: Exception, text: str) -> InvalidValue:
    """The error of the YAML reader with its line and the next step."""
    why = str(getattr(error, "problem", error))
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark else 1
    step = next((step for part, step in STEPS.items() if part in why), "write `key: value`")
    if match := not mark and yaml.reader.Reader.NON_PRINTABLE.search(text):
        why = f"the character U+{ord(match[0]):04X}"
        line = text.count("\n", 0, match.start()) + 1
        step = "delete it, or write it as \\u followed by four digits, in double quotes"
    return InvalidValue("", f"not YAML: {why}", line, step)


def _walk(
    node: yaml.Node | None, parent: str, places: dict[str, int], broken: list[InvalidValue]
) -> None:
    """Notes the line of every key below `parent`, and every key that is given twice."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = f"{parent}.{key.value}".lstrip(".")
            line = key.start_mark.line + 1
            if name in places:
                why = f"`{key.value}` is given twice"
                broken.append(InvalidValue(name, why, line, "keep one of them"))
            places[name] = line
            _walk(value, name, places, broken)
    elif isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            places[f"{parent}[{i}]"] = item.start_mark.line + 1
            _walk(item, f"{parent}[{i}]", places, broken)
