"""What a snippet finds: an ordinary interpreter, the article's lines, no module of kbtools."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest
from bases import Base, Finished, fence

WORKS = {
    "inspect-finds-the-source": """
        import inspect

        def function():
            return "a function"

        class Class:
            attribute = "a class"

        assert "a function" in inspect.getsource(function)
        assert "a class" in inspect.getsource(Class)
        """,
    "it-is-a-script": """
        import sys

        assert __name__ == "__main__" and sys.argv == [__file__], (__name__, sys.argv)
        """,
    "none-of-our-modules-is-there": """
        import importlib, sys

        for name in ("child", "keeper", "sandbox", "zygote", "output", "slots"):
            assert name not in sys.modules, name
            try:
                module = importlib.import_module(name)
            except ModuleNotFoundError:
                continue
            raise AssertionError(module)
        import kbtools.repro
        """,
    "temporary-files-are-its-own": """
        import os, tempfile

        assert os.listdir(tempfile.gettempdir()) == []
        with tempfile.NamedTemporaryFile() as file:
            assert file.name.startswith(os.getenv("TMPDIR"))
        """,
    "processes-by-fork": """
        import multiprocessing

        def double(x):
            return 2 * x

        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                assert pool.map(double, range(3)) == [0, 2, 4]
        """,
    "processes-by-spawn": """
        import multiprocessing

        def double(x):
            return 2 * x

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                assert pool.map(double, range(3)) == [0, 2, 4]
        """,
    "a-process-is-waited-for": """
        import multiprocessing, time

        def late():
            time.sleep(0.3)
            print("the child has spoken")

        multiprocessing.get_context("fork").Process(target=late).start()
        """,
    "a-thread-is-waited-for": """
        import threading, time

        def late():
            time.sleep(0.3)
            print("the thread has spoken")

        threading.Thread(target=late).start()
        """,
    "its-exit-handlers-run": "import atexit\n\natexit.register(print, 'the handler has spoken')",
    "no-token-of-the-caller": """
        import os

        assert os.getenv("PATH") and not os.getenv("GITHUB_TOKEN") and not os.getenv("HF_TOKEN")
        assert os.getenv("OMP_NUM_THREADS") == "2"
        assert b"hunter2" not in open("/proc/self/environ", "rb").read()
        """,
    "shared-memory-is-its-own": """
        import os

        assert os.listdir("/dev/shm") == []
        open("/dev/shm/left-behind", "w").close()
        """,
    "shared-memory-is-still-its-own": "import os\n\nassert os.listdir('/dev/shm') == []",
    "caches-are-empty": """
        import os

        for name in ("CUDA_CACHE_PATH", "OWN_CACHE", "OTHER_CACHE"):
            folder = os.getenv(name)
            print(folder)
            assert not os.path.exists(folder)
            os.makedirs(folder)
        """,
    "caches-are-still-empty": """
        import os

        assert not os.path.exists(os.getenv("OWN_CACHE"))
        assert os.getenv("SETTING") == "7"
        """,
}
VARIABLES = """
OWN_CACHE = "{cache}/own"
OTHER_CACHE = "{cache}/other"
SETTING = "7"
"""
STOPS = {
    "a-fork-reaches-the-end-in-its-place": """
        import os

        if os.fork():
            os.wait()
            os._exit(0)
        """,
}
BASH_STOPS = {
    "exit": "exit 0\nfalse",
    "return": "return 0\nfalse",
    "failing-command": "false\ntrue",
    "failing-pipe": "false | cat\ntrue",
    "unset-variable": "echo $UNSET\ntrue",
    "failing-end": "set +e\nfalse",
}


@pytest.fixture(scope="module", params=["fork", "spawn"])
def run(request: pytest.FixtureRequest, new_base: Callable[..., Base]) -> tuple[Base, Finished]:
    """All of them in one article: the base, and what the run left."""
    base = new_base(f"timeout = 30\n[run.preload]\npackaging = 'os'\n[run.variables]\n{VARIABLES}")
    fences = [fence(f"python control id={name}", code) for name, code in WORKS.items()]
    fences += [fence(f"python fix id={name}", code) for name, code in STOPS.items()]
    fences += [fence(f"bash fix id=bash-{name}", code) for name, code in BASH_STOPS.items()]
    fences += [
        fence("bash control id=bash-works", 'echo "$0" "$LINENO"\nfalse || true'),
        fence("python repro id=r1", "def fails():\n    raise OSError('the failure')\n\nfails()"),
        fence("python control id=c0", "unit = 1\n\ndef two():\n    return unit + unit"),
        fence("python control id=c1 after=c0", "three = two() + unit"),
        fence("python repro id=r2 after=c1", "raise OSError(f'the failure {three}')"),
        fence('python control id=env env="SEEN=yes"', "import os\nassert os.getenv('SEEN')"),
        fence("python repro id=crash fails=exit:3", "import os\nprint('printed')\nos._exit(3)"),
    ]
    base.article(*fences)
    done = base.verify(
        *("--isolation", request.param, "-j", "3"), GITHUB_TOKEN="hunter2", HF_TOKEN="hunter2"
    )
    assert done.json, done.err
    return base, done


def output(done: Finished, name: str) -> str:
    """What a snippet printed."""
    outcome: dict[str, Any] = done.result(name)["outcome"]
    return str(outcome.get("output", ""))


def line_of(base: Base, text: str) -> int:
    """The line of the article that begins with a text."""
    lines = (base.root / "kb" / "KB0001-an-article.md").read_text("utf-8").splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.strip().startswith(text))


@pytest.mark.parametrize("name", [*WORKS, "bash-works", "c1", "env"])
def test_it_works_as_in_a_script(run: tuple[Base, Finished], name: str) -> None:
    """What works in a script of its own works in a snippet."""
    result = run[1].result(name)
    assert result["verdict"] == "holds", result


@pytest.mark.parametrize("part", ["child", "thread", "handler"])
def test_the_end_is_that_of_an_interpreter(run: tuple[Base, Finished], part: str) -> None:
    """Before a snippet ends, its processes and threads are waited for and its handlers run."""
    names = {
        "child": "a-process-is-waited-for",
        "thread": "a-thread-is-waited-for",
        "handler": "its-exit-handlers-run",
    }
    assert output(run[1], names[part]) == f"the {part} has spoken\n"


def test_a_traceback_names_the_line_in_the_article(run: tuple[Base, Finished]) -> None:
    """Every frame of a traceback is at the article's path and line, with its source."""
    base, done = run
    printed, line = output(done, "r1"), line_of(base, "raise OSError('the failure')")
    place = f'File "kb/KB0001-an-article.md", line {line}, in fails\n'
    assert place + "    raise OSError('the failure')\n" in printed
    assert printed.count("File ") == 2, "no frame of the runner"


def test_a_continued_snippet_keeps_names_and_lines(run: tuple[Base, Finished]) -> None:
    """`after=` continues the file: names are there, and lines are still the article's."""
    base, done = run
    line = line_of(base, "raise OSError(f'the failure {three}')")
    assert f'File "kb/KB0001-an-article.md", line {line}, in <module>' in output(done, "r2")
    assert "OSError: the failure 3" in output(done, "r2")


def test_what_was_printed_outlives_a_crash(run: tuple[Base, Finished]) -> None:
    """A line that was printed is kept though the process never flushed it."""
    assert output(run[1], "crash") == "printed\n"


def test_a_fork_that_reaches_the_end_is_no_pass(run: tuple[Base, Finished]) -> None:
    """A snippet that exits half-way has not passed, though a fork of it reached the last line."""
    result = run[1].result("a-fork-reaches-the-end-in-its-place")
    assert (result["verdict"], result["outcome"]["status"]) == ("broken", "stopped")


@pytest.mark.parametrize("name", BASH_STOPS)
def test_bash_ends_at_the_first_failure(run: tuple[Base, Finished], name: str) -> None:
    """A bash snippet passes if it reaches its end and no command fails, never otherwise."""
    result = run[1].result(f"bash-{name}")
    assert result["verdict"] == "broken", result


def test_a_bash_error_names_the_line_in_the_article(run: tuple[Base, Finished]) -> None:
    """What bash says of a line is about the article's line."""
    base, done = run
    line = line_of(base, "echo $UNSET")
    assert f"kb/KB0001-an-article.md: line {line}: UNSET" in output(done, "bash-unset-variable")


def test_no_file_is_written_outside(base: Base) -> None:
    """A snippet can change no file but those in its scratch folder, and send no signal outside."""
    skip_unless(base, "files")
    victim = base.root / "victim"
    victim.write_text("unchanged", "utf-8")
    for number, attempt in enumerate(
        (f"open({str(victim)!r}, 'w')", f"os.remove({str(victim)!r})", f"os.mkdir('{victim}-2')"), 1
    ):
        base.article(fence("python repro fails=OSError", f"import os\n{attempt}"), number=number)
    assert set(base.verify().verdicts.values()) == {"reproduced"}
    assert victim.read_text("utf-8") == "unchanged"


def test_no_network_but_the_loopback(base: Base) -> None:
    """A snippet reaches itself over the loopback, and nothing else."""
    skip_unless(base, "network")
    loopback = """
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()
    """
    outside = "import socket\n\nsocket.create_connection(('192.0.2.1', 80), timeout=5)"
    base.article(
        fence("python control", loopback),
        fence("python repro fails=OSError", outside),
    )
    done = base.verify()
    assert set(done.verdicts.values()) == {"holds", "reproduced"}
    assert "unreachable" in done.result("repro1")["reason"]


def skip_unless(base: Base, part: str) -> None:
    """Skips the test where the kernel refuses a part of the sandbox."""
    [state] = [s for s in base.kbtools("env").out.splitlines() if s.startswith(f"sandbox, {part}")]
    if not state.endswith(" yes"):
        pytest.skip(state)


def test_cuda_is_compiled(base: Base) -> None:
    """A CUDA snippet that asks for nvcc alone is compiled, not run; its errors name the article."""
    if not shutil.which("nvcc"):
        pytest.skip("nvcc is not on the PATH")
    base.article(
        fence("cuda control requires=nvcc", "__global__ void kernel(int *x) { *x = 1; }"),
        fence("cuda repro requires=nvcc id=r1", "#error the failure"),
        fence("cuda control requires=gpu id=c2", "int main() { return 0; }"),
    )
    done = base.verify()
    assert set(done.verdicts.values()) >= {"holds", "reproduced"}
    assert f"kb/KB0001-an-article.md:{line_of(base, '#error')}" in output(done, "r1")


def test_a_fork_that_inherits_torch(new_base: Callable[..., Base]) -> None:
    """With torch imported before the fork, Inductor, a backward pass and processes work in it."""
    pytest.importorskip("torch", reason="torch is not installed here")
    if not shutil.which("c++"):
        pytest.skip("no C++ compiler")
    base = new_base("[run.preload]\ntorch = 'torch'\n\"torch._inductor.compile_fx\" = 'compile'")
    compiles = """
    import torch

    @torch.compile
    def double(x):
        return x * 2

    assert torch.equal(double(torch.ones(8)), torch.full((8,), 2.0))
    """
    multiplies = """
    import torch

    torch.ones(512, 512, requires_grad=True).mm(torch.ones(512, 512)).sum().backward()
    """
    base.article(
        fence("python control id=compiles", compiles),
        fence("python control id=multiplies", multiplies),
        fence("python control id=late", WORKS["a-process-is-waited-for"]),
    )
    done = base.verify("--timeout", "120", "-j", "1", timeout=240)
    assert set(done.verdicts.values()) == {"holds"}, done.out
    assert output(done, "late") == "the child has spoken\n"


def test_what_it_printed_names_no_folder_of_the_run(base: Base) -> None:
    """Evidence names the snippet's file, the helper and its folders the same on every machine."""
    code = """
    import os
    import kbtools.repro

    print(__file__, kbtools.repro.__file__, os.environ["HOME"], os.getcwd())
    """
    base.article(fence("python control", code))
    assert base.verify("--record").code == 0
    [row] = base.rows()
    file, helper, home, folder = row["outcome"]["output"].split()
    assert (file, helper) == ("kb/KB0001-an-article.md", "<kbtools>/repro.py")
    assert home.startswith("<scratch>/") and folder.startswith("<scratch>/")
