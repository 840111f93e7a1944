"""On what an article was run, so how far a sentence of it goes that names no release and no GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from packaging.version import InvalidVersion, Version

from kbtools.articles.model import Article, Snippet
from kbtools.articles.needs import PROGRAM
from kbtools.evidence.state import Observation
from kbtools.toolchains.model import MACHINE, Toolchain


class Scope(msgspec.Struct, frozen=True):
    """The versions and the machines of an article's runs."""

    versions: dict[str, tuple[str, ...]]
    """Distribution, `nvcc` or `Python` → its versions, from old to new."""
    gpus: tuple[str, ...] | None
    """Names of the GPUs that its snippets used; None in a knowledge base that is not about GPUs."""
    platforms: tuple[str, ...]
    """As in `linux-x86_64`."""


def scope_of(
    article: Article, observations: Iterable[Observation], headline: Sequence[str]
) -> Scope | None:
    """The versions and machines of the runs that count; None without a run.

    Args:
        article: The article.
        observations: Its own.
        headline: That of `[toolchain]` in `kbtools.toml`.
    """
    observed = list(observations)
    if not observed:
        return None
    toolchains = [observation.row.toolchain for observation in observed]
    versions: dict[str, tuple[str, ...]] = {}
    for name in dict.fromkeys((*names_for(article, headline), *_needed(observed))):
        having = [toolchain for toolchain in toolchains if name in toolchain.packages]
        versions |= {key: tuple(text) for key, text in versions_of(having, [name]).items()}
    nvcc = {o.row.toolchain.cuda for o in observed if _compiles(o.snippet)} - {None}
    versions |= {"nvcc": tuple(sorted(map(str, nvcc), key=_comparable))} if nvcc else {}
    with_gpu = (o.row.toolchain for o in observed if o.snippet.gpus)
    gpus = tuple(sorted({gpu.name for toolchain in with_gpu for gpu in toolchain.gpus[:1]}))
    return Scope(
        versions=versions
        or {key: tuple(text) for key, text in versions_of(toolchains, []).items()},
        gpus=gpus if "gpus" in headline else None,
        platforms=tuple(sorted({toolchain.platform for toolchain in toolchains} - {""})),
    )


def _needed(observed: Iterable[Observation]) -> Iterator[str]:
    """The distributions that the snippets need."""
    for observation in observed:
        yield from (name for name in observation.snippet.needs if name not in MACHINE)


def _compiles(snippet: Snippet) -> bool:
    """Whether it is about nvcc: written in CUDA, or claimed or needed by its release."""
    of_claim = (name for alternative in snippet.affected for name in alternative)
    return snippet.language == "cuda" or not {"cuda", f"{PROGRAM}nvcc"}.isdisjoint(
        (*of_claim, *snippet.needs)
    )


def names_for(article: Article, headline: Sequence[str]) -> list[str]:
    """The distributions whose versions tell what was tried.

    Those that the article claims something about come first.
    """
    claimed = (name for alternative in article.matter.affected for name in alternative)
    names = dict.fromkeys((*claimed, *article.matter.needs, *headline))
    return [name for name in names if name not in MACHINE and not name.startswith(PROGRAM)]


def versions_of(toolchains: Iterable[Toolchain], names: Sequence[str]) -> dict[str, list[str]]:
    """Name → the versions of it, from old to new, without their local parts.

    A toolchain counts for the first of the names that it has, or for its Python.
    """
    versions: dict[str, set[str]] = {}
    for toolchain in toolchains:
        name = next((name for name in names if toolchain.version(name)), "")
        version = toolchain.version(name) if name else toolchain.python
        versions.setdefault(name or "Python", set()).add(str(version).partition("+")[0])
    order = [name for name in (*names, "Python") if name in versions]
    return {name: sorted(versions[name], key=_comparable) for name in order}


def _comparable(version: str) -> Version:
    try:
        return Version(version)
    except InvalidVersion:
        return Version("0")
