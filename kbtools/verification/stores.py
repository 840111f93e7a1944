"""Which store of its toolchain a run asks for, and whether it is worth filling."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kbtools.config import Config
from kbtools.running.toolchain_store import StoreOrder
from kbtools.verification.model import Task


def uses_store(config: Config, task: Task) -> bool:
    """Whether a snippet would find files in its toolchain's store that it makes otherwise."""
    settings = config.run.store
    return settings is not None and bool(re.search(settings.when, task.snippet.source))


def wanted_store(config: Config, tasks: Sequence[Task]) -> StoreOrder | None:
    """The store that snippets are to find; None where no snippet to be run would use it.

    Args:
        config: Of the knowledge base, whose `[run.store]` says what is made.
        tasks: What is to be verified, all on one toolchain.
    """
    settings = config.run.store
    if settings is None:
        return None
    users = [
        task
        for task in tasks
        if task.expected.what in ("fails", "passes") and uses_store(config, task)
    ]
    if not users:
        return None
    toolchain = users[0].toolchain
    return StoreOrder(
        settings=settings,
        program=config.root / settings.program,
        folder=config.stores,
        toolchain=toolchain.identity,
        gpu=bool(toolchain.gpus),
        fill=len(users) >= settings.at_least,
        variables=config.run.variables,
    )
