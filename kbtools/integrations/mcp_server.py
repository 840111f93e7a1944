"""The knowledge base for coding agents: the tools `diagnose`, `explain` and `search`, over MCP.

Needs the extra `mcp`. Everything is answered from this machine.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from kbtools import __version__, matching
from kbtools.articles.notice_text import notice_markdown
from kbtools.checks.base import load_base
from kbtools.config import KbtoolsError
from kbtools.evidence.markdown import article_markdown
from kbtools.evidence.state import observations
from kbtools.matching import Index, IndexEntry, known
from kbtools.matching.search import Document, documents_of_base, documents_of_index
from kbtools.matching.search import search as search_documents

SEARCH_LIMIT = 10
"""Articles in the answer to a search."""
KNOWN_LIMIT = 12
"""Failures in the answer of `known_failures`."""
LONGEST = 300
"""Characters of a text in that answer."""
DIAGNOSIS_LIMIT = 3
"""Articles in the answer to a diagnosis."""
READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


class SearchHit(msgspec.Struct, frozen=True):
    """An article in the answer to a search, as the agent gets it."""

    id: str
    title: str
    what_helps: str
    read_on: str
    reported: str = ""
    """Of a notice, which nobody here has run, the day on which it was looked up."""


class KnownAnswer(msgspec.Struct, frozen=True):
    """The answer of `known_failures`, as the agent gets it."""

    failures: tuple[dict[str, object], ...]
    more: int
    """Failures that were left out."""
    not_mentioned: tuple[str, ...]
    """Packages that no window names: nothing is known of them here."""


def server(start: Path, source: Path | str | None) -> MCPServer[None]:
    """The server with its tools; nothing runs until its `run` is called.

    Args:
        start: a folder in the knowledge base; outside of any, the one that came with kbtools.
        source: the file or the address of a published index, instead of a knowledge base.

    Raises:
        KbtoolsError: the knowledge base or the index cannot be read.
    """
    index = matching.load(start, source)
    matcher = matching.Matcher(index)
    documents = cache(partial(_documents, index, source, start))  # read when first asked for
    mcp_server = MCPServer[None](
        index.name,
        version=__version__,
        instructions=f"{len(index.articles)} articles, each about one failure, with fixes that"
        f" were executed, and {len(index.notices)} notices, which are reported and were not run"
        " here: say so when you pass one on. Give the whole output of a failed command to"
        " `diagnose` first. If it returns no matches, no article is about the failure: do not"
        " guess one, and begin with its `first`. Give versions and the GPU to `known_failures`"
        " before you advise an upgrade or a downgrade.",
        log_level="WARNING",
    )

    def diagnose(log: str) -> str:
        """Find what failed first in a log, and the articles about it: tracebacks, compiler errors.

        Pass the log unchanged, with every line. The answer is JSON. `first` is the line that the
        other failures follow from, also where no article matches: its `line`, `text`, `process`
        and `kind`, the lines that are its `echoes`, whether that is `confident`, and if not,
        `why`. It is null where nothing failed. `matches` are the articles, best first, each
        with `id`, `summary` (what helps), the matched `line`, whether your versions are `affected`,
        and `confident`. If there are no matches, no article is about it.
        """
        diagnosis = matcher.diagnose(log)
        best = msgspec.structs.replace(diagnosis, matches=diagnosis.matches[:DIAGNOSIS_LIMIT])
        return msgspec.json.encode(best).decode()

    def explain(id: str) -> str:
        """Read an article as Markdown: symptom, root cause, fix, what does not help, code."""
        entry = _entry(id.strip().upper(), index)
        # the pages of a published index are on its site, not on this machine
        return _summary(entry, index) if source else _article(entry, start)

    def search(words: str) -> str:
        """Find articles by words of their titles, fixes, error texts, components and symptoms.

        Words may be a question, the title of an issue, or the line that failed: ask with each where
        `diagnose` knows nothing. Rare words count most. The answer is JSON: a list, best first, of
        `id`, `title`, `what_helps` and `read_on`.
        """
        hits = (
            SearchHit(hit.id, hit.title, hit.summary, index.address(hit.id), hit.reported)
            for hit in search_documents(documents(), words)[:SEARCH_LIMIT]
        )
        return msgspec.json.encode(tuple(hits)).decode()

    def known_failures(packages: dict[str, str], gpu: str = "") -> str:
        """List the failures that are known for versions: `packages` is name → version.

        `gpu` is a compute capability (`9.0`) or a name; leave it out if it is not known. Names are
        those of distributions, or `python`, `cuda`, `driver`. The answer is JSON: `failures`, the
        silent ones first, each with `window`, `what_helps`, `receipts` and `standing`: `executed`
        and `measured` were run here, `reported` was not. `answer` is `affected`, or `unknown`
        where `reason` says what is missing. `more` counts what was left out; ask about one
        package to see it.
        """
        try:
            answer = known.known_failures(index, packages, gpu)
        except KbtoolsError as error:
            raise ToolError(str(error)) from error
        return msgspec.json.encode(_known_answer(answer, index)).decode()

    for tool in (diagnose, explain, search, known_failures):
        mcp_server.add_tool(tool, annotations=READ_ONLY, structured_output=False)
    return mcp_server


def _known_answer(answer: known.Known, index: Index) -> KnownAnswer:
    """At most `KNOWN_LIMIT` failures, with what is empty left out and long texts cut."""
    failures = []
    for failure in answer.failures[:KNOWN_LIMIT]:
        fields = {
            key: value[:LONGEST] if isinstance(value, str) else value
            for key, value in msgspec.structs.asdict(failure).items()
            if value and key != "remedies"
        }
        failures.append(fields | {"read_on": index.address(failure.id)})
    more = max(len(answer.failures) - KNOWN_LIMIT, 0)
    return KnownAnswer(tuple(failures), more, answer.not_mentioned)


def _documents(index: Index, source: Path | str | None, start: Path) -> tuple[Document, ...]:
    """What is searched: the knowledge base in all its languages, or the published index."""
    if source:
        return tuple(documents_of_index(index))
    base = load_base(matching.settings_of(start))
    return tuple(documents_of_base(base.articles, base.pages, base.notices))


def _entry(identifier: str, index: Index) -> IndexEntry:
    entries = (*index.articles, *(notice.entry for notice in index.notices))
    prefix = _letters(entries[0].id) if entries and identifier.isdigit() else ""
    wanted = _unpadded(prefix + identifier)  # KB7, KB0007 or 7
    entry = next((entry for entry in entries if _unpadded(entry.id) == wanted), None)
    if entry is None:
        raise ToolError(f"no article `{identifier}`; `search` and `diagnose` give ids")
    return entry


def _letters(identifier: str) -> str:
    """What stands before the number of an id: `KB` of `KB0007`."""
    return identifier.rstrip("0123456789")


def _unpadded(identifier: str) -> str:
    """An id without the zeros before its number: `KB7` of `KB0007`."""
    return _letters(identifier) + identifier[len(_letters(identifier)) :].lstrip("0")


def _summary(entry: IndexEntry, index: Index) -> str:
    sentence = f"Reported, not run here; looked up on {entry.looked_up}.\n\n"
    note = sentence if entry.standing == "reported" else ""
    address = index.address(entry.id)
    return f"# {entry.id}: {entry.title}\n\n{note}{entry.summary}\n\n{address}\n"


def _article(entry: IndexEntry, start: Path) -> str:
    try:
        config = matching.settings_of(start)
        base = load_base(config)
    except KbtoolsError as error:
        raise ToolError(str(error)) from error
    notice = next((notice for notice in base.notices if notice.id == entry.id), None)
    if notice:
        return notice_markdown(notice, config, entry.standing)
    article = next((article for article in base.articles if article.id == entry.id), None)
    if article is None:
        raise ToolError(f"{entry.id} cannot be read; see: kbtools check")
    return article_markdown(article, observations(article, config), config)
