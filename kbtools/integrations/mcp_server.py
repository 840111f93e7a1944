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
from kbtools.checks.base import load_base
from kbtools.config import KbtoolsError
from kbtools.evidence.markdown import article_markdown
from kbtools.evidence.state import observations
from kbtools.matching import Index, IndexEntry
from kbtools.matching.search import Document, documents_of_base, documents_of_index
from kbtools.matching.search import search as search_documents

SEARCH_LIMIT = 10
"""Articles in the answer to a search."""
DIAGNOSIS_LIMIT = 3
"""Articles in the answer to a diagnosis."""
READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


class SearchHit(msgspec.Struct, frozen=True):
    """An article in the answer to a search, as the agent gets it."""

    id: str
    title: str
    what_helps: str
    read_on: str


def server(start: Path, source: Path | str | None) -> MCPServer[None]:
    """The server with the three tools; nothing runs until its `run` is called.

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
        " were executed. Pass the whole output of a failed command to `diagnose` first. If it"
        " returns no matches, no article is about the failure: do not guess one.",
        log_level="WARNING",
    )

    def diagnose(log: str) -> str:
        """Find the articles about the failure in a log: tracebacks, compiler errors, test output.

        Pass the log unchanged, with every line. The answer is JSON: `matches`, best first, each
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

        The answer is JSON: a list, best first, of `id`, `title`, `what_helps` and `read_on`.
        """
        hits = (
            SearchHit(hit.id, hit.title, hit.summary, index.address(hit.id))
            for hit in search_documents(documents(), words)[:SEARCH_LIMIT]
        )
        return msgspec.json.encode(tuple(hits)).decode()

    for tool in (diagnose, explain, search):
        mcp_server.add_tool(tool, annotations=READ_ONLY, structured_output=False)
    return mcp_server


def _documents(index: Index, source: Path | str | None, start: Path) -> tuple[Document, ...]:
    """What is searched: the knowledge base in all its languages, or the published index."""
    if source:
        return tuple(documents_of_index(index.articles))
    base = load_base(matching.settings_of(start))
    return tuple(documents_of_base(base.articles, base.pages))


def _entry(identifier: str, index: Index) -> IndexEntry:
    entry = next((entry for entry in index.articles if entry.id == identifier), None)
    if entry is None:
        raise ToolError(f"no article `{identifier}`; `search` and `diagnose` give ids")
    return entry


def _summary(entry: IndexEntry, index: Index) -> str:
    return f"# {entry.id}: {entry.title}\n\n{entry.summary}\n\n{index.address(entry.id)}\n"


def _article(entry: IndexEntry, start: Path) -> str:
    try:
        config = matching.settings_of(start)
        base = load_base(config)
    except KbtoolsError as error:
        raise ToolError(str(error)) from error
    article = next((article for article in base.articles if article.id == entry.id), None)
    if article is None:
        raise ToolError(f"{entry.id} cannot be read; see: kbtools check")
    return article_markdown(article, observations(article, config), config)
