"""The snippet's own process: what is done before, around and after its code. Standard library only.

The zygote imports it for its forks. An interpreter of its own runs it for snippets that get one.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import resource
import shutil
import signal
import subprocess
import sys

# used in every fork: imported there, they would be half of what a small snippet costs
import tempfile
import threading
import types

TYPE_CHECKING = False  # see zygote.py
if TYPE_CHECKING:
    from typing import Callable

    from sandbox import Shared

    from kbtools.running.protocol import Limits, Request

ENDING = 200
"""The descriptor on which a snippet says how it ended, as `protocol.Ending`."""
VIEW = (201, 202)
"""Those that keep alive what a snippet sees of the file system; closed before its code runs."""
PR_SET_PDEATHSIG = 1
MODULES = ("child", "keeper", "sandbox", "filesystem_view")
"""Modules of kbtools in the zygote: a snippet may have some of these names."""


def become_snippet(request: Request, shared: Shared) -> None:
    """Turns this fork into the snippet's process; never returns.

    `shared` is what the zygote has prepared of the sandbox.
    """
    leave = os._exit  # the snippet may patch it
    take_descriptors(request["output"])
    reset_signals()
    if request["sandbox"]:
        import sandbox

        sandbox.enter(request, shared)
    for descriptor in VIEW:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    os.chdir(request["work"])
    end_with_keeper()
    set_limits(request["limits"])
    change_environment(request["env"])
    if request["isolation"] != "fork":
        start_interpreter(request)
    hide_zygote(request)
    status = run_python(request["file"])
    try:  # what an interpreter does at its end
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        leave(status)


def take_descriptors(output: str) -> None:
    """A session of its own, with no input and this file for output; inherits no other file."""
    os.setsid()
    null = os.open("/dev/null", os.O_RDONLY)
    file = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    for source, target in ((null, 0), (file, 1), (file, 2)):
        os.dup2(source, target)
    os.closerange(3, ENDING)
    os.closerange(VIEW[-1] + 1, 4096)


def reset_signals() -> None:
    """Signals as any program finds them: the zygote and the keeper have changed them."""
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def start_interpreter(request: Request) -> None:
    """Replaces this process by an interpreter of its own, which runs this file; never returns.

    Raises:
        FileNotFoundError: the tool that is to start the interpreter is not on the PATH.
    """
    tool = request["tool"]
    if tool and not shutil.which(tool[0]):
        raise FileNotFoundError("%s is not on the PATH" % tool[0])
    words = [*tool, sys.executable, os.path.abspath(__file__), json.dumps(request)]
    os.execvpe(words[0], words, os.environ)


def hide_zygote(request: Request) -> None:
    """Leaves of the zygote nothing but the modules that it imported for snippets."""
    atexit._clear()  # handlers of the preloaded modules: torch's take 23 ms in each child
    if "multiprocessing.util" in sys.modules:  # but this one waits for the snippet's processes
        atexit.register(sys.modules["multiprocessing.util"]._exit_function)
    tempfile.tempdir = None  # the zygote's, if a module has asked for it
    sys.stdin = open(0)
    encoding = {"encoding": "utf-8", "errors": "backslashreplace"}
    sys.stdout.reconfigure(line_buffering=True, **encoding)  # type: ignore[union-attr]
    sys.stderr.reconfigure(**encoding)  # type: ignore[union-attr]
    sys.path[0:0] = [os.path.dirname(request["file"]), request["modules"]]
    for name in MODULES:
        sys.modules.pop(name, None)
    gc.enable()


def change_environment(variables: dict[str, str]) -> None:
    """Leaves these variables and no other. Only what differs is set: each change takes time."""
    for name in [name for name in os.environ if name not in variables]:
        del os.environ[name]
    for name, value in variables.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def end_with_keeper() -> None:
    """Has the kernel end this process with its parent, whatever may kill that one."""
    if sys.platform == "linux":
        import filesystem_view

        filesystem_view.libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def set_limits(limits: Limits) -> None:
    """Address space, file size and processes; no core files."""
    values = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: limits["memory"],
        resource.RLIMIT_FSIZE: limits["file"],
        resource.RLIMIT_NPROC: limits["user_processes"],
    }
    for limit, value in values.items():
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(limit, (value, value))
        except (ValueError, OSError):
            pass  # the keeper counts processes, too; macOS has no address-space limit


BASH_END = "\n(exit $?) && printf '{\"end\": true}' >&%d\n" % ENDING
"""Last line of a bash snippet. The script ends with the status that it would have without it."""


def run(request: Request) -> int:
    """Runs a snippet of any language from this interpreter; the exit status."""
    sys.argv = [request["file"]]
    if request["language"] == "python":
        sys.path[0:1] = [os.path.dirname(request["file"]), request["modules"]]
        # so that what was printed outlives a crash
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        return run_python(request["file"])
    if request["language"] == "bash":
        with open(request["file"], "a") as file:
            file.write(BASH_END)
        [command] = request["commands"]
        os.execvp(command[0], command)
    return run_commands(request["commands"])


def run_python(path: str) -> int:
    """Runs a file as `__main__` and says on `ENDING` how it ended; the exit status."""
    main_module = types.ModuleType("__main__")
    main_module.__file__ = path
    main_module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main_module  # so that `spawn` and `pickle` find it
    sys.argv = [path]
    # bound before the snippet can patch them
    getpid, write, owner = os.getpid, os.write, os.getpid()
    os.set_inheritable(ENDING, False)
    ending, status = b"{}", 0
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, main_module.__dict__)
        ending = b'{"end": true}'
    except SystemExit as stop:
        status = 0 if stop.code is None else stop.code if isinstance(stop.code, int) else 1
        if not (stop.code is None or isinstance(stop.code, int)):
            print(stop.code, file=sys.stderr)
    except BaseException as error:
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
        ending = described(error)
        frame = error.__traceback__
        trace = frame.tb_next if frame else None  # without the frame of this function
        try:
            sys.excepthook(type(error), error.with_traceback(trace), trace)
        except Exception:
            sys.__excepthook__(type(error), error, trace)
    if getpid() == owner:  # a fork of the snippet that falls through to here is not its end
        try:
            write(ENDING, ending)
        except OSError:
            pass  # the snippet closed it: reported as stopped half-way
    return status & 0xFF


def described(error: BaseException, dumps: Callable[[object], str] = json.dumps) -> bytes:
    """An uncaught exception as JSON, of fewer bytes than a keeper reads at once.

    `dumps` is bound before the snippet can patch it.
    """
    names = [kind.__name__[:80] for kind in type(error).__mro__[:-1]]
    try:
        message = shortened(str(error), 1500)
    except Exception:
        message = "<exception str() failed>"
    while True:
        text = dumps({"raised": names[:8], "message": message}).encode()
        if len(text) < 2500 or not message:
            return text
        message = shortened(message, len(message) * 3 // 4)


def shortened(text: str, size: int) -> str:
    """The first `size` characters, less a word that is cut: half a path is not known as one."""
    if len(text) <= size:
        return text
    return text[:size].rpartition(" ")[0] or text[:size]


def run_commands(commands: list[list[str]]) -> int:
    """Runs one command after another; the status of the first that fails, or 0."""
    for words in commands:
        status = subprocess.run(words, check=False).returncode
        if status < 0:
            os.kill(os.getpid(), -status)
        if status:
            return status
    os.write(ENDING, b'{"end": true}')
    return 0


if __name__ == "__main__":
    raise SystemExit(run(json.loads(sys.argv[1])))  # the snippet may have patched sys.exit
