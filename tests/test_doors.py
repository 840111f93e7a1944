"""The excepthook and the pytest plugin: the article where a program or a test fails."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from bases import Base

FAILURE = "RuntimeError: the failure of the day"
FAILS = "raise RuntimeError('the failure of the day')"
ARTICLE = "kbtools: KB0001: Do it right.\n  kbtools explain KB0001\n"


@pytest.fixture
def known(base: Base) -> Base:
    """A knowledge base that knows one failure."""
    base.article(literal=FAILURE)
    return base


def python(base: Base, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Runs an interpreter in the folder of a knowledge base."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=base.root,
        env=base.environment(XDG_CACHE_HOME=str(base.root / "cache")),
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
    )


def same_as_alone(base: Base, *words: str) -> str:
    """What the hook adds; all else must be as it is without it, frames and exit code included."""
    alone, hooked = python(base, *words), python(base, "-m", "kbtools.hook", *words)
    assert (hooked.returncode, hooked.stdout) == (alone.returncode, alone.stdout)
    assert hooked.stderr.startswith(alone.stderr)
    return hooked.stderr.removeprefix(alone.stderr)


def script(base: Base, code: str) -> str:
    """The path of a script."""
    file = base.root / "a script.py"
    file.write_text(code, "utf-8")
    return str(file)


CHAIN = f"""
def inner():
    {FAILS}

def outer():
    try:
        inner()
    except RuntimeError:
        raise ValueError("another")

outer()
"""


@pytest.mark.parametrize("code", [FAILS, CHAIN], ids=["plain", "chain"])
def test_the_article_stands_under_the_traceback(known: Base, code: str) -> None:
    """An exception, or one that it came of, is known: the traceback as it was, then the article."""
    assert same_as_alone(known, script(known, code)) == f"\n{ARTICLE}"


@pytest.mark.parametrize(
    "code",
    [
        *("print('well')", "import sys; sys.exit(3)", "raise SystemExit('a message')", "1 /"),
        *("raise ValueError('another')", "import nonesuch", "raise KeyboardInterrupt('x')"),
    ],
)
def test_silent_without_a_known_failure(known: Base, code: str) -> None:
    """Success, exits, syntax errors, Ctrl-C and other failures are as without the hook."""
    assert same_as_alone(known, script(known, code)) == ""


def test_a_program_is_run_as_by_the_interpreter(known: Base) -> None:
    """`__main__`, its file, its arguments and the path of modules are the program's."""
    code = """
import pickle, sys, threading
class Here: pass
print(sys.argv, sys.path[0], __file__, __name__, __spec__, sys.modules["__main__"].Here is Here)
print(type(pickle.loads(pickle.dumps(Here()))) is Here)
threading.Timer(0.2, lambda: print(pickle.dumps(Here)[:2])).start()
"""
    assert same_as_alone(known, script(known, code), "-x", "a b") == ""
    package = known.root / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    show = "import sys; print(sys.argv, sys.path[0], __file__, __package__, __spec__.name)\n"
    (package / "__main__.py").write_text(show + FAILS)
    (package / "part.py").write_text(show)
    assert same_as_alone(known, "-c", f"import sys; print(sys.argv, sys.path[0]); {FAILS}", "x")
    assert same_as_alone(known, "-m", "package.part", "-x") == ""
    added = python(known, "-m", "kbtools.hook", "-m", "package", "x")
    alone = python(known, "-m", "package", "x")
    assert (added.returncode, added.stdout) == (1, alone.stdout)
    assert added.stderr.endswith(ARTICLE)
    assert python(known, "-m", "kbtools.hook", "package").stderr.endswith(ARTICLE)


def test_threads(known: Base) -> None:
    """What a thread does not catch is shown in the same way."""
    code = f"""
import threading
def work(): {FAILS}
threads = [threading.Thread(target=work, name="worker")]
[t.start() for t in threads]
[t.join() for t in threads]
print("well")
"""
    assert same_as_alone(known, script(known, code)) == f"\n{ARTICLE}"


def test_an_earlier_hook_is_kept(known: Base) -> None:
    """Hooks that were there before `install()` do their work first, of threads too."""
    code = f"""
import sys, threading
sys.excepthook = lambda *_: print("mine", file=sys.stderr)
threading.excepthook = lambda _: print("of a thread", file=sys.stderr)
import kbtools.hook
kbtools.hook.install()
kbtools.hook.install()
def work(): {FAILS}
t = threading.Thread(target=work); t.start(); t.join()
{FAILS}
"""
    done = python(known, "-c", code)
    assert done.returncode == 1
    assert done.stderr == f"of a thread\n\n{ARTICLE}mine\n\n{ARTICLE}"


def test_nothing_is_imported_before_there_is_an_exception(known: Base) -> None:
    """The hook costs a program nothing: of kbtools it brings itself alone."""
    code = """
import kbtools.hook, sys
kbtools.hook.install()
print(*(name for name in sys.modules if name.startswith(("kbtools", "msgspec", "click", "re2"))))
"""
    assert python(known, "-c", code).stdout.split() == ["kbtools", "kbtools.hook"]


def test_a_fault_of_ours_hides_nothing(known: Base) -> None:
    """Without a knowledge base that can be read: the traceback, and one line."""
    (known.root / "kbtools.toml").write_text("[")
    said = same_as_alone(known, script(known, FAILS))
    assert re.fullmatch(r"\nkbtools: no article was looked for: .*\n", said)


def test_versions_are_those_of_the_process(known: Base) -> None:
    """An article about other versions than those of this process is not sure."""
    known.article(literal=FAILURE, matter='affected: [{"python": "<3"}]')
    said = same_as_alone(known, "-c", FAILS)
    assert "not sure: the versions in the log are not affected (python <3 is; the log shows" in said


TESTS = f"""
import sys, pytest

@pytest.fixture
def broken():
    {FAILS}

def test_known(): {FAILS}
def test_set_up(broken): pass
def test_printed():
    print({FAILURE!r}, file=sys.stderr)
    assert False
def test_another(): assert 1 == 2
def test_well(): print({FAILURE!r})
"""


def shown_by_pytest(base: Base, *words: str) -> str:
    """What pytest prints of these tests."""
    file = base.root / "test_it.py"
    file.write_text(TESTS, "utf-8")
    return python(base, "-m", "pytest", "-p", "no:cacheprovider", file.name, *words).stdout


@pytest.mark.parametrize(
    "words", [[], ["--tb=short"], ["--tb=native"], ["--show-capture=no"], ["-n", "1"]]
)
def test_pytest_shows_the_article(known: Base, words: list[str]) -> None:
    """With `--diagnose`, a section of the report of each test that fails with a known failure."""
    said = shown_by_pytest(known, "--diagnose", *words)
    assert "3 failed, 1 passed, 1 error" in said
    assert said.count("KB0001: Do it right.") == 3
    assert re.search(r"-+ kbtools -+\nkbtools: KB0001: Do it right.\n  kbtools explain", said)


def test_pytest_writes_the_article_to_junit(known: Base, tmp_path: Path) -> None:
    """It is part of the JUnit report."""
    shown_by_pytest(known, "--diagnose", f"--junitxml={tmp_path / 'report.xml'}")
    cases = ET.parse(tmp_path / "report.xml").getroot().findall(".//testcase")
    shown = {c.attrib["name"] for c in cases if "KB0001: Do it right." in "".join(c.itertext())}
    assert shown == {"test_known", "test_set_up", "test_printed"}


def test_pytest_is_asked_by_a_setting(known: Base) -> None:
    """`kbtools_diagnose = true` turns it on; with neither, nothing is shown and imported."""
    (known.root / "pytest.ini").write_text("[pytest]\nkbtools_diagnose = true\n")
    assert shown_by_pytest(known).count("KB0001: Do it right.") == 3
    (known.root / "pytest.ini").unlink()
    assert "KB0001" not in shown_by_pytest(known)
    (known.root / "conftest.py").write_text(
        "import sys\n"
        "def pytest_unconfigure():\n"
        "    print('loaded', *(m for m in sys.modules if m.startswith('kbtools')))\n"
    )
    loaded = shown_by_pytest(known).splitlines()[-1].split()
    assert loaded == [
        "loaded",
        "kbtools",
        "kbtools.integrations",
        "kbtools.integrations.pytest_plugin",
    ]


def test_a_fault_of_ours_is_a_line_of_the_report(known: Base) -> None:
    """Without a knowledge base that can be read, tests fail as they did, and the report says so."""
    (known.root / "kbtools.toml").write_text("[")
    said = shown_by_pytest(known, "--diagnose")
    assert "3 failed, 1 passed, 1 error" in said
    assert said.count("no article was looked for: ") == 4
