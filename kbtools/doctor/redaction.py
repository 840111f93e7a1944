"""Takes out of a text what says who and where somebody is, before it is put into a public issue."""

from __future__ import annotations

import re
import socket
from typing import Iterable, List, Mapping, Tuple

TOKENS = (
    r"\b(?:gh[opusr]|github_pat|glpat|hf|sk|pk|xox[abprs]|nvapi|wandb)[_-][A-Za-z0-9_-]{8,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}",
    r"\beyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)+",
    r"\b(?=[A-Za-z0-9_-]*[0-9])(?=[A-Za-z0-9_-]*[A-Z])(?=[A-Za-z0-9_-]*[a-z])[A-Za-z0-9_-]{32,}\b",
)
"""Forms of tokens of hosts, clouds and registries, JSON web tokens, and what looks like a key."""
URL = re.compile(r"(?i)(\b(?:https?|socks5h?)://)([\w.-]+)")
PUBLIC = ("github.com", "pytorch.org", "pypi.org", "nvidia.com", "huggingface.co")
"""Hosts that may be named; one's own network may name the company."""
SECRET = re.compile(r"(?i)((?:token|secret|passw(?:or)?d|api_?key|credential)[\w-]*\s*[=:]\s*)\S+")
IPV4 = re.compile(
    r"((?:nvidia-|cuda-)[\w-]+(?:==| )|==)?"  # the version of a package has four numbers, too
    r"\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\b(?!\.\d)"
)
ADDRESSES = (
    r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}(?![\w:])",
    r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b",
)
"""IPv6 and hardware addresses."""


def names_of(environment: Mapping[str, str]) -> Tuple[List[str], List[str]]:
    """The names of the user and of the host, as variables and the system have them."""
    users = [environment.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER")]
    users.append(environment.get("HOME", "").rstrip("/").rpartition("/")[2])
    hosts = [environment.get(name, "") for name in ("HOSTNAME", "SLURMD_NODENAME", "HOST")]
    hosts.append(socket.gethostname())
    hosts += [host.partition(".")[0] for host in hosts]
    return [u for u in users if u not in ("", "root", "home")], [h for h in hosts if h != ""]


def public(host: str, keep: str) -> bool:
    """Whether a host may be named: it is everybody's, or that of the address `keep`."""
    hosts = [*PUBLIC, keep.partition("://")[2].partition("/")[0].partition(":")[0]]
    return any(host == name or host.endswith("." + name) for name in hosts if name)


def redacted(text: str, environment: Mapping[str, str], keep: str = "") -> str:
    """A text without names of users and hosts, home folders, addresses, and tokens.

    Args:
        text: what is to be shown to strangers.
        environment: the variables of the user, which have the names.
        keep: an address whose host may be named.
    """
    users, hosts = names_of(environment)
    text = re.sub(r"(\w+://)[^/\s@]+@", r"\1", text)
    text = SECRET.sub(r"\1TOKEN", text)
    for pattern in TOKENS:
        text = re.sub(pattern, "TOKEN", text)
    text = URL.sub(lambda match: match[0] if public(match[2], keep) else match[1] + "HOST", text)
    home = environment.get("HOME", "").rstrip("/")
    if len(home) > 1:
        text = re.sub(rf"{re.escape(home)}(?=[/\s\"':,;)]|$)", "~", text)
    text = re.sub(r"/(home|Users)/[^/\s\"':,;)]+", r"/\1/USER", text)
    text = _without(text, users, "USER")
    text = _without(text, hosts, "HOST")
    text = IPV4.sub(lambda match: match[0] if match[1] else "ADDRESS", text)
    for pattern in ADDRESSES:
        text = re.sub(pattern, "ADDRESS", text)
    return re.sub(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "ADDRESS", text)


def _without(text: str, names: Iterable[str], word: str) -> str:
    for name in sorted(set(names), key=len, reverse=True):
        if len(name) > 2:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", word, text)
    return text
