"""`kbtools search`: words, in any language, and the articles that have them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bases import Base
from commands import output_of, run_command

from kbtools import config, matching
from kbtools.checks.base import load_base
from kbtools.matching import search

ROOT = Path(__file__).parent.parent


def document(identifier: str, language: str = "en", **parts: str) -> search.Document:
    """A document with these parts; the others are empty."""
    texts = {part: parts.get(part, "").casefold() for part in search.WEIGHTS}
    return search.Document(identifier, parts.get("title", ""), "", language, texts)


def ids(documents: list[search.Document], text: str) -> list[str]:
    """The ids that a search finds, best first."""
    return [hit.id for hit in search.search(documents, text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Illegal  memory", ("illegal", "memory")),
        ("name 's0' is not defined.", ("name", "s0", "is", "not", "defined")),
        ("again Again", ("again",)),
        ("显存不足", ("显存", "存不", "不足")),
        ("慢", ("慢",)),
        ("CUDA显存,fp16", ("cuda", "显存", "fp16")),
        ("sm_90a torch.compile(x)", ("sm_90a", "sm", "90a", "torch", "compile")),
        ("_inductor 3.6.0", ("inductor", "3.6.0")),
        ("?! … a", ()),
    ],
)
def test_words(text: str, words: tuple[str, ...]) -> None:
    """Words, parts of names and versions, without punctuation; Chinese is read in pairs."""
    assert search.words_of(text) == words


def test_most_words_first() -> None:
    """Articles with all words stand before others; those with what most articles have: none."""
    documents = [
        document("A", title="out of memory"),
        document("B", title="memory access out of bounds"),
        document("C", title="illegal memory access"),
        document("D", title="memory"),
    ]
    assert ids(documents, "illegal access to memory") == ["C", "B"]


def test_where_a_word_counts_most() -> None:
    """A title counts more than a signature, that more than a summary, a component, a symptom."""
    documents = [document(part, **{part: "word"}) for part in reversed(search.WEIGHTS)]
    assert ids(documents, "word") == list(search.WEIGHTS)
    [hit] = search.search([document("A", title="word", symptom="word other")], "word other")
    assert (hit.words, hit.parts) == (("word", "other"), ("title", "symptom"))


def test_words_beside_each_other() -> None:
    """Words that stand as they were typed count more than the same words apart."""
    apart = document("A", title="out of resource: shared memory")
    together = document("B", title="cuda out of memory", symptom="and many more words")
    assert ids([apart, together], "out of memory") == ["B", "A"]


def test_a_word_begins_where_a_word_begins() -> None:
    """`oom` is not in `room`, but `compil` is in `compiler`, and `inductor` in `_inductor`."""
    documents = [document("A", title="room for a compiler"), document("B", title="torch._inductor")]
    assert ids(documents, "oom") == []
    assert ids(documents, "compil") == ["A"]
    assert ids(documents, "INDUCTOR") == ["B"]
    [hit] = search.search([document("A", title="oom", symptom="no room")], "oom")
    assert hit.parts == ("title",)


def test_the_ending_of_a_word() -> None:
    """`crashes` finds what has `crash`, and a name what has its parts."""
    documents = [document("A", title="a crash in load_inline"), document("B", title="other")]
    assert ids(documents, "crashes") == ids(documents, "inline") == ["A"]
    [hit] = search.search(documents, "crashes")
    assert (hit.words, hit.parts) == (("crashes",), ("title",))


def test_rare_words_count_most() -> None:
    """Of a long line the words count that few articles have."""
    common = [document(f"C{i}", title="error in a file of the program") for i in range(8)]
    rare = document("R", title="tcgen05")
    assert ids([*common, rare], "an error in this file of my program: tcgen05")[0] == "R"


def test_the_language_that_has_the_words() -> None:
    """An article is in the answer once, in the language in which it has most of the words."""
    documents = [
        document("A", title="out of memory"),
        document("A", "zh", title="显存不足, out of memory"),
    ]
    [hit] = search.search(documents, "显存不足")
    assert (hit.id, hit.language) == ("A", "zh")
    [hit] = search.search(documents, "memory")
    assert hit.language == "en"


def test_every_article_is_found_by_its_title() -> None:
    """In this knowledge base the words of a title find its article first, in every language.

    Every fifth is searched for: each takes a tenth of a second.
    """
    base = load_base(config.find(ROOT))
    documents = [*search.documents_of_base(base.articles, base.pages)]
    assert {document.language for document in documents} == {"en", "zh"}
    wrong = [
        (document.id, document.language)
        for document in documents[::5]
        if search.search(documents, document.title)[0].id != document.id
    ]
    assert wrong == []


@pytest.fixture
def two_articles(base: Base) -> Base:
    """A knowledge base with two articles, of which one is translated."""
    base.article(literal="ValueError: the first")
    original = base.article(literal="ValueError: the second", number=2)
    toml = base.root / "kbtools.toml"
    toml.write_text(toml.read_text().replace("[run]", 'languages = ["en", "zh"]\n\n[run]'))
    matter = '---\nid: KB0002\ntitle: "第二篇"\nsummary: "改用别的写法。"\n---\n'
    translation = original.with_name("KB0002-an-article.zh.md")
    translation.write_text(f"{matter}\n## 现象\n\n程序变慢。\n", "utf-8")
    return base


def test_the_command(two_articles: Base) -> None:
    """It prints the articles, where their words are, and how to read on."""
    text = output_of(two_articles.root, "search", "first", "valueerror")
    assert text == (
        "KB0001  article 1\n"
        "  what helps    Do it right.\n"
        "  found in      signature\n\n"
        "read on: kbtools explain KB0001\n"
    )
    text = output_of(two_articles.root, "search", "--top", "1", "article")
    assert "and 1 more: --top 2\n" in text
    text = output_of(two_articles.root, "search", "article", "first", "nonesuch")
    assert "  found in      title, signature; not there: nonesuch\n" in text
    assert "第二篇" in output_of(two_articles.root, "search", "变慢")


def test_the_command_as_json(two_articles: Base) -> None:
    """As JSON, it is an array, best first; empty when no article has the words."""
    [hit] = json.loads(output_of(two_articles.root, "search", "--json", "变慢"))
    assert hit == {
        "id": "KB0002",
        "title": "第二篇",
        "summary": "改用别的写法。",
        "language": "zh",
        "words": ["变慢"],
        "parts": ["symptom"],
        "reported": "",
    }
    result = run_command(two_articles.root, "search", "--json", "nonesuch")
    assert (result.exit_code, json.loads(result.stdout)) == (3, [])


def test_nothing_is_found(two_articles: Base) -> None:
    """No article is an answer with exit code 3, and no word is a mistake with exit code 2."""
    result = run_command(two_articles.root, "search", "nonesuch")
    assert result.exit_code == 3
    assert result.stdout.startswith("none: ")
    result = run_command(two_articles.root, "search", "?!")
    assert result.exit_code == 2
    assert "only punctuation" in result.stderr


def test_a_broken_article_is_reported(two_articles: Base) -> None:
    """The others are searched, and the exit code is 2."""
    (two_articles.root / "kb" / "KB0003-broken.md").write_text("---\nid: [\n---\n", "utf-8")
    result = run_command(two_articles.root, "search", "first")
    assert result.exit_code == 2
    assert "KB0001  article 1" in result.stdout
    assert "KB0003-broken.md" in result.stderr


def test_a_published_index(two_articles: Base, tmp_path: Path) -> None:
    """Of a published index, titles, summaries, signatures and components are searched."""
    import msgspec

    index = tmp_path / "signatures.json"
    settings = config.find(two_articles.root)
    index.write_bytes(msgspec.json.encode(matching.of_base(settings)))
    text = output_of(tmp_path, "search", "--index", str(index), "second")
    assert text.startswith("KB0002  article 2\n")
