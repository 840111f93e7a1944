"""Which snippet waits for which where they share GPUs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from kbtools.running import Slots

SOON, LONG = 0.2, 30.0
"""Seconds in which a snippet that has to wait is given nothing, and in which any other is."""


@contextmanager
def snippet(
    slots: Slots, count: int, *, alone: bool = False
) -> Iterator[tuple[threading.Event, threading.Event]]:
    """A snippet that takes GPUs and keeps them: set when it has them, and to be set to end it.

    It may still wait for GPUs that the test itself holds when the block ends: nothing joins it.
    """
    running, end = threading.Event(), threading.Event()

    def take() -> None:
        with slots.take(count, alone=alone):
            running.set()
            end.wait(LONG)

    threading.Thread(target=take, daemon=True).start()
    try:
        yield running, end
    finally:
        end.set()


def test_a_gpu_is_shared_up_to_its_places() -> None:
    """As many snippets as there are places have one GPU at once; the next one waits."""
    slots = Slots(1, 2)
    with slots.take(1) as first:
        with slots.take(1) as second, snippet(slots, 1) as (running, _):
            assert first == second == (0,)
            assert not running.wait(SOON)
        assert running.wait(LONG), "a place is free again"


def test_alone_waits_until_nobody_shares() -> None:
    """A snippet that takes a GPU alone gets it when the last that shares it has ended."""
    slots = Slots(1, 4)
    with ExitStack() as sharing:
        sharing.enter_context(slots.take(1))
        with slots.take(1), snippet(slots, 1, alone=True) as (running, _):
            assert not running.wait(SOON)
        assert not running.wait(SOON), "one snippet still shares it"
        sharing.close()
        assert running.wait(LONG)


@pytest.mark.parametrize("alone", [False, True])
def test_alone_keeps_the_next_snippet_out(alone: bool) -> None:
    """A snippet that has a GPU alone has it alone to its end."""
    slots = Slots(1, 4)
    with snippet(slots, 1, alone=True) as (first_running, end_first):
        assert first_running.wait(LONG)
        with snippet(slots, 1, alone=alone) as (running, _):
            assert not running.wait(SOON)
            end_first.set()
            assert running.wait(LONG)


def test_one_of_several_gpus_is_taken_alone() -> None:
    """The other GPUs can still be shared; a snippet that needs all of them waits."""
    slots = Slots(2, 2)
    with ExitStack() as held:
        taken = [held.enter_context(slots.take(1, alone=alone)) for alone in (False, True, False)]
        assert taken == [(0,), (1,), (0,)]
        with snippet(slots, 2) as (running, _):
            assert not running.wait(SOON)
            held.close()
            assert running.wait(LONG)


def test_more_gpus_than_the_machine_has() -> None:
    """A snippet that needs more GPUs than there are does not wait for them."""
    message = "2 GPUs are needed, this machine has 1"
    with pytest.raises(ValueError, match=message), Slots(1, 4).take(2):
        pass
