"""How long a run still takes: from recorded seconds, corrected by its own pace."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

PRIOR = 20.0
"""Seconds of a run after which its own pace counts as much as that of the recorded runs."""


class Forecast:
    """What is left of a run, while it is under way.

    The run is not asked how it chooses what is next: the estimate is the work that is left, divided
    among the jobs, and never less than the longest snippet that is left.
    """

    def __init__(
        self,
        expected: Mapping[str, float],
        jobs: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts the clock.

        Args:
            expected: Name of each snippet that is to be run → the seconds that it should take.
            jobs: Snippets at once.
            clock: Seconds, from any beginning.
        """
        self.total = len(expected)
        self._waiting = dict(expected)
        self._running: dict[str, tuple[float, float]] = {}
        """Name → the seconds that it should take, and when it began."""
        self._jobs, self._clock, self._begin = max(jobs, 1), clock, clock()
        self._done = 0.0
        self._lock = threading.Lock()

    def started(self, name: str) -> None:
        """A snippet has begun; again, if its verdict is to be confirmed."""
        with self._lock:
            expected, _ = self._running.get(name, (self._waiting.pop(name, 0.0), 0.0))
            self._running[name] = (expected, self._clock())

    def finished(self, name: str) -> None:
        """A snippet has ended; one that never began says nothing of the pace."""
        with self._lock:
            expected, _ = self._running.pop(name, (0.0, 0.0))
            self._done += expected
            self._waiting.pop(name, None)

    @property
    def seconds(self) -> float:
        """Seconds until the end of the run."""
        with self._lock:
            now = self._clock()
            passed = {
                name: min(expected, now - since)
                for name, (expected, since) in self._running.items()
            }
            rests = [expected - passed[name] for name, (expected, _) in self._running.items()]
            rests += self._waiting.values()
            prior = PRIOR * self._jobs
            worked = self._done + sum(passed.values())
            pace = ((now - self._begin) * self._jobs + prior) / (worked + prior)
            return pace * max(sum(rests) / self._jobs, *rests, 0.0)


def in_words(seconds: float) -> str:
    """A duration as people say it: `40 s`, `3 min`."""
    if seconds < 95:
        return f"{max(round(seconds, -1), 10):.0f} s"
    return f"{seconds / 60:.0f} min"
