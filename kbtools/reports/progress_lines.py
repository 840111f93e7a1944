"""How far a run is, where there is no terminal: a line now and then, for a pipe and for CI."""

from __future__ import annotations

import time
from collections.abc import Callable

from kbtools.reports.forecast import Forecast, in_words
from kbtools.verification.model import Result, Task

INTERVAL = 30.0
"""Seconds between two such lines; a run that takes less has none."""


class ProgressLines:
    """Prints each verdict, and what is left of a long run."""

    def __init__(
        self,
        total: int,
        forecast: Forecast,
        emit: Callable[[str], None],
        remark: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prints how long the run should take, if that is worth a line.

        Args:
            total: Snippets, those that nothing is run of among them.
            forecast: Of this run.
            emit: Prints the line of a verdict.
            remark: Prints what is left, where it disturbs no program that reads verdicts.
            clock: Seconds, from any beginning.
        """
        self.total, self.done, self.forecast = total, 0, forecast
        self._emit, self._remark, self._clock = emit, remark, clock
        self._printed = clock()
        seconds = forecast.seconds
        if seconds >= INTERVAL:
            remark(f"{forecast.total} of {total} snippets to be run, about {in_words(seconds)}")

    def started(self, task: Task, gpus: tuple[int, ...]) -> None:
        """A snippet has begun."""
        self.forecast.started(task.snippet.name)

    def finished(self, result: Result, line: str) -> None:
        """A snippet has ended; `line` is its verdict, or empty where it has none to print."""
        self.forecast.finished(result.task.snippet.name)
        self.done += 1
        if line:
            self._emit(line)
        now = self._clock()
        if now - self._printed >= INTERVAL and self.done < self.total:
            self._printed = now
            left = in_words(self.forecast.seconds)
            self._remark(f"{self.done} of {self.total} done, about {left} left")
