"""What a change to the repository makes worth running again, as git tells it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from kbtools import config as configuration
from kbtools.articles.model import Article
from kbtools.ci import git
from kbtools.config import Config, KbtoolsError
from kbtools.running.executor import REPRO
from kbtools.toolchains import declared


class ChangeScope(msgspec.Struct, frozen=True):
    """What is to be run: these articles everywhere, and every article on these toolchains."""

    articles: frozenset[str]
    toolchains: frozenset[str]
    reasons: tuple[str, ...]
    """A line for each reason."""

    def __bool__(self) -> bool:
        """Whether there is anything to run."""
        return bool(self.articles or self.toolchains)


def changed_since(reference: str, articles: Iterable[Article], config: Config) -> ChangeScope:
    """What changed since the branch left `reference`, what is not committed yet included.

    An article changed when its file did: a claim is as good a reason as a snippet. Evidence and
    translations are none. `kbtools.repro` is one for each article that imports it, a table of
    `toolchains.toml` for every article on that toolchain, and how `kbtools.toml` has snippets run
    for all of them.

    Raises:
        KbtoolsError: this is no checkout of git, or it does not know `reference`.
    """
    known = tuple(articles)
    base = git.output(config, "merge-base", reference, "HEAD", reference=reference).strip()
    paths = _paths(base, config)
    why: dict[str, str] = {}
    if configuration.FILE in paths and _runs_otherwise(base, config):
        why |= {one.id: f"[run] or [toolchain] of {configuration.FILE} changed" for one in known}
    repro = _below(REPRO, config.root)
    if repro in paths:
        users = [one for one in known if any(s.uses_helper for s in one.snippets)]
        why |= {one.id: f"{repro} changed, which it imports" for one in users}
    why |= {one.id: f"{one.path} changed" for one in known if one.path in paths}
    toolchains: set[str] = set()
    if declared.FILE in paths:
        toolchains = _toolchains(base, config)
    reasons: dict[str, list[str]] = {}
    for article, reason in sorted(why.items()):
        reasons.setdefault(reason, []).append(article)
    said = [f"{reason}: {', '.join(found)}" for reason, found in reasons.items()]
    said += [f"all on {name}: its declaration changed" for name in sorted(toolchains)]
    return ChangeScope(frozenset(why), frozenset(toolchains), tuple(said))


def _paths(base: str, config: Config) -> set[str]:
    """Files that changed, as seen from the knowledge base, new ones included."""
    words = ("diff", "--name-only", "--relative", "--no-renames", "--no-ext-diff", "-z", base)
    told = git.output(config, *words)
    told += git.output(config, "ls-files", "--others", "--exclude-standard", "-z")
    return {path for path in told.split("\0") if path}


def _toolchains(base: str, config: Config) -> set[str]:
    """The declared toolchains that are built in another way than they were."""
    now = declared.read_declarations(config)
    try:
        then = declared.parse_declarations(git.file_at(base, declared.FILE, config), declared.FILE)
    except KbtoolsError:  # it was not there, or was broken
        then = {}
    return {name for name, one in now.items() if name not in then or one != then[name]}


def _runs_otherwise(base: str, config: Config) -> bool:
    """Whether `kbtools.toml` has snippets run in another way than it did."""
    try:
        then = configuration.decode(git.file_at(base, configuration.FILE, config), config.root)
    except KbtoolsError:  # it was not there, or was broken
        return True
    return (then.run, then.toolchain) != (config.run, config.toolchain)


def _below(file: Path, root: Path) -> str:
    """A path as seen from the knowledge base; empty where it is not below it."""
    resolved = file.resolve()
    root = root.resolve()
    return resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else ""
