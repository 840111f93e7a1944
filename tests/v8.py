"""The site's scripts in V8, without a browser, for `tests/test_browser_parity.py`."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from py_mini_racer import MiniRacer

from kbtools.matching import Index
from kbtools.site.data import shelves

ASSETS = Path(__file__).parent.parent / "kbtools" / "site" / "assets" / "matching"


IMPORT = re.compile(r"^import \{[^}]*\} from \"\./([\w-]+\.js)\";$", re.MULTILINE)
EXPORT = re.compile(r"^export (?:function\*?|const|class) (\w+)", re.MULTILINE)


def modules(name: str) -> Iterator[str]:
    """A module of the matcher and all that it imports, each after what it imports itself."""
    for imported in IMPORT.findall((ASSETS / name).read_text("utf-8")):
        yield from modules(imported)
    yield name


def scripts() -> str:
    """The modules as one script: each keeps what is its own, and shares what it exports."""
    pieces = []
    for name in dict.fromkeys([*modules("matcher.js"), *modules("shelves.js")]):
        text = IMPORT.sub("", (ASSETS / name).read_text("utf-8"))
        shared = ", ".join(EXPORT.findall(text))
        text = re.sub(r"^export ", "", text, flags=re.MULTILINE)
        pieces.append(f"const {{ {shared} }} = (() => {{\n{text}\nreturn {{ {shared} }};\n}})();")
    return "\n".join(pieces)


DIAGNOSE = """
function diagnosed({ head, shelves, whole, last }, text) { // as matching/recognise.js does
  const needed = new Shelves(head).needed(text);
  const key = String(needed.shelves);
  if (last.key !== key) { // one is kept: a matcher holds megabytes
    const index = indexOf(head, needed.shelves.map((number) => shelves[number]));
    Object.assign(last, { key, matcher: KBMatch.load(index) });
  }
  const answer = last.matcher.diagnose(text);
  if (answer.matches.length || !needed.isCut) return answer;
  last.whole ??= KBMatch.load(whole);
  return last.whole.diagnose(text);
}
"""


@cache
def engine() -> tuple[MiniRacer, ThreadPoolExecutor]:
    """V8 with the scripts in it, and the thread that it runs in: one for all tests of a process.

    In the thread of a test, where a browser test has run, there is an event loop, and the engine
    would want to be awaited. A second engine, or one that another thread frees, ends the process
    with SIGSEGV or waits for ever on a CPU with memory protection keys (mini-racer 0.14.1).
    """
    thread = ThreadPoolExecutor(1)
    racer = thread.submit(MiniRacer).result()
    thread.submit(racer.eval, f"{scripts()}\nconst sites = []; {DIAGNOSE} let log = ''; 0").result()
    return racer, thread


def evaluate(code: str, seconds: float = 60) -> Any:
    """The value of an expression in the scope of the scripts.

    Raises:
        JSTimeoutException: it took more than so many seconds.
    """
    racer, thread = engine()
    return thread.submit(racer.eval, code, timeout_sec=seconds).result()


class Browser:
    """A matcher as the page has it, with the signatures as the site publishes them."""

    def __init__(self, index: Index) -> None:
        files = {path: content.decode() for path, content in shelves.files(index)}
        head = files.pop(f"{shelves.FOLDER}/head.json")
        contents = f"[{', '.join(files.values())}]"
        whole = msgspec.json.encode(index).decode()
        site = f"{{ head: {head}, shelves: {contents}, whole: {whole}, last: {{}} }}"
        self._site = f"sites[{evaluate(f'sites.push({site}) - 1')}]"
        self._diagnose = f"JSON.stringify(diagnosed({self._site}, log))"

    def shelves(self, text: str) -> list[int]:
        """The shelves that the page fetches for a log."""
        evaluate(f"log = {json.dumps(text)}; 0")
        numbers = f"new Shelves({self._site}.head).needed(log).shelves"
        return list(json.loads(evaluate(f"JSON.stringify({numbers})")))

    def diagnose(self, text: str) -> Any:
        """The page's answer to a log, as JSON has it."""
        return self.timed(text)[0]

    def timed(self, text: str) -> tuple[Any, float]:
        """The page's answer to a log, and the seconds of CPU that it took."""
        evaluate(f"log = {json.dumps(text)}; 0")
        started = time.process_time()
        answer = evaluate(self._diagnose)
        return json.loads(answer), time.process_time() - started
