"""GPUs as slots. Small snippets share a GPU; one that fills it or needs several is alone on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Slots:
    """The GPUs of this machine, each divided into `share` places."""

    def __init__(self, gpus: int, share: int) -> None:
        self._free = [share] * gpus
        self._share = share
        self._changed = threading.Condition()

    @contextmanager
    def take(self, count: int, *, alone: bool = False) -> Iterator[tuple[int, ...]]:
        """Waits for `count` GPUs and holds them; their indices.

        A single GPU is shared with other snippets that ask for one, unless `alone`. Several GPUs
        are held alone.

        Raises:
            ValueError: the machine has fewer.
        """
        if count > len(self._free):
            raise ValueError(f"{count} GPUs are needed, this machine has {len(self._free)}")
        places = 1 if count == 1 and not alone else self._share
        with self._changed:
            while len(chosen := self._emptiest(count, places)) < count:
                self._changed.wait()
            for gpu in chosen:
                self._free[gpu] -= places
        try:
            yield chosen
        finally:
            with self._changed:
                for gpu in chosen:
                    self._free[gpu] += places
                self._changed.notify_all()

    def _emptiest(self, count: int, places: int) -> tuple[int, ...]:
        candidates = [gpu for gpu, free in enumerate(self._free) if free >= places]
        return tuple(sorted(candidates, key=lambda gpu: -self._free[gpu])[:count])
