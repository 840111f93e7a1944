"""What failed first: each log of `first_failures/` shows a behaviour, and the line it is about."""

from __future__ import annotations

import io
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from commands import run_command

from kbtools.matching import FirstFailure, Matcher, load, log_ends

ROOT = Path(__file__).parent.parent
LOGS = ROOT / "tests" / "first_failures"
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((LOGS / "expected.toml").read_text("utf-8"))
MATCHER = Matcher(load(ROOT))


def first_of(log: str) -> FirstFailure:
    """What failed first in a log in which something did."""
    first = MATCHER.diagnose(log).first
    assert first is not None
    return first


def test_every_log_is_listed() -> None:
    """No log without an expected answer, no answer without its log."""
    assert sorted(EXPECTED) == sorted(file.name for file in LOGS.glob("*.log"))


@pytest.mark.parametrize("name", EXPECTED)
def test_what_failed_first(name: str) -> None:
    """The line that the others follow from, who printed it, and what follows from it."""
    first = MATCHER.diagnose((LOGS / name).read_text("utf-8")).first
    expected = EXPECTED[name]
    if not expected["line"]:
        assert first is None
        return
    assert first is not None
    values = {key: getattr(first, key) for key in expected}
    assert values | {"echoes": list(values["echoes"])} == expected
    assert first.confident is not bool(first.why)


def test_every_article_has_a_first_failure() -> None:
    """A log whose failure has an article and reads as an error has a first failure."""
    for file in sorted((ROOT / "tests" / "logs").glob("*.log")):
        answer = MATCHER.diagnose(file.read_bytes().decode("utf-8", "replace"))
        if answer.matches and answer.matches[0].confident:
            assert answer.first is not None, file.name


def test_a_program_that_goes_on_has_none() -> None:
    """An exception that a program says to have dealt with is no failure."""
    log = 'Traceback (most recent call last):\n  File "a.py", line 1\nOSError: disk\n'
    assert first_of(log).text == "OSError: disk"
    assert MATCHER.diagnose(f"{log}retrying in 5 s\nepoch 2").first is None


@pytest.mark.parametrize(
    ("log", "line"),
    [
        # TensorRT-LLM has its own form for an error of CUDA; Open MPI reports the end
        (
            "[TensorRT-LLM][INFO] Engine version 0.18.0 found\n"
            "[TensorRT-LLM][ERROR] Encountered an error when fetching new request: "
            "[TensorRT-LLM][ERROR] CUDA runtime error in cudaMalloc(&p): out of memory (a.h:134)\n"
            "mpirun noticed that rank 0 with PID 12 on node n exited on signal 6 (Aborted).\n",
            2,
        ),
        # srun --label and kubectl --prefix put the rank or the pod in front of every line
        (
            "0: step 10\n3: Traceback (most recent call last):\n1: step 10\n"
            '3:   File "train.py", line 41, in <module>\n3: ValueError: no data\n'
            "srun: error: gpu187: task 3: Exited with exit code 1\n"
            "slurmstepd: error: *** STEP 30.0 ON gpu187 CANCELLED AT 2025-07-01T10:00:00 ***\n",
            5,
        ),
        (
            "[pod/trainer-0/main] 2025-07-01T10:00:00.12Z step 10\n"
            "[pod/trainer-3/main] 2025-07-01T10:00:03.12Z Traceback (most recent call last):\n"
            '[pod/trainer-3/main] 2025-07-01T10:00:03.12Z   File "train.py", line 41, in <module>\n'
            "[pod/trainer-3/main] 2025-07-01T10:00:03.12Z ValueError: no data\n"
            "[pod/trainer-0/main] 2025-07-01T10:00:09Z RuntimeError: Connection closed by peer\n",
            4,
        ),
        # what ptxas says is the cause of Triton's exception, and the end of its work is not
        (
            "PTXASError: PTXAS error: no cubin\n`ptxas` stderr:\n"
            "ptxas /tmp/a.ptx, line 6; error   : Feature 'x' not supported on .target sm_90\n"
            "ptxas fatal   : Ptx assembly aborted due to errors\n",
            3,
        ),
        ("gcc: error trying to exec 'cc1plus': execvp: No such file or directory\n", 1),
        # a heading is no exception
        ("**Error:**\n\n```bash\nValueError: one thing\n```\n", 4),
        # TensorFlow's and XLA's lines
        (
            "2023-10-06 13:14:53.37: W a/asm.cc:2] ptxas is too old\n"
            "2023-10-06 13:14:53.424902: E a/driver.cc:864] failed to load: INVALID_IMAGE\n",
            2,
        ),
        # XLA's exception sends its reader to the lines above it
        (
            "2024-07-19 15:49:01.34: E a/cuda_dnn.cc:439] Could not create a handle: INTERNAL\n"
            "Traceback (most recent call last):\n"
            '  File "a.py", line 2, in <module>\n'
            "jaxlib.xla_extension.XlaRuntimeError: DNN library initialization failed. "
            "Look at the errors above for more details.\n",
            1,
        ),
        # a check that notices what was logged just above it
        (
            "2017-10-30 17:55:23.525428: E a/dnn.cc:371] could not create a handle: INTERNAL\n"
            "2017-10-30 17:55:23.525458: F a/conv_ops.cc:672] Check failed: stream->parent()\n"
            "Aborted (core dumped)\n",
            1,
        ),
        # a job that was cancelled because the kernel had killed its process
        (
            "slurmstepd-gpu20: error: Detected 1 oom-kill event(s) in StepId=9.0.\n"
            "slurmstepd-gpu20: error: *** STEP 9.0 ON gpu20 CANCELLED AT 2022-05-17T17:58:10 ***\n",
            1,
        ),
        # an exception whose message goes on with what the linker said
        ("RuntimeError: Failed to import a.b\nlib/c.so: undefined symbol:\nKindly suggest.\n", 2),
        # the C library, Rust, a shell, the driver
        ("free(): invalid pointer\nAborted (core dumped)\n", 1),
        ("thread 'main' panicked at src/main.rs:3:5:\nAborted (core dumped)\n", 1),
        ("zsh: killed     python a.py\n", 1),
        ("step 9\nNVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\n", 2),
        # MPI
        ("*** An error occurred in MPI_Init_thread\n*** on a NULL communicator\n", 1),
        # Docker pulls an image
        ("Unable to find image 'a:1' locally\n1: Pulling\nValueError: no such model\n", 3),
        # source of a traceback that a logger printed and that is cut off
        (
            "E0303 11:40:42.533 713 a.py:533] CalledProcessError: Command 'ptxas' returned "
            "non-zero exit status 255.\n"
            "E0303 11:40:42.533 713 a.py:533] Traceback (most recent call last):\n"
            'E0303 11:40:42.533 713 a.py:533]   File "a.py", line 5, in f\n'
            "E0303 11:40:42.533 713 a.py:533]     binary = compile()\n",
            1,
        ),
    ],
)
def test_forms(log: str, line: int) -> None:
    """How compilers, loggers and people write, and which line failed first."""
    assert first_of(log).line == line


RAISED = 'Traceback (most recent call last):\n  File "a.py", line 1\nOSError: disk 7 is full\n'


@pytest.mark.parametrize(
    "title",
    [
        "# OSError: disk 7 is full\n\n",
        "# OSError: disk 3 is full (since 2.1)\n\nHello,\n",
        "## OSError: disk 7 is full\n",
        "OSError: disk 7 is full\n\n",
        "OSError: disk 7 is full when I train\n```\n",
        "title: OSError: disk 7 is full\n",
        "**Title**: OSError: disk 7 is full\n",
        "- [x] OSError: disk 7 is full\n",
        "Hello\nOSError: disk 7 is full\nis what I get:\n```\n",
    ],
)
def test_a_title_is_no_line_of_the_log(title: str) -> None:
    """What a person wrote above a log repeats its failure; the line of the log failed first."""
    first = first_of(title + RAISED)
    assert first.line == title.count("\n") + 3
    assert first.confident


def test_a_title_alone_is_the_best_there_is() -> None:
    """A title counts where the log below shows only reports, and then it is not sure."""
    title = "# OSError: disk 7 is full\n\n"
    assert (first_of(f"{title}Hello\n").line, first_of(f"{title}Hello\n").confident) == (1, True)
    first = first_of(
        f"{title}subprocess.CalledProcessError: Command 'a' returned non-zero exit status 1\n"
    )
    assert (first.line, first.confident) == (1, False)
    assert "title" in first.why
    assert first_of(f"{title}10:00:00 ERROR no disk\n").line == 3
    assert first_of(f"{title}a.find_spec() not found; falling back to b.find()\n").line == 1


def test_a_title_with_a_tag() -> None:
    """An exception behind the tag of a tracker counts as one in a title without it."""
    cut = '\n\nTraceback (most recent call last):\n  File "a.py", line 1, in <module>\n'
    for tag in ("[Usage]: ", "[Bug]: ", "[Bug]: ["):
        assert first_of(f"# {tag}ImportError: libx.so: undefined symbol: f{cut}").line == 1
    assert first_of(f"# [Bug]: It does not start{cut}").line == 3


def test_a_title_that_names_another_exception() -> None:
    """What a library prints and goes on after may stand above the failure that the title has."""
    body = "AttributeError: 'MessageFactory' object has no attribute 'GetPrototype'\n"
    assert first_of(f"# It fails\n\n{body}").confident
    assert not first_of(f"# RuntimeError: CUDA error: invalid image\n\n{body}").confident
    same = f"# AttributeError: 'MessageFactory' object\n\n{body}"
    assert first_of(same).confident


def test_an_exception_above_its_chain_is_no_title() -> None:
    """The first line of a log that is cut is the cause of the exception that it is chained to."""
    chained = "The above exception was the direct cause of the following exception:\n\n"
    assert first_of(f"OSError: disk 7 is full\n\n{chained}{RAISED}").line == 1


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=repr)
def test_lines_have_the_numbers_of_grep(end: str) -> None:
    """A carriage return ends a state of a progress bar, and no line, at every door."""
    log = end.join(["step 1\rstep 2\rstep 3", "10:00:00 ERROR no disk\r", *RAISED.split("\n"), ""])
    answer = MATCHER.diagnose(log)
    assert answer.first is not None
    assert answer.first.line == log[: log.index("OSError")].count("\n") + 1
    assert MATCHER.diagnose(RAISED.replace("\n", "\r")).first == first_of(RAISED)


def test_what_a_logger_prints_below_its_prefix() -> None:
    """`logging.exception` puts its prefix before its message only, not before the traceback."""
    log = (
        "2026-11-20 10:00:00,123 [rank1] ERROR no batch\nTraceback (most recent call last):\n"
        '  File "a.py", line 1\nOSError: disk\n[rank0]: ValueError: disk is gone\n'
    )
    # when rank 0 was ready says nothing about when it failed
    assert first_of(f"2026-11-20 09:00:00,123 [rank0] INFO ready\n{log}").line == 5
    assert (first_of(log).line, first_of(log).process) == (4, "rank1")


def test_what_was_logged_before_is_no_echo() -> None:
    """A line that was only logged above the first failure does not follow from it."""
    first = first_of("10:00:00 ERROR no kernels\nValueError: one thing\n")
    assert (first.line, first.echoes, first.confident) == (2, (), True)


def test_ranks_that_fail_alike_are_echoes() -> None:
    """Of eight ranks with one message, the first is the failure, and the others are echoes."""
    log = "\n".join(f"[rank{n}]: RuntimeError: size 3 of rank {n}" for n in range(8))
    first = first_of(log)
    assert (first.line, first.process, first.confident) == (1, "rank0", True)
    assert first.echoes == tuple(range(2, 9))


def test_two_failures_are_not_sure() -> None:
    """Where a second failure is no consequence, the answer says which line it is."""
    first = first_of("[rank0]: ValueError: one thing\n[rank1]: MemoryError: another thing\n")
    assert not first.confident
    assert "line 2" in first.why


def test_the_middle_of_a_long_log() -> None:
    """A failure below lines that were not read may not be the first one."""
    log = "all is well\n" * 90_000 + "ValueError: late\n"
    first = first_of(log)
    assert (first.line, first.confident) == (90_001, False)
    assert "not read" in first.why


def test_the_terminal(tmp_path: Path) -> None:
    """The first failure stands above the articles, and where there is none."""
    file = LOGS / "look-up-then-failure.log"
    output = run_command(ROOT, "diagnose", str(file)).stdout
    assert output.startswith("failed first  line 10 (exception)\n  ValueError: the model type")
    assert "none: nothing in these" in output
    answer = json.loads(run_command(ROOT, "diagnose", "--json", str(file)).stdout)
    assert answer["first"]["line"] == 10
    assert answer["matches"] == []


TIMEOUT = (
    "[rank0]:[E901 10:10:05.220 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=8, Timeout(ms)=600000) ran for 600041 milliseconds before "
    "timing out.\n"
    "  what():  Process group watchdog thread terminated with exception: [Rank 0] Watchdog caught "
    "collective operation timeout\n"
)


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        ("", "", ""),
        ("[rank1]: IndexError: list index out of range\n", "", "rank1 failed first: line 1;"),
        ("IndexError: list index out of range\n", "", "another failure came first: line 1;"),
        ("", "[rank1]: IndexError: list index out of range\n", ""),
        ("", "[rank1]: 2025-09-01 10:00:05,1 IndexError: out of range\n", "rank1 failed first:"),
        ("[rank1]: 2025-09-01 10:20:05,1 IndexError: out of range\n", "", ""),
        ("[rank1]: ERROR could not upload\n", "", ""),
    ],
)
def test_a_timeout_that_may_follow_from_a_failure(before: str, after: str, hint: str) -> None:
    """An article about a timeout is not sure below another failure, and says which that is."""
    best = MATCHER.diagnose(before + TIMEOUT + after).matches[0]
    assert best.id == "KB0034"
    assert best.confident is not bool(hint)
    assert hint in "".join(best.hints)


def test_a_wrapper_names_the_line_that_failed_first() -> None:
    """Where the failure stands below what reports it, "look above" would send a reader nowhere."""
    log = "EngineCore failed to start.\nValueError: Free memory on device is too little\n"
    [hint, *_] = MATCHER.diagnose(log).matches[0].hints
    assert hint == "other failures print this text, too: line 2 failed first"


def test_a_server_that_gives_up_reports_a_failure() -> None:
    """The last words of uvicorn are not what failed first."""
    refused = "psycopg.OperationalError: connection to server failed: Connection refused"
    assert first_of(f"{refused}\nERROR:    Application startup failed. Exiting.\n").line == 1


def test_a_timeout_is_no_lost_connection() -> None:
    """A line that a clock wrote is one of a watchdog, though `kbtools.toml` names its text."""
    assert first_of(TIMEOUT).kind == "watchdog"
    assert first_of("[Rank 1] Some NCCL operations have failed or timed out.\n").kind == "watchdog"
    assert first_of("RuntimeError: Connection closed by peer [127.0.0.1]:80\n").kind == "peer"


def test_hints_number_the_lines_of_the_whole_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The middle of a very long log is not read; a hint names the line that is in the file."""
    monkeypatch.setattr(log_ends, "ENDS", 16_384)
    log = "all is well\n" * 5000 + "[rank1]: IndexError: out of range\n" + TIMEOUT
    ends = log_ends.read_ends(io.BytesIO(log.encode()))
    assert ends.left_out
    answer = log_ends.in_whole_log(MATCHER.diagnose(ends.text), ends)
    assert "rank1 failed first: line 5001;" in answer.matches[0].hints[0]
