"""Versions and ranges, as far as a probe needs them: the release alone, by PEP 440."""

from __future__ import annotations

import re
from typing import Optional, Tuple

CLAUSE = re.compile(r"(===|==|!=|>=|<=|~=|>|<)\s*([\w.+!-]+?)(\.\*)?\s*(?=$|[,;)\s])")
SUFFIX = re.compile(r"[-_.]?(a|b|c|rc|alpha|beta|pre|preview|dev)[-_.]?\d*", re.IGNORECASE)


def release(version: str) -> Tuple[int, ...]:
    """The release of a version as numbers, without zeros at its end; empty for no version."""
    match = re.match(r"\s*v?(?:\d+!)?(\d+(?:\.\d+)*)", version)
    numbers = [int(part) for part in match[1].split(".")] if match else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def is_prerelease(version: str) -> bool:
    """Whether a version is one before a release, as in `2.8.0.dev20250401`."""
    public = version.partition("+")[0]
    rest = re.sub(r"^\s*v?(?:\d+!)?\d+(?:\.\d+)*", "", public)
    return bool(SUFFIX.match(rest))


def within(version: str, specifiers: str) -> Optional[bool]:
    """Whether a version is in a range, as in `>=2.6,<2.8`.

    The local part (`+cu128`) does not count. None if it is a pre-release on a bound: whether it
    has what the release has, nobody knows. A `.postN` stands after its release.
    """
    numbers, post = release(version), _post(version)
    for operator, text, wildcard in CLAUSE.findall(specifiers):
        bound = release(text)
        if is_prerelease(version) and numbers == bound and not wildcard:
            return None
        if not _holds(operator, (numbers, post), (bound, _post(text)), text, bool(wildcard)):
            return False
    return True


def _post(version: str) -> int:
    match = re.search(r"\.post(\d+)", version.partition("+")[0])
    return int(match[1]) if match else -1


def _holds(
    operator: str,
    version: Tuple[Tuple[int, ...], int],
    bound: Tuple[Tuple[int, ...], int],
    text: str,
    wildcard: bool,
) -> bool:
    if wildcard or operator == "~=":
        parts = [int(part) for part in re.findall(r"\d+", text.partition("+")[0])]
        prefix = parts[:-1] if operator == "~=" else parts
        padded = [*version[0], *[0] * len(prefix)]
        same = padded[: len(prefix)] == prefix
        return (same and version >= bound) if operator == "~=" else same == (operator == "==")
    if operator in ("==", "==="):
        return version == bound
    if operator == "!=":
        return version != bound
    if operator == ">":
        return version[0] > bound[0]
    if operator == "<":
        return version[0] < bound[0]
    return version >= bound if operator == ">=" else version <= bound
