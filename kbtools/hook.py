"""Shows the article below the traceback of an exception that no code has caught.

    python -m kbtools.hook script.py ...      (or -m MODULE, or -c CODE)

or, in a program: `import kbtools.hook; kbtools.hook.install()`; in a notebook: `%load_ext kbtools`.
The traceback is printed as it would be without it. The rest of kbtools is imported only when there
is a traceback: programs that are not ours pay for what this module imports.
"""

from __future__ import annotations

import sys
import threading
import types

TYPE_CHECKING = False  # as in `typing`, whose import takes a third as long as all that is imported
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_RUNNER_FILES = (__file__, "<frozen runpy>")
"""Files whose frames stand between the interpreter and a program that this module runs."""

_installed = False


def install() -> None:
    """Adds the article to `sys.excepthook` and `threading.excepthook`.

    A hook that the program has set before is called first. A second call does nothing. In IPython
    and Jupyter, which call no excepthook, it does what `%load_ext kbtools` does.
    """
    global _installed
    if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()):
        from kbtools.integrations import notebook

        notebook.load(shell)
        return
    if _installed:
        return
    _installed = True
    sys.excepthook = _followed_by_article(sys.excepthook)
    thread_hook = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        thread_hook(args)
        if args.exc_value is not None:
            _show_article(args.exc_value)

    threading.excepthook = hook


def _followed_by_article(earlier_hook: Callable[..., object]) -> Callable[..., None]:
    """An excepthook that calls the earlier one, then shows the article."""

    def hook(
        kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
    ) -> None:
        while trace and trace.tb_frame.f_code.co_filename in _RUNNER_FILES:
            trace = trace.tb_next
        earlier_hook(kind, error.with_traceback(trace), trace)
        _show_article(error)

    return hook


def _show_article(error: BaseException) -> None:
    """Prints the article about an exception; an error here does not change how the program ends."""
    if not isinstance(error, Exception):
        return  # Ctrl-C and exits are no failures
    from contextlib import suppress

    try:
        import traceback

        from kbtools.integrations import footnote

        text = "".join(traceback.format_exception(error))
        message = footnote.brief_article(text, is_own_process=True)
    except Exception as fault:
        message = f"kbtools: no article was looked for: {' '.join(str(fault).split())}"
    if message and sys.stderr:
        with suppress(OSError, ValueError):  # standard error is closed, or has no reader
            print(f"\n{message}", file=sys.stderr, flush=True)


def _run(words: list[str]) -> None:
    """Runs a program as the interpreter would: `[-c CODE | -m MODULE | FILE] [ARGUMENT]...`."""
    program, sys.argv = words[0], words
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main  # for good: threads and pickles ask for it after the last line
    if program in ("-c", "-m"):
        if len(words) < 2:
            _exit_with_usage()
        sys.argv = [program, *words[2:]]
        code = _code_of_string(words[1]) if program == "-c" else _code_of_module(words[1], main)
    else:
        code = _code_of_path(program, main)
    main.__dict__["__builtins__"] = __builtins__
    exec(code, main.__dict__)


def _code_of_string(source: str) -> types.CodeType:
    sys.path[0] = ""
    return compile(source, "<string>", "exec", dont_inherit=True)


def _code_of_module(name: str, main: types.ModuleType) -> types.CodeType:
    import os

    sys.path[0] = os.getcwd()
    return _find_code(name, main)


def _code_of_path(path: str, main: types.ModuleType) -> types.CodeType:
    """The code of a script, or of the `__main__` in a folder or an archive."""
    import os

    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        sys.path[0] = path
        return _find_code("__main__", main)
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    main.__file__ = path
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        print(f"kbtools: {path}: {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    return compile(source, path, "exec", dont_inherit=True)


def _find_code(name: str, main: types.ModuleType) -> types.CodeType:
    """The code of a module that is run as the program; gives `main` what an import would set."""
    from importlib.util import find_spec

    sys.modules.pop("__main__")
    try:
        spec = find_spec(name)
        if spec and spec.submodule_search_locations is not None:
            spec = find_spec(f"{name}.__main__")
    except (ImportError, ValueError):
        spec = None
    finally:
        sys.modules["__main__"] = main
    loader: Any = spec.loader if spec else None
    code = loader.get_code(spec.name) if spec and hasattr(loader, "get_code") else None
    if spec is None or not isinstance(code, types.CodeType):
        print(f"{sys.executable}: No module named {name}", file=sys.stderr)
        raise SystemExit(1)
    main.__spec__, main.__loader__ = spec, loader
    main.__package__ = spec.parent
    if spec.origin:
        sys.argv[0] = main.__file__ = spec.origin
    return code


def _exit_with_usage() -> NoReturn:
    print(
        "usage: python -m kbtools.hook [-c CODE | -m MODULE | FILE] [ARGUMENT]...", file=sys.stderr
    )
    raise SystemExit(2)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        _exit_with_usage()
    # the module that a program imports as kbtools.hook is this one, installed already
    sys.modules["kbtools.hook"] = sys.modules["__main__"]
    install()
    _run(sys.argv[1:])
