"""How a rule says what is wrong with a value, and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from kbtools.articles.front_matter import InvalidValue

YAML_WORDS = {
    "Object missing required field": "it lacks",
    "`array`": "a list",
    "`object`": "a mapping",
    " | null": "",
}
"""Words of the decoder, which are those of JSON → words that authors of YAML use."""


def nearest(word: str, words: Iterable[str]) -> str:
    """The next step for a word that is not among these words."""
    words = tuple(words)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else f"write one of: {', '.join(words)}"


def why_of(invalid: InvalidValue) -> str:
    """Why a value is refused, in the words of authors."""
    if "matching regex" in invalid.why:
        return "not of the right form"
    why = invalid.why
    for word, replacement in YAML_WORDS.items():
        why = why.replace(word, replacement)
    return why[0].lower() + why[1:]


def remedy_for(invalid: InvalidValue, shapes: dict[str, str]) -> str:
    """The next step for a value that is refused; `shapes` says how to write a key's value."""
    name = invalid.key.rpartition(".")[2]
    if name in shapes:
        return f"write {shapes[name]}"
    key, index, _ = name.partition("[")
    if index and key in shapes and "array" not in invalid.why:
        return f"write {shapes[key]}"
    if invalid.why.startswith("Expected `str") and invalid.why.endswith(("`int`", "`float`")):
        return "put it between double quotes"
    return f"correct the value of `{invalid.key}`"
