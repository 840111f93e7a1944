"""IPython and Jupyter: the article below the traceback of a cell.

IPython catches what a cell raises, so `sys.excepthook` is not called. `set_custom_exc` has place
for one extension, and changes how IPython shows the traceback. So nothing is replaced here: after
each cell IPython says how it ended.
"""

from __future__ import annotations

import sys
import threading
import traceback
from typing import Any

_loaded: dict[int, Extension] = {}
"""The extension of each shell, by the shell's `id`."""


class Extension:
    """What `%load_ext kbtools` adds to a shell, and `%unload_ext kbtools` takes away."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._shown_before: BaseException | None = None
        self._thread_hook = threading.excepthook

    def load(self) -> None:
        """Follows the cells of the shell, and the threads that they start."""
        self._shell.events.register("pre_run_cell", self.before_cell)
        self._shell.events.register("post_run_cell", self.after_cell)
        threading.excepthook = self.in_thread

    def unload(self) -> None:
        """Follows no cell any more; a hook of threads that was set since stays."""
        self._shell.events.unregister("pre_run_cell", self.before_cell)
        self._shell.events.unregister("post_run_cell", self.after_cell)
        if threading.excepthook == self.in_thread:
            threading.excepthook = self._thread_hook

    def before_cell(self, _: object) -> None:
        """Notes which traceback was the last: `%run` shows one, and the cell ends well."""
        self._shown_before = getattr(sys, "last_value", None)

    def after_cell(self, result: Any) -> None:
        """Shows the article about the failure of a cell, or of a script that it ran."""
        last = getattr(sys, "last_value", None)
        error = result.error_in_exec or (last if last is not self._shown_before else None)
        if error is not None:
            show_article(error)

    def in_thread(self, args: threading.ExceptHookArgs) -> None:
        """Shows the article about the failure of a thread."""
        self._thread_hook(args)
        if args.exc_value is not None:
            show_article(args.exc_value)


def load(shell: Any) -> None:
    """Shows articles in a shell from now on; a second call does nothing.

    `shell` is an `IPython.core.interactiveshell.InteractiveShell`.
    """
    if id(shell) not in _loaded:
        _loaded[id(shell)] = extension = Extension(shell)
        extension.load()


def unload(shell: Any) -> None:
    """Shows no articles in a shell any more. `shell` is the one that `load` was given."""
    extension = _loaded.pop(id(shell), None)
    if extension:
        extension.unload()


def show_article(error: BaseException) -> None:
    """Prints the article about an exception, if there is one; an error here changes nothing."""
    if not isinstance(error, Exception):
        return  # an interrupt is no failure
    try:
        from kbtools.integrations import footnote

        text = "".join(traceback.format_exception(error))
        message = footnote.brief_article(text, is_own_process=True)
    except Exception as fault:
        message = f"kbtools: no article was looked for: {' '.join(str(fault).split())}"
    if message:
        sys.stdout.flush()  # it holds the traceback, where it is a pipe or a file
        print(f"\n{message}", file=sys.stderr, flush=True)
