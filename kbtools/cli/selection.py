"""Which snippets a call of `kbtools verify` is about."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from kbtools.articles.model import Article, Problem, Role
from kbtools.cache import FileState
from kbtools.cli.errors import UnknownSnippetError
from kbtools.cli.group import selected_path
from kbtools.config import Config

if TYPE_CHECKING:
    from kbtools.checks.model import Base
    from kbtools.ci.changed import ChangeScope
    from kbtools.toolchains.model import Toolchain
    from kbtools.verification.model import Task


class Selection(msgspec.Struct, frozen=True):
    """What the arguments and options of a call select."""

    articles: Sequence[Article]
    names: frozenset[str] = frozenset()
    """Ids of articles and names of snippets; empty: everything in `articles`."""
    refused: Sequence[Problem] = ()
    """What keeps selected articles from being read."""
    roles: Collection[Role] = tuple(Role)
    part: frozenset[str] | None = None
    """Names of the snippets of a shard, or of those that need a kind of machine; None: all."""
    changes: ChangeScope | None = None
    """None: whatever changed."""
    states: Mapping[str, FileState] = {}
    """Path of an article → the state of the file that it was read from, where that is settled."""

    def tasks(self, toolchain: Toolchain, name: str | None, config: Config) -> list[Task]:
        """The selected snippets, to be verified on a toolchain.

        Args:
            toolchain: What they are to be run on.
            name: The toolchain's name in `toolchains.toml`, where it has one.
            config: Of the knowledge base.
        """
        from kbtools.toolchains.declared import dedicated_articles
        from kbtools.verification.model import plan

        dedicated = dedicated_articles(config, name)
        tasks = plan(self.articles, toolchain, name, self.roles)
        return [task for task in tasks if self.includes(task, dedicated)]

    def includes(self, task: Task, dedicated: Collection[str]) -> bool:
        """Whether a task is selected; `dedicated`: the only articles its toolchain is for, if any.

        A toolchain that is dedicated to some articles runs another one when that one is named.
        """
        snippet, article = task.snippet.name, task.article.id
        if self.names:
            is_named = bool(self.names & {snippet, article})
        else:
            is_named = not dedicated or article in dedicated
        is_in_part = self.part is None or snippet in self.part
        return is_named and is_in_part and self._is_changed(task)

    def _is_changed(self, task: Task) -> bool:
        if self.changes is None:
            return True
        return task.article.id in self.changes.articles or task.name in self.changes.toolchains


def select(
    base: Base, readable: Sequence[Article], problems: Sequence[Problem], words: Sequence[str]
) -> Selection:
    """The articles and snippets that the arguments name; all of them where there is none.

    Args:
        base: The knowledge base.
        readable: Its articles that can be read.
        problems: Why the others cannot.
        words: As in `KB0001`, `kb/KB0001-an-article.md` and `KB0001/r1`.

    Raises:
        UnknownArticleError: a word names no article.
        UnknownSnippetError: an article does not have the snippet.
    """
    if not words:
        return Selection(tuple(readable), refused=tuple(problems))
    selected: list[Article] = []
    names: set[str] = set()
    paths: set[str] = set()
    for word in words:
        before, slash, snippet = word.partition("/")
        identifier = base.config.canonical_id(before) if slash else None
        path = selected_path(base, identifier or word)
        paths.add(path)
        for article in readable:
            if article.path != path:
                continue
            if identifier and snippet not in [s.id for s in article.snippets]:
                listed = ", ".join(s.name for s in article.snippets)
                raise UnknownSnippetError(f"no snippet `{word}`; the article has {listed}")
            names.add(f"{identifier}/{snippet}" if identifier else article.id)
            selected += [article] if article not in selected else []
    refused = tuple(problem for problem in problems if problem.place.path in paths)
    return Selection(tuple(selected), frozenset(names), refused)


def changes_since(
    reference: str | None, articles: Sequence[Article], config: Config
) -> ChangeScope | None:
    """What `--changed-since` asks for; None where it is not given. Prints why to standard error.

    Args:
        reference: A branch, tag or commit of git.
        articles: Of which those that changed are selected.
        config: Of the knowledge base.

    Raises:
        GitError: this is no checkout of git, or it does not know the reference.
    """
    from kbtools.ci import changed

    if reference is None:
        return None
    scope = changed.changed_since(reference, articles, config)
    for line in scope.reasons or (f"no article and no toolchain changed since {reference}",):
        click.echo(line, err=True)
    return scope


def part_of(
    articles: Sequence[Article], config: Config, shard: str | None, needs: Sequence[str]
) -> frozenset[str] | None:
    """The names of the snippets of a shard, of those that need such machines; None for all.

    Args:
        articles: Whose snippets are shared out.
        config: Of the knowledge base, whose evidence says how long a snippet takes.
        shard: As in `2/8`.
        needs: Kinds of machines, as in `gpu`.

    Raises:
        click.BadParameter: `shard` or `needs` cannot be read.
    """
    from kbtools.ci import jobs, sharding
    from kbtools.evidence.expected import recorded_times, wall_seconds

    for word in needs:
        if not re.fullmatch(r"cpu|gpu|gpus:[2-9]", word):
            raise click.BadParameter(f"`{word}` is not cpu, gpu or gpus:2", param_hint="--needs")
    if shard is None and not needs:
        return None
    snippets = [s for article in articles for s in article.snippets]
    able = [snippet for snippet in snippets if not needs or jobs.need(snippet) in needs]
    try:
        parsed = sharding.parse(shard or "1/1")
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--shard") from error
    seconds = wall_seconds(recorded_times(articles, config))
    return frozenset(sharding.part(able, parsed, seconds))
