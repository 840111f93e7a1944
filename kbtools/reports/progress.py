"""How far a run is, live on a terminal: what runs now, on which GPU, and what is left."""

from __future__ import annotations

import threading
import time

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kbtools.reports.forecast import Forecast, in_words
from kbtools.verification.model import Result, Task


class Progress:
    """What runs now, on which GPU, for how long; a context manager around the run."""

    def __init__(self, total: int, forecast: Forecast, console: Console) -> None:
        """Prints nothing yet.

        Args:
            total: Snippets, those that nothing is run of among them.
            forecast: Of this run.
            console: A terminal.
        """
        self.total, self.done, self.forecast = total, 0, forecast
        self._running: dict[str, tuple[float, tuple[int, ...]]] = {}
        self._lock = threading.Lock()
        self._live = Live(get_renderable=self._table, console=console, transient=True)

    def __enter__(self) -> Progress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def started(self, task: Task, gpus: tuple[int, ...]) -> None:
        """A snippet has begun, on these GPUs."""
        self.forecast.started(task.snippet.name)
        with self._lock:
            self._running[task.snippet.name] = (time.monotonic(), gpus)

    def finished(self, result: Result, line: str) -> None:
        """A snippet has ended; `line`, unless it is empty, stays on the screen."""
        self.forecast.finished(result.task.snippet.name)
        with self._lock:
            self._running.pop(result.task.snippet.name, None)
            self.done += 1
        if line:
            self._live.console.print(Text.from_ansi(line), soft_wrap=True)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        with self._lock:
            running = sorted(self._running.items(), key=lambda item: item[1][0])
        left = f"about {in_words(self.forecast.seconds)} left"
        table.add_row(
            Text(f"{self.done}/{self.total}", style="bold"), f"{len(running)} running", left
        )
        for name, (since, gpus) in running:
            where = f"GPU {', '.join(map(str, gpus))}" if gpus else "CPU"
            table.add_row(name, where, f"{time.monotonic() - since:.0f} s")
        return table
