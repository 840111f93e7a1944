"""Which environment variables a snippet changes; where that is not sure, it gets an interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bases import Base, fence

from kbtools.running import Run
from kbtools.running.environment import base_environment, snippet_environment
from kbtools.running.variables import OF_EACH_RUN, changed_variables

SURE: dict[str, set[str]] = {
    "x = 1": set(),
    "import os\nprint(os.environ['A'], os.environ.get('B'), 'C' in os.environ)": set(),
    "import os\nenv = {**os.environ, 'A': '1'}": set(),
    "import os\nenv = os.environ.copy()\nenv['A'] = '1'": set(),
    "import os\nos.environ['A'] = os.environ['B']": {"A"},
    "import os\ndel os.environ['A']": {"A"},
    "import os\nos.environ.setdefault('A', '1')\nos.environ.pop('B', None)": {"A", "B"},
    "import os\nos.environ['A'] += '1'": {"A"},
    '"""It sets os.environ."""': set(),
}
UNSURE = (
    "import os\nfor name in 'AB': os.environ[name] = '1'",
    "import os\nos.environ.update(A='1')",
    "import os\nos.environ.clear()",
    "import os\nos.environ |= {'A': '1'}",
    "import os\nos.environ = {}",
    "import os\nalias = os.environ",
    "import os\nchange(os.environ)",
    "import os\npop = os.environ.pop\npop('A')",
    "import os\nos.environ.__setitem__('A', '1')",
    "import os\nos.environ.setdefault(*names)",
    "import os\n{os.environ: 1}",
    "import os\nos.environb[b'A'] = b'1'",
    "import os\nos.putenv('A', '1')",
    "from os import environ\nenviron['A'] = '1'",
    "from os import environ as surroundings",
    "import os as system\nsystem.environ['A'] = '1'",
    "import os\ngetattr(os, 'environ')['A'] = '1'",
    "exec('import os; os.environ[chr(65)] = chr(65)')",
    "f'{os.environ!r}' if (environ := 1) else 0",
    "def environ(): pass",
    "import os\nos.environ['A' = 1",
)


@pytest.mark.parametrize("source", SURE)
def test_a_change_that_is_sure(source: str) -> None:
    """Reading changes nothing, and a variable that is named can be told."""
    assert changed_variables(source) == frozenset(SURE[source])


@pytest.mark.parametrize("source", UNSURE)
def test_a_change_that_is_not_sure(source: str) -> None:
    """Anything else gets an interpreter of its own."""
    assert changed_variables(source) is None
    assert Run(source=source, language="python", display_path="").isolation == "spawn"


def test_what_every_fork_has_of_its_own(tmp_path: Path) -> None:
    """Each of the variables that a fork may change is another one in every run."""
    run = Run(source="", language="python", display_path="", gpus=(0,))
    base = base_environment(sys.executable)
    first = snippet_environment(base, run, tmp_path / "1", tmp_path)
    second = snippet_environment(base, Run("", "python", "", gpus=(1,)), tmp_path / "2", tmp_path)
    assert {name for name in first if first[name] != second[name]} >= OF_EACH_RUN


def test_a_fork_and_a_fresh_interpreter_see_the_same(base: Base) -> None:
    """A variable that a fence changes is the same in a fork; the outcome says which it was."""
    shows = "import os\n\nprint(sorted(os.environ.items()))\nassert os.environ['{}'] == '7'"
    forks = fence(
        "python control id=forks env='CUDA_VISIBLE_DEVICES=7'".replace("'", '"'),
        shows.format("CUDA_VISIBLE_DEVICES"),
    )
    fresh = fence("python control id=fresh env='OTHER=7'".replace("'", '"'), shows.format("OTHER"))
    base.article(forks, fresh)
    done = base.verify()
    assert done.verdicts == {"KB0001/forks": "holds", "KB0001/fresh": "holds"}
    isolations = [done.result(name)["outcome"]["isolation"] for name in ("forks", "fresh")]
    assert isolations == ["fork", "spawn"]
