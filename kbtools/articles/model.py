"""The nouns of a knowledge base: Article, Snippet, Signature, Affected, Place, Problem."""

from __future__ import annotations

import datetime
import hashlib
import re
from enum import StrEnum
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from kbtools.articles.reported import ReportedBound


class Place(msgspec.Struct, frozen=True, order=True):
    """A line of a file. `path` is relative to the knowledge base, `line` counts from 1."""

    path: str
    line: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Problem(msgspec.Struct, frozen=True):
    """A broken rule at a place: the code of the rule, what is wrong, and the next step."""

    place: Place
    rule: str
    message: str
    help: str
    source: str = ""
    """The text of the line, shown below the message."""


class Role(StrEnum):
    """The purpose of a snippet."""

    REPRO = "repro"
    FIX = "fix"
    PRACTICE = "practice"
    CONTROL = "control"
    DEADEND = "deadend"
    FACT = "fact"


LANGUAGES = ("python", "cuda", "bash")
SUFFIX = {"python": ".py", "cuda": ".cu", "bash": ".sh"}

Affected = tuple[dict[str, str], ...]
"""Alternatives, one of which must hold; each maps names to ranges, all of which must hold."""

ABSENT = "absent"
"""Stands instead of a range: the distribution is not installed."""
ALWAYS: Affected = ({},)
"""Holds on every toolchain, for a failure that is a usage error."""

Text = Annotated[str, Meta(min_length=1)]
Reference = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(#[1-9]\d*|@[0-9a-f]{7,40})$")
]


class Signature(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the failure's text is recognised, in a log and in a repro's output."""

    literal: Annotated[str, Meta(min_length=4)]
    """A plain substring of the log: the prefilter."""
    regex: Text | None = None
    """RE2 and JavaScript syntax; must match the log, too."""
    near: Text | None = None
    """RE2 and JavaScript syntax; if it matches the log, too, the article ranks higher."""
    wraps: bool = False
    """The text is printed around other failures, too, and ranks below the failure inside."""
    shared: bool = False
    """Many causes print the text. It counts only where `near` is; without one, it is never sure."""
    unless: Text | None = None
    """RE2 and JavaScript syntax; a log that it matches shows another failure, or none to mend."""


class Upstream(msgspec.Struct, frozen=True, omit_defaults=True):
    """A thread or commit of another project: `owner/repo#123` or `owner/repo@1a2b3c4`."""

    report: Reference | None = None
    fix: Reference | None = None
    cause: Reference | None = None
    related: Reference | None = None
    basis: Literal["stated", "inferred"] = "stated"

    @property
    def kind(self) -> str:
        """Which of the four keys it has; empty if it has none."""
        return next((k for k in ("report", "fix", "cause", "related") if getattr(self, k)), "")

    @property
    def reference(self) -> str:
        """`owner/repo#123` or `owner/repo@1a2b3c4`."""
        return str(getattr(self, self.kind)) if self.kind else ""


class Retired(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an article is no longer true. Its page, id and signatures stay for ever."""

    since: datetime.date
    reason: str = ""
    replaced_by: str | None = None


class Exemption(msgspec.Struct, frozen=True):
    """A rule that this article may break, and why."""

    rule: str
    because: Text


EDITION = r"^[0-9a-f]{12}$"
"""What `translations.edition` makes."""


class Refereed(msgspec.Struct, frozen=True):
    """That somebody who did not write the article has read it with the sources open."""

    date: datetime.date
    edition: Annotated[str, Meta(pattern=EDITION)]
    """`translations.edition` of the words that were read."""
    against: Text
    """The sources, with their versions."""


class FrontMatter(msgspec.Struct, frozen=True, omit_defaults=True):
    """The YAML block at the head of an article."""

    id: str
    title: Text
    summary: Text
    components: Annotated[tuple[str, ...], Meta(min_length=1)]
    stage: str
    severity: str
    signatures: Annotated[tuple[Signature, ...], Meta(min_length=1)]
    needs: dict[str, str] = {}
    """What must be there to run a snippet: distribution or `bin:program` → range, `*` for any."""
    affected: tuple[dict[str, str], ...] = ()
    bounds: tuple[ReportedBound, ...] = ()
    """The bounds of `affected`, or of a fence's, that are reported and not measured."""
    upstream: tuple[Upstream, ...] = ()
    confusable: tuple[str, ...] = ()
    refereed: Refereed | None = None
    retired: Retired | None = None
    exempt: tuple[Exemption, ...] = ()


class Translation(msgspec.Struct, frozen=True):
    """The YAML block of a translation: everything else is the original's."""

    id: str
    title: Text
    summary: Text
    follows: Annotated[str, Meta(pattern=EDITION)] | None = None
    """`translations.edition` of the original that it was made from."""


USES_HELPER = re.compile(r"\bkbtools\.repro\b|\bfrom kbtools import\b.*\brepro\b")

EXIT = r"exit:([1-9]\d?|1\d\d|2[0-4]\d|25[0-5])"
FAILS = rf"^(signature|timeout|SIG[A-Z0-9]+|{EXIT}|[A-Z]\w*)$"
"""Matches a fence's `fails`; the last alternative is the name of an exception."""


class Keys(msgspec.Struct, frozen=True, omit_defaults=True):
    """The `key=value` words of a fence."""

    id: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]*$")] | None = None
    requires: Annotated[str, Meta(pattern=r"^(cpu|compile|nvcc|gpu|gpus:[1-9])$")] = "cpu"
    sm: Text | None = None
    fails: Annotated[str, Meta(pattern=FAILS)] = "signature"
    needs: Text | None = None
    """Adds to the article's."""
    affected: Text | None = None
    holds: Text | None = None
    """Of a fact: where it is said to hold, as `affected` is written."""
    timeout: Annotated[float, Meta(gt=0)] | None = None
    env: Text | None = None
    tool: Text | None = None
    toolchain: Text | None = None
    after: Text | None = None
    net: Literal["yes"] | None = None
    """Whether the snippet may use the network."""
    files: Text | None = None
    """Names of data files that it finds in its working folder."""


class Snippet(msgspec.Struct, frozen=True):
    """A fenced block that is executed."""

    article: str
    id: str
    role: Role
    language: str
    code: str
    place: Place
    """Its first line of code."""
    keys: Keys
    affected: Affected
    """Where it is expected to fail: the fence's `affected`, or else the article's. For a fact it is
    where it is expected to hold: the fence's `holds`, or else everywhere."""
    env: dict[str, str] = {}
    needs: dict[str, str] = {}
    """What must be there to run it: the needs of the article, of its fence and of those before.
    No part of its digest, because a run has what it needs."""
    before: tuple[Snippet, ...] = ()
    """The snippets whose file it continues, in the order of their code."""
    own_files: dict[str, str] = {}
    """Name → SHA-256 of the data files that its fence names."""

    @property
    def name(self) -> str:
        """As in `KB0002/r1`."""
        return f"{self.article}/{self.id}"

    @property
    def gpus(self) -> int:
        """Number of GPUs that it needs."""
        if self.keys.requires == "gpu":
            return 1
        _, _, count = self.keys.requires.partition("gpus:")
        return int(count or 0)

    @property
    def alone(self) -> bool:
        """Whether it shares its GPUs with no other snippet: `gpus:1` is a GPU to itself."""
        return self.keys.requires == "gpus:1"

    @property
    def source(self) -> str:
        """The text of its file: every line of code has the number that it has in the article."""
        lines: list[str] = []
        for part in (*self.before, self):
            lines += [""] * (part.place.line - 1 - len(lines))
            lines += part.code.removesuffix("\n").split("\n")  # only newlines end a line
        return "\n".join(lines) + "\n"

    @property
    def data_files(self) -> dict[str, str]:
        """Name → SHA-256 of the files of `kb/files/` that it finds in its working folder."""
        return {n: d for part in (*self.before, self) for n, d in part.own_files.items()}

    @property
    def uses_helper(self) -> bool:
        """Whether its code names `kbtools.repro`: its evidence then depends on that module, too."""
        return USES_HELPER.search(self.source) is not None

    @property
    def digest(self) -> str:
        """SHA-256 of all that its run depends on. Its lines in the article are not part of it."""
        parts = [self.language, *(part.code for part in (*self.before, self))]
        parts += [f"{name}={value}" for name, value in sorted(self.env.items())]
        parts += [self.keys.tool or "", self.keys.requires]
        parts += ["net"] if self.keys.net else []
        if data_files := self.data_files:
            parts += ["files", *(word for item in sorted(data_files.items()) for word in item)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Article(msgspec.Struct, frozen=True):
    """One failure."""

    matter: FrontMatter
    path: str
    """Relative to the knowledge base."""
    language: str
    snippets: tuple[Snippet, ...]
    body: str
    """The Markdown after the front matter."""

    @property
    def id(self) -> str:
        """As in `KB0002`."""
        return self.matter.id
