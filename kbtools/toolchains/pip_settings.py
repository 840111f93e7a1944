"""Where pip looks for packages: uv and the package index are asked in the same places."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Mapping

import msgspec

DEFAULT_INDEX = "https://pypi.org/simple"
PRECEDENCE = ("global", "install")
"""Sections of pip's configuration files, the last one wins; variables of the environment win."""


class PipSettings(msgspec.Struct, frozen=True):
    """The settings of pip that say where packages come from."""

    index_url: str = ""
    """Empty: pip's default."""
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    """Folders of packages, or addresses of pages with links to them."""
    no_index: bool = False
    cert: str = ""
    """A file of certificates; empty: those of the system."""

    @property
    def indexes(self) -> tuple[str, ...]:
        """Addresses of all indexes, as `https://example.org/simple` or `file:///srv/simple`."""
        if self.no_index:
            return ()
        return (self.index_url or DEFAULT_INDEX, *self.extra_index_urls)

    def for_uv(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Variables with which uv finds what pip would find.

        uv does not read pip's configuration. A variable of uv that is set already stays as it is.
        """
        variables = {
            "UV_DEFAULT_INDEX": self.index_url,
            "UV_INDEX": " ".join(self.extra_index_urls),
            "UV_FIND_LINKS": ",".join(self.find_links),
            "SSL_CERT_FILE": self.cert,
            # uv stops at the first index that has a package; pip takes the best of all of them
            "UV_INDEX_STRATEGY": "unsafe-best-match" if self.extra_index_urls else "",
        }
        return {k: v for k, v in variables.items() if v and not environment.get(k)}


def read_pip_settings(environment: Mapping[str, str] = os.environ) -> PipSettings:
    """The settings of pip in its configuration files, if there is a pip, and in `PIP_…` variables.

    Args:
        environment: variables, of which pip's names begin with `PIP_`.
    """
    values = {k: v for k, v in _of_files(environment).items() if v}
    prefix = "PIP_"
    for name, value in environment.items():
        if name.startswith(prefix) and value:  # pip, too, ignores one that is empty
            values[name.removeprefix(prefix).lower().replace("_", "-")] = value
    return PipSettings(
        index_url=values.get("index-url", ""),
        extra_index_urls=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(values.get("find-links", "").split()),
        no_index=values.get("no-index", "").lower() in ("1", "true", "yes", "on", "y", "t"),
        cert=values.get("cert", ""),
    )


def _of_files(environment: Mapping[str, str]) -> dict[str, str]:
    """What pip's configuration files say; nothing if there is no pip."""
    try:
        listed = subprocess.run(
            [sys.executable, "-m", "pip", "config", "list"],
            env=dict(environment),
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    sections: dict[str, dict[str, str]] = {}
    for line in listed.stdout.splitlines():  # global.find-links='/srv/wheels'
        if match := re.fullmatch(r"(\w+)\.([\w-]+)=(['\"].*)", line):
            section, key, value = match.groups()
            sections.setdefault(section, {})[key] = str(ast.literal_eval(value))
    return {k: v for section in PRECEDENCE for k, v in sections.get(section, {}).items()}
