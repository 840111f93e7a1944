"""The rule for names in conditions: a run must be able to find out the version of each."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from importlib.metadata import distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kbtools.articles.decoding import parse_affected
from kbtools.articles.model import Article, Problem
from kbtools.articles.needs import PROGRAM, parse_needs
from kbtools.checks.model import Base
from kbtools.config import Config
from kbtools.toolchains.declared import DeclarationError, read_declarations
from kbtools.toolchains.model import MACHINE


def kb310_unknown_distribution(base: Base) -> Iterator[Problem]:
    """A name in `affected`, `holds` or `needs` is one by which a toolchain knows a version.

    Of a misspelt name (`pytorch`, whose distribution is `torch`) no toolchain has a version, so
    that every snippet would be skipped, everywhere. A distribution is known if a toolchain of
    `toolchains.toml` asks for it, if recorded evidence has it, if `[toolchain]` of `kbtools.toml`
    names it, or if it is installed beside kbtools. Where `packages` of `[toolchain]` says which
    distributions count, one of its patterns must match the name.

    A program (`bin:cuobjdump`) is looked for if `programs` of `[toolchain]` names it.
    """
    yield from _unknown_programs(base)
    names = {name for article in base.articles for _, name, _ in _conditions(base, article)}
    patterns = base.config.toolchain.packages
    uncounted = {name for name in names if not _counts(name, patterns)}
    try:
        unknown = names - uncounted - _known(base, names)
    except DeclarationError:  # whoever builds a toolchain is told; until then nobody knows names
        return
    for article in base.articles if unknown or uncounted else ():
        page = base.page_of(article)
        for key, name, line in _conditions(base, article):
            if name in uncounted:
                message = f"`{name}` in `{key}`: no pattern in `packages` of [toolchain] matches"
                yield page.problem(line, message, _nearest(name, base) or "add it to `packages`")
            elif name in unknown:
                step = "write it as pip does, or declare a toolchain that has it in toolchains.toml"
                message = f"`{name}` in `{key}`: no toolchain knows a distribution of this name"
                yield page.problem(line, message, _nearest(name, base) or step)


def _unknown_programs(base: Base) -> Iterator[Problem]:
    """The programs in `needs` that nobody looks for, so that every toolchain would lack them."""
    programs = base.config.toolchain.programs
    for article in base.articles:
        for name, line in _needs(base, article):
            program = name.removeprefix(PROGRAM)
            if name.startswith(PROGRAM) and program not in programs:
                message = f"`{name}` in `needs`: `programs` of [toolchain] does not name it"
                close = difflib.get_close_matches(program, programs, n=1, cutoff=0.7)
                step = f"did you mean `{PROGRAM}{close[0]}`?" if close else "add it to `programs`"
                yield base.page_of(article).problem(line, message, step)


def _conditions(base: Base, article: Article) -> Iterator[tuple[str, str, int]]:
    """Key, name and line of each distribution in an article's conditions and in its fences'."""
    for key, name, line in _all_conditions(base, article):
        if name not in MACHINE and not name.startswith(PROGRAM):
            yield key, name, line


def _all_conditions(base: Base, article: Article) -> Iterator[tuple[str, str, int]]:
    page = base.page_of(article)
    for i, alternative in enumerate(article.matter.affected):
        for name in alternative:
            yield "affected", name, page.line_of(f"affected[{i}].{name}")
    for name, line in _needs(base, article):
        yield "needs", name, line
    for snippet in article.snippets:
        for key, text in (("affected", snippet.keys.affected), ("holds", snippet.keys.holds)):
            for alternative in parse_affected(text) if text else ():
                for name in alternative:
                    yield key, name, snippet.place.line - 1


def _needs(base: Base, article: Article) -> Iterator[tuple[str, int]]:
    """The names in the article's `needs` and in those of its fences, with the line of each."""
    page = base.page_of(article)
    for name in article.matter.needs:
        yield name, page.line_of(f"needs.{name}")
    for snippet in article.snippets:
        for name in parse_needs(snippet.keys.needs) if snippet.keys.needs else ():
            yield name, snippet.place.line - 1


def _counts(name: str, patterns: Iterable[str]) -> bool:
    """Whether a distribution of that name would be part of a toolchain; without patterns all are.

    Args:
        name: Of the distribution.
        patterns: `packages` of `[toolchain]`.
    """
    canonical = canonicalize_name(name)
    return not patterns or any(fnmatch(canonical, pattern) for pattern in patterns)


def _known(base: Base, names: Iterable[str]) -> set[str]:
    """Those of the names by which a toolchain may know a version.

    Raises:
        DeclarationError: `toolchains.toml` cannot be read.
    """
    sources = (_named(base.config), base.recorded.packages)
    known = {name for name in names if any(canonicalize_name(name) in s for s in sources)}
    patterns = base.config.toolchain.packages
    known |= {name for name in names if patterns and _counts(name, patterns)}
    if others := set(names) - known:  # to ask about what is installed takes longest
        installed = _installed()
        known |= {name for name in others if canonicalize_name(name) in installed}
    return known


def _named(config: Config) -> set[str]:
    """Canonical names of the distributions in `toolchains.toml` and in `kbtools.toml`.

    Raises:
        DeclarationError: `toolchains.toml` cannot be read.
    """
    names = {*config.toolchain.headline, *config.toolchain.version_texts} - set(MACHINE)
    for declaration in read_declarations(config).values():
        texts = (*declaration.before, *declaration.packages, *declaration.constraints)
        names |= {Requirement(text).name for text in texts}
    return {canonicalize_name(name) for name in names}


def _installed() -> set[str]:
    return {canonicalize_name(str(d.metadata["Name"])) for d in distributions()}


def _nearest(name: str, base: Base) -> str:
    """The question whether another name was meant; empty if none is near."""
    names = {*_named(base.config), *base.recorded.packages, *MACHINE, *_installed()}
    candidates = sorted(
        n for n in names if n in MACHINE or _counts(n, base.config.toolchain.packages)
    )
    close = difflib.get_close_matches(canonicalize_name(name), candidates, n=1, cutoff=0.7)
    return f"did you mean `{close[0]}`?" if close else ""
