"""What the matcher says in English has a form in the other languages of the site."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

import pytest

from kbtools.matching import first, matches
from kbtools.site import words

LANGUAGES = sorted(words.KNOWN - {words.FALLBACK})
Form = tuple[str, ...]
"""The parts of a text between its placeholders."""


def form_of(node: ast.expr) -> Form:
    """The form of a text, or of a formatted one."""
    if isinstance(node, ast.Constant):
        return (str(node.value),)
    assert isinstance(node, ast.JoinedStr)
    parts = [""]
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts[-1] += str(value.value)
        else:
            parts.append("")
    return tuple(parts)


def sayings() -> Iterator[Form]:
    """What the matcher yields as a hint, and the reasons why a first failure is not certain."""
    for node in ast.walk(ast.parse(inspect.getsource(matches))):
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            yield form_of(node.value)
    doubt = ast.parse(inspect.getsource(first._doubt))
    for node in ast.walk(doubt):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            yield form_of(node.value)
    whys = {name: value for name, value in vars(first).items() if name.startswith("WHY")}
    for value in whys.values():
        for text in value.values() if isinstance(value, dict) else (value,):
            yield (text,)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_hint_is_translated(language: str) -> None:
    """No more forms, and no fewer, than the matcher has; a translation names nothing else."""
    translations = words.of(language).part("hints")
    forms = {tuple(re.split(r"\{\w+\}", form)) for form in translations}
    assert forms == set(sayings()) - {("",)}
    for form, text in translations.items():
        assert set(re.findall(r"\{(\w+)\}", text)) <= set(re.findall(r"\{(\w+)\}", form)), form
