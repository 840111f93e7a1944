"""How long a run still takes, and what is printed of that where there is no terminal."""

from __future__ import annotations

import pytest
from test_expected import ARTICLE, SNIPPETS

from kbtools.evidence.verdicts import Expectation, Verdict, VerdictName
from kbtools.reports.forecast import PRIOR, Forecast, in_words
from kbtools.reports.progress_lines import INTERVAL, ProgressLines
from kbtools.toolchains.model import Toolchain
from kbtools.verification.model import Result, Task

TASKS = tuple(
    Task(ARTICLE, snippet, Toolchain(python="3.11.7", packages={}), Expectation("passes", ""))
    for snippet in SNIPPETS
)


class Clock:
    """A clock that is set by hand."""

    seconds = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.seconds


def test_before_the_run() -> None:
    """The work divided among the jobs, and at least the longest snippet."""
    assert Forecast({"a": 30, "b": 30, "c": 60}, 2).seconds == pytest.approx(60, abs=0.1)
    assert Forecast({"a": 10, "b": 90}, 2).seconds == pytest.approx(90, abs=0.1)
    assert Forecast({}, 2).seconds == 0


def test_at_the_recorded_pace() -> None:
    """A run that takes what was recorded has its estimate shrink as the clock goes."""
    clock = Clock()
    forecast = Forecast({"a": 30, "b": 30}, 1, clock)
    forecast.started("a")
    for clock.seconds in (10, 20, 30):
        assert forecast.seconds == pytest.approx(60 - clock.seconds)
    forecast.finished("a")
    assert forecast.seconds == pytest.approx(30)


def test_a_slower_machine() -> None:
    """The pace so far corrects the rest, more and more: at twice the time, up to twice the rest."""
    clock = Clock()
    forecast = Forecast({"a": PRIOR, "b": PRIOR, "c": 30}, 1, clock)
    estimates = []
    for name in "ab":
        forecast.started(name)
        clock.seconds += 2 * PRIOR
        forecast.finished(name)
        estimates.append(forecast.seconds)
    assert estimates == [pytest.approx(1.5 * (PRIOR + 30)), pytest.approx(5 / 3 * 30)]


def test_a_snippet_that_exceeds_its_time() -> None:
    """What takes longer than expected is not counted as more work done than it is."""
    clock = Clock()
    forecast = Forecast({"a": 10, "b": 10}, 1, clock)
    forecast.started("a")
    clock.seconds = 100
    late = forecast.seconds
    clock.seconds = 200
    assert forecast.seconds > late > 10


def test_what_is_remembered_says_nothing_of_the_pace() -> None:
    """A result without a run takes its seconds out of the rest, and makes the run no faster."""
    clock = Clock()
    forecast = Forecast({"a": 600, "b": 30}, 1, clock)
    forecast.finished("a")
    assert forecast.seconds == pytest.approx(30)


def test_a_run_that_is_confirmed() -> None:
    """A snippet that begins a second time is expected to take its time again."""
    clock = Clock()
    forecast = Forecast({"a": 30}, 1, clock)
    forecast.started("a")
    clock.seconds = 30
    assert forecast.seconds == 0
    forecast.started("a")
    assert forecast.seconds > 30


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "10 s"), (44, "40 s"), (94, "90 s"), (96, "2 min"), (400, "7 min")],
)
def test_in_words(seconds: float, words: str) -> None:
    """No more digits than an estimate has."""
    assert in_words(seconds) == words


def lines_of(expected: dict[str, float], pauses: tuple[float, ...]) -> tuple[list[str], list[str]]:
    """The verdicts and the remarks of a run whose snippets end after these pauses."""
    clock, verdicts, remarks = Clock(), list[str](), list[str]()
    forecast = Forecast(expected, 1, clock)
    progress = ProgressLines(len(TASKS), forecast, verdicts.append, remarks.append, clock)
    for task, pause in zip(TASKS, pauses, strict=True):
        progress.started(task, ())
        clock.seconds += pause
        result = Result(task, Verdict(VerdictName.HOLDS, "ran to its end"))
        progress.finished(result, task.snippet.id)
    return verdicts, remarks


def test_lines_of_a_long_run() -> None:
    """A pipe gets what the run should take, and now and then what is left; not at its end."""
    expected = {task.snippet.name: INTERVAL for task in TASKS}
    verdicts, remarks = lines_of(expected, (INTERVAL / 2, INTERVAL / 2, INTERVAL))
    assert verdicts == [task.snippet.id for task in TASKS]
    assert remarks == ["3 of 3 snippets to be run, about 90 s", "2 of 3 done, about 20 s left"]


def test_a_short_run_has_no_such_lines() -> None:
    """Where a run takes seconds, nothing but the verdicts is printed."""
    expected = {task.snippet.name: 1.0 for task in TASKS}
    assert lines_of(expected, (1, 1, 1))[1] == []
