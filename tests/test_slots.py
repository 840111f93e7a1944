"""Who waits for whom where snippets share GPUs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from kbtools.running import Slots

SOON, LONG = 0.2, 30.0
"""Seconds in which nobody comes who has to wait, and in which everybody does who need not."""


@contextmanager
def asking(
    slots: Slots, count: int, *, alone: bool = False
) -> Iterator[tuple[threading.Event, ...]]:
    """Somebody who asks for GPUs and keeps them: whether he has them, and what lets him go."""
    has, leave = threading.Event(), threading.Event()

    def ask() -> None:
        with slots.take(count, alone=alone):
            has.set()
            leave.wait(LONG)

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        yield has, leave
    finally:
        leave.set()
        asker.join(LONG)


def test_a_gpu_is_shared_up_to_its_places() -> None:
    """As many as there are places have one GPU at once, the next one waits."""
    slots = Slots(1, 2)
    with slots.take(1) as first, slots.take(1) as second, asking(slots, 1) as (has, _):
        assert first == second == (0,)
        assert not has.wait(SOON)


def test_alone_waits_until_nobody_shares() -> None:
    """Who asks for a GPU alone gets it once the last who shares it has left."""
    slots = Slots(1, 4)
    with ExitStack() as sharing:
        sharing.enter_context(slots.take(1))
        with slots.take(1), asking(slots, 1, alone=True) as (has, _):
            assert not has.wait(SOON)
        with asking(slots, 1, alone=True) as (has, _):
            assert not has.wait(SOON), "one still shares it"
            sharing.close()
            assert has.wait(LONG)


@pytest.mark.parametrize("alone", [False, True])
def test_alone_keeps_others_out(alone: bool) -> None:
    """Who has a GPU alone has it so to the end, whoever comes."""
    slots = Slots(1, 4)
    with asking(slots, 1, alone=True) as (had, leave):
        assert had.wait(LONG)
        with asking(slots, 1, alone=alone) as (has, _):
            assert not has.wait(SOON)
            leave.set()
            assert has.wait(LONG)


def test_alone_takes_one_of_several() -> None:
    """A GPU had alone leaves the others to those who share, and to nobody who wants all."""
    slots = Slots(2, 2)
    with slots.take(1) as shared, slots.take(1, alone=True) as own, slots.take(1) as again:
        assert (shared, own, again) == ((0,), (1,), (0,))
        with asking(slots, 2) as (has, _):
            assert not has.wait(SOON)


def test_more_than_there_are() -> None:
    """Nobody waits for GPUs that will never be there."""
    with pytest.raises(ValueError, match="2 GPUs asked for, 1 here"), Slots(1, 4).take(2):
        pass
