"""Opens the store that an executor asked for, once; has it filled before if that is worth it."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Mapping
from typing import Literal

from kbtools.running.store_filling import fill, filling
from kbtools.running.toolchain_store import OpenStore, StoreError, StoreOrder, open_store

FORMAT = 1
"""Of a store. Part of its name: another format is another store."""
COMPILERS = ("cc", "c++", "gcc", "g++", "clang++")


class StoreKeeper:
    """The store of an executor; several threads may ask for it."""

    def __init__(self, order: StoreOrder, python: str, base: Mapping[str, str]) -> None:
        """Starts nothing.

        Args:
            order: Which store.
            python: The toolchain's interpreter.
            base: The environment that the toolchain's snippets share.
        """
        self.order, self.python, self.base = order, python, dict(base)
        self._stop, self._changed = threading.Event(), threading.Condition()
        self._state: Literal["new", "opening", "filling", "done"] = "new"
        self._store: OpenStore | None = None

    def open(self) -> OpenStore | None:
        """The store, filled if that is worth it; None where there is none, or `stop` was called.

        Raises:
            StoreError: it cannot be filled, or must not be used; said once, to one caller.
        """
        with self._changed:
            if self._state != "new":
                self._changed.wait_for(lambda: self._state == "done")
                return self._store
            self._state = "opening"
        store = None
        try:
            store = None if self._stop.is_set() else self._open()
        finally:
            with self._changed:
                self._store, self._state = store, "done"
                self._changed.notify_all()
        return store

    def open_unless_filling(self) -> OpenStore | None:
        """The store that another thread opens; None while it is being filled."""
        with self._changed:
            self._changed.wait_for(lambda: self._state in ("filling", "done"))
            return self._store

    def stop(self) -> None:
        """Ends the program if it is at work; `open` then raises a StoreError."""
        self._stop.set()

    def close(self) -> None:
        """Stops the program, and lets others remove the store; may be called twice."""
        self.stop()
        with self._changed:
            self._changed.wait_for(lambda: self._state in ("new", "done"))
            if self._store:
                self._store.close()
            self._store = None

    def _open(self) -> OpenStore | None:
        settings = self.order.settings
        if missing := [name for name in settings.needs if not self._which(name)]:
            raise StoreError(f"{missing[0]} is not on the PATH")
        try:
            name = self.name()
            folder = self.order.folder / name
            store = open_store(folder)
            if store is None and self.order.fill:
                with filling(self.order.folder, self._stop):
                    store = open_store(folder)  # another process may have filled it meanwhile
                    if store is None:
                        with self._changed:
                            self._state = "filling"
                            self._changed.notify_all()
                        fill(self.order, name, self.python, self.base, self._stop)
                        store = open_store(folder)
        except OSError as error:
            raise StoreError(str(error)) from error
        return store

    def name(self) -> str:
        """The name of the store's folder: the interpreter, then all that it depends on.

        Raises:
            OSError: the program cannot be read.
        """
        settings = self.order.settings
        parts = (
            *(FORMAT, self.python, self.order.toolchain, self.order.gpu),
            *(self.order.program.read_bytes(), sorted(settings.environment.items())),
            sorted(self.order.variables.items()),
            *(str(self._which(program)) for program in COMPILERS),
            *(self.base.get(variable) for variable in ("CC", "CXX")),
        )
        interpreter = hashlib.sha256(self.python.encode()).hexdigest()[:8]
        return f"{interpreter}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:24]}"

    def _which(self, program: str) -> str | None:
        return shutil.which(program, path=self.base.get("PATH", os.defpath))
