"""A host on this machine that behaves as GitHub's REST API does, as far as comments go.

What it answers is what GitHub documents:

- comments, their keys and status codes: https://docs.github.com/rest/issues/comments
- `link`, `per_page`: https://docs.github.com/rest/using-the-rest-api/using-pagination-in-the-rest-api
- limits: https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
- refusals: https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api
- redirections: https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api
- a locked issue: LOCKED in https://docs.github.com/graphql/reference/enums (REST has only its 403)

The page about limits says that a message tells of a secondary limit, but not in which words; those
of SECONDARY are as reported in alibaba/open-code-review#158.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

DOCUMENTATION = "https://docs.github.com/rest/issues/comments#create-an-issue-comment"
TOKEN = "a-token"

Answer = tuple[int, dict[str, str], Any]


def refusal(status: int, message: str, page: str = DOCUMENTATION, **headers: str) -> Answer:
    """An answer that says what is wrong; underscores in the names of headers are hyphens."""
    value = {"message": message, "documentation_url": page, "status": str(status)}
    return status, {name.replace("_", "-"): text for name, text in headers.items()}, value


LIMITS = "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api"
SECONDARY = (
    "You have exceeded a secondary rate limit and have been temporarily blocked from content"
    " creation. Please retry your request again later."
)


class Host:
    """One repository, `owner/repo`, with the comments of its issues."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.requests: list[str] = []
        """As in `POST /repos/owner/repo/issues/12/comments`."""
        self.notifications = 0
        """Every comment that is created sends one to all who follow the issue."""
        self.next_answers: list[Answer | None] = []
        """To the next requests; None is the usual answer."""
        self.before_post: Callable[[], object] = lambda: None
        self.fails_after_creating = False
        """Whether a comment is created although the answer is an error of the server."""
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        """Ends the server."""
        self._server.shutdown()
        self._server.server_close()

    def add(self, body: str, author: str = "User", association: str = "NONE") -> dict[str, Any]:
        """A comment that somebody has written, a `User` or a `Bot`."""
        with self._lock:
            number = 1 + max((comment["id"] for comment in self.comments), default=0)
            comment = {
                "id": number,
                "node_id": "MDEyOklzc3VlQ29tbWVudDE=",
                "url": f"{self.url}/repos/owner/repo/issues/comments/{number}",
                "html_url": f"https://github.com/owner/repo/issues/12#issuecomment-{number}",
                "body": body,
                "user": {"login": "github-actions[bot]", "id": 41898282, "type": author},
                "created_at": "2011-04-14T16:00:49Z",
                "updated_at": "2011-04-14T16:00:49Z",
                "issue_url": f"{self.url}/repos/owner/repo/issues/12",
                "author_association": association,
            }
            self.comments.append(comment)
            return comment

    def answer(self, method: str, target: str, token: str, content: bytes) -> Answer:
        """What GitHub answers."""
        parts = urlsplit(target)
        self.requests.append(f"{method} {parts.path}")
        if token != f"Bearer {TOKEN}":
            return refusal(401, "Bad credentials", "https://docs.github.com/rest")
        prepared = self.next_answers.pop(0) if self.next_answers else None
        if prepared is not None:
            return prepared
        if parts.path == "/repos/owner/repo/issues/12/comments":
            return self._list(parts.query) if method == "GET" else self._create(content)
        match = re.fullmatch(r"/repos/owner/repo/issues/comments/(\d+)", parts.path)
        named = [c for c in self.comments if match and c["id"] == int(match[1])]
        if not named:
            return refusal(404, "Not Found")
        if method == "DELETE":
            self.comments.remove(named[0])
            return 204, {}, None
        named[0]["body"] = json.loads(content)["body"]
        return 200, {}, named[0]

    def _create(self, content: bytes) -> Answer:
        self.before_post()
        body = json.loads(content)["body"]
        if len(body) > 65536:
            answer = refusal(422, "Validation Failed")
            error = {"resource": "IssueComment", "field": "data", "code": "unprocessable"}
            error["message"] = "Body is too long (maximum is 65536 characters)"
            answer[2]["errors"] = [error]
            return answer
        self.notifications += 1
        comment = self.add(body, "Bot")
        if self.fails_after_creating:
            return 502, {}, {"message": "Server Error"}
        return 201, {"location": comment["url"]}, comment

    def _list(self, query: str) -> Answer:
        fields = {name: int(values[0]) for name, values in parse_qs(query).items()}
        size, page = min(fields.get("per_page", 30), 100), fields.get("page", 1)
        last = max(1, -(-len(self.comments) // size))
        # GitHub links by the number of the repository, not by its name
        address = f"{self.url}/repositories/1300192/issues/12/comments?per_page={size}&page="
        links = []
        if page < last:
            links = [f'<{address}{page + 1}>; rel="next"', f'<{address}{last}>; rel="last"']
        if page > 1:
            links += [f'<{address}1>; rel="first"', f'<{address}{page - 1}>; rel="prev"']
        headers = {"link": ", ".join(links)} if links else {}
        return 200, headers, self.comments[(page - 1) * size : page * size]

    def _handler(host) -> type[BaseHTTPRequestHandler]:  # noqa: N805 (self is the handler's)
        class Handler(BaseHTTPRequestHandler):
            def _do(self) -> None:
                size = int(self.headers.get("content-length", 0))
                content = self.rfile.read(size)
                target = self.path.replace("/repositories/1300192/", "/repos/owner/repo/")
                token = self.headers.get("authorization", "")
                status, headers, value = host.answer(self.command, target, token, content)
                self.send_response(status)
                written = b"" if value is None else json.dumps(value).encode()
                headers = {"content-type": "application/json; charset=utf-8", **headers}
                headers["content-length"] = str(len(written))
                for name, text in headers.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(written)

            do_GET = do_POST = do_PATCH = do_DELETE = _do  # noqa: N815 (http.server calls them)

            def log_message(self, *_: Any) -> None:
                """The test's output stays its own."""

        return Handler
