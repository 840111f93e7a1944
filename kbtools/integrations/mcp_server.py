"""The knowledge base for coding agents: the tools `diagnose`, `explain` and `search`, over MCP.

Needs the extra `mcp` (`pip install 'kbtools[mcp]'`). Everything is answered from this machine.
"""

from __future__ import annotations

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

FEW = 10
"""Articles that a search gives."""
TOP = 3
"""Articles that a diagnosis gives."""
READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


class Found(msgspec.Struct, frozen=True):
    """An article, as far as a list speaks of it."""

    id: str
    title: str
    what_helps: str
    read_on: str


def server(start: Path, index: Path | None) -> MCPServer[None]:
    """The server for the knowledge base around `start`, or for a published index.

    Raises:
        KbtoolsError: there is none, or it cannot be read.
    """
    known = matching.load(start, index)
    matcher = matching.Matcher(known)
    made = MCPServer[None](
        known.name,
        version=__version__,
        instructions=f"{len(known.articles)} articles, each about one failure, with fixes that"
        " were executed. Pass the whole output of a failed command to `diagnose` first; no matches"
        " mean that no article is about it, which is not to be guessed around.",
        log_level="WARNING",
    )

    def diagnose(log: str) -> str:
        """Find the articles about the failure in a log: tracebacks, compiler errors, test output.

        Pass the log as it is, with every line. The answer is JSON: `matches`, best first, each with
        `id`, `summary` (what helps), the matched `line`, whether your versions are `affected`, and
        `confident`; no matches means that no article is about it.
        """
        found = matcher.diagnose(log)
        few = msgspec.structs.replace(found, matches=found.matches[:TOP])
        return msgspec.json.encode(few).decode()

    def explain(id: str) -> str:
        """Read an article as Markdown: symptom, root cause, fix, what does not help, code."""
        return _article(id.strip(), start, known, index is not None)

    def search(words: str) -> str:
        """Find articles by words of their titles, fixes, error texts and components.

        The answer is JSON: a list, best first, of `id`, `title`, `what_helps` and `read_on`.
        """
        return msgspec.json.encode(search_in(known, words)).decode()

    for tool in (diagnose, explain, search):
        made.add_tool(tool, annotations=READS, structured_output=False)
    return made


def search_in(index: Index, words: str) -> tuple[Found, ...]:
    """The articles that have most of these words, best those with most of them in the title."""
    wanted = {*words.casefold().split()}
    ranked = sorted(
        ((rank, one) for one in index.articles if (rank := _rank(one, wanted)) > (0, 0)),
        key=lambda found: (-found[0][0], -found[0][1], found[1].id),
    )
    return tuple(
        Found(one.id, one.title, one.summary, index.address(one.id)) for _, one in ranked[:FEW]
    )


def _rank(one: IndexEntry, wanted: set[str]) -> tuple[int, int]:
    title = f"{one.id} {one.title}".casefold()
    literals = (signature.literal for signature in one.signatures)
    whole = " ".join((title, one.summary, *one.components, *literals)).casefold()
    return sum(word in whole for word in wanted), sum(word in title for word in wanted)


def _article(identifier: str, start: Path, index: Index, is_published: bool) -> str:
    entry = next((one for one in index.articles if one.id == identifier), None)
    if entry is None:
        raise ToolError(f"no article `{identifier}`; `search` and `diagnose` give ids")
    if is_published:  # its pages are elsewhere
        return f"# {entry.id}: {entry.title}\n\n{entry.summary}\n\n{index.address(entry.id)}\n"
    try:
        settings = matching.settings_of(start)
        base = load_base(settings)
    except KbtoolsError as error:
        raise ToolError(str(error)) from error
    found = next((one for one in base.articles if one.id == identifier), None)
    if found is None:
        raise ToolError(f"{identifier} cannot be read; see: kbtools check")
    return article_markdown(found, observations(found, settings), settings.knowledge_base.url)
