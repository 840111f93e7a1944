"""The reader's own versions, where a log shows them.

Which distributions are looked for is up to the knowledge base: those that its articles name in
`affected` and those that its configuration lists. The patterns are valid for Python and for
JavaScript, and are exported with the index. The twin of this module is
`site/assets/matching/versions.js`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import ahocorasick_rs
from packaging.utils import canonicalize_name

from kbtools.config import ToolchainForm
from kbtools.toolchains.model import MACHINE, Gpu, Toolchain

VersionPatterns = tuple[tuple[str, tuple[str, ...]], ...]
"""Name and patterns whose first group is its version, best first.

What is printed on purpose comes first; what a path says comes last.
"""

V = (
    r"(\d{1,4}(?:\.\d{1,6}){1,3}(?:(?:a|b|rc)\d{1,4})?(?:\.post\d{1,3})?(?:\.dev\d{1,9})?"
    r"(?:\+[\w.]{1,40})?)"
)
NO_FILE = r"(?![\w.]*\.(?:py|so))"
"""Not the name of a file, as in `libtorch-2.5.1.so`."""

OF_MACHINE: VersionPatterns = (
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
"""What a log shows of the machine; beside Python only what the knowledge base names."""


def version_patterns(affected: Iterable[Mapping[str, str]], form: ToolchainForm) -> VersionPatterns:
    """The patterns of every name whose version an index asks for.

    `affected` are the conditions of all articles, and what they need; `form` is `[toolchain]` of
    the configuration, of whose `packages` those count that are names and no shell patterns.
    """
    names = {canonicalize_name(name) for condition in affected for name in condition}
    names |= {canonicalize_name(name) for name in form.packages if re.fullmatch(r"[\w.-]+", name)}
    names |= {canonicalize_name(name) for name in (*form.headline, *form.version_texts)}
    if names & {*MACHINE} - {"python"}:  # what a GPU can do is up to its driver and toolkit, too
        names |= {canonicalize_name("cuda"), canonicalize_name("driver")}
    texts = {canonicalize_name(name): lines for name, lines in form.version_texts.items()}
    distributions = sorted(names - {*MACHINE})
    return (
        *((name, _patterns_of(name, texts.get(name, ()))) for name in distributions),
        *(entry for entry in OF_MACHINE if entry[0] == "python" or entry[0] in names),
    )


def _patterns_of(name: str, texts: Sequence[str]) -> tuple[str, ...]:
    """The patterns of a distribution.

    `name` is canonical; `texts` show its version, too, with `{version}` in its place. A pattern
    begins with the name and looks behind it for what stands before: a search for a text that a
    pattern begins with is many times faster.
    """
    spelled = _escaped(name).replace("-", "[-_.]")
    behind = rf"(?<![^\s\"'(,]{spelled})"
    return (
        *(_pattern_of_text(text) for text in texts),
        rf"{spelled}{behind}(?:==| {{1,30}}|: |-|=){V}{NO_FILE}",
        rf"{spelled}(?<!\w{spelled})-{V}\.dist-info",
    )


def _pattern_of_text(text: str) -> str:
    before, after = (_escaped(part).replace(" ", " {1,30}") for part in text.split("{version}", 1))
    return f"{before}{V}{NO_FILE}{after}"


def _escaped(text: str) -> str:
    """A text as a pattern that Python and JavaScript read alike."""
    return re.sub(r"[\\^$.|?*+()\[\]{}]", r"\\\g<0>", text)


def _heads(pattern: str) -> tuple[str, ...]:
    """Texts, with one of which every match of a pattern begins; the empty text for any.

    Of a name's words, which are joined as in `a[-_.]b`, they have the first two.
    """
    match = re.match(r"([A-Za-z0-9]+)\[-_\.\]([A-Za-z0-9]+)(?![?*+{])", pattern)
    if match:
        return tuple(f"{match[1]}{sign}{match[2]}" for sign in "-_.")
    match = re.match(r"[A-Za-z0-9]+(?![?*+{])", pattern)
    return (match[0] if match else "",)


class VersionReader:
    """Reads versions off logs, by the patterns of an index."""

    def __init__(self, patterns: VersionPatterns) -> None:
        self._patterns = [
            (name, [(_heads(p), re.compile(p, re.MULTILINE | re.ASCII)) for p in alternatives])
            for name, alternatives in patterns
        ]

        self._words = sorted({w for _, ps in self._patterns for words, _ in ps for w in words if w})
        self._automaton = ahocorasick_rs.AhoCorasick(self._words)

    def _indexes(self, text: str) -> Iterator[int]:
        """The numbers of the words that occur in a text."""
        for index, _, _ in self._automaton.find_matches_as_indexes(text, overlapping=True):
            yield index

    def read(self, text: str) -> dict[str, str]:
        """Name → version, of what a text shows of its toolchain."""
        versions = {}
        # of a hundred names a log has few, and one pass finds which
        present = {self._words[i] for i in set(self._indexes(text))} | {""}
        for name, patterns in self._patterns:
            searched = (p.search(text) for words, p in patterns if not present.isdisjoint(words))
            match = next(filter(None, searched), None)
            if match:
                versions[name] = match[1]
        return versions


def as_toolchain(versions: Mapping[str, str]) -> Toolchain:
    """Versions as a toolchain of which nothing else is known."""
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
