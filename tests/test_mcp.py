"""`kbtools mcp`, spoken to by the client of the official SDK."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from bases import KBTOOLS, Base, fence

from kbtools.installation import command_for

FAILURE = "RuntimeError: the failure of the day"


@pytest.fixture
def two_articles(base: Base) -> Base:
    """A knowledge base of two articles."""
    base.article(fence("python repro id=r1", "1 / 0"), literal=FAILURE)
    base.article(literal="ValueError: another one", number=2)
    return base


def call_tools(
    base: Base, *calls: tuple[str, dict[str, Any]], words: tuple[str, ...] = ()
) -> list[Any]:
    """The tools that a server lists, and the answers of these."""
    pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async def talk() -> list[Any]:
        command = StdioServerParameters(
            command=KBTOOLS[0],
            args=[*KBTOOLS[1:], "mcp", *words],
            cwd=str(base.root),
            env=base.environment(),
        )
        async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            listed = await session.list_tools()
            return [
                listed,
                *[await session.call_tool(name, arguments) for name, arguments in calls],
            ]

    async def in_time() -> list[Any]:
        return await asyncio.wait_for(talk(), 60)

    # in a thread: a browser of other tests may have a loop in this one
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, in_time()).result()


def text(answer: Any) -> str:
    """The text of an answer that is no error."""
    assert not answer.is_error, answer
    return "".join(part.text for part in answer.content)


def test_tools_are_described(two_articles: Base) -> None:
    """An agent is told of four tools, what each is for, and that none changes anything."""
    [listed] = call_tools(two_articles)
    tools = {tool.name: tool for tool in listed.tools}
    assert set(tools) == {"diagnose", "explain", "search", "known_failures"}
    assert all(tool.description and tool.annotations.read_only_hint for tool in tools.values())
    assert tools["diagnose"].input_schema["required"] == ["log"]


def test_from_a_log_to_an_article(two_articles: Base) -> None:
    """A log gives an id, an id gives the article, words give a list; no match is an answer."""
    _, diagnosis, no_match, article, hits, no_hits = call_tools(
        two_articles,
        ("diagnose", {"log": f"Traceback (most recent call last):\n{FAILURE}\n"}),
        ("diagnose", {"log": "all is well"}),
        ("explain", {"id": "kb0001"}),
        ("search", {"words": "another ValueError"}),
        ("search", {"words": "nonesuch"}),
    )
    [match] = json.loads(text(diagnosis))["matches"]
    assert (match["id"], match["line"], match["confident"]) == ("KB0001", 2, True)
    assert json.loads(text(diagnosis))["first"]["line"] == 2
    assert json.loads(text(no_match))["matches"] == []
    assert json.loads(text(no_match))["first"] is None
    assert "python repro id=r1" in text(article)
    assert [hit["id"] for hit in json.loads(text(hits))] == ["KB0002"]
    assert json.loads(text(no_hits)) == []


def test_known_failures(two_articles: Base) -> None:
    """Versions give the failures whose window they lie in; what cannot be read is an error."""
    [file] = (two_articles.root / "kb").glob("KB0001*.md")
    affected = 'affected: [{tiny: "<2"}]\nsignatures:'
    file.write_text(file.read_text("utf-8").replace("signatures:", affected), "utf-8")
    _, inside, outside, wrong = call_tools(
        two_articles,
        ("known_failures", {"packages": {"tiny": "1.5"}}),
        ("known_failures", {"packages": {"tiny": "2.0", "other": "1"}, "gpu": "9.0"}),
        ("known_failures", {"packages": {"tiny": "new"}}),
    )
    [failure] = json.loads(text(inside))["failures"]
    assert (failure["id"], failure["standing"], failure["window"]) == (
        "KB0001",
        "executed",
        "tiny <2",
    )
    assert json.loads(text(outside)) == {"failures": [], "more": 0, "not_mentioned": ["other"]}
    assert wrong.is_error
    assert "`new` is not a version" in wrong.content[0].text


def test_an_unknown_article(two_articles: Base) -> None:
    """An id that does not exist is an error that says what to do, and the server goes on."""
    _, wrong, right = call_tools(
        two_articles, ("explain", {"id": "KB0099"}), ("search", {"words": "KB0001"})
    )
    assert wrong.is_error
    assert "no article `KB0099`" in wrong.content[0].text
    assert json.loads(text(right))[0]["id"] == "KB0001"


@pytest.mark.parametrize("name", ["KB0001", "kb1", "1"])
def test_an_id_may_be_short(name: str, two_articles: Base) -> None:
    """As on the command line, zeros and the prefix of articles may be left out."""
    _, article = call_tools(two_articles, ("explain", {"id": name}))
    assert not article.is_error
    assert "KB0001" in text(article)


def test_without_the_extra(two_articles: Base) -> None:
    """Where the SDK is not installed, one line says how to get it, and the exit code is 2."""
    code = "import sys; sys.modules['mcp'] = None\nfrom kbtools.cli import main; main(['mcp'])"
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=two_articles.root, capture_output=True
    )
    assert process.returncode == 2
    line = process.stderr.decode()
    assert line.startswith("kbtools: this needs mcp")
    assert line.endswith(f", which the extra `mcp` brings; next: {command_for('mcp')}\n")
    assert process.stdout == b""
