"""The snippet's own process: what is done before, around and after its code. Standard library only.

Loaded by the zygote for its forks, and run by a fresh interpreter for the snippets that get one.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

# used in every fork: imported there, they would be half of what a small snippet costs
import tempfile
import threading
import types

TOLD = 200
"""The descriptor on which a snippet's last act is told."""
VIEW = (201, 202)
"""Those that keep alive what a snippet sees of the file system; closed before its code runs."""
PR_SET_PDEATHSIG = 1


def become_snippet(request: dict, shared: types.SimpleNamespace) -> None:
    """Turns this fork into the snippet's process; never returns.

    `shared` is what the zygote has prepared of the sandbox.
    """
    os.setsid()
    null, out = (
        os.open("/dev/null", os.O_RDONLY),
        os.open(request["out"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666),
    )
    for source, target in ((null, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    os.closerange(3, TOLD)
    os.closerange(VIEW[-1] + 1, 4096)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["sandbox"]:
        import sandbox

        sandbox.enter(request, shared)
    for descriptor in VIEW:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    os.chdir(request["cwd"])
    end_with_keeper()
    set_limits(request["limits"])
    change_environment(request["env"])
    if request["isolation"] != "fork":
        words = [sys.executable, os.path.abspath(__file__), json.dumps(request)]
        tool = request["tool"] if request["language"] == "python" else []
        if tool and not shutil.which(tool[0]):
            raise FileNotFoundError("%s is not on the PATH" % tool[0])
        os.execvpe((tool + words)[0], tool + words, os.environ)
    leave = os._exit  # the snippet may patch it
    atexit._clear()  # those of the preloaded modules: torch's cost 23 ms a child
    if "multiprocessing.util" in sys.modules:  # but this one waits for the snippet's processes
        atexit.register(sys.modules["multiprocessing.util"]._exit_function)
    tempfile.tempdir = None  # the zygote's, had a module asked for it
    sys.stdin = open(0)
    sys.stdout.reconfigure(line_buffering=True, encoding="utf-8", errors="backslashreplace")
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.path[0:0] = [os.path.dirname(request["file"]), request["path"]]
    # a snippet may have modules of these names
    for ours in ("child", "sandbox", "filesystem_view"):
        sys.modules.pop(ours, None)
    gc.enable()
    status = run_python(request["file"])
    try:  # what an interpreter does at its end
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        leave(status)


def change_environment(wanted: dict) -> None:
    """Sets the variables, and no other: most are as they were, and each change has its price."""
    for name in [name for name in os.environ if name not in wanted]:
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def end_with_keeper() -> None:
    """Has the kernel end this process with its parent, whatever may kill that one."""
    if sys.platform == "linux":
        import filesystem_view

        filesystem_view.libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def set_limits(limits: dict) -> None:
    """Address space, file size and processes; no core files."""
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: limits["memory"],
        resource.RLIMIT_FSIZE: limits["file"],
        resource.RLIMIT_NPROC: limits["processes"] + limits["others"],
    }
    for which, value in wanted.items():
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(which, (value, value))
        except (ValueError, OSError):
            pass  # the keeper counts processes, too; macOS has no address-space limit


BASH = ["bash", "-euo", "pipefail"]
# A bash snippet's last act. The script ends with the status that it would have without this line.
BASH_END = "\n(exit $?) && printf '{\"end\": true}' >&%d\n" % TOLD


def run(request: dict) -> int:
    """Runs a snippet of any language in this interpreter; the exit status."""
    sys.argv = [request["file"]]
    if request["language"] == "python":
        sys.path[0:1] = [os.path.dirname(request["file"]), request["path"]]
        sys.stdout.reconfigure(line_buffering=True)  # so that what was printed outlives a crash
        return run_python(request["file"])
    if request["language"] == "bash":
        with open(request["file"], "a") as file:
            file.write(BASH_END)
        os.execvp("bash", [*BASH, request["file"]])
    return run_cuda(request)


def run_python(path: str) -> int:
    """Runs a file as `__main__` and tells how it ended; the exit status."""
    main_module = types.ModuleType("__main__")
    main_module.__file__ = path
    main_module.__builtins__ = __builtins__
    sys.modules["__main__"] = main_module  # so that `spawn` and `pickle` find it
    sys.argv = [path]
    # bound before the snippet can patch them
    getpid, write, owner = os.getpid, os.write, os.getpid()
    os.set_inheritable(TOLD, False)
    told, status = b"{}", 0
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, main_module.__dict__)
        told = b'{"end": true}'
    except SystemExit as stop:
        status = 0 if stop.code is None else stop.code if isinstance(stop.code, int) else 1
        if not (stop.code is None or isinstance(stop.code, int)):
            print(stop.code, file=sys.stderr)
    except BaseException as error:
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
        told = described(error)
        # without the frame of this function, which is none of the reader's business
        shown = error.with_traceback(error.__traceback__.tb_next)
        try:
            sys.excepthook(type(shown), shown, shown.__traceback__)
        except Exception:
            sys.__excepthook__(type(shown), shown, shown.__traceback__)
    if getpid() == owner:  # a fork of the snippet that falls through to here is not its end
        try:
            write(TOLD, told)
        except OSError:
            pass  # the snippet closed it: reported as stopped half-way
    return status & 0xFF


def described(error: BaseException, dumps: object = json.dumps) -> bytes:
    """An uncaught exception as JSON, short enough to be told in one piece."""
    names = [kind.__name__[:80] for kind in type(error).__mro__[:-1]]
    try:
        message = str(error)[:1500]
    except Exception:
        message = "<exception str() failed>"
    while True:
        told = dumps({"raised": names[:8], "message": message}).encode()
        if len(told) < 2500 or not message:
            return told
        message = message[: len(message) * 3 // 4]


def nvcc(file: str, program: str, flags: list, compile_only: bool) -> list:
    """The words of the command that compiles a file; with `compile_only`, to an object file."""
    return ["nvcc", *(["-c"] if compile_only else []), *flags, file, "-o", program]


def run_cuda(request: dict) -> int:
    """Compiles a file with nvcc and, unless it is compile-only, runs the program."""
    program = os.path.join(os.path.dirname(request["file"]), "program")
    command = nvcc(request["file"], program, request["flags"], request["compile_only"])
    if request["compile_only"]:
        flags = os.environ.get("NVCC_APPEND_FLAGS", "") + os.environ.get("NVCC_PREPEND_FLAGS", "")
        with open(os.environ["KBTOOLS_TARGETS"], "a") as file:
            file.write("\n".join(re.findall(r"(?:arch|code)=(sm_\w+)", flags)))
    for words in [command] if request["compile_only"] else [command, [*request["tool"], program]]:
        status = subprocess.run(words, check=False).returncode
        if status < 0:
            os.kill(os.getpid(), -status)
        if status:
            return status
    os.write(TOLD, b'{"end": true}')
    return 0


if __name__ == "__main__":
    raise SystemExit(run(json.loads(sys.argv[1])))  # sys.exit may be what the snippet patched
