"""`kbtools build`: its steps, what it refuses, what it leaves when it is interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from bases import KBTOOLS, Base, Finished, fence
from sites import prepared

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.cli import main
from kbtools.site import build, generate, search_index, words
from kbtools.site.search_bundle import SearchIndexError

pytest.importorskip("material")
pytest.importorskip("pagefind_bin_extended")

FAILS = fence("python repro id=r1", 'raise RuntimeError("the failure")')
PASSES = fence("python fix id=f1", "assert True")


@pytest.fixture(scope="module")
def built(new_base: Callable[..., Base]) -> Base:
    """A knowledge base of two articles with evidence, and its site."""
    base = prepared(new_base())
    base.article(FAILS, PASSES, number=1, matter="upstream: [{report: a/b#12}]")
    base.article(FAILS, number=2)
    assert base.verify("--record").code == 0
    run = base.kbtools("build", timeout=120)
    assert run.code == 0, run.err
    return base


def page(base: Base, address: str) -> str:
    """The HTML of a page."""
    return (base.root / "site" / address / "index.html").read_text("utf-8")


def test_a_page_shows_the_evidence(built: Base) -> None:
    """The built page has the title, the computed state, and the snippets with their verdicts."""
    html = page(built, "KB0001")
    for text in ("KB0001", "article 1", "reproduced", "r1", "f1"):
        assert text in html
    assert "KB0002" in page(built, "articles")
    assert "KB0001" in page(built, "issues/a/b/12")


def test_what_programs_read_is_beside_the_pages(built: Base) -> None:
    """JSON, schemas, feed, badges and texts stand in the site; each page names the feed."""
    site = built.root / "site"
    for name in (
        *("api/v1/index.json", "api/v1/KB0001.json", "api/v1/schemas/index.json", "feed.xml"),
        *("badges/KB0001.svg", "badges/KB0001.json", "KB0001.md", "llms.txt", "robots.txt"),
        *("pagefind/pagefind.js", "404.html"),
    ):
        assert (site / name).is_file(), name
    assert not (site / "sitemap.xml").exists(), "it needs an address"
    for file in site.rglob("*.html"):
        times = file.read_text("utf-8").count('type="application/atom+xml"')
        assert times == (file.name != "404.html"), file
    assert "application/ld+json" in page(built, "KB0001")


def test_no_address_is_absolute(built: Base) -> None:
    """The site works below any path: no page but 404.html has a link that begins with a slash."""
    for file in (built.root / "site").rglob("*.html"):
        if file.name != "404.html":
            assert not re.search(r'(?:href|src|action)="/', file.read_text("utf-8")), file


def test_with_an_address(built: Base) -> None:
    """`--url` gives the sitemap, the feed and the pages their whole addresses."""
    run = built.kbtools("build", "--url", "https://example.org/kb/", timeout=120)
    assert run.code == 0, run.err
    site = built.root / "site"
    assert "<loc>https://example.org/kb/KB0001/</loc>" in (site / "sitemap.xml").read_text("utf-8")
    assert 'href="https://example.org/kb/KB0001/"' in (site / "feed.xml").read_text("utf-8")
    wrong = built.kbtools("build", "--url", "example.org")
    assert (wrong.code, "is not the address" in wrong.err) == (2, True)


def test_needs_of_a_snippet(new_base: Callable[..., Base]) -> None:
    """The text above a snippet says whether it needs a GPU, one to itself, or two."""
    base = prepared(new_base())
    words = {"gpu": "needs a GPU", "gpus:1": "needs a GPU to itself", "gpus:2": "needs 2 GPUs"}
    base.article(*(fence(f"python control requires={word}", "x = 1") for word in words))
    build.generate(load_base(config.find(base.root)), main)
    text = (base.root / "build/pages/KB0001.md").read_text("utf-8")
    assert re.findall(r"needs (?:a|\d) GPUs?(?: to itself)?", text) == list(words.values())


def test_texts_that_the_prose_does_not_show(new_base: Callable[..., Base]) -> None:
    """What a signature knows the failure by is on the page, once: whoever has it finds the page."""
    base = prepared(new_base())
    file = base.article(FAILS, number=1)
    literal = '"literal": "the failure"}'
    text = file.read_text("utf-8").replace(literal, f'{literal}, {{"literal": "older <words>"}}')
    file.write_text(text, "utf-8")
    base.article(FAILS, number=2)
    build.generate(load_base(config.find(base.root)), main)
    pages = [(base.root / f"build/pages/KB000{n}.md").read_text("utf-8") for n in (1, 2)]
    assert "<li><code>older &lt;words&gt;</code></li>" in pages[0]
    assert "<code>the failure</code>" not in pages[0]
    assert "kb-texts" not in pages[1]


PROSE = {
    "#952 is no heading.": "<p>#952 is no heading.</p>",
    "a\n- list without\n- an empty line": "<ul>",
    "1. one\n\n   ```sh\n   a  <b>\n   ```": "<pre><code>a  &lt;b&gt;</code></pre>",
    "See KB0002, `KB0002` and KB0009.": (
        '<p>See <a href="../KB0002/">KB0002</a>, <code>KB0002</code> and KB0009.</p>'
    ),
    "See a.b/c-d#12, a/b@0123abc.": (
        '<a href="https://github.com/a.b/c-d/issues/12">a.b/c-d#12</a>, '
        '<a href="https://github.com/a/b/commit/0123abc">a/b@0123abc</a>.'
    ),
    "[KB0002: it](KB0002-an-article.md)": '<a href="../KB0002/">KB0002: it</a>',
    "[a](javascript:b) [c](../d.md) ![e](https://f.g/h.png)": (
        '[a](javascript:b) c !<a href="https://f.g/h.png">e</a>'
    ),
    "a <b>c</b> &lt;d&gt; { e } \\<f>": "a &lt;b&gt;c&lt;/b&gt; &lt;d&gt; { e } &lt;f&gt;",
    "| g | h |\n| --- | --- |\n| `i\\|j` | **k** |": "<td><code>i|j</code></td> <td><strong>k",
    "### A `l_m` *n*": "### A <code>l&#95;m</code> <em>n</em>",
}
"""Markdown of an author → what is on the page that MkDocs builds."""


@pytest.fixture(scope="module")
def written(new_base: Callable[..., Base]) -> str:
    """The page of an article with all of `PROSE`, and another article."""
    base = prepared(new_base())
    base.article(FAILS, *(f"{text}\n" for text in PROSE), number=1)
    base.article(FAILS, number=2)
    build.generate(load_base(config.find(base.root)), main)
    return (base.root / "build/pages/KB0001.md").read_text("utf-8")


@pytest.mark.parametrize("text", PROSE)
def test_prose(written: str, text: str) -> None:
    """Prose is read as CommonMark: the text on the page is the text that was checked."""
    assert PROSE[text] in written


@pytest.mark.parametrize(
    ("repository", "text"),
    [
        ("", "See The Log and [the format](format.md#keys)."),
        (
            "https://example.org/a/b",
            "See [The Log](https://example.org/a/b/blob/HEAD/LOG.md#x) "
            "and [the format](format.md#keys).",
        ),
    ],
)
def test_links_of_the_documentation(base: Base, repository: str, text: str) -> None:
    """A link to a file that is no page leads to the repository, or is text if none is known."""
    prepared(base).article(FAILS)
    file = base.root / "kbtools.toml"
    entry = f'prefix = "KB"\nrepository = "{repository}"'
    file.write_text(file.read_text("utf-8").replace('prefix = "KB"', entry), "utf-8")
    (base.root / "LOG.md").write_text("# The log\n", "utf-8")
    (base.root / "docs").mkdir()
    (base.root / "docs" / "format.md").write_text("# Format\n", "utf-8")
    written = "# How\n\nSee [The Log](LOG.md#x) and [the format](docs/format.md#keys).\n"
    (base.root / "CONTRIBUTING.md").write_text(written, "utf-8")
    build.generate(load_base(config.find(base.root)), main)
    assert text in (base.root / "build/pages/contributing.md").read_text("utf-8")


def test_only_what_changed_is_written(built: Base) -> None:
    """A second generation writes nothing, an edited article its pages and those that list it."""
    settings = config.find(built.root)
    build.generate(load_base(settings), main)
    assert build.generate(load_base(settings), main).changed == ()
    file = next((built.root / "kb").glob("KB0002*"))
    text = file.read_text("utf-8")
    file.write_text(text.replace("## Root cause\n", "## Root cause\n\nMore.\n"), "utf-8")
    try:
        changed = {file.name for file in build.generate(load_base(settings), main).changed}
    finally:
        file.write_text(text, "utf-8")
        build.generate(load_base(settings), main)
    assert "KB0002.md" in changed
    assert not any("KB0001" in name for name in changed)


def test_a_folder_holds_what_is_generated(tmp_path: Path) -> None:
    """Obsolete files are removed, with their folders; a file may become a folder and back."""
    first = {"a/b/c.md": b"1", "a/d.md": b"2", "e": b"3"}
    second = {"a/d.md": b"2", "e/f.md": b"3"}
    folder = tmp_path / "pages"
    for files, changed in ((first, [*first]), (second, ["e/f.md"]), (first, ["a/b/c.md", "e"])):
        written = generate.write(files, folder)
        assert [file.relative_to(folder).as_posix() for file in written] == changed
        present = {
            file.relative_to(folder).as_posix(): file.read_bytes()
            for file in folder.rglob("*")
            if file.is_file()
        }
        assert present == files
        assert all(any(path.iterdir()) for path in folder.rglob("*") if path.is_dir())


def test_each_step_alone(built: Base) -> None:
    """The step html leaves the index out, search adds it, links checks it all."""
    assert built.kbtools("build", "--only", "generate").code == 0
    assert built.kbtools("build", "--only", "html", timeout=120).code == 0
    assert not (built.root / "site" / "pagefind").exists()
    assert built.kbtools("build", "--only", "search", timeout=120).code == 0
    assert (built.root / "site" / "pagefind" / "pagefind.js").is_file()
    assert built.kbtools("build", "--only", "links").code == 0
    broken = built.root / "site" / "broken.html"
    broken.write_text('<a href="gone/">', "utf-8")
    run = built.kbtools("build", "--only", "links")
    broken.unlink()
    assert run.code == 1
    assert "site/broken.html: gone/: there is no such file" in run.err


def test_nothing_to_work_on(base: Base) -> None:
    """A step that comes before its turn says which one to take."""
    base.article(FAILS)
    for step in ("html", "search", "links"):
        run = base.kbtools("build", "--only", step)
        assert run.code == 2
        assert "see: kbtools build" in run.err


def test_a_site_that_cannot_be_built(base: Base) -> None:
    """Without mkdocs.yml it is one message and exit code 2."""
    base.article(FAILS)
    run = base.kbtools("build")
    assert run.code == 2
    assert "mkdocs build failed" in run.err
    assert "Traceback" not in run.err


def test_what_mkdocs_says_is_passed_on(base: Base) -> None:
    """What is wrong with mkdocs.yml is said, and nothing else that MkDocs has to say."""
    prepared(base).article(FAILS)
    file = base.root / "mkdocs.yml"
    file.write_text(file.read_text("utf-8").replace("  - tables", "  - tabels"), "utf-8")
    run = base.kbtools("build")
    assert run.code == 2
    assert "tabels" in run.err
    assert "end of life" not in run.err


def lines(site: Path) -> str:
    """A fingerprint of a site's files."""
    return json.dumps(sorted((f.name, f.stat().st_size) for f in site.rglob("*") if f.is_file()))


@pytest.mark.parametrize("after", [0.3, 1.0, 1.8])
def test_an_interrupted_build(built: Base, after: float) -> None:
    """Whenever a build is ended, the last whole site is still there, and the next one works."""
    site = built.root / "site"
    before = lines(site)
    process = built.start("build")
    time.sleep(after)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert lines(site) == before


def test_a_build_that_was_killed_while_it_published(built: Base) -> None:
    """Between the two renames the site is nowhere: the next command puts it back."""
    site = built.root / "site"
    before = lines(site)
    site.rename(built.root / "build" / "last")
    run = built.kbtools("build", "--only", "links")
    assert run.code == 0, run.err
    assert lines(site) == before


def test_a_broken_link_is_not_published(base: Base) -> None:
    """What the link check finds is said with its page, and the last site stays."""
    prepared(base)
    file = base.article(FAILS)
    (base.root / "site").mkdir()
    (base.root / "site" / "index.html").write_text("the last one", "utf-8")
    text = file.read_text("utf-8")
    file.write_text(text + "\n[here](gone/)\n[there](#gone)\n", "utf-8")
    run = base.kbtools("build", timeout=120)
    if run.code == 2:  # MkDocs itself found it
        assert "gone" in run.err
    else:
        assert run.code == 1
        assert "gone" in run.err
    assert (base.root / "site" / "index.html").read_text("utf-8") == "the last one"


def test_two_builds_at_once(built: Base) -> None:
    """The second one says that there is a first one."""
    with build.build_lock(config.find(built.root)):
        run = built.kbtools("build")
    assert (run.code, "another build" in run.err) == (2, True)


def test_an_index_that_is_cut_short(built: Base, tmp_path: Path) -> None:
    """Any file of a bundle that is missing, empty or cut is noticed, and a page that is lacking."""
    bundle = built.root / "site" / "pagefind"
    addresses = ["KB0001/", "KB0002/"]
    assert search_index.check(bundle, addresses)["en"] >= 2
    files = [file for file in bundle.rglob("*") if file.suffix.startswith(".pf_")]
    assert len(files) >= 4
    for file in files:
        content = file.read_bytes()
        for damaged in (b"", content[:20], content[:-1]):
            file.write_bytes(damaged)
            with pytest.raises(SearchIndexError, match="incomplete"):
                search_index.check(bundle, addresses)
        file.write_bytes(content)
    with pytest.raises(SearchIndexError, match="it lacks KB0009/"):
        search_index.check(bundle, [*addresses, "KB0009/"])
    with pytest.raises(SearchIndexError, match="incomplete"):
        search_index.check(tmp_path, addresses)


INIT = (
    ("--name", "Ada's Failures & Fixes <of 1842>", "--prefix", "ADA"),
    {"colour": "#7a1f5c", "colour-dark": "#f2b8dc", "tagline": "What the engine would not do"},
)


@pytest.fixture(scope="module")
def ada(tmp_path_factory: pytest.TempPathFactory, new_base: Callable[..., Base]) -> Base:
    """A knowledge base as `kbtools init` starts it, with a look of its own, and its site."""
    root = tmp_path_factory.mktemp("ada") / "ada"
    any_base = new_base()
    words, look = INIT
    assert any_base.kbtools("init", str(root), *words).code == 0
    base = Base(root, any_base.temporary)
    file = root / "kbtools.toml"
    text = file.read_text("utf-8")
    for key, value in look.items():
        text = re.sub(rf"^{key} = .*$", f"{key} = {json.dumps(value)}", text, flags=re.MULTILINE)
    file.write_text(text, "utf-8")
    assert base.kbtools("verify", "--record").code == 0
    run: Finished = base.kbtools("build", timeout=120)
    assert run.code == 0, run.err
    return base


def test_another_knowledge_base(ada: Base) -> None:
    """It builds as it was started, in its own name, prefix, colours and language."""
    site = ada.root / "site"
    html = (site / "ADA0001" / "index.html").read_text("utf-8")
    assert "Ada&#39;s Failures &amp; Fixes &lt;of 1842&gt;" in html
    assert "<of 1842>" not in html
    assert 'lang="en"' in html
    assert "hreflang" not in html, "there is no other language"
    assert not (site / "zh").exists()
    styles = "".join(file.read_text("utf-8") for file in site.rglob("*.css")) + html
    assert INIT[1]["colour"] in styles
    assert INIT[1]["colour-dark"] in styles
    assert INIT[1]["tagline"] in (site / "index.html").read_text("utf-8")


def test_nothing_of_ours_is_in_another_knowledge_base(ada: Base) -> None:
    """No text of its site names this knowledge base, its ids, its repository or its components."""
    ours = config.find(Path(__file__).parent.parent)
    words = [ours.knowledge_base.name, ours.knowledge_base.repository, ours.site.tagline]
    words += [name for name in ours.article.components if "-" in name]
    pattern = re.compile("|".join([r"\bKB\d{4}\b", *map(re.escape, filter(None, words))]))
    assert pattern.search("KB0002")
    for file in (ada.root / "site").rglob("*"):
        if file.suffix in (".html", ".json", ".xml", ".md", ".txt", ".svg"):
            match = pattern.search(file.read_text("utf-8"))
            assert not match, f"{file.name}: {match and match[0]}"


@pytest.mark.parametrize(("n", "claims"), [(0, "0 claims"), (1, "1 claim"), (2, "2 claims")])
def test_plurals(n: int, claims: str) -> None:
    """A number in the site's words knows its plural."""
    text = words.of("en")("article.counts", green=n, toolchains=1)
    assert text == f"{claims} seen to hold on 1 toolchain"


def test_the_command_line_has_the_steps() -> None:
    """The test suite runs the same entry point as people do."""
    assert KBTOOLS[0] == sys.executable
    assert {"build", "serve"} <= set(main.list_commands(click.Context(main)))
