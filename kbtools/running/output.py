"""What evidence keeps of a snippet's output: head and tail, and no path of this machine."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

SECRET = re.compile(
    r"\b(?:gh[pousr]_|github_pat_|hf_|sk-|xox[abp]-|AKIA|glpat-)[A-Za-z0-9_-]{12,}\b"
    r"|(?i:(?:token|password|secret|(?:api|access)[_-]?key)[\"']?\s*[=:]\s*[\"']?)"
    r"(?=[\w./+~=-]*\d)[\w./+~=-]{12,}"
)


def head_and_tail(file: Path, cap: int) -> str:
    r"""The text of a file, the middle left out where it is longer than `cap` bytes.

    Bytes that are not UTF-8 become `\xNN`. A file that cannot be read has no text.
    """
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            if size <= cap:
                return stream.read().decode("utf-8", "backslashreplace")
            head = stream.read(cap // 4)
            stream.seek(size - (cap - cap // 4))
            tail = stream.read()
    except OSError:
        return ""
    left_out = f"\n[... {size - len(head) - len(tail)} bytes left out ...]\n"
    # cut between lines if there are any: half a word could be mistaken for another
    head = head[: head.rfind(b"\n")] if b"\n" in head else head
    tail = tail[tail.find(b"\n") + 1 :] if b"\n" in tail[:-1] else tail
    texts = (part.decode("utf-8", "backslashreplace") for part in (head, tail))
    return left_out.join(texts)


OTHER_ENVIRONMENT = re.compile(
    r"(?<![\w.>~/-])(?:/[\w.+-]+)+(?=/lib/python3\.\d+/(?:site|dist)-packages/)"
)
"""A second environment whose packages are on the path, as a `.pth` file adds them."""


class Redaction:
    """Removes from a text what names this machine and what looks like a secret."""

    def __init__(self, python: str) -> None:
        prefix = Path(python).parent.parent
        home = str(Path.home())
        self._paths = {
            # installed packages print the environment's own prefix, resolved or not
            str(prefix): "<env>",
            str(prefix.resolve()): "<env>",
            str(Path(os.path.realpath(python)).parent.parent): "<python>",
            home: "~",
            # a library that prints the complete stack prints these frames below a snippet's
            str(Path(__file__).parent.parent): "<kbtools>",
        }
        # a name that is a word stays: a machine may be called `cuda`
        host = socket.gethostname()
        is_distinct = len(host) > 3 and not host.isalpha()
        self._host = re.compile(rf"\b{re.escape(host)}\b") if is_distinct else None

        # the longest first: a path may lie below another
        ordered = sorted((p for p in self._paths if len(p) > 1), key=len, reverse=True)
        self._pattern = re.compile("|".join(re.escape(p) + r"(?![\w-])" for p in ordered))

    def with_paths(self, paths: dict[str, str]) -> Callable[[str], str]:
        """A function that cleans a text, and replaces these paths first: path → what to write.

        The paths of one run are searched as plain text: to compile a pattern for each run would
        take longer than the search.
        """
        ordered = sorted((p for p in paths if len(p) > 1), key=len, reverse=True)

        def clean(text: str) -> str:
            if not text:
                return text
            for path in ordered:
                if path in text:
                    replacement = paths[path].replace("\\", r"\\")
                    text = re.sub(re.escape(path) + r"(?![\w-])", replacement, text)
            text = self._pattern.sub(lambda match: self._paths[match[0]], text)
            text = OTHER_ENVIRONMENT.sub("<env>", text)
            text = SECRET.sub("<redacted>", text)
            return self._host.sub("<host>", text) if self._host else text

        return clean
