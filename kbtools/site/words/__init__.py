"""The site's own words, by language: `en.toml` has all of them, others may lack some."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

FOLDER = resources.files("kbtools.site") / "words"
FALLBACK = "en"
KNOWN = frozenset(
    file.name.removesuffix(".toml") for file in FOLDER.iterdir() if file.name.endswith(".toml")
)


class Count(int):
    """A number that knows its plural: `{n} article{n:s}` is `1 article`, or `2 articles`."""

    def __format__(self, spec: str) -> str:
        """The number; of the specification `s`, the letter that there is of all but one."""
        return "s" * (self != 1) if spec == "s" else super().__format__(spec)


class Words:
    """The words of one language. `words("index.lead", n=5)` fills in its `{n}`."""

    def __init__(self, language: str, table: dict[str, str]) -> None:
        self.language = language
        self._table = table
        self._parts: dict[str, dict[str, str]] = {}

    def __call__(self, key: str, /, **values: object) -> str:
        """The words under a key.

        Raises:
            KeyError: no language has it.
        """
        text = self._table[key]
        if not values:
            return text
        return text.format(**{k: Count(v) if type(v) is int else v for k, v in values.items()})

    def word_for(self, kind: str, word: str) -> str:
        """The words for a word of the domain, as in `severity` `hang`; itself where there are none.

        What stages and severities a knowledge base has is its own choice.
        """
        return self._table.get(f"{kind}.{word}", word)

    def part(self, name: str) -> dict[str, str]:
        """Key → words of one table, for the scripts of a page."""
        if name not in self._parts:
            stem = f"{name}."
            part = {k[len(stem) :]: v for k, v in self._table.items() if k.startswith(stem)}
            self._parts[name] = part
        return self._parts[name]


@cache
def of(language: str) -> Words:
    """The words of a language; English stands in for what it lacks."""
    return Words(language, _table(FALLBACK) | _table(language))


def _table(language: str) -> dict[str, str]:
    file = FOLDER / f"{language}.toml"
    if not file.is_file():
        return {}
    return dict(_flat(tomllib.loads(file.read_text("utf-8")), ""))


def _flat(table: dict[str, object], stem: str) -> list[tuple[str, str]]:
    pairs = []
    for key, value in table.items():
        if isinstance(value, dict):
            pairs += _flat(value, f"{stem}{key}.")
        else:
            pairs.append((stem + key, str(value)))
    return pairs
