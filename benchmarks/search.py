"""How many queries find their article, and what a first search costs, in a browser.

    kbtools build && python benchmarks/search.py [ROOT]

ROOT is a knowledge base whose site is built; by default this one. Queries are what readers have:

- the literal texts of signatures (the first two of an article), typed on pages of every language;
- error lines as they are pasted: of the recorded outputs the line that has the literal;
- phrases of the translations in the language's own script, the longest of each title and the first
  eight characters of the longest of each summary.

Some pieces are in several articles, and then another one may rightly be first. The second table
counts the bytes that a browser with an empty cache fetches for the first search of a few of these
queries on a page that is loaded: bodies as a server sends them, text compressed with gzip.
"""

from __future__ import annotations

import functools
import gzip
import http.server
import io
import re
import statistics
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from playwright.sync_api import sync_playwright

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.checks.model import Base
from kbtools.evidence import store

ROOT = Path(__file__).parent.parent
FIND = """async (query) => {
    const [script] = [...document.querySelectorAll("script[src*='/kb-'], link[href*='/kb-']")];
    const folder = (script.src || script.href).replace(/[^/]*$/, "");
    const { find } = await import(folder + "search.js");
    return (await find(query)).map((result) => result.path);
}"""
OWN = re.compile(r"[^\W\d_a-zA-Z]{4,}")
"""A phrase in a script other than the Latin one."""
LINE = 300
"""Characters of a pasted line."""
MOST = 400
"""Queries of each kind at most; of more, so many at equal distances."""
FIRST_SEARCHES = 12
"""Queries of each kind whose bytes are counted."""
PACKED = (".pf_meta", ".pf_index", ".pf_fragment", ".pagefind")
Query = tuple[str, str]
"""The article that is looked for, and what is typed."""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves text compressed, as the servers of sites do, and counts the bytes of bodies."""

    sent: ClassVar[list[tuple[str, int]]] = []

    def send_head(self) -> Any:
        """The headers; what is left to send is the body."""
        path = Path(self.translate_path(self.path))
        if path.is_dir() and self.path.partition("?")[0].endswith("/"):
            path /= "index.html"
        if not path.is_file():
            return super().send_head()
        packed = path.suffix in PACKED
        body = path.read_bytes() if packed else gzip.compress(path.read_bytes(), 6)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        if not packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.sent.append((self.path, len(body)))
        return io.BytesIO(body)

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


def serve(site: Path) -> http.server.ThreadingHTTPServer:
    """A server of a site on a port of its own; to be shut down."""
    handler = functools.partial(Handler, directory=site)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def literals(base: Base) -> Iterator[Query]:
    """The article and the text of signatures."""
    for article in base.articles:
        for signature in article.matter.signatures[:2]:
            yield article.id, signature.literal


def pasted(base: Base) -> Iterator[Query]:
    """The article and the line of a recorded output that has the text of its first signature."""
    for article in base.articles:
        for row in store.read(base.config.evidence, article.id):
            lines = row.outcome.output.splitlines()
            text = article.matter.signatures[0].literal if article.matter.signatures else "\0"
            if line := next((line for line in lines if text in line), None):
                yield article.id, line.strip()[:LINE]
                break


def phrases(base: Base, language: str) -> Iterator[Query]:
    """The article and phrases of its translation."""
    for page in base.pages:
        if page.translates and page.language == language:
            for key, length in (("title", 100), ("summary", 8)):
                if matches := OWN.findall(str(page.matter[key])):
                    yield str(page.matter["id"]), max(matches, key=len)[:length]


def some(queries: list[Query], most: int) -> list[Query]:
    """So many queries at equal distances; all if there are no more."""
    return queries[:: -(-len(queries) // most)] if queries else []


def ask(page: Any, queries: list[Query]) -> tuple[int, int, int]:
    """How many find their article first, among the first three, and find nothing at all."""
    answers = [(article, page.evaluate(FIND, query)) for article, query in queries]
    return (
        sum(paths[:1] == [f"{article}/"] for article, paths in answers),
        sum(f"{article}/" in paths[:3] for article, paths in answers),
        sum(not paths for _, paths in answers),
    )


def first_search(browser: Any, address: str, query: str) -> dict[str, int]:
    """Bytes that the first search of a browser fetches, by what they are."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address, wait_until="networkidle")
    Handler.sent.clear()
    page.evaluate(FIND, query)
    total: dict[str, int] = {}
    for path, size in Handler.sent:
        name = re.sub(r"\?.*", "", path).rpartition(".")[2]
        total[name] = total.get(name, 0) + size
    context.close()
    return total


def main() -> None:
    """Prints two tables."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    base = load_base(config.find(root))
    first, *translations = base.config.knowledge_base.languages
    server = serve(root / "site")
    kinds = {"texts of signatures": list(literals(base)), "error lines": list(pasted(base))}
    kinds |= {f"phrases of translations, {of}": list(phrases(base, of)) for of in translations}
    cost = []
    print(f"{'typed':34} {'on pages in':12} {'queries':>8} {'first':>6} {'top 3':>6} {'none':>5}")
    with sync_playwright() as played:
        browser = played.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for language in (first, *translations):
            page = browser.new_page()
            below = "" if language == first else f"{language}/"
            address = f"http://127.0.0.1:{server.server_port}/{below}search/"
            page.goto(address)
            for kind, queries in kinds.items():
                asked = some(queries, MOST)
                top, top_three, empty = ask(page, asked)
                print(f"{kind:34} {language:12} {len(asked):8} {top:6} {top_three:6} {empty:5}")
                sample = [q for _, q in some(queries, FIRST_SEARCHES)]
                cost.append((kind, language, [first_search(browser, address, q) for q in sample]))
        browser.close()
    server.shutdown()
    print(
        f"\n{'first search, kB':34} {'on pages in':12} {'mean':>8} {'most':>6}  mean of each kind"
    )
    for kind, language, searches in cost:
        sums = [sum(search.values()) / 1000 for search in searches]
        names = sorted({name for search in searches for name in search})
        parts = ", ".join(
            f"{name} {statistics.mean(search.get(name, 0) for search in searches) / 1000:.0f}"
            for name in names
        )
        mean = statistics.mean(sums)
        print(f"{kind:34} {language:12} {mean:8.0f} {max(sums):6.0f}  {parts}")


if __name__ == "__main__":
    main()
