"""What share of queries finds its article first, in the search of the built site, in a browser.

    kbtools build && python benchmarks/search.py

Queries are what readers have: the literal texts of signatures (the first two of an article), typed
on pages of every language; and phrases of the translations in the language's own script, the
longest of each title and the first eight characters of the longest of each summary. Some pieces
are in several articles, and then another one may rightly be first.
"""

from __future__ import annotations

import functools
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.checks.model import Base

ROOT = Path(__file__).parent.parent
FIND = """async (query) => {
    const [script] = [...document.querySelectorAll("script[src*='/kb-'], link[href*='/kb-']")];
    const folder = (script.src || script.href).replace(/[^/]*$/, "");
    const { find } = await import(folder + "search.js");
    return (await find(query)).map((one) => one.path);
}"""
OWN = re.compile(r"[^\W\d_a-zA-Z]{4,}")
"""A phrase in a script other than the Latin one."""


def literals(base: Base) -> Iterator[tuple[str, str]]:
    """The article and the text of signatures."""
    for article in base.articles:
        for signature in article.matter.signatures[:2]:
            yield article.id, signature.literal


def phrases(base: Base, language: str) -> Iterator[tuple[str, str]]:
    """The article and phrases of its translation."""
    for page in base.pages:
        if page.translates and page.language == language:
            for key, length in (("title", 100), ("summary", 8)):
                if matches := OWN.findall(str(page.matter[key])):
                    yield str(page.matter["id"]), max(matches, key=len)[:length]


def ask(page: Any, queries: list[tuple[str, str]]) -> tuple[int, int, int]:
    """How many find their article first, among the first three, and find nothing at all."""
    answers = [(article, page.evaluate(FIND, query)) for article, query in queries]
    return (
        sum(paths[:1] == [f"{article}/"] for article, paths in answers),
        sum(f"{article}/" in paths[:3] for article, paths in answers),
        sum(not paths for _, paths in answers),
    )


def main() -> None:
    """Prints a table."""
    base = load_base(config.find(ROOT))
    first, *translations = base.config.knowledge_base.languages
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    handler = functools.partial(quiet, directory=ROOT / "site")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"{'typed':34} {'on pages in':12} {'queries':>8} {'first':>6} {'top 3':>6} {'none':>5}")
    with sync_playwright() as played:
        browser = played.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for language in (first, *translations):
            page = browser.new_page()
            below = "" if language == first else f"{language}/"
            page.goto(f"http://127.0.0.1:{server.server_port}/{below}search/")
            kinds = {"texts of signatures": list(literals(base))}
            kinds |= {
                f"phrases of translations, {of}": list(phrases(base, of)) for of in translations
            }
            for kind, queries in kinds.items():
                top, top_three, empty = ask(page, queries)
                print(f"{kind:34} {language:12} {len(queries):8} {top:6} {top_three:6} {empty:5}")
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
