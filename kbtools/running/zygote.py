"""Imports the heavy modules once, then forks one child per snippet. Standard library only.

Run by the toolchain's own interpreter, Python 3.9 or newer. Reads requests and writes reports,
one JSON object a line (`protocol.py` has their types). Between the zygote and each snippet stands a
*keeper* (`keeper.py`).

    zygote ── keeper ── snippet ── anything it starts

A keeper has one snippet at a time and, when nothing of that one is left, the next: to fork keepers
anew for each would be two fifths of what a small snippet costs.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import shutil
import signal
import sys

import child
import filesystem_view
import keeper
import sandbox

TYPE_CHECKING = False  # importing `typing` would cost as much as everything else here
if TYPE_CHECKING:
    from kbtools.running.protocol import Ready, SandboxParts


def main() -> None:
    """Serves requests. Arguments: modules, the executor's folder, readable paths, store, guards.

    The modules are separated by commas, the paths a JSON list. The store is JSON, too: its folder,
    or an empty text, and the variables that go with it. The guards are a JSON list as well.
    """
    sys.path.pop(0)  # this folder, which no snippet should import from
    folder = sys.argv[2] if len(sys.argv) > 2 else ""
    readable = json.loads(sys.argv[3]) if len(sys.argv) > 3 else []
    store, variables = json.loads(sys.argv[4]) if len(sys.argv) > 4 else ("", {})
    shared = prepare_sandbox(folder, readable + [store] if store else readable)
    # where only Landlock stands before the store, a snippet could still change what its files
    # permit: it is used where it is mounted read-only
    shared.store = bool(store) and shared.allowed["sight"] is True
    if shared.store:
        os.environ.update(variables)  # modules read them while they are imported
    guards = json.loads(sys.argv[5]) if len(sys.argv) > 5 else []
    serve([name for name in sys.argv[1].split(",") if name], guards, shared)
    if folder:  # its owner may have been killed
        shutil.rmtree(folder, ignore_errors=True)


# The zygote


def serve(preload: list[str], guards: list[str], shared: sandbox.Shared) -> None:
    """Answers requests until standard input ends, then ends what still runs."""
    replies = os.dup(1)
    os.dup2(2, 1)  # what a module prints while it is imported is no reply
    os.set_inheritable(replies, False)
    refused = import_modules(preload)
    refuse_what_no_child_could_use(guards)
    ready: Ready = {"sandbox": shared.allowed, "refused": refused, "store": shared.store}
    keeper.write_line(replies, ready)
    get_ready_to_fork()
    answer_requests(Keepers(shared, replies), on_child_exit())
    keeper.end_descendants()


def import_modules(preload: list[str]) -> dict[str, str]:
    """Imports these modules, and calls the function of those written `module:function`.

    What this release does not have is passed over: a knowledge base names the modules of all
    releases that it speaks of. Returns why others could not be imported: that is reported, and
    each snippet that imports such a module shows its own error.
    """
    refused = {}
    for name in preload:
        module_name, _, function = name.partition(":")
        try:
            module = importlib.import_module(module_name)
            if function and hasattr(module, function):
                getattr(module, function)()
        except ModuleNotFoundError as error:
            if not (module_name + ".").startswith("%s." % error.name):
                refused[name] = ("%s: %s" % (type(error).__name__, error))[:300]
        except Exception as error:
            refused[name] = ("%s: %s" % (type(error).__name__, error))[:300]
    return refused


def refuse_what_no_child_could_use(guards: list[str]) -> None:
    """Ends the process if a guard, `module:function`, returns true after the imports.

    A module that was not imported cannot have done what its guard looks for.
    """
    for name in guards:
        module_name, _, function = name.partition(":")
        module = sys.modules.get(module_name)
        if module is not None and getattr(module, function)():
            raise SystemExit("%s() is true after the imports: no child could use them" % name)


def get_ready_to_fork() -> None:
    """Does once what every fork would otherwise pay for."""
    keeper.prctl(
        keeper.PR_SET_CHILD_SUBREAPER, 1
    )  # to adopt what a keeper had adopted, should it be killed
    compile("", "<nothing>", "exec")  # makes the compiler's 120 types
    gc.collect()
    gc.freeze()  # pages that the collector never touches stay shared with the children
    gc.disable()  # until a snippet's own code begins


def on_child_exit() -> int:
    """A descriptor that can be read when a child has ended; Ctrl-C is left to the executor."""
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return reading


def answer_requests(keepers: Keepers, child_exit: int) -> None:
    """Hands requests to keepers until standard input ends; then ends the keepers."""
    buffer = b""
    while True:
        readable, _, _ = select.select([0, child_exit, keepers.idle], [], [])
        if child_exit in readable:
            os.read(child_exit, 4096)
            keepers.reap()
        if keepers.idle in readable:
            keepers.note_idle()
        if 0 in readable:
            chunk = os.read(0, 1 << 20)
            if not chunk:
                break
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                keepers.ask(line + b"\n")
    keepers.end()


class Keepers:
    """The keepers there are. Each keeps one snippet at a time, and is asked again when idle."""

    def __init__(self, shared: sandbox.Shared, replies: int) -> None:
        self.shared, self.replies = shared, replies
        self.idle, self.idle_writer = os.pipe()
        self.requests: dict[int, int] = {}  # process → the pipe that takes its requests
        self.busy: dict[int, int] = {}  # process → the number of its request

    def ask(self, line: bytes) -> None:
        """Hands a request to an idle keeper, or to a new one."""
        number = json.loads(line)["id"]
        while True:
            waiting = [pid for pid in self.requests if pid not in self.busy]
            pid = waiting[0] if waiting else self.start()
            try:
                os.write(self.requests[pid], line)
            except BrokenPipeError:  # it was killed, and has not been reaped yet
                os.close(self.requests.pop(pid))
                continue
            self.busy[pid] = number
            return

    def start(self) -> int:
        """Forks a keeper; its process id."""
        sys.stdout.flush()
        sys.stderr.flush()
        reading, writing = os.pipe()
        pid = os.fork()
        if pid:
            os.close(reading)
            self.requests[pid] = writing
            return pid
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            # without these it sees when the zygote is gone, whatever other keepers live
            for descriptor in (writing, self.idle, *self.requests.values()):
                os.close(descriptor)
            keeper.keep_all(reading, self.idle_writer, self.shared, self.replies)
            status = 0
        finally:
            os._exit(status)

    def note_idle(self) -> None:
        """Reads which keepers have finished what they were asked for."""
        # all that a pipe can hold: no process id is cut in two
        for word in os.read(self.idle, 1 << 16).split():
            self.busy.pop(int(word), None)

    def reap(self) -> None:
        """Reaps keepers and what they had adopted; reports the run of a keeper that died."""
        # a keeper that reported its result and then died must not be reported as lost
        while select.select([self.idle], [], [], 0)[0]:
            self.note_idle()
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.requests:
                os.close(self.requests.pop(pid))
            number = self.busy.pop(pid, None)
            if number is not None:
                message = "its keeper died (status %d)" % status
                keeper.write_line(
                    self.replies, {"id": number, "status": "lost", "message": message}
                )

    def end(self) -> None:
        """Has every keeper end its snippet and itself."""
        for pid, writing in self.requests.items():
            os.close(writing)
            os.kill(pid, signal.SIGTERM)
        for pid in self.requests:
            os.waitpid(pid, 0)


# What the kernel allows


def prepare_sandbox(folder: str, readable: list[str]) -> sandbox.Shared:
    """What all snippets share of the sandbox: their view of the files, and what is allowed.

    folder: the executor's, below which scratch folders are made.
    readable: absolute paths that snippets may read beyond those of the system and the toolchain.
    """
    shared = sandbox.Shared()
    try:
        view = filesystem_view.prepare(folder, readable)
        for descriptor, number in zip((view.user, view.mounts), child.VIEW):
            os.dup2(descriptor, number, inheritable=False)
            os.close(descriptor)
        view.user, view.mounts = child.VIEW
        shared.view = view
    except OSError as error:
        shared.why_no_view = str(error)
    shared.allowed = try_sandbox(shared)
    if shared.allowed["sight"] is not True:  # then Landlock alone has to see to it
        shared.readable = filesystem_view.visible(readable)[0]
        shared.devices = [*filesystem_view.devices(), "/dev/shm", "/dev/pts", "/dev/ptmx"]
    return shared


def try_sandbox(shared: sandbox.Shared) -> SandboxParts:
    """What the kernel allows of the sandbox, tried in a child."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            allowed = sandbox.trial(shared)
        except BaseException as error:
            allowed = dict.fromkeys(sandbox.PARTS, repr(error))
        try:
            os.write(writing, json.dumps(allowed).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with os.fdopen(reading) as file:
        return json.loads(file.read())  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
