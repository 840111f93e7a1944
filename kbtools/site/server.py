"""A web server for one's own browser: the live site, and an event when a page was built anew."""

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
"""Seconds between two signs of life, by which a browser that left is noticed."""
SCRIPT = (
    b"<script>(()=>{let b;new EventSource('"
    + EVENTS.encode()
    + b"?'+encodeURIComponent(location.pathname)).onmessage=e=>{const m=JSON.parse(e.data);"
    b"if(m.reload)return location.reload();if(b)b.remove();if(!m.problem)return;"
    b"b=document.createElement('pre');b.textContent=m.problem;b.setAttribute('role','alert');"
    b"b.style='position:fixed;inset:auto 0 0 0;margin:0;padding:1rem;z-index:99;"
    b"max-height:60vh;overflow:auto;white-space:pre-wrap;background:#8c1d18;color:#fff';"
    b"document.body.append(b)}})()</script>"
)


class Server(http.server.ThreadingHTTPServer):
    """Serves on this machine only."""

    daemon_threads = True

    def __init__(self, live: Live, port: int) -> None:
        self.live = live
        handler = partial(Handler, directory=str(live.folder))
        super().__init__(("127.0.0.1", port), handler)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def start(self) -> None:
        """Answers from now on, in threads of its own."""
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the site, and one stream of events."""

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
        """Nothing is kept: the next build may change any file."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Requests are no news."""

    def _file(self, path: str) -> Path:
        file = Path(self.translate_path(path))
        return file / "index.html" if path.endswith("/") else file

    def _page(self, code: int, html: bytes) -> None:
        content = html.replace(b"</body>", SCRIPT + b"</body>", 1)
        if SCRIPT not in content:
            content += SCRIPT
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _events(self, page: Path) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        live = self.server.live
        shown, told, version = _stamp(page), "", -1
        try:
            while True:
                version = live.wait(version, BEAT)
                news = {"reload": _stamp(page) != shown, "problem": live.problem}
                if news["reload"] or news["problem"] != told:
                    told = live.problem
                    self.wfile.write(f"data: {json.dumps(news)}\n\n".encode())
                else:
                    self.wfile.write(b": still here\n\n")
                self.wfile.flush()
        except OSError:  # the page was left
            return


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
