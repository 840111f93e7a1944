"""A knowledge base with a store, and what there is to be seen of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from bases import Base

MADE = b"made once for all"
FILL = """
import os, tempfile, time
from pathlib import Path

with open({log!r}, "a") as log:
    log.write("filled\\n")
folder = Path(tempfile.gettempdir(), "shared")
folder.mkdir()
(folder / "header").write_bytes({made!r})
(folder / "lock").touch()
(folder / "link").symlink_to("/etc/passwd")
Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], "1").mkdir(parents=True)
Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], "1", "answer").write_text(os.environ["WARM"])
Path("left-in-the-working-folder").touch()
"""
WARM = f"""
import colorsys, os, tempfile

shared = os.path.join(tempfile.gettempdir(), "shared")
assert open(shared + "/header", "rb").read() == {MADE!r}
assert os.listdir(shared) == ["header"], os.listdir(shared)
assert open(os.path.join(tempfile.gettempdir(), "../cache/inductor/1/answer")).read() == "yes"
"""
COLD = """
import colorsys, os, tempfile

assert not os.path.exists(os.path.join(tempfile.gettempdir(), "shared"))
assert "WARM" not in os.environ
"""
CACHES = {"TORCHINDUCTOR_CACHE_DIR": "{cache}/inductor"}
NewBase = Callable[..., Base]


def warm_base(new_base: NewBase, program: str = FILL, more: str = "") -> Base:
    """A knowledge base whose store that program fills; `log` in its folder has a line for each."""
    settings = f"program = 'fill.py'\nwhen = 'colorsys'\nat-least = 1\n{more}"
    store = f"[run.store]\n{settings}\nenvironment = {{WARM = 'yes'}}"
    variables = "".join(f"{name} = '{path}'\n" for name, path in CACHES.items())
    base = new_base(f"{store}\n[run.variables]\n{variables}")
    text = program.replace("{log!r}", repr(str(base.root / "log"))).replace("{made!r}", repr(MADE))
    (base.root / "fill.py").write_text(text, "utf-8")
    return base


def fillings(base: Base) -> int:
    """How often its program has been run."""
    log = base.root / "log"
    return len(log.read_text("utf-8").splitlines()) if log.exists() else 0


def stores(base: Base) -> list[Path]:
    """What lies in its folder of stores, hidden folders too."""
    folder = base.root / ".kbtools" / "stores"
    return sorted(folder.iterdir()) if folder.exists() else []


def contents(base: Base) -> dict[str, tuple[bytes, int]]:
    """Every file of its only store: what it holds, and its mode."""
    [store] = stores(base)
    files = [path for path in store.rglob("*") if path.is_file()]
    return {
        f"{path.relative_to(store)}": (path.read_bytes(), path.stat().st_mode) for path in files
    }


def await_that(condition: Callable[[], bool]) -> None:
    """Waits until something holds, a minute at most."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
