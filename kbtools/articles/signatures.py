"""Whether a text holds the failure that a signature describes."""

from __future__ import annotations

from functools import cache

import re2

from kbtools.articles.model import Signature


def recognises(signature: Signature, text: str) -> bool:
    """Whether a text holds the failure of a signature. Its `near` does not count: it only ranks."""
    if signature.literal not in text:
        return False
    return signature.regex is None or pattern(signature.regex).search(text) is not None


@cache
def pattern(regex: str) -> re2.Pattern:
    """A compiled RE2 pattern, in which `^` and `$` match at the ends of a line.

    Raises:
        re2.error: it is not RE2 syntax.
    """
    options = re2.Options()
    options.log_errors = False
    return re2.compile(f"(?m){regex}", options=options)
