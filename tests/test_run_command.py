"""`kbtools run -- CMD`: the program as if nothing stood around it, and the article at the end."""

from __future__ import annotations

import hashlib
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest
from bases import KBTOOLS, Base

FAILURE = "RuntimeError: the failure of the day"
FAILS = "raise RuntimeError('the failure of the day')"
ALL_BYTES = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 3)"
COUNTS = """
import signal, sys, time
seen = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, lambda number, _: seen.append(number))
print("ready", flush=True)
deadline = time.monotonic() + 20
while not seen and time.monotonic() < deadline:
    time.sleep(0.02)
time.sleep(0.3)
print(*map(int, seen), flush=True)
sys.exit(7)
"""


@pytest.fixture
def base(base: Base) -> Base:
    """A knowledge base with an article about one failure."""
    base.article(literal=FAILURE)
    return base


def start(base: Base, *command: str, **more: Any) -> subprocess.Popen[bytes]:
    """Starts a program under `kbtools run`, in the folder of a knowledge base."""
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.Popen(
        [*KBTOOLS, "run", "--", *command],
        cwd=base.root,
        env=base.environment(XDG_CACHE_HOME=str(base.root / "cache"), PYTHONUNBUFFERED="1"),
        **more,
    )


def run(base: Base, *command: str, stdin: bytes = b"", **more: Any) -> tuple[int, bytes, bytes]:
    """Runs a program under `kbtools run` to its end: return code, output, errors."""
    process = start(base, *command, stdin=subprocess.PIPE, **more)
    out, err = process.communicate(stdin or None, timeout=60)
    return process.returncode, out or b"", err or b""


def python(code: str) -> tuple[str, ...]:
    """A program of the interpreter that runs the tests."""
    return sys.executable, "-c", code


def test_the_article_stands_under_the_traceback(base: Base) -> None:
    """A failure that has an article: the program's whole traceback, and below it the article."""
    code, out, err = run(base, *python(FAILS))
    assert (code, out) == (1, b"")
    traceback, _, message = err.decode().partition("\n\n")
    assert traceback.startswith("Traceback (most recent call last):")
    assert traceback.endswith(FAILURE)
    assert message == "kbtools: KB0001: Do it right.\n  kbtools explain KB0001\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_the_failure_may_be_on_either_stream(base: Base, stream: str) -> None:
    """What a test runner prints on standard output counts, too; the article is on the other."""
    code = f"import sys; print({FAILURE!r}, file=sys.{stream}); sys.exit(4)"
    returned, out, err = run(base, *python(code))
    assert returned == 4
    assert b"KB0001" in err
    assert b"KB0001" not in out


@pytest.mark.parametrize(
    "code", [f"print({FAILURE!r})", "raise SystemExit(3)", "raise ValueError('another')"]
)
def test_silent_without_an_article(base: Base, code: str) -> None:
    """Nothing is added when the program succeeds, whatever it printed, or when nothing matches."""
    alone = subprocess.run(python(code), capture_output=True)
    returned, out, err = run(base, *python(code))
    assert (returned, out, err) == (alone.returncode, alone.stdout, alone.stderr)


@pytest.mark.parametrize("code", [0, 1, 3, 77, 255])
def test_exit_codes(base: Base, code: int) -> None:
    """The exit code is the program's."""
    assert run(base, "sh", "-c", f"exit {code}")[0] == code


@pytest.mark.parametrize("name", ["SIGTERM", "SIGSEGV", "SIGKILL", "SIGINT", "SIGABRT", "SIGPIPE"])
def test_killed_by_a_signal(base: Base, name: str) -> None:
    """A program that a signal ends: `kbtools run` ends by the same signal, a shell sees 128 + n."""
    kill = f"kill -{name[3:]} $$"
    assert run(base, "sh", "-c", kill)[0] == -getattr(signal, name)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
def test_signals_are_forwarded_once(base: Base, name: str) -> None:
    """A signal sent to `kbtools run` reaches the program, once, and does nothing else."""
    process = start(base, *python(COUNTS))
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (7, b"%d\n" % getattr(signal, name), b"")


def test_a_program_that_signals_its_own_group(base: Base) -> None:
    """What the program sends to its whole group is not sent to it a second time."""
    code = COUNTS.replace('print("ready", flush=True)', "import os; os.killpg(0, 10)")
    process = start(base, *python(code), start_new_session=True)
    assert process.communicate(timeout=30)[0] == b"10\n"
    assert process.returncode == 7


def test_what_kills_kbtools_kills_the_program(base: Base) -> None:
    """SIGKILL cannot be forwarded, and still leaves nothing running."""
    process = start(base, *python("import time; print('ready'); time.sleep(60)"))
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    process.kill()
    process.communicate(timeout=30)
    assert base.running_after(5) == []


def test_stopped_and_continued(base: Base) -> None:
    """When the program is stopped, so is `kbtools run`, as a shell expects; and both go on."""
    process = start(base, "sh", "-c", "kill -TSTP $$; echo on", process_group=0)
    stat = Path(f"/proc/{process.pid}/stat")
    deadline = time.monotonic() + 20
    while stat.read_text().rpartition(") ")[2][0] != "T":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=30) == (b"on\n", b"")
    assert process.returncode == 0


def test_standard_input_is_the_programs(base: Base) -> None:
    """Bytes on standard input reach the program, and so does its end; a closed one is closed."""
    data = bytes(range(256)) * 1000
    assert run(base, "cat", stdin=data)[1] == data
    code = "import os\ntry: os.fstat(0)\nexcept OSError: print('closed')"
    line = 'exec "$@" <&-'
    process = subprocess.run(
        ["sh", "-c", line, "sh", *KBTOOLS, "run", *python(code)], capture_output=True
    )
    assert process.stdout == b"closed\n"


def test_an_answer_is_waited_for(base: Base) -> None:
    """A prompt with no newline is passed on at once: the program can hold a conversation."""
    process = start(base, "sh", "-c", "printf 'name? '; read x; echo hello $x", stdin=-1)
    assert process.stdout
    started = time.monotonic()
    assert os.read(process.stdout.fileno(), 100) == b"name? "
    assert time.monotonic() - started < 10
    assert process.communicate(b"you\n", timeout=30)[0] == b"hello you\n"


def test_bytes_are_as_they_were(base: Base) -> None:
    """No byte is changed: no newline added, nothing decoded."""
    assert run(base, *python(ALL_BYTES))[1] == bytes(range(256)) * 3


def test_two_streams_stay_two(base: Base) -> None:
    """Standard output and standard error are not mixed, unless both are one; then order is kept."""
    code = "for n in 1 2 3 4 5 6 7 8 9; do echo out $n; echo err $n >&2; done"
    both = "".join(f"out {n}\nerr {n}\n" for n in range(1, 10)).encode()
    _, out, err = run(base, "sh", "-c", code)
    assert out == b"".join(line for line in both.splitlines(True) if line.startswith(b"out"))
    assert err == b"".join(line for line in both.splitlines(True) if line.startswith(b"err"))
    assert run(base, "sh", "-c", code, stderr=subprocess.STDOUT)[1] == both


def test_a_hundred_megabytes(base: Base) -> None:
    """A hundred megabytes arrive unchanged, and the failure at their end is still found."""
    code = f"""
import os, sys
line = b"x" * 99 + b"\\n"
for _ in range(1000):
    sys.stdout.buffer.write(line * 1000)
sys.stdout.flush()
{FAILS}
"""
    process = start(base, *python(code))
    assert process.stdout
    assert process.stderr
    digest = hashlib.sha256()
    peak = 0
    while chunk := process.stdout.read(1 << 20):
        digest.update(chunk)
        peak = max(peak, held(process.pid))
    err = process.stderr.read()
    assert process.wait(30) == 1
    assert digest.hexdigest() == hashlib.sha256((b"x" * 99 + b"\n") * 1_000_000).hexdigest()
    assert b"KB0001" in err
    assert 0 < peak < 200_000


def held(pid: int) -> int:
    """The most memory that a process has held, in KiB; 0 when it has ended.

    Not `ru_maxrss`: on Linux that of a process begins with what its parent held when it forked.
    """
    status = Path(f"/proc/{pid}/status").read_text()
    [peak] = re.findall(r"VmHWM:\s+(\d+) kB", status) or [0]
    return int(peak)


def test_into_files(base: Base, tmp_path: Path) -> None:
    """Where output goes to a file, the program has that very file, and the article is at its end.

    What the file held before does not count.
    """
    log = tmp_path / "log"
    log.write_text("earlier\n")
    code = f"import os, stat; print(stat.S_ISREG(os.fstat(1).st_mode)); {FAILS}"
    with log.open("ab") as file:
        assert run(base, *python(code), stdout=file, stderr=file)[0] == 1
    text = log.read_text()
    assert text.startswith("earlier\nTrue\nTraceback")
    assert text.endswith("KB0001: Do it right.\n  kbtools explain KB0001\n")
    log.write_text(f"{FAILURE}\n")
    with log.open("ab") as file:
        assert run(base, "false", stdout=file, stderr=file)[0] == 1
    assert log.read_text() == f"{FAILURE}\n"


def test_a_reader_that_leaves(base: Base) -> None:
    """When nobody reads any more, the program gets its SIGPIPE and the shell sees it."""
    line = '"$@" | head -n 1; echo "${PIPESTATUS[0]}"'
    process = subprocess.run(
        ["bash", "-c", line, "bash", *KBTOOLS, "run", "yes"], capture_output=True, timeout=30
    )
    assert process.stdout == b"y\n141\n"
    assert process.stderr == b""


def test_what_is_left_running_goes_on_printing(base: Base) -> None:
    """The program ends at once though a child of it lives on, and that child's output arrives."""
    process = start(base, "sh", "-c", "(sleep 2; echo late) & echo early")
    started = time.monotonic()
    process.wait(timeout=30)
    assert time.monotonic() - started < 1.9
    assert process.stdout
    assert process.stdout.read() == b"early\nlate\n"


def test_all_descriptors_are_inherited(base: Base, tmp_path: Path) -> None:
    """A descriptor that the shell opened for the program is there."""
    line = 'exec 7>"$0"; exec "$@"'
    command = [*KBTOOLS, "run", "sh", "-c", "echo seven >&7"]
    assert subprocess.run(["bash", "-c", line, str(tmp_path / "seven"), *command]).returncode == 0
    assert (tmp_path / "seven").read_text() == "seven\n"


def test_a_program_that_does_not_exist(base: Base, tmp_path: Path) -> None:
    """Exit codes and one line, as of a shell."""
    assert run(base, "no-such-program") == (
        *(127, b""),
        b"kbtools: no-such-program: No such file or directory\n",
    )
    script = tmp_path / "script"
    script.write_text("echo ran $1\n")
    assert run(base, str(script))[0] == 126
    script.chmod(0o755)
    assert run(base, str(script), "well")[:2] == (0, b"ran well\n")


def test_options_are_the_programs(base: Base) -> None:
    """With or without `--`, what follows the program's name is its own."""
    code = "import sys; print(sys.argv[1:])"
    words = (*python(code), "--index", "-h", "--", "run")
    assert run(base, *words)[1] == b"['--index', '-h', '--', 'run']\n"


@pytest.mark.parametrize("broken", ["no index", "toml"])
def test_an_error_of_kbtools_is_a_line(base: Base, broken: str) -> None:
    """Without a knowledge base that can be read, the program is as it was, and one line says so."""
    if broken == "toml":
        (base.root / "kbtools.toml").write_text("[")
    else:
        (base.root / "kbtools.toml").write_text(
            '[knowledge-base]\nname = "a"\nprefix = "A"\nprefixes = 1\n'
        )
    code, _, err = run(base, *python(FAILS))
    assert code == 1
    traceback, _, message = err.decode().partition("\n\n")
    assert traceback.endswith(FAILURE)
    assert message.startswith("kbtools: no article was looked for: ")
    assert message.count("\n") == 1
    assert run(base, "true") == (0, b"", b"")


def in_terminal(base: Base, *command: str, typed: bytes = b"") -> tuple[int, bytes]:
    """Runs a command in a terminal of 33 × 101; types when `ready` is shown. Status and screen."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(base.root)
        os.environ.update(XDG_CACHE_HOME=str(base.root / "cache"), PYTHONUNBUFFERED="1")
        time.sleep(0.1)  # until the size is set
        os.execvp(command[0], command)
    termios.tcsetwinsize(terminal, (33, 101))
    screen = b""
    while True:
        try:
            chunk = os.read(terminal, 1 << 16)
        except OSError:
            break
        screen += chunk
        if typed and b"ready" in screen:
            os.write(terminal, typed)
            typed = b""
    status = os.waitpid(process, 0)[1]
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), screen


SHOWS = """
import os, sys
print(*(os.isatty(n) for n in (0, 1, 2)), *os.get_terminal_size(1), *os.get_terminal_size(2))
print("\\x1b[31mred\\x1b[0m")
for n in range(20):
    print("out", n)
    print("err", n, file=sys.stderr)
"""


def test_a_terminal_stays_a_terminal(base: Base) -> None:
    """In a terminal the program has one on all three, of its size; the screen is the same."""
    alone = in_terminal(base, *python(SHOWS))
    assert alone[1].startswith(
        b"True True True 101 33 101 33\r\n\x1b[31mred\x1b[0m\r\nout 0\r\nerr"
    )
    assert in_terminal(base, *KBTOOLS, "run", *python(SHOWS)) == alone


def test_ctrl_c_in_a_terminal(base: Base) -> None:
    """Ctrl-C interrupts the program once, and its own exit code is seen."""
    code, screen = in_terminal(base, *KBTOOLS, "run", *python(COUNTS), typed=b"\x03")
    assert code == 7
    assert screen.replace(b"^C", b"") == b"ready\r\n2\r\n"


def test_typing_in_a_terminal(base: Base) -> None:
    """What is typed is echoed once and reaches the program, whatever stands between."""
    code = "print('hello', input('ready? '))"
    command = (*KBTOOLS, "run", *python(code))
    assert in_terminal(base, *command, typed=b"you\n") == (0, b"ready? you\r\nhello you\r\n")


def test_a_failure_in_a_terminal(base: Base) -> None:
    """The article is the last thing on the screen."""
    code, screen = in_terminal(base, *KBTOOLS, "run", *python(FAILS))
    assert code == 1
    assert screen.endswith(b"KB0001: Do it right.\r\n  kbtools explain KB0001\r\n")
