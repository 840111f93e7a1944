"""What new releases changed for a knowledge base, as one issue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from packaging.version import Version

from kbtools.articles import links
from kbtools.ci.issues import Issue, code, mark
from kbtools.config import Config
from kbtools.evidence import changes
from kbtools.evidence.changes import ArticleChanges, VerdictChange
from kbtools.evidence.rows import Row
from kbtools.tables.changes import TableChange
from kbtools.toolchains.radar import Proposal

NAME = "releases"
"""In the place of an article's id, by which the issue is found again."""
FIXED = ("fix-arrived", "now-helps")
BACK = ("came-back",)
WELL = ("well-again",)
HEADINGS = {
    "released": "New releases",
    "gone": "Names that are gone",
    "stopped": "What no longer works",
    "pin": "Pins that moved",
    "new": "Names that came",
}


class Failure(msgspec.Struct, frozen=True):
    """A toolchain with a new release that could not be built."""

    toolchain: str
    reason: str


class News(msgspec.Struct, frozen=True):
    """What new releases changed."""

    tried: tuple[str, ...]
    """Those that articles ran on for the first time, as in `engine 2.0`."""
    failures: tuple[Failure, ...]
    articles: tuple[ArticleChanges, ...]
    tables: tuple[TableChange, ...]
    proposals: tuple[Proposal, ...]
    """Notices whose window can perhaps be closed."""

    def of_kinds(self, *kinds: str) -> tuple[VerdictChange, ...]:
        """The changes of articles that are of some kinds."""
        listed = (change for article in self.articles for change in article.changes)
        return tuple(change for change in listed if change.kind in kinds)

    @property
    def others(self) -> tuple[VerdictChange, ...]:
        """The changes of articles that are neither fixed nor back."""
        return self.of_kinds(*(kind for kind in changes.KINDS if kind not in (*FIXED, *BACK)))


def tried(
    before: Mapping[str, Iterable[Row]], after: Mapping[str, Iterable[Row]], packages: Sequence[str]
) -> tuple[str, ...]:
    """The releases of some packages that only the later rows have, as in `engine 2.0`."""
    versions = [
        {
            (package, version)
            for row in (row for rows in side.values() for row in rows)
            for package in packages
            if (version := row.toolchain.packages.get(package))
        }
        for side in (before, after)
    ]
    fresh = versions[1] - versions[0]
    ordered = sorted(fresh, key=lambda pair: (pair[0], Version(pair[1])))
    return tuple(f"{package} {version}" for package, version in ordered)


def lines(news: News) -> Iterator[str]:
    """The news as Markdown; nothing for no news."""
    table = {kind: [c for c in news.tables if c.kind == kind] for kind in HEADINGS}
    released = [
        f"{c.package} {c.version}" + f" (after {c.before})" * bool(c.before)
        for c in table["released"]
    ]
    yield from _section("Articles ran for the first time on", map(code, news.tried))
    yield from _section(HEADINGS["released"], map(code, released))
    yield from _section(
        "Could not be built", (f"{code(f.toolchain)}: {code(f.reason)}" for f in news.failures)
    )
    yield from _section("Fixed", _verdicts(news.of_kinds(*FIXED)))
    yield from _section("Back", _verdicts(news.of_kinds(*BACK)))
    yield from _section("Otherwise than the articles say, or well again", _verdicts(news.others))
    for kind in ("gone", "stopped", "pin", "new"):
        listed = (f"{c.package} {c.version} (before {c.before}): {c.text}" for c in table[kind])
        yield from _section(HEADINGS[kind], map(code, listed))
    yield from _section("Notices whose window may have ended", map(_proposal, news.proposals))


def _section(heading: str, entries: Iterable[str]) -> Iterator[str]:
    listed = list(entries)
    if listed:
        yield from ("", f"## {heading}", "", *(f"- {entry}" for entry in listed))


def _verdicts(listed: Iterable[VerdictChange]) -> Iterator[str]:
    return (code(changes.line(change)) for change in listed)


def _proposal(proposal: Proposal) -> str:
    newest = ", ".join(proposal.releases[-3:])
    threads = ", ".join(proposal.threads)
    text = f"{proposal.notice}: {proposal.package} has {newest} since {proposal.looked_up}"
    return f"{code(text)}; read {code(threads)}" if threads else code(text)


def issue(news: News, config: Config) -> Issue | None:
    """The issue about new releases; None if they changed nothing."""
    body = list(lines(news))
    if not body:
        return None
    counts = (
        ("fixed", news.of_kinds(*FIXED)),
        ("back", news.of_kinds(*BACK)),
        ("gone", [change for change in news.tables if change.kind == "gone"]),
        ("moved", [change for change in news.tables if change.kind == "pin"]),
        ("to look up again", news.proposals),
    )
    names = list(news.tried) or sorted({f"{c.package} {c.version}" for c in news.tables})
    about = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    numbers = ", ".join(f"{len(listed)} {word}" for word, listed in counts if listed)
    title = f"New releases: {about or 'not built'}" + (f" ({numbers})" if numbers else "")
    base = links.url("", config.knowledge_base.url) if config.knowledge_base.url else ""
    head = [mark(NAME), "What releases changed that the toolchains do not name yet."]
    head += [f"The articles: {base}"] if base else []
    text = "\n".join((*head, *body, "", _next(news), ""))
    return Issue(NAME, title[:250], text, "\n".join(body).lstrip() + "\n", solved=False)


def _next(news: News) -> str:
    """What somebody does about it."""
    steps: Sequence[str] = (
        "declare the release in `toolchains.toml`, so that every night runs it",
        *(["correct `affected` of the articles that are fixed or back"] if news.articles else []),
        *(["read the threads, and close the windows"] if news.proposals else []),
    )
    return f"Next: {'; '.join(steps)}."
