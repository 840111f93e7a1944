"""The snippet's own process: what is done before, around and after its code. Standard library only.

Loaded by the zygote for its forks, and run by a fresh interpreter for the snippets that get one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import types


def become_snippet(request: dict, told: int) -> None:
    """Turns this fork into the snippet's process; never returns."""
    os.setsid()
    null, out = (
        os.open("/dev/null", os.O_RDONLY),
        os.open(request["out"], os.O_WRONLY | os.O_APPEND),
    )
    for source, target in ((null, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    told_high = 200
    os.dup2(told, told_high)
    os.closerange(3, told_high)
    os.closerange(told_high + 1, 4096)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    if request["sandbox"]:
        import sandbox

        sandbox.enter(request["scratch"], network=False, shared_tmp=request["shared_tmp"])
    set_limits(request["limits"])
    os.environ.clear()
    os.environ.update(request["env"])
    if request["fresh"] or request["language"] != "python":
        words = [sys.executable, os.path.abspath(__file__), json.dumps(request)]
        tool = request["tool"] if request["language"] == "python" else []
        os.set_inheritable(told_high, True)
        os.execvpe((tool + words)[0], tool + words + [str(told_high)], os.environ)
    import atexit

    atexit._clear()  # those of the preloaded modules: torch's cost 23 ms a child
    import tempfile

    tempfile.tempdir = None  # the zygote's, had a module asked for it
    sys.stdin = open(0)
    sys.stdout.reconfigure(line_buffering=True, encoding="utf-8", errors="backslashreplace")
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.path[0:0] = [os.path.dirname(request["file"]), request["path"]]
    for ours in ("inside", "sandbox"):  # a snippet may have modules of these names
        sys.modules.pop(ours, None)
    status = run_python(request["file"], told_high)
    try:  # what an interpreter does at its end
        import threading

        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def set_limits(limits: dict) -> None:
    """Address space, file size and processes; no core files."""
    import resource

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


def run(request: dict, told: int) -> int:
    """Runs a snippet of any language in this interpreter; the exit status."""
    os.set_inheritable(told, False)
    sys.argv = [request["file"]]
    if request["language"] == "python":
        sys.path[0:1] = [os.path.dirname(request["file"]), request["path"]]
        return run_python(request["file"], told)
    if request["language"] == "bash":
        script = '. "$1"; printf "%s" \'{"end": true}\' >&"$2"'
        os.set_inheritable(told, True)
        words = ["bash", "-euo", "pipefail", "-c", script, "bash", request["file"], str(told)]
        os.execvp("bash", words)
    return run_cuda(request, told)


def run_python(path: str, told: int) -> int:
    """Runs a file as `__main__` and tells how it ended; the exit status."""
    main_module = types.ModuleType("__main__")
    main_module.__file__ = path
    main_module.__builtins__ = __builtins__
    sys.modules["__main__"] = main_module  # so that `spawn` and `pickle` find it
    sys.argv = [path]
    owner = os.getpid()
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, main_module.__dict__)
        told_now: dict = {"end": True}
        status = 0
    except SystemExit as stop:
        told_now = {"exit": stop.code if isinstance(stop.code, int) else None}
        status = 0 if stop.code is None else stop.code if isinstance(stop.code, int) else 1
        if not (stop.code is None or isinstance(stop.code, int)):
            print(stop.code, file=sys.stderr)
    except BaseException as error:
        names = [kind.__name__ for kind in type(error).__mro__[:-1]]
        told_now = {"raised": names[:8], "message": str(error)[:1500]}
        # without the frame of this function, which is none of the reader's business
        shown = error.with_traceback(error.__traceback__.tb_next)
        sys.excepthook(type(shown), shown, shown.__traceback__)
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
    if os.getpid() == owner:  # a fork of the snippet that falls through to here is not its end
        try:
            os.write(told, json.dumps(told_now).encode())
        except OSError:
            pass  # the snippet closed it: reported as stopped half-way
    return status & 0xFF


def run_cuda(request: dict, told: int) -> int:
    """Compiles a file with nvcc and, unless it is compile-only, runs the program."""
    program = os.path.join(os.path.dirname(request["file"]), "program")
    command = ["nvcc", *request["flags"], request["file"], "-o", program]
    if request["compile_only"]:
        command[1:1] = ["-c"]
    for words in [command] if request["compile_only"] else [command, [*request["tool"], program]]:
        status = subprocess.run(words, check=False).returncode
        if status < 0:
            os.kill(os.getpid(), -status)
        if status:
            return status
    os.write(told, b'{"end": true}')
    return 0


if __name__ == "__main__":
    sys.exit(run(json.loads(sys.argv[1]), int(sys.argv[2])))
