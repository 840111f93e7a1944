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
def base(base: Base) -> Base:
    """A knowledge base with an article about one failure."""
    base.article(literal=FAILURE)
    return base


def python(base: Base, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Runs an interpreter in the folder of a knowledge base."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=base.root,
        env=base.environment(XDG_CACHE_HOME=str(base.root / "cache")),
        input=stdin,
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


def test_the_article_stands_under_the_traceback(base: Base) -> None:
    """The traceback is as it was; then comes the article about the exception."""
    assert same_as_alone(base, script(base, FAILS)) == f"\n{ARTICLE}"


def test_what_failed_first_stands_above_the_article(base: Base) -> None:
    """Of a chain of exceptions the first is named, with an article or without."""
    first = f"\nkbtools: failed first: line 6: {FAILURE}\n"
    assert same_as_alone(base, script(base, CHAIN)) == f"{first}{ARTICLE}"
    unknown = CHAIN.replace("of the day", "of a year")
    assert same_as_alone(base, script(base, unknown)) == first.replace("of the day", "of a year")


@pytest.mark.parametrize(
    "code",
    [
        *("print('well')", "import sys; sys.exit(3)", "raise SystemExit('a message')", "1 /"),
        *("raise ValueError('another')", "import nonesuch", "raise KeyboardInterrupt('x')"),
    ],
)
def test_silent_without_an_article(base: Base, code: str) -> None:
    """Success, exits, syntax errors, Ctrl-C and other failures are as without the hook."""
    assert same_as_alone(base, script(base, code)) == ""


def test_a_program_is_run_as_by_the_interpreter(base: Base) -> None:
    """`__main__`, its file, its arguments and the path of modules are the program's."""
    code = """
import pickle, sys, threading
class Here: pass
print(sys.argv, sys.path[0], __file__, __name__, __spec__, sys.modules["__main__"].Here is Here)
print(type(pickle.loads(pickle.dumps(Here()))) is Here)
threading.Timer(0.2, lambda: print(pickle.dumps(Here)[:2])).start()
"""
    assert same_as_alone(base, script(base, code), "-x", "a b") == ""
    package = base.root / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    show = "import sys; print(sys.argv, sys.path[0], __file__, __package__, __spec__.name)\n"
    (package / "__main__.py").write_text(show + FAILS)
    (package / "part.py").write_text(show)
    assert same_as_alone(base, "-c", f"import sys; print(sys.argv, sys.path[0]); {FAILS}", "x")
    assert same_as_alone(base, "-m", "package.part", "-x") == ""
    added = python(base, "-m", "kbtools.hook", "-m", "package", "x")
    alone = python(base, "-m", "package", "x")
    assert (added.returncode, added.stdout) == (1, alone.stdout)
    assert added.stderr.endswith(ARTICLE)
    assert python(base, "-m", "kbtools.hook", "package").stderr.endswith(ARTICLE)


def test_threads(base: Base) -> None:
    """What a thread does not catch is shown in the same way."""
    code = f"""
import threading
def work(): {FAILS}
threads = [threading.Thread(target=work, name="worker")]
[t.start() for t in threads]
[t.join() for t in threads]
print("well")
"""
    assert same_as_alone(base, script(base, code)) == f"\n{ARTICLE}"


def test_an_earlier_hook_is_kept(base: Base) -> None:
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
    process = python(base, "-c", code)
    assert process.returncode == 1
    assert process.stderr == f"of a thread\n\n{ARTICLE}mine\n\n{ARTICLE}"


def test_nothing_is_imported_before_an_exception(base: Base) -> None:
    """The hook costs a program next to nothing: of kbtools it imports itself alone."""
    code = """
import sys
before = set(sys.modules)
import kbtools.hook
kbtools.hook.install()
print(*set(sys.modules) - before)
"""
    modules = set(python(base, "-c", code).stdout.split())
    assert {name for name in modules if "." in name or name == "kbtools"} <= {
        *("kbtools", "kbtools.hook", "collections.abc")
    }
    assert not modules & {"typing", "re", "enum", "traceback", "msgspec", "click", "re2"}


def test_code_is_compiled_as_by_the_interpreter(base: Base) -> None:
    """Nothing of the hook's own source reaches the program: not its future statements."""
    code = "def f(x: int): ...\nprint(f.__annotations__)"
    assert same_as_alone(base, "-c", code) == ""


def test_an_error_of_kbtools_hides_nothing(base: Base) -> None:
    """Without a knowledge base that can be read: the traceback, and one line."""
    (base.root / "kbtools.toml").write_text("[")
    printed = same_as_alone(base, script(base, FAILS))
    assert re.fullmatch(r"\nkbtools: no article was looked for: .*\n", printed)


def test_the_versions_of_the_process_count(base: Base) -> None:
    """An article about other versions than those of this process is not sure."""
    base.article(literal=FAILURE, matter='affected: [{"python": "<3"}]')
    printed = same_as_alone(base, "-c", FAILS)
    assert (
        "not sure: the versions in the log are not affected (python <3 is affected; the log shows"
        in printed
    )


TESTS = f"""
import sys, pytest

@pytest.fixture
def broken():
    {FAILS}

def test_call(): {FAILS}
def test_set_up(broken): pass
def test_printed():
    print({FAILURE!r}, file=sys.stderr)
    assert False
def test_another(): assert 1 == 2
def test_well(): print({FAILURE!r})
"""


def output_of_pytest(base: Base, *words: str) -> str:
    """What pytest prints of these tests."""
    file = base.root / "test_it.py"
    file.write_text(TESTS, "utf-8")
    return python(base, "-m", "pytest", "-p", "no:cacheprovider", file.name, *words).stdout


@pytest.mark.parametrize(
    "words", [[], ["--tb=short"], ["--tb=native"], ["--show-capture=no"], ["-n", "1"]]
)
def test_pytest_shows_the_article(base: Base, words: list[str]) -> None:
    """With `--diagnose`, the report of each test whose failure has an article has a section."""
    printed = output_of_pytest(base, "--diagnose", *words)
    assert "3 failed, 1 passed, 1 error" in printed
    assert printed.count("KB0001: Do it right.") == 3
    assert re.search(r"-+ kbtools -+\nkbtools: KB0001: Do it right.\n  kbtools explain", printed)


def test_pytest_writes_the_article_to_junit(base: Base, tmp_path: Path) -> None:
    """It is part of the JUnit report."""
    output_of_pytest(base, "--diagnose", f"--junitxml={tmp_path / 'report.xml'}")
    cases = ET.parse(tmp_path / "report.xml").getroot().findall(".//testcase")
    names = {c.attrib["name"] for c in cases if "KB0001: Do it right." in "".join(c.itertext())}
    assert names == {"test_call", "test_set_up", "test_printed"}


def test_a_setting_turns_it_on(base: Base) -> None:
    """`kbtools_diagnose = true` turns it on; with neither, nothing is shown and imported."""
    (base.root / "pytest.ini").write_text("[pytest]\nkbtools_diagnose = true\n")
    assert output_of_pytest(base).count("KB0001: Do it right.") == 3
    (base.root / "pytest.ini").unlink()
    assert "KB0001" not in output_of_pytest(base)
    (base.root / "conftest.py").write_text(
        "import sys\n"
        "def pytest_unconfigure():\n"
        "    print('loaded', *(m for m in sys.modules if m.startswith('kbtools')))\n"
    )
    modules = output_of_pytest(base).rpartition("loaded ")[2].split()
    assert modules == ["kbtools", "kbtools.integrations", "kbtools.integrations.pytest_plugin"]


def test_an_error_of_kbtools_is_a_line_of_the_report(base: Base) -> None:
    """Without a knowledge base that can be read, tests fail as they did, and the report says so."""
    (base.root / "kbtools.toml").write_text("[")
    printed = output_of_pytest(base, "--diagnose")
    assert "3 failed, 1 passed, 1 error" in printed
    assert printed.count("no article was looked for: ") == 4
