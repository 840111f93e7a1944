"""Links: ids, permanent addresses, upstream threads, replies."""

from __future__ import annotations

import re

import msgspec
import pytest
from bases import Base, fence

from kbtools.articles import links, replies
from kbtools.articles.model import FrontMatter, Signature, Upstream
from kbtools.config import Config, KnowledgeBase

CONFIG = Config(knowledge_base=KnowledgeBase(name="failures", prefix="KB"))
ARTICLE = FrontMatter(
    id="KB0002",
    title="operand #1 <does> `not` dominate",
    summary="Upgrade.",
    components=("triton",),
    stage="runtime",
    severity="blocks",
    signatures=(Signature("dominate"),),
    upstream=(Upstream(report="fla-org/flash-linear-attention#97"),),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b#97", "a/b#97"),
        ("https://github.com/a/b/issues/97#issuecomment-1", "a/b#97"),
        ("https://github.com/a/b/pull/97/files", "a/b#97"),
        ("https://github.com/a/b/commit/1a2b3c4d", "a/b@1a2b3c4d"),
        ("https://example.org/a/b/issues/97", None),
        ("a/b#0", None),
        ("97", None),
    ],
)
def test_reference(text: str, expected: str | None) -> None:
    """A thread is named by its short form or by any address of its page."""
    assert links.parse_reference(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("KB0002", "KB0002"),
        ("https://kb.example/kb/KB0002/", "KB0002"),
        ("https://kb.example/zh/KB0002/#fix", "KB0002"),
        ("kb0002", "KB0002"),
        ("Kb2", "KB0002"),
        ("KB00002", "KB0002"),
        ("KB20002", None),
        ("2", None),
        ("see KB0002", None),
    ],
)
def test_article_id(text: str, expected: str | None) -> None:
    """An article is named by its id, in any case, zeros left out, or by its address."""
    assert links.article_id(text, CONFIG) == expected


def test_both_ways() -> None:
    """From a thread to its articles, whatever the case of its letters, and back."""
    assert links.articles_citing("FLA-org/flash-linear-attention#97", [ARTICLE]) == (ARTICLE,)
    assert links.articles_citing("fla-org/flash-linear-attention#9", [ARTICLE]) == ()
    thread = ARTICLE.upstream[0].reference
    assert links.upstream_url(thread).endswith("fla-org/flash-linear-attention/issues/97")
    assert links.thread_path(thread) == "issues/fla-org/flash-linear-attention/97/"


def test_markdown_of_a_hostile_title() -> None:
    """Nothing in a title is Markdown or HTML in a reply."""
    base = KnowledgeBase(name="failures", prefix="KB", url="https://kb.example/kb/")
    reply = replies.reply(ARTICLE, base)
    assert r"KB0002: operand \#1 \<does\> \`not\` dominate](https://kb.example/kb/KB0002/)" in reply


@pytest.mark.parametrize("url", ["", "https://kb.example/kb/"])
@pytest.mark.parametrize("repository", ["", "https://git.example/a/kb/"])
@pytest.mark.parametrize("is_matched", [False, True])
def test_a_reply_helps_a_stranger(url: str, repository: str, is_matched: bool) -> None:
    """Absolute links or none; a command only where it works; who wrote it, and whom to tell."""
    base = KnowledgeBase(name="failures", prefix="KB", url=url, repository=repository)
    assert "uvx" not in replies.reply(ARTICLE, base)
    base = msgspec.structs.replace(base, install=repository and f"git+{repository}")
    reply = replies.reply(ARTICLE, base, is_matched=is_matched)
    assert re.findall(r"\]\((.*?)\)", reply) == [f"{url}KB0002/"] * bool(url)
    assert "/KB0002" not in reply.replace(f"{url}KB0002/", "")
    assert ("uvx --from git+https://git.example/a/kb/ kbtools verify KB0002" in reply) is bool(
        repository
    )
    assert ("`kbtools" in reply) is False
    assert ("A program wrote this" in reply) is is_matched
    assert ("say so at https://git.example/a/kb/issues" in reply) is bool(is_matched and repository)
    assert ("say so in a comment" in reply) is bool(is_matched and not repository)
    on_the_index = msgspec.structs.replace(base, install="kbtools")
    assert "`uvx kbtools verify KB0002 --toolchain" in replies.reply(ARTICLE, on_the_index)


def test_published_addresses_only_grow(base: Base) -> None:
    """`link --publish` adds what is new and removes nothing; `check` speaks of what is lost."""
    failing = fence("python repro", "raise ValueError('the failure')")
    base.article(failing, fence("python fix", "pass"))
    assert "1 address added" in base.kbtools("link", "--publish").out
    assert "0 addresses added" in base.kbtools("link", "--publish").out
    assert base.kbtools("check").code == 0
    file = base.root / links.PUBLISHED
    file.write_text(file.read_text("utf-8") + "KB0009/\n", "utf-8")
    checked = base.kbtools("check")
    assert checked.code == 1
    assert "published.txt:3: KB307 `KB0009/` was published" in checked.out + checked.err


def test_an_article_that_cannot_be_read_is_not_lost(base: Base) -> None:
    """`check` says what is wrong in its file, and not that its address is gone."""
    file = base.article(fence("python repro", "raise ValueError('the failure')"))
    base.kbtools("link", "--publish")
    file.write_text(file.read_text("utf-8").replace("severity: ", "severity: [", 1), "utf-8")
    checked = base.kbtools("check")
    assert checked.code == 1
    assert "KB001" in checked.out and "KB307" not in checked.out


def test_what_new_prints_is_enough_for_check(base: Base) -> None:
    """In a base with published addresses, `new` names the command without which `check` fails."""
    base.article(fence("python repro", "raise ValueError('the failure')"), fence("python fix", "1"))
    assert "link --publish" not in base.kbtools("new", "before anything is published").out
    base.kbtools("link", "--publish")
    printed = base.kbtools("new", "KeyError: 'a'").out
    assert "KB307" in base.kbtools("check").out
    assert "    kbtools link --publish" in printed
    base.kbtools("link", "--publish")
    assert base.kbtools("check").code == 0


def test_the_thread_of_a_skeleton_is_not_published(base: Base) -> None:
    """A published address stays for ever; the skeleton's thread is a stand-in."""
    base.kbtools("new", "--notice", "thing 9.9: something is slow")
    published = base.kbtools("link", "--publish").out
    assert "0001/" in published
    assert "issues/owner/repo/123" not in published


def test_the_command(base: Base) -> None:
    """`link` answers with 0, with 3 for a thread that no article names, with 2 for neither."""
    thread = "upstream:\n  - {report: example/thing#7}"
    base.article(fence("python repro", "raise ValueError('the failure')"), matter=thread)
    linked = base.kbtools("link", "https://github.com/example/thing/issues/7")
    assert (linked.code, linked.out) == (0, "/KB0001/\n")
    assert "no link: a test has no address; set `url`" in linked.err
    for form in ("markdown", "badge"):
        refused = base.kbtools("link", "KB0001", "--format", form)
        assert (refused.code, refused.out) == (2, "")
        assert "set `url` of [knowledge-base] in kbtools.toml" in refused.err
    assert "/KB0001" not in base.kbtools("link", "KB0001", "--format", "reply").out
    printed = base.kbtools("link", "KB0001", "--format", "threads").out
    assert printed == "report   https://github.com/example/thing/issues/7\n"
    assert base.kbtools("link", "example/thing#8").code == 3
    assert base.kbtools("link", "what").code == 2
    assert base.kbtools("link", "KB0007").code == 2
