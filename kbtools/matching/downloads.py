"""A file of a published site, fetched. Only its address leaves this machine."""

from __future__ import annotations

from urllib.parse import urlsplit

from kbtools import __version__

SECONDS = 20
"""To wait for an answer, and for each part of it."""
LARGEST = 64 * 1024 * 1024
"""Bytes of a file: an index of 100 articles has 0.2 MB."""


class DownloadError(Exception):
    """Nothing could be fetched from an address."""


def is_address(text: str) -> bool:
    """Whether a text is an address on the web, and no path."""
    return text.startswith(("https://", "http://"))


def fetch(address: str, path: str) -> tuple[str, bytes]:
    """The address of a site, which ends in `/`, and the bytes of a file of it.

    Args:
        address: of the file or of the site.
        path: of the file, below the address of the site.

    Raises:
        DownloadError: there is no such file, it is too large, or nothing answers; also for an
            address that is neither https:// nor of this machine.
    """
    # imported here: only who gives an address waits for it
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    parts = urlsplit(address)
    if not _is_safe(address):
        raise DownloadError("an index decides which links are posted: use https://")
    site = address.removesuffix(path)
    if site == address and not parts.path.endswith(".json"):
        site = f"{address.rstrip('/')}/"
        address = site + path
    request = Request(address, headers={"User-Agent": f"kbtools/{__version__}"})
    try:
        with urlopen(request, timeout=SECONDS) as response:
            content, source = response.read(LARGEST + 1), response.url
    except HTTPError as error:
        raise DownloadError(f"{address} answers {error.code} {error.reason}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise DownloadError(f"could not be fetched: {getattr(error, 'reason', error)}") from error
    if not _is_safe(source):
        raise DownloadError(f"leads to {source}, which is not https://")
    if len(content) > LARGEST:
        raise DownloadError(f"has more than {LARGEST // 1024**2} MiB")
    return site if site != address else "", content


def _is_safe(address: str) -> bool:
    """Whether nobody between us and the site can change what it answers."""
    parts = urlsplit(address)
    return parts.scheme == "https" or parts.hostname in ("localhost", "127.0.0.1", "::1")
