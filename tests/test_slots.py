"""Which GPUs are free, where snippets share them."""

from __future__ import annotations

import pytest

from kbtools.running import Slots


def test_a_gpu_is_shared_up_to_its_places() -> None:
    """As many snippets as there are places have one GPU at once, and one more when one ends."""
    slots = Slots(1, 2)
    assert [slots.take(1) for _ in range(3)] == [(0,), (0,), None]
    slots.give_back((0,))
    assert slots.take(1) == (0,)


def test_alone_needs_a_gpu_that_nobody_shares() -> None:
    """A snippet that takes a GPU alone gets it when the last that shares it has ended."""
    slots = Slots(1, 4)
    assert slots.take(1) == slots.take(1) == (0,)
    slots.give_back((0,))
    assert slots.take(1, alone=True) is None, "one snippet still shares it"
    slots.give_back((0,))
    assert slots.take(1, alone=True) == (0,)


@pytest.mark.parametrize("alone", [False, True])
def test_alone_keeps_the_next_snippet_out(alone: bool) -> None:
    """A snippet that has a GPU alone has it alone to its end."""
    slots = Slots(1, 4)
    assert slots.take(1, alone=True) == (0,)
    assert slots.take(1, alone=alone) is None
    slots.give_back((0,), alone=True)
    assert slots.take(1, alone=alone) == (0,)


def test_one_of_several_gpus_is_taken_alone() -> None:
    """The other GPU can still be shared; a snippet that needs a place on each has to wait."""
    slots = Slots(2, 2)
    kinds = (False, True, False)
    assert [slots.take(1, alone=alone) for alone in kinds] == [(0,), (1,), (0,)]
    for gpu, alone in ((0, False), (1, True)):
        assert slots.take(2) is None
        slots.give_back((gpu,), alone=alone)
    assert slots.take(2) == (1, 0)
    assert slots.take(2) is None, "there is one place more, on one of them"


def test_several_gpus_alone() -> None:
    """They are given when nobody shares any of them."""
    slots = Slots(2, 2)
    assert slots.take(1) == (0,)
    assert slots.take(2, alone=True) is None
    slots.give_back((0,))
    assert slots.take(2, alone=True) == (0, 1)
    assert slots.take(1) is None


def test_the_emptiest_gpu_is_taken() -> None:
    """Snippets spread over the GPUs, and leave those alone that are to be spared."""
    slots = Slots(3, 4)
    assert [slots.take(1) for _ in range(3)] == [(0,), (1,), (2,)]
    assert slots.take(1, spare={0}) == (1,)
    assert slots.emptiest() == [0, 2, 1]
    assert slots.take(3, spare={0}) is None


def test_a_snippet_without_a_gpu() -> None:
    """It takes none, whether there are any or not."""
    assert Slots(0, 4).take(0) == () == Slots(1, 4).take(0)
