"""GPUs as slots: small snippets share one, one that fills it or asks for several is alone."""

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

        One GPU is shared with other snippets that ask for one, unless `alone`; several never are.

        Raises:
            ValueError: the machine has fewer.
        """
        if count > len(self._free):
            raise ValueError(f"{count} GPUs asked for, {len(self._free)} here")
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
        able = [gpu for gpu, free in enumerate(self._free) if free >= places]
        return tuple(sorted(able, key=lambda gpu: -self._free[gpu])[:count])
