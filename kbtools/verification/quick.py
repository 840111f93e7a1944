"""`verify --quick`: the snippets that prove every article at least once, in little time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kbtools.articles.model import Role
from kbtools.ci.sharding import UNKNOWN
from kbtools.verification.model import LeftOut, Result, Task

QUICK_SECONDS = 0.1
"""A snippet that took no longer when it was recorded is quick."""


class Tier(msgspec.Struct, frozen=True):
    """The tasks of a call, cut into those of the first tier and the slower ones."""

    first: tuple[Task, ...]
    """In the order in which they were given; those that nothing is run of are among them."""
    slower: tuple[Task, ...]
    """They could run, and are not of the first tier."""

    def without(self, results: Iterable[Result]) -> Tier:
        """The tasks that do not have one of these results."""
        names = {result.task.snippet.name for result in results}
        first, slower = (
            tuple(task for task in tasks if task.snippet.name not in names)
            for tasks in (self.first, self.slower)
        )
        return Tier(first, slower)


def first_tier(tasks: Sequence[Task], seconds: Mapping[str, float]) -> Tier:
    """Cuts the tasks of one toolchain in two.

    Of the first tier are the quick ones, those of which no run is recorded, and of each article the
    quickest repro and the quickest fix that can run; where an article has neither, the quickest of
    its snippets.

    Args:
        tasks: What is planned on a toolchain.
        seconds: Name of a snippet → the seconds that it is expected to take.
    """
    proofs = _proofs([task for task in tasks if task.runs], seconds)
    first = [
        task
        for task in tasks
        # a time that was never recorded may be long; it is the only way to have it recorded
        if not task.runs
        or seconds.get(task.snippet.name, 0.0) <= QUICK_SECONDS
        or task.snippet.name in proofs
    ]
    chosen = {task.snippet.name for task in first}
    slower = tuple(task for task in tasks if task.snippet.name not in chosen)
    return Tier(tuple(first), slower)


def left_out(
    tasks: Sequence[Task], expected: Mapping[str, float], jobs: int, command: str
) -> LeftOut | None:
    """What a run says of the slower snippets that it leaves; None if there are none.

    Args:
        tasks: The slower ones.
        expected: Name of a snippet → the seconds that it should take.
        jobs: Snippets at once.
        command: Runs them.
    """
    if not tasks:
        return None
    seconds = running_times(tasks, expected)
    longest = max(seconds.values(), default=0.0)
    minutes = max(sum(seconds.values()) / max(jobs, 1), longest) / 60
    return LeftOut(tuple(task.snippet.name for task in tasks), minutes, command)


def running_times(tasks: Iterable[Task], expected: Mapping[str, float]) -> dict[str, float]:
    """Name of each snippet that would be run → the seconds that it should take.

    Args:
        tasks: Of one toolchain; those that nothing is run of have no entry.
        expected: Name of a snippet → seconds; one that was never run takes `UNKNOWN`.
    """
    names = (task.snippet.name for task in tasks if task.runs)
    return {name: expected.get(name, UNKNOWN) for name in names}


def _proofs(tasks: Iterable[Task], seconds: Mapping[str, float]) -> set[str]:
    """Names of the snippets without which an article would not be proven."""
    by_article: dict[str, list[Task]] = {}
    for task in tasks:
        by_article.setdefault(task.article.id, []).append(task)
    proofs = set()
    for of_article in by_article.values():
        groups = [
            [task for task in of_article if task.snippet.role is role]
            for role in (Role.REPRO, Role.FIX)
        ]
        for group in filter(None, groups if any(groups) else [of_article]):
            quickest = min(group, key=lambda task: seconds.get(task.snippet.name, 0.0))
            proofs.add(quickest.snippet.name)
    return proofs
