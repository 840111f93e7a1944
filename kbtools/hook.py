"""Shows the article under the traceback of an exception that nothing has caught.

    python -m kbtools.hook script.py ...      (or -m MODULE, or -c CODE)

or, in a program: `import kbtools.hook; kbtools.hook.install()`. The traceback is printed as it
would be. Nothing else of kbtools is imported before there is one.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

_OURS = (__file__, "<frozen runpy>")
"""Files whose frames stand between the interpreter and a program that is run by this module."""

_installed = False


def install() -> None:
    """Adds the article to what `sys.excepthook` and `threading.excepthook` do; once is enough."""
    global _installed
    if _installed:
        return
    _installed = True
    sys.excepthook = _after(sys.excepthook)
    threads = threading.excepthook

    def of_a_thread(about: threading.ExceptHookArgs) -> None:
        threads(about)
        if about.exc_value is not None:
            _show(about.exc_value)

    threading.excepthook = of_a_thread


def _after(earlier: Callable[..., object]) -> Callable[..., None]:
    def hook(
        kind: type[BaseException], value: BaseException, trace: types.TracebackType | None
    ) -> None:
        while trace and trace.tb_frame.f_code.co_filename in _OURS:
            trace = trace.tb_next
        earlier(kind, value.with_traceback(trace), trace)
        _show(value)

    return hook


def _show(error: BaseException) -> None:
    """Says what there is to say; whatever happens here, the program ends as it would."""
    if not isinstance(error, Exception):
        return  # Ctrl-C and exits are no failures
    try:
        import traceback

        from kbtools.integrations import footnote

        text = "".join(traceback.format_exception(error))
        said = footnote.of(text, versions=footnote.here())
    except Exception as fault:
        said = f"kbtools: no article was looked for: {' '.join(str(fault).split())}"
    if said and sys.stderr:
        with suppress(OSError, ValueError):  # closed, or nobody reads it
            print(f"\n{said}", file=sys.stderr, flush=True)


def _run(words: list[str]) -> None:
    """Runs a program as the interpreter would: `[-c CODE | -m MODULE | FILE] [ARGUMENT]...`."""
    import os

    program, sys.argv = words[0], words
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main  # for good: threads and pickles ask for it after the last line
    if program in ("-c", "-m"):
        if len(words) < 2:
            _refuse()
        what, sys.argv = words[1], [program, *words[2:]]
        sys.path[0] = "" if program == "-c" else os.getcwd()
    if program == "-c":
        code = compile(what, "<string>", "exec")
    elif program == "-m":
        code = _module(what, main)
    elif os.path.isdir(program) or program.endswith((".zip", ".pyz")):
        sys.path[0] = program
        code = _module("__main__", main)
    else:
        sys.path[0] = os.path.dirname(os.path.realpath(program))
        main.__file__ = program
        try:
            with open(program, "rb") as file:
                source = file.read()
        except OSError as error:
            print(f"kbtools: {program}: {error.strerror}", file=sys.stderr)
            raise SystemExit(2) from None
        code = compile(source, program, "exec", dont_inherit=True)
    main.__dict__["__builtins__"] = __builtins__
    exec(code, main.__dict__)


def _module(name: str, main: types.ModuleType) -> types.CodeType:
    """The code of a module that is run as the program, which `main` is made to be."""
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


def _refuse() -> NoReturn:
    print(
        "usage: python -m kbtools.hook [-c CODE | -m MODULE | FILE] [ARGUMENT]...", file=sys.stderr
    )
    raise SystemExit(2)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        _refuse()
    # the module that a program imports as kbtools.hook is this one, installed already
    sys.modules["kbtools.hook"] = sys.modules["__main__"]
    install()
    _run(sys.argv[1:])
