"""The jobs of a night: which toolchains on which machines, in how many parts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kbtools.articles.model import Article, Snippet
from kbtools.ci import sharding
from kbtools.config import Config, KbtoolsError
from kbtools.evidence import store
from kbtools.evidence.expected import recorded_times, wall_seconds
from kbtools.evidence.verdicts import expect
from kbtools.toolchains import declared
from kbtools.toolchains.declared import Declaration
from kbtools.toolchains.model import Gpu, Toolchain

MOST = 256
"""Jobs that GitHub makes of one matrix."""


class JobsError(KbtoolsError):
    """No matrix of jobs can be made: a toolchain is not declared, or there are too many jobs."""


class Job(msgspec.Struct, frozen=True, rename="kebab"):
    """One part of one toolchain's snippets on one kind of machine."""

    name: str
    toolchain: str
    needs: str
    """`cpu`, `gpu` or `gpus:2`, as the argument of `kbtools verify --needs`."""
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
    runs_on_gpu = snippet.language == "cuda" and snippet.keys.requires == "cpu"
    return "gpu" if snippet.gpus or runs_on_gpu else "cpu"


def jobs(
    articles: Sequence[Article],
    config: Config,
    names: Iterable[str] | None = None,
    needs: Iterable[str] | None = None,
    shards: int | None = None,
) -> tuple[Job, ...]:
    """The jobs of some toolchains.

    A toolchain has jobs on the machines of `[ci.runners]` that its snippets need. A snippet that
    certainly cannot be run on a machine is not counted.

    Args:
        articles: Those whose snippets are to be run.
        config: Says which machines there are.
        names: Names of toolchains; by default all that are declared and can be built.
        needs: Kinds of machines, as in `gpu`; by default all of `[ci.runners]`.
        shards: How many parts each toolchain is cut into; by default as many as take
            `[ci] shard-seconds` each.

    Raises:
        JobsError: a name is not declared, or there are more jobs than GitHub accepts.
    """
    declarations = declared.read_declarations(config)
    chosen = list(declarations) if names is None else list(names)
    if unknown := sorted({*chosen} - {*declarations}):
        raise JobsError(f"no toolchain `{unknown[0]}`; see: kbtools toolchain list")
    recorded = recorded_toolchains(articles, config)
    seconds = wall_seconds(recorded_times(articles, config))
    result: list[Job] = []
    for name in chosen:
        declaration = declarations[name]
        if not declaration.is_built:
            continue  # an interpreter of one machine
        toolchain = expected_toolchain(declaration, recorded, config)
        dedicated = declared.dedicated_articles(config, name)
        candidates = [a for a in articles if not dedicated or a.id in dedicated]
        for machine, labels in config.ci.runners.items():
            if needs is not None and machine not in needs:
                continue
            snippets = [
                snippet
                for snippet in runnable(candidates, name, toolchain, machine)
                if need(snippet) == machine
            ]
            job = Job(name, name, machine, "1/1", labels, 0, 0, declaration.size_gb)
            result += _parts(job, snippets, seconds, shards or _count(snippets, seconds, config))
    if len(result) > MOST:
        raise JobsError(
            f"{len(result)} jobs, and GitHub takes {MOST} of one matrix: raise `shard-seconds` in"
            " kbtools.toml, or ask for fewer toolchains"
        )
    return tuple(result)


def _count(snippets: Sequence[Snippet], seconds: Mapping[str, float], config: Config) -> int:
    """Into how many shards snippets are cut, so that each takes `[ci] shard-seconds`."""
    total = sum(seconds.get(snippet.name, sharding.UNKNOWN) for snippet in snippets)
    return max(1, math.ceil(total / config.ci.shard_seconds))


def _parts(
    job: Job, snippets: Sequence[Snippet], seconds: Mapping[str, float], count: int
) -> Iterator[Job]:
    """A job cut into parts, none of them empty.

    Args:
        job: Says what is equal for all parts: toolchain, machine, labels and size.
        snippets: All snippets of the job.
        seconds: Name of a snippet → what it takes.
        count: How many parts there are at most.
    """
    count = min(count, len(snippets))
    for number in range(1, count + 1):
        shard = sharding.Shard(number, count)
        names = sharding.part(snippets, shard, seconds)
        if names:
            total = math.ceil(sum(seconds.get(name, sharding.UNKNOWN) for name in names))
            title = f"{job.toolchain}, {job.needs}" + (f", {shard}" if count > 1 else "")
            yield msgspec.structs.replace(
                job, name=title, shard=str(shard), snippets=len(names), seconds=total
            )


def runnable(
    articles: Iterable[Article], name: str, toolchain: Toolchain | None, machine: str
) -> list[Snippet]:
    """The snippets that may run on a toolchain.

    Args:
        articles: The articles whose snippets are considered; retired ones have none to run.
        name: The name of the toolchain.
        toolchain: What it holds. If that is not known (None), only a fence with `toolchain=`
            can say that a snippet is not for it.
        machine: The kind of machine, as in `cpu` or `gpus:2`.
    """
    snippets = [s for article in articles if not article.matter.retired for s in article.snippets]
    if toolchain is None:
        return [s for s in snippets if s.keys.toolchain in (None, name)]
    on_machine = _with_gpus(toolchain, machine)
    return [
        snippet
        for snippet in snippets
        if expect(snippet, on_machine, name).what != "skip"
        or _depends_on_hardware(snippet, machine)
    ]


def _with_gpus(toolchain: Toolchain, machine: str) -> Toolchain:
    """The same software on a kind of machine; its GPU is the recorded one, or an unknown one."""
    count = 0 if machine == "cpu" else int(machine.partition(":")[2] or 1)
    gpu = (toolchain.gpus or (Gpu("", "0.0"),))[:1]
    return msgspec.structs.replace(toolchain, gpus=gpu * count)


def _depends_on_hardware(snippet: Snippet, machine: str) -> bool:
    """Whether only the machine itself can say that it cannot run a snippet."""
    names = {name for entry in (*snippet.affected, snippet.needs) for name in entry}
    return machine != "cpu" and bool(snippet.keys.sm or names & {"sm", "driver", "gpus", "cuda"})


def recorded_toolchains(articles: Iterable[Article], config: Config) -> tuple[Toolchain, ...]:
    """Every toolchain of which there is evidence, those with a GPU first."""
    by_identity = {
        row.toolchain.identity: row.toolchain
        for article in articles
        for row in store.read(config.evidence, article.id)
    }
    return tuple(sorted(by_identity.values(), key=lambda toolchain: not toolchain.gpus))


def expected_toolchain(
    declaration: Declaration, recorded: Iterable[Toolchain], config: Config
) -> Toolchain | None:
    """What an environment will hold, by the evidence of one that was built alike.

    A declaration names the packages that it is about, and the installer adds what they depend on.
    Evidence has both.

    Args:
        declaration: The environment.
        recorded: The toolchains of which there is evidence.
        config: Says which packages a recorded toolchain has.

    Returns:
        Of the toolchains that agree with the declaration the one with the fewest packages; None
        if none does.
    """
    patterns = config.toolchain.packages or ("*",)
    pins = [Requirement(text) for text in (*declaration.before, *declaration.packages)]
    pins = [pin for pin in pins if _is_recorded(pin, patterns)]
    alike = [
        toolchain
        for toolchain in recorded
        if pins
        and all(_satisfies(toolchain, pin) for pin in pins)
        and f"{toolchain.python}.".startswith(f"{declaration.python}.")
    ]
    return min(alike, key=lambda toolchain: len(toolchain.packages), default=None)


def _is_recorded(pin: Requirement, patterns: Iterable[str]) -> bool:
    return any(fnmatch(canonicalize_name(pin.name), pattern) for pattern in patterns)


def _satisfies(toolchain: Toolchain, pin: Requirement) -> bool:
    version = toolchain.packages.get(canonicalize_name(pin.name))
    return version is not None and pin.specifier.contains(version, prereleases=True)
