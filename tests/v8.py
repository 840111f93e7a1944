"""The site's scripts in V8, without a browser, for `tests/test_browser_parity.py`."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from py_mini_racer import MiniRacer

from kbtools.matching import Index

ASSETS = Path(__file__).parent.parent / "kbtools" / "site" / "assets" / "matching"
SCRIPTS = ("affected.js", "cleaning.js", "mentions.js", "matcher.js")


def scripts() -> str:
    """The modules as one script: each keeps what is its own, and shares what it exports."""
    pieces = []
    for name in SCRIPTS:
        text = (ASSETS / name).read_text("utf-8")
        text = re.sub(r"^import \{[^}]*\} from \"\./[\w-]+\.js\";$", "", text, flags=re.MULTILINE)
        shared = re.findall(r"^export (?:function\*?|const|class) (\w+)", text, re.MULTILINE)
        text = re.sub(r"^export ", "", text, flags=re.MULTILINE)
        pieces.append(
            f"const {{ {', '.join(shared)} }} = (() => {{\n{text}\n"
            f"return {{ {', '.join(shared)} }};\n}})();"
        )
    return "\n".join(pieces)


class Browser:
    """A matcher as the page has it, with the index as the site publishes it."""

    def __init__(self, index: Index) -> None:
        # in a thread of its own: where a browser test has run, this one has an event loop, and
        # the engine would want to be awaited
        self._thread = ThreadPoolExecutor(1)
        self._engine = self._thread.submit(MiniRacer).result()
        self.eval(scripts())
        published = msgspec.json.encode(index).decode()
        self.eval(f"const matcher = KBMatch.load(JSON.parse({json.dumps(published)})); 0")
        self.eval("let log = ''; 0")

    def diagnose(self, text: str) -> Any:
        """What the page is told of a log, as JSON has it."""
        self.give(text)
        return json.loads(self.eval("JSON.stringify(matcher.diagnose(log))"))

    def give(self, text: str) -> None:
        """Puts a log into the variable `log`."""
        self.eval(f"log = {json.dumps(text)}; 0")

    def eval(self, code: str, seconds: float = 60) -> Any:
        """The value of an expression in the scripts' own scope."""
        return self._thread.submit(self._engine.eval, code, timeout_sec=seconds).result()
