"""A real browser on the built site of this repository, served below `/kb/`."""

from __future__ import annotations

import contextlib
import functools
import gzip
import http.server
import io
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bases import Base
from filelock import FileLock

ROOT = Path(__file__).parent.parent
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Names of a browser that the system may have."""


class Host(http.server.SimpleHTTPRequestHandler):
    """Serves files as static hosts do: compressed, and with 404.html for what is missing."""

    def send_head(self) -> io.BytesIO | None:
        """Sends the headers; the content that follows them."""
        path = Path(self.translate_path(self.path))
        if path.is_dir() and not self.path.partition("?")[0].endswith("/"):
            self.send_response(301)
            self.send_header("Location", self.path + "/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        file = path / "index.html" if path.is_dir() else path
        exists = file.is_file()
        file = file if exists else Path(self.directory) / "kb" / "404.html"
        kind, content = self.guess_type(str(file)), file.read_bytes()
        self.send_response(200 if exists else 404)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        if kind.startswith("text/") or kind.endswith(("json", "javascript", "xml")):
            content = gzip.compress(content, mtime=0)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return io.BytesIO(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Served:
    """A site and its address; `url` ends with a slash."""

    folder: Path
    url: str


@contextlib.contextmanager
def served(site: Path, where: Path) -> Iterator[Served]:
    """Serves a site below `/kb/` for as long as it is used."""
    where.mkdir(parents=True)
    (where / "kb").symlink_to(site)
    handler = functools.partial(Host, directory=str(where))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Served(site, f"http://127.0.0.1:{server.server_port}/kb/")
    finally:
        server.shutdown()
        server.server_close()


def built(root: Path) -> Path:
    """The site of a copy of this repository's knowledge base, built if it is missing."""
    site = root / "site"
    with FileLock(f"{root}.lock"):  # one build for all processes of the tests
        if not site.exists():
            for name in ("kb", "evidence", "docs", "tables"):
                shutil.copytree(ROOT / name, root / name)
            for name in (
                "kbtools.toml",
                "toolchains.toml",
                "tables.toml",
                "mkdocs.yml",
                "CONTRIBUTING.md",
                "CHANGELOG.md",
                "SECURITY.md",
            ):
                shutil.copy(ROOT / name, root / name)
            (root / "kbtools").symlink_to(ROOT / "kbtools")  # for the pages of its modules
            # other tests measure what builds a site: tracing MkDocs here would only take time
            untraced = dict.fromkeys(("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"), "")
            words = ("build", "--url", "https://example.org/kb/")
            run = Base(root, root).kbtools(*words, timeout=300, **untraced)
            assert run.code == 0, run.err
    return site


PAINTED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Ends when what a script has changed stands on the screen."""


class Reader:
    """A reader with a browser: opens pages of a site, and notes what they must never do."""

    def __init__(self, browser: Any, served: Served, **settings: Any) -> None:
        self.context = browser.new_context(**settings)
        self.context.set_default_timeout(20_000)
        self.page = self.context.new_page()
        self.url = served.url
        self.wrongs: list[str] = []
        """Requests to other origins, errors on the console, dialogs."""
        self.requests: list[Any] = []
        """Requests that were answered."""
        self._pending: set[Any] = set()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.wrongs.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        self.context.on("request", self._request)
        self.context.on("requestfinished", self._finished)
        self.context.on("requestfailed", lambda request: self._pending.discard(request))

    def open(self, path: str) -> Any:
        """Opens a page by its path below the root of the site."""
        self.page.goto(self.url + path)
        return self.page

    def settle(self) -> None:
        """Waits until all that the page asks for is there, and what scripts make of it is painted.

        A page imports its scripts one after the other: the next request begins before two frames.
        """
        pending = True
        while pending:
            self.page.evaluate(PAINTED)
            pending = bool(self._pending)

    def weight(self) -> int:
        """Bytes transferred since the last call, headers included."""
        sizes = [request.sizes() for request in self.requests]
        self.requests.clear()
        return sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.wrongs.append(f"{message.type}: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.wrongs.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _finished(self, request: Any) -> None:
        self._pending.discard(request)
        self.requests.append(request)

    def _request(self, request: Any) -> None:
        self._pending.add(request)
        if not request.url.startswith((self.url, "blob:", "data:")):
            self.wrongs.append(f"request to another origin: {request.url}")


@pytest.fixture(scope="session")
def our_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The site of this repository's own knowledge base, built from a copy of it."""
    pytest.importorskip("material", reason="the site cannot be built without mkdocs-material")
    pytest.importorskip("mkdocstrings", reason="nor without mkdocstrings")
    pytest.importorskip("pagefind_bin_extended", reason="pagefind[extended] is not installed")
    base_folder = tmp_path_factory.getbasetemp()
    shared = base_folder.parent if "PYTEST_XDIST_WORKER" in os.environ else base_folder
    with served(built(shared / "ours"), base_folder / "www") as site:
        yield site


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium: that of the system, or Playwright's own."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    with playwright.sync_playwright() as started:
        bundled = Path(started.chromium.executable_path)
        executable = next(
            filter(None, map(shutil.which, NAMES)), bundled if bundled.is_file() else None
        )
        if not executable:
            pytest.skip("no Chromium: apt-get install chromium, or playwright install chromium")
        browser = started.chromium.launch(executable_path=str(executable), args=[*ARGUMENTS])
        yield browser
        browser.close()


@pytest.fixture
def reader(chromium: Any, our_site: Served) -> Iterator[Reader]:
    """A reader of the site; no request may leave it, and no error may appear."""
    opened = Reader(chromium, our_site, viewport={"width": 1280, "height": 820})
    yield opened
    opened.context.close()
    assert opened.wrongs == []
