"""The jobs of a night: which toolchains on which machines, in how many parts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kbtools.articles.model import Article, Snippet
from kbtools.ci import sharding
from kbtools.config import Config, KbtoolsError
from kbtools.evidence import store
from kbtools.evidence.verdicts import expect
from kbtools.toolchains import declared
from kbtools.toolchains.declared import Declaration
from kbtools.toolchains.model import Gpu, Toolchain

MOST = 256
"""Jobs that GitHub makes of one matrix."""


class Job(msgspec.Struct, frozen=True, rename="kebab"):
    """One part of one toolchain's snippets on one kind of machine."""

    name: str
    toolchain: str
    needs: str
    """`cpu`, `gpu` or `gpus:2`: what `kbtools verify --needs` is told."""
    shard: str
    runs_on: tuple[str, ...]
    """Labels of the machine."""
    snippets: int
    seconds: int
    """By what is recorded, rounded up."""
    gigabytes: float
    """What the toolchain takes on the disk, about; 0 where it is unknown."""


def need(snippet: Snippet) -> str:
    """The machine that a snippet needs: `cpu`, `gpu` (also to itself) or `gpus:2`."""
    if snippet.gpus > 1:
        return f"gpus:{snippet.gpus}"
    runs_there = snippet.language == "cuda" and snippet.keys.requires == "cpu"
    return "gpu" if snippet.gpus or runs_there else "cpu"


def jobs(
    articles: Sequence[Article],
    config: Config,
    names: Iterable[str] | None = None,
    needs: Iterable[str] | None = None,
    shards: int | None = None,
) -> tuple[Job, ...]:
    """The jobs of these toolchains (default: all that are declared and can be built).

    A toolchain has jobs on the machines of `[ci.runners]` that its snippets need; a snippet that
    surely cannot be run there is not counted. `shards` is how many parts each is cut into; by
    default as many as take `[ci] shard-seconds` each.

    Raises:
        KbtoolsError: a name is not declared, or they are more than GitHub takes.
    """
    known = declared.read_declarations(config)
    chosen = list(known) if names is None else list(names)
    if unknown := sorted({*chosen} - {*known}):
        raise KbtoolsError(f"no toolchain `{unknown[0]}`; see: kbtools toolchain list")
    seen = seen_toolchains(articles, config)
    seconds = sharding.recorded_seconds(articles, config)
    found: list[Job] = []
    for name in chosen:
        if not known[name].is_built:
            continue  # an interpreter of one machine
        like = expected(known[name], seen, config)
        own = declared.dedicated_articles(config, name)
        ours = [one for one in articles if not own or one.id in own]
        for words, labels in config.ci.runners.items():
            if needs is not None and words not in needs:
                continue
            mine = [s for s in runnable(ours, name, like, words) if need(s) == words]
            found += _parts(name, known[name], words, labels, mine, seconds, config, shards)
    if len(found) > MOST:
        raise KbtoolsError(
            f"{len(found)} jobs, and GitHub takes {MOST} of one matrix: raise `shard-seconds` in"
            " kbtools.toml, or ask for fewer toolchains"
        )
    return tuple(found)


def _parts(
    name: str,
    one: Declaration,
    words: str,
    labels: tuple[str, ...],
    snippets: Sequence[Snippet],
    seconds: Mapping[str, float],
    config: Config,
    shards: int | None,
) -> Iterable[Job]:
    total = sum(seconds.get(snippet.name, sharding.UNKNOWN) for snippet in snippets)
    of = min(shards or max(1, math.ceil(total / config.ci.shard_seconds)), len(snippets))
    for number in range(1, of + 1):
        shard = sharding.Shard(number, of)
        mine = sharding.part(snippets, shard, seconds)
        if not mine:
            continue
        took = math.ceil(sum(seconds.get(snippet, sharding.UNKNOWN) for snippet in mine))
        shown = f"{name}, {words}" + (f", {shard}" if of > 1 else "")
        yield Job(shown, name, words, str(shard), labels, len(mine), took, one.size_gb)


def runnable(
    articles: Iterable[Article], name: str, like: Toolchain | None, words: str
) -> list[Snippet]:
    """The snippets that may run on a toolchain, on a machine of that kind.

    Of a toolchain on which nothing was run yet only its name says that a snippet is not for it.
    """
    standing = [s for one in articles if not one.matter.retired for s in one.snippets]
    if like is None:
        return [s for s in standing if s.keys.toolchain in (None, name)]
    there = _with_gpus(like, words)
    return [s for s in standing if expect(s, there, name).what != "skip" or _hardware(s, words)]


def _with_gpus(like: Toolchain, words: str) -> Toolchain:
    """The same software on a machine of a kind; which GPU it will be is not known here."""
    count = 0 if words == "cpu" else int(words.partition(":")[2] or 1)
    return msgspec.structs.replace(like, gpus=(like.gpus or (Gpu("", "0.0"),))[:1] * count)


def _hardware(snippet: Snippet, words: str) -> bool:
    """Whether what keeps a snippet from running may be no more than what is not known here."""
    named = {name for entry in snippet.affected for name in entry}
    return words != "cpu" and bool(snippet.keys.sm or named & {"sm", "driver", "gpus", "cuda"})


def seen_toolchains(articles: Iterable[Article], config: Config) -> tuple[Toolchain, ...]:
    """Every toolchain of which there is evidence, those with a GPU first."""
    found = {
        row.toolchain.identity: row.toolchain
        for one in articles
        for row in store.read(config.evidence, one.id)
    }
    return tuple(sorted(found.values(), key=lambda one: not one.gpus))


def expected(one: Declaration, seen: Iterable[Toolchain], config: Config) -> Toolchain | None:
    """What an environment holds, by the evidence of one that was built alike; None: not known.

    A declaration names what it is about and the installer brings more: what came was recorded. Of
    several that agree it is the one with the fewest packages.
    """
    pins = [Requirement(text) for text in (*one.before, *one.packages)]
    patterns = config.toolchain.packages or ("*",)
    told = [pin for pin in pins if any(fnmatch(canonicalize_name(pin.name), p) for p in patterns)]
    alike = [toolchain for toolchain in seen if told and all(_has(toolchain, pin) for pin in told)]
    alike = [toolchain for toolchain in alike if _same_python(toolchain.python, one.python)]
    return min(alike, key=lambda toolchain: len(toolchain.packages), default=None)


def _has(toolchain: Toolchain, pin: Requirement) -> bool:
    there = toolchain.packages.get(canonicalize_name(pin.name))
    return there is not None and pin.specifier.contains(there, prereleases=True)


def _same_python(there: str, wanted: str) -> bool:
    return f"{there}.".startswith(f"{wanted}.")
