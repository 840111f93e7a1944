"""What output passes through on its way to a bug report: each takes bytes and gives bytes."""

from __future__ import annotations

import datetime
from collections.abc import Callable

START = datetime.datetime(2026, 11, 21, 10, 0, 0, 123456)
"""When the clock of every prefix with a time begins, so that a log is made twice alike."""


def _each(prefix: Callable[[int, datetime.datetime], str]) -> Callable[[bytes, str], bytes]:
    """A passage that puts a prefix before every line; a line comes every 7 ms."""

    def passage(output: bytes, argument: str) -> bytes:
        lines = output.splitlines(keepends=True)
        moment = [START + datetime.timedelta(milliseconds=7 * n) for n in range(len(lines))]
        return b"".join(prefix(n, moment[n]).encode() + line for n, line in enumerate(lines))

    return passage


def head(output: bytes, argument: str) -> bytes:
    """The first lines only."""
    return b"".join(output.splitlines(keepends=True)[: int(argument)])


def tail(output: bytes, argument: str) -> bytes:
    """The last lines only."""
    return b"".join(output.splitlines(keepends=True)[-int(argument) :])


def crlf(output: bytes, argument: str) -> bytes:
    """As copied out of a Windows terminal."""
    return output.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def fold(output: bytes, argument: str) -> bytes:
    """Broken at a column, as copied from a narrow terminal."""
    width, out = int(argument), []
    for line in output.decode("utf-8", "replace").splitlines():
        out += [line[at : at + width] for at in range(0, max(len(line), 1), width)]
    return ("\n".join(out) + "\n").encode()


def latin1(output: bytes, argument: str) -> bytes:
    """Written by a program that does not know UTF-8: what it lacks becomes a question mark."""
    noisy = "démarrage du nœud n°3 : 45 °C\n" + output.decode("utf-8", "replace")
    return noisy.encode("latin-1", "replace")


def quoted(output: bytes, argument: str) -> bytes:
    """Pasted into a mail: each line cited."""
    return b"".join(b"> " + line for line in output.splitlines(keepends=True))


def fenced(output: bytes, argument: str) -> bytes:
    """Pasted into an issue, inside a details block and a fence, indented as in a list."""
    body = b"".join(b"   " + line for line in output.splitlines(keepends=True))
    return b"<details><summary>Log</summary>\n\n   ```\n" + body + b"   ```\n</details>\n"


def percent(output: bytes, argument: str) -> bytes:
    """With a progress bar that rewrites its line in front."""
    bar = b"".join(
        f"\rLoading shards: {n:3d}%|{'#' * (n // 5):<20}| {n}/100 [00:{n % 60:02d}<00:01]".encode()
        for n in range(0, 101, 4)
    )
    return bar + b"\n" + output


PASSAGES: dict[str, Callable[[bytes, str], bytes]] = {
    "head": head,
    "tail": tail,
    "crlf": crlf,
    "fold": fold,
    "latin1": latin1,
    "quoted": quoted,
    "fenced": fenced,
    "progress": percent,
    "vllm": _each(
        lambda n, t: f"(EngineCore_DP0 pid=4127) ERROR {t:%m-%d %H:%M:%S} [core.py:710] "
    ),
    "vllm-worker": _each(
        lambda n, t: (
            f"\x1b[1;36m(Worker_TP1 pid=4198)\x1b[0;0m ERROR {t:%m-%d %H:%M:%S} "
            "[multiproc_executor.py:671] "
        )
    ),
    "ray": _each(lambda n, t: "\x1b[36m(RayTrainWorker pid=20931, ip=10.0.3.7)\x1b[0m "),
    "ray-plain": _each(lambda n, t: "(TrainTrainable pid=8812) "),
    "compose": _each(lambda n, t: "app-1  | "),
    "compose-colour": _each(lambda n, t: "\x1b[32mtrainer-1  |\x1b[0m "),
    "actions": _each(lambda n, t: f"{t:%Y-%m-%dT%H:%M:%S.%f}7Z "),
    "kubectl": _each(lambda n, t: f"{t:%Y-%m-%dT%H:%M:%S.%f}891Z stderr F "),
    "stern": _each(lambda n, t: "trainer-worker-0 pytorch "),
    "journal": _each(lambda n, t: f"{t:%b %d %H:%M:%S} node01 trainer[9177]: "),
    "srun": _each(lambda n, t: f"{n % 4}: "),
    "rank": _each(lambda n, t: "[default3]:"),
    "rank-time": _each(lambda n, t: f"[rank1]:[E{t:%m%d %H:%M:%S.%f} 4411] "),
    "azure": _each(lambda n, t: f"[{t:%Y-%m-%d %H:%M:%S,%f}".rstrip("0") + "] [ERROR] "),
    "gitlab": _each(lambda n, t: f"{t:%Y-%m-%dT%H:%M:%S.%f}Z 01O "),
    "bazel": _each(lambda n, t: "[1,0]<stderr>:"),
}
"""By name; a recipe writes "tail 30" for a passage with an argument."""


def send(output: bytes, through: tuple[str, ...]) -> bytes:
    """The output after all passages, in order."""
    for step in through:
        name, _, argument = step.partition(" ")
        output = PASSAGES[name](output, argument)
    return output


def cuts(through: tuple[str, ...]) -> bool:
    """Whether something of the output is lost on the way."""
    return any(step.split()[0] in ("head", "tail") for step in through)
