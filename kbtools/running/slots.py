"""GPUs as slots. Small snippets share a GPU; one that fills it is alone on it."""

from __future__ import annotations

from collections.abc import Collection


class Slots:
    """GPUs, each divided into `share` places. It counts, and never waits."""

    def __init__(self, gpus: int, share: int) -> None:
        """All places are free.

        Args:
            gpus: How many GPUs there are.
            share: Snippets that may share one of them.
        """
        self._free = [share] * gpus
        self._share = share

    def take(
        self, count: int, *, alone: bool = False, spare: Collection[int] = ()
    ) -> tuple[int, ...] | None:
        """Takes `count` GPUs, the emptiest, and gives their indices; None if too few are free.

        Args:
            count: GPUs to take; of none it gives none.
            alone: Whether nobody else may share them.
            spare: Indices of GPUs that are not taken, however free they are.
        """
        places = self._share if alone else 1
        able = [gpu for gpu in self.emptiest(spare) if self._free[gpu] >= places][:count]
        if len(able) < count:
            return None
        for gpu in able:
            self._free[gpu] -= places
        return tuple(able)

    def give_back(self, gpus: Collection[int], *, alone: bool = False) -> None:
        """Frees what `take` has taken.

        Args:
            gpus: What it gave.
            alone: As it was asked.
        """
        places = self._share if alone else 1
        for gpu in gpus:
            self._free[gpu] += places

    def emptiest(self, spare: Collection[int] = ()) -> list[int]:
        """The indices of the GPUs, those with the most free places first, without `spare`."""
        gpus = [gpu for gpu in range(len(self._free)) if gpu not in spare]
        return sorted(gpus, key=lambda gpu: -self._free[gpu])
