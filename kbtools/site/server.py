"""A web server for a browser on this machine: the live site, and an event when a page changes."""

from __future__ import annotations

import http.server
import json
import threading
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from kbtools.site.live import Live

EVENTS = "/.kbtools/events"
BEAT = 15.0
"""Seconds between two messages: a browser that has closed the page is noticed by them."""
SCRIPT = (
    b"<script>(()=>{let box;new EventSource('"
    + EVENTS.encode()
    + b"?'+encodeURIComponent(location.pathname)).onmessage=event=>{"
    b"const news=JSON.parse(event.data);"
    b"if(news.reload)return location.reload();if(box)box.remove();if(!news.problem)return;"
    b"box=document.createElement('pre');box.textContent=news.problem;"
    b"box.setAttribute('role','alert');"
    b"box.style='position:fixed;inset:auto 0 0 0;margin:0;padding:1rem;z-index:99;"
    b"max-height:60vh;overflow:auto;white-space:pre-wrap;background:#8c1d18;color:#fff';"
    b"document.body.append(box)}})()</script>"
)
"""Reloads the page when it changed, and shows in a box why the newest text could not be built."""


class Server(http.server.ThreadingHTTPServer):
    """Serves a live site to this machine only."""

    daemon_threads = True

    def __init__(self, live: Live, port: int) -> None:
        """Binds a port; 0 takes one that is free."""
        self.live = live
        handler = partial(Handler, directory=str(live.folder))
        super().__init__(("127.0.0.1", port), handler)

    @property
    def url(self) -> str:
        """The address of the site."""
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def start(self) -> None:
        """Serves from now on, in threads of its own."""
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the files of the site, and a stream of events to each open page."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answers a request."""
        parts = urlsplit(self.path)
        if parts.path == EVENTS:
            self._events(self._file(unquote(parts.query)))
            return
        file = self._file(unquote(parts.path))
        if file.suffix == ".html" and file.is_file() and parts.path.endswith(("/", ".html")):
            self._page(200, file.read_bytes())
        elif file.is_dir() or file.is_file():
            super().do_GET()
        else:
            missing = self.server.live.folder / "404.html"
            self._page(404, missing.read_bytes() if missing.is_file() else b"<body>not built yet")

    def end_headers(self) -> None:
        """Forbids caching: the next build may change any file."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Prints nothing for a request."""

    def _file(self, path: str) -> Path:
        """The file that a path of the site leads to."""
        file = Path(self.translate_path(path))
        return file / "index.html" if path.endswith("/") else file

    def _page(self, code: int, html: bytes) -> None:
        """Sends a page with the script that listens for events."""
        content = html.replace(b"</body>", SCRIPT + b"</body>", 1)
        if SCRIPT not in content:
            content += SCRIPT
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _events(self, page: Path) -> None:
        """Tells an open page of every new version: whether to reload, and what is wrong.

        A version that changes nothing for the page is a comment, which keeps the stream open.
        """
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        live = self.server.live
        stamp, problem, version = _stamp(page), "", -1
        try:
            while True:
                version = live.wait(version, BEAT)
                message = f": version {version}\n"
                news = {"reload": _stamp(page) != stamp, "problem": live.problem}
                if news["reload"] or news["problem"] != problem:
                    problem = live.problem
                    message += f"data: {json.dumps(news)}\n"
                self.wfile.write(f"{message}\n".encode())
                self.wfile.flush()
        except OSError:  # the browser closed the page
            return


def _stamp(file: Path) -> tuple[int, int] | None:
    """When a file was written, in nanoseconds, and its size; None if it is missing."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
