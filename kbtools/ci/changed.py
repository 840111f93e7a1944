"""Which articles and toolchains to run again after a change to the repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from kbtools import config as configuration
from kbtools.articles.model import Article
from kbtools.ci import git
from kbtools.config import Config, ConfigError
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
    """What changed since the branch left a commit, including what is not committed yet.

    An article changed if its file did: a claim is as good a reason as a snippet. Evidence and
    translations are no reason. A change of `kbtools.repro` is a reason for each article that
    imports it, a change of a data file for each that uses it, a change of a table of
    `toolchains.toml` for every article on that toolchain, and a change of `[run]` or `[toolchain]`
    in `kbtools.toml` for every article.

    Args:
        reference: A commit or a branch.
        articles: The articles that may be run.
        config: The configuration of today.

    Raises:
        GitError: the knowledge base is not in a repository, or git does not know `reference`.
    """
    candidates = tuple(articles)
    base = git.output(config, "merge-base", reference, "HEAD", reference=reference).strip()
    paths = _paths(base, config)
    why: dict[str, str] = {}
    if configuration.FILE in paths and _has_run_changed(base, config):
        reason = f"[run] or [toolchain] of {configuration.FILE} changed"
        why |= {article.id: reason for article in candidates}
    repro = _below(REPRO, config.root)
    if repro in paths:
        reason = f"{repro} changed, which it imports"
        why |= {
            article.id: reason
            for article in candidates
            if any(snippet.uses_helper for snippet in article.snippets)
        }
    folder = config.data_files.relative_to(config.root).as_posix()
    for article in candidates:
        names = {name for snippet in article.snippets for name in snippet.data_files}
        for path in sorted(paths & {f"{folder}/{name}" for name in names}):
            why[article.id] = f"{path} changed, which it uses"
    why |= {a.id: f"{a.path} changed" for a in candidates if a.path in paths}
    toolchains = _changed_toolchains(base, config) if declared.FILE in paths else set()
    return ChangeScope(frozenset(why), frozenset(toolchains), (*_lines(why, toolchains),))


def _lines(why: dict[str, str], toolchains: set[str]) -> Iterator[str]:
    """A line for each reason, with the ids of its articles, and for each toolchain."""
    by_reason: dict[str, list[str]] = {}
    for article, reason in sorted(why.items()):
        by_reason.setdefault(reason, []).append(article)
    for reason, ids in by_reason.items():
        yield f"{reason}: {', '.join(ids)}"
    for name in sorted(toolchains):
        yield f"all on {name}: its declaration changed"


def _paths(base: str, config: Config) -> set[str]:
    """Files that changed or are new, relative to the knowledge base."""
    diff = ("diff", "--name-only", "--relative", "--no-renames", "--no-ext-diff", "-z", base)
    names = git.output(config, *diff)
    names += git.output(config, "ls-files", "--others", "--exclude-standard", "-z")
    return {path for path in names.split("\0") if path}


def _changed_toolchains(base: str, config: Config) -> set[str]:
    """The toolchains whose declaration is new or is not what it was at a commit."""
    now = declared.read_declarations(config)
    try:
        then = declared.parse_declarations(git.file_at(base, declared.FILE, config), declared.FILE)
    except (git.GitError, declared.DeclarationError):  # the file did not exist then, or was broken
        return set(now)
    return {name for name, declaration in now.items() if declaration != then.get(name)}


def _has_run_changed(base: str, config: Config) -> bool:
    """Whether `kbtools.toml` has snippets run in another way than at a commit."""
    try:
        then = configuration.decode(git.file_at(base, configuration.FILE, config), config.root)
    except (git.GitError, ConfigError):  # the file did not exist then, or was broken
        return True
    return (then.run, then.toolchain) != (config.run, config.toolchain)


def _below(file: Path, root: Path) -> str:
    """A path relative to the knowledge base; empty if the file is not in it."""
    resolved = file.resolve()
    root = root.resolve()
    return resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else ""
