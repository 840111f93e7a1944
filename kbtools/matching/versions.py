"""The reader's own versions, where a log shows them."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from kbtools.toolchains.model import MACHINE, Gpu, Toolchain

V = (
    r"(\d{1,4}(?:\.\d{1,6}){1,3}(?:(?:a|b|rc)\d{1,4})?(?:\.post\d{1,3})?(?:\.dev\d{1,9})?"
    r"(?:\+[\w.]{1,40})?)"
)
BEFORE = r"(?:^|[\s\"'(,])"

SHOWN: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "torch",
        (
            rf"PyTorch version: {V}",
            rf"{BEFORE}torch(?:==| {{1,30}}|: |-|=){V}(?![\w.]*\.(?:py|so))",
            rf"\btorch-{V}\.dist-info",
        ),
    ),
    (
        "triton",
        (
            rf"{BEFORE}(?:pytorch-)?triton(?:==| {{1,30}}|: |-|=){V}(?![\w.]*\.(?:py|so))",
            rf"\btriton-{V}\.dist-info",
        ),
    ),
    ("flashinfer-python", (rf"\bflashinfer(?:[-_]python)?(?:==| {{1,30}}|: |-){V}",)),
    ("numpy", (rf"{BEFORE}numpy(?:==| {{1,30}}|: |-){V}",)),
    (
        "python",
        (
            r"Python version: (\d\.\d{1,2}(?:\.\d{1,2})?)",
            r"(?:^|[\s(])[Pp]ython[ -](\d\.\d{1,2}(?:\.\d{1,2})?)(?=[\s,:|)]|$)",
            r"[/\\]python(3\.\d{1,2})[/\\]",
        ),
    ),
    (
        "cuda",
        (
            r"\brelease \d{1,2}\.\d, V(\d{1,2}\.\d\.\d{1,4})",
            r"\bnvcc (\d{1,2}\.\d{1,2}(?:\.\d{1,4})?)",
        ),
    ),
    (
        "driver",
        (
            r"Nvidia driver version: (\d{3}\.\d{1,3}(?:\.\d{1,3})?)",
            r"Driver Version: (\d{3}\.\d{1,3}(?:\.\d{1,3})?)",
        ),
    ),
)
"""Name and the patterns (Python's and JavaScript's) whose first group is its version, best first.

First stands what is printed on purpose; what a path says comes last.
"""

_patterns = {
    name: [re.compile(pattern, re.MULTILINE | re.ASCII) for pattern in found]
    for name, found in SHOWN
}


def versions_of(text: str) -> dict[str, str]:
    """Name → version, of what a text says of its toolchain."""
    known = {}
    for name, patterns in _patterns.items():
        found = next(filter(None, (pattern.search(text) for pattern in patterns)), None)
        if found:
            known[name] = found[1]
    return known


def as_toolchain(versions: dict[str, str]) -> Toolchain:
    """Versions as a toolchain, of which the rest is not known."""
    packages: dict[str, str] = {
        canonicalize_name(name): version
        for name, version in versions.items()
        if name not in MACHINE
    }
    sm = versions.get("sm")
    return Toolchain(
        python=versions.get("python", ""),
        packages=packages,
        cuda=versions.get("cuda"),
        driver=versions.get("driver"),
        gpus=(Gpu("", sm),) if sm else (),
    )
