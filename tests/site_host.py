"""A published site on this machine, as far as an index is fetched from it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def site(answer: Callable[[str], tuple[int, bytes]]) -> Iterator[str]:
    """The address of a server on this machine, which answers as given.

    What a redirection answers is where it leads.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = answer(self.path)
            self.send_response(status)
            if status == 302:
                self.send_header("location", content.decode())
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """The test's output stays its own."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def served(index: bytes) -> Callable[[str], tuple[int, bytes]]:
    """A site that has an index and nothing else."""
    return lambda path: (200, index) if path == "/kb/api/v1/signatures.json" else (404, b"")
