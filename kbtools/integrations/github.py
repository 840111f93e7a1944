"""GitHub's REST API, as far as a reply needs it: waits where GitHub says so, reads every page.

https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api says how long
to wait and when. PyGithub would do the same and bring nine packages, cryptography among them, into
every job of the action.
"""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec

from kbtools import __version__
from kbtools.config import KbtoolsError

API = "https://api.github.com"
VERSION = "2022-11-28"
SECONDS = 30
"""To wait for an answer. GitHub ends what takes longer than 10."""
PATIENCE = 900
"""Seconds that one run may wait for limits; the job fails after that."""
TRIES = 4
"""Requests that get no usable answer before the run gives up."""
HOPS = 3
"""Redirections that are followed."""

_NEXT_PAGE = re.compile(r'<([^>]*)>;\s*rel="next"')


class RefusedError(KbtoolsError):
    """GitHub refused a request."""

    def __init__(self, message: str, status: int, text: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.text = text
        """What GitHub said."""


class NoAnswerError(KbtoolsError):
    """GitHub gave no usable answer: the request may have been carried out, or not."""


class RateLimitError(KbtoolsError):
    """GitHub asks to wait longer than a job should."""


class Response(msgspec.Struct, frozen=True):
    """An answer of GitHub's."""

    status: int
    headers: Mapping[str, str]
    """Their names in lower case."""
    content: bytes

    @property
    def value(self) -> Any:
        """The JSON of the answer; None for none."""
        try:
            return json.loads(self.content) if self.content else None
        except ValueError:
            return None

    @property
    def message(self) -> str:
        """What GitHub says went wrong."""
        value = self.value if isinstance(self.value, dict) else {}
        errors = value.get("errors") or ()
        details = [
            error.get("message") or error.get("code") if isinstance(error, dict) else error
            for error in ([errors] if isinstance(errors, str) else errors)
        ]
        text = "; ".join(str(part) for part in (value.get("message"), *details) if part)
        return " ".join(text.split())[:300] or f"status {self.status}"


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    """`GitHub.request` follows redirections, but to no other host: it must not get the token."""

    def redirect_request(self, *_: Any) -> None:
        """None: the redirection is the answer."""


class GitHub:
    """One run's conversation with GitHub."""

    def __init__(
        self,
        token: str,
        api: str = API,
        report: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """A conversation; nothing is sent yet.

        Args:
            token: may comment on issues.
            api: the address of the API, as in GITHUB_API_URL.
            report: is told why the run waits.
            sleep: waits for that many seconds.
        """
        self._token, self._api = token, api.rstrip("/")
        self._report, self._sleep = report, sleep
        self._waited = 0.0
        self._opener = urllib.request.build_opener(_NoRedirection)

    def pages(self, path: str) -> Iterator[Any]:
        """The entries of every page of a list.

        Raises:
            RefusedError: GitHub refused.
            NoAnswerError: there was no usable answer.
            RateLimitError: the wait would be too long.
        """
        address = path
        while address:
            response = self.request("GET", address)
            yield from response.value or ()
            match = _NEXT_PAGE.search(response.headers.get("link", ""))
            address = match[1] if match else ""

    def request(self, method: str, path: str, body: object = None) -> Response:
        """The answer to a request that succeeded.

        What only reads, or has the same effect twice, is tried again if there is no answer; a POST
        is not, since it may have been carried out.

        Args:
            method: as in `GET`.
            path: below the address of the API, or an address there.
            body: becomes JSON.

        Raises:
            RefusedError: GitHub refused.
            NoAnswerError: there was no usable answer.
            RateLimitError: the wait would be too long.
        """
        address = path if path.startswith(("https://", "http://")) else self._api + path
        limits = failures = hops = 0
        while True:
            self._check(address)
            try:
                response = self._send(method, address, body)
            except NoAnswerError as error:
                failures += 1
                if method == "POST" or failures >= TRIES:
                    raise
                self.wait(2.0**failures, str(error))
                continue
            if response.status in (301, 302, 307, 308) and hops < HOPS:
                hops += 1
                address = urljoin(address, response.headers.get("location", ""))
            elif (pause := seconds_to_wait(response, limits)) is not None:
                limits += 1
                self.wait(pause, f"GitHub limits the rate of requests ({response.message})")
            elif response.status >= 300:
                raise _refusal(method, address, response)
            else:
                return response

    def wait(self, seconds: float, reason: str) -> None:
        """Waits, and reports why.

        Raises:
            RateLimitError: together the waits would be too long.
        """
        if self._waited + seconds > PATIENCE:
            raise RateLimitError(
                f"{reason}; it asks to wait {seconds:.0f} s, and a job waits {PATIENCE} s at most:"
                " run the job again later"
            )
        self._report(f"{reason}: waiting {seconds:.0f} s")
        self._waited += seconds
        self._sleep(seconds)

    def _check(self, address: str) -> None:
        """Refuses to send the token anywhere but to the API."""
        if urlsplit(address)[:2] != urlsplit(self._api)[:2]:
            raise RefusedError(f"GitHub names an address of another host: {address}", 0)

    def _send(self, method: str, address: str, body: object) -> Response:
        request = urllib.request.Request(
            address,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
                "User-Agent": f"kbtools/{__version__}",
                "X-GitHub-Api-Version": VERSION,
            },
        )
        try:
            try:
                with self._opener.open(request, timeout=SECONDS) as stream:
                    response = _response(stream.status, stream.headers, stream.read())
            except urllib.error.HTTPError as error:
                with error:
                    response = _response(error.code, error.headers, error.read())
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise NoAnswerError(f"no answer from {urlsplit(address).netloc}: {reason}") from error
        if response.status >= 500:
            raise NoAnswerError(f"GitHub answers {response.status}: {response.message}")
        return response


def _response(status: int, headers: Any, content: bytes) -> Response:
    return Response(status, {name.lower(): text for name, text in headers.items()}, content)


def seconds_to_wait(response: Response, earlier: int) -> float | None:
    """How long GitHub asks to wait before the next request; None if it does not limit the rate.

    `earlier` is how often it limited this request before.
    """
    if response.status not in (403, 429):
        return None
    after = response.headers.get("retry-after", "")
    if after.isdecimal():
        return float(after)
    reset: str = response.headers.get("x-ratelimit-reset", "")
    if response.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return max(0.0, int(reset) - time.time()) + 1
    if response.status == 429 or "rate limit" in response.message.lower():
        return float(60 * 2**earlier)
    return None


def _refusal(method: str, address: str, response: Response) -> RefusedError:
    """What is wrong and what to do about it."""
    where = f"{method} {urlsplit(address).path}"
    needed = response.headers.get("x-accepted-github-permissions", "")
    advice = {
        401: "the token is not valid: leave out `token`, or renew it",
        403: "the token may not write comments: give the job `permissions: {issues: write}`;"
        " a token of a fork or of Dependabot only reads"
        + (f" (GitHub asks for {needed})" if needed else ""),
        404: "there is no such issue, or the token may not see it: the token is of one repository,"
        " and needs `permissions: {issues: write}`",
        410: "the issue was deleted, or the repository has no issues",
        422: "GitHub does not accept the text",
    }.get(response.status, "see https://www.githubstatus.com")
    message = f"GitHub refuses {where} ({response.status}, {response.message}): {advice}"
    return RefusedError(message, response.status, response.message)
