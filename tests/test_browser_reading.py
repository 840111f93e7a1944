"""What a reader does on the site: search, filter, copy, ask whether a failure is theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from chromium import Reader, Served

ARTICLE = Path(__file__).parents[1] / "kb" / "KB0002-operand-does-not-dominate.md"
COMMAND = re.findall(r"^pip install .*$", ARTICLE.read_text("utf-8"), re.MULTILINE)[0]
"""What the first card of KB0002 says to do."""
FIRST = {
    "NameError: name 's2' is not defined": "KB0001",
    "error: operand #1 does not dominate this use": "KB0002",
    'error: identifier "entry" is undefined': "KB0003",
    "error: conflicting declaration ‘float tmp_acc0_arr [2]’": "KB0004",
    "Expect the tensor to be 16 bytes aligned. Fail due to storage_offset=1 itemsize=4": "KB0005",
    "s2": "KB0001",
    "wgmma": "KB0024",
    "wy_fast": "KB0106",
    'identifier "entry" is undefined': "KB0003",
    "声明冲突": "KB0004",
    "权重不变": "KB0099",
    "原地操作改掉了求梯度要用的张量": "KB0048",
    "KB0022": "KB0022",
    "why is the backward of GatedDeltaNet refused on my colleague's Hopper since Tuesday": "KB0103",
}
"""Query → the article that must be the first result. Of the last one no page has every word."""


def first_result(page: Any) -> str:
    """The address of the first result, once there is one."""
    page.wait_for_selector(".kb-results li a")
    page.wait_for_function("!document.querySelector('[role=status]').textContent.includes('…')")
    return str(page.locator(".kb-results li a").first.get_attribute("href"))


@pytest.fixture(scope="module", params=["", "zh/"])
def searching(
    request: pytest.FixtureRequest, chromium: Any, our_site: Served
) -> Iterator[tuple[Reader, str]]:
    """A reader for all searches in a language: scripts and index are fetched once."""
    reader = Reader(chromium, our_site, viewport={"width": 1280, "height": 820})
    yield reader, request.param
    reader.context.close()
    assert reader.wrongs == []


@pytest.mark.parametrize("query", FIRST)
def test_search(searching: tuple[Reader, str], query: str) -> None:
    """An error line, an identifier or a Chinese word finds its article first, in both languages."""
    reader, language = searching
    page = reader.open(f"{language}search/")
    page.fill("#kb-q", query)
    assert first_result(page) == f"{reader.url}{language}{FIRST[query]}/"


def test_search_is_in_the_address(reader: Reader) -> None:
    """The home page's field works as it is typed in; a link with a query shows its results."""
    page = reader.open("")
    page.fill("#kb-q", "wy_fast")
    assert first_result(page).endswith("/KB0106/")
    page = reader.open("search/?q=wy_fast")
    assert first_result(page).endswith("/KB0106/")
    page.fill("#kb-q", "zzzqqqxxx")
    page.wait_for_function(
        "document.querySelector('[role=status]').textContent === 'Nothing found for that.'"
    )
    assert page.locator(".kb-results li").count() == 0


def test_search_by_keyboard(reader: Reader) -> None:
    """`/` opens the search on any page, arrows go through its results, Escape closes it."""
    page = reader.open("KB0007/")
    page.keyboard.press("/")
    page.keyboard.insert_text("wy_fast")  # at once: results that are replaced take the focus away
    page.wait_for_selector("dialog .kb-results li a")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.pathname").endswith("/KB0106/")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.tagName") == "INPUT"
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    page.keyboard.press("/")
    page.wait_for_selector("dialog[open] .kb-results li a")
    page.evaluate(  # both before the browser draws: a closed field must not take the second key
        """for (const key of ["Escape", "/"])
          document.activeElement.dispatchEvent(
            new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}))"""
    )
    assert page.locator("dialog").is_visible()
    page.press("dialog input", "Enter")
    page.wait_for_url("**/KB0106/", wait_until="commit")


def test_filters(reader: Reader) -> None:
    """Filters narrow the list, stand in the address, and come back with it."""
    page = reader.open("articles/")
    everything = page.locator(".kb-row:visible").count()
    page.click("button[data-kind=stage][data-value=ptxas]")
    some = page.locator(".kb-row:visible").count()
    assert 0 < some < everything
    page.click("button[data-kind=stage][data-value=nvcc]")
    more = page.locator(".kb-row:visible").count()
    assert some < more < everything
    page.click("button[data-kind=severity][data-value=blocks]")
    assert urlsplit(page.url).query == "stage=ptxas&stage=nvcc&severity=blocks"
    ids = page.locator(".kb-row:visible .kb-row-id").all_text_contents()
    assert page.locator("#kb-count").text_content() == f"{len(ids)} of {everything} shown"
    page = reader.open(f"articles/?{urlsplit(page.url).query}")
    page.wait_for_selector("button[data-value=blocks][aria-pressed=true]")  # the script has run
    assert page.locator(".kb-row:visible .kb-row-id").all_text_contents() == ids
    page.click(".kb-clear")
    assert page.locator(".kb-row:visible").count() == everything


def test_copy(reader: Reader) -> None:
    """The fix, a snippet, the command and the links are copied as they are."""
    reader.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = reader.open("KB0002/")

    def copied(selector: str) -> str:
        page.click(selector)
        return str(page.evaluate("navigator.clipboard.readText()"))

    assert copied("[data-copy=kb-fix-code]") == COMMAND
    assert copied("[data-copy=r1-run]") == "kbtools verify KB0002/r1"
    assert copied("#r1 + .highlight .kb-copy").startswith("from kbtools.repro import triton_aot")
    assert copied("[data-copy=kb-link-markdown]").startswith("[KB0002: ")
    assert copied("[data-copy=kb-link-url]").endswith("/KB0002/")
    page = reader.open("KB0014/")
    assert copied("[data-copy=kb-fix-code]") == "SCALE = tl.constexpr(4)"
    assert "SCALE = 4\n" in page.inner_text("#kb-fix-code"), "which is shown, and not copied"


def test_the_language_switch_keeps_the_page(reader: Reader) -> None:
    """It leads to the other language and back, on an article, its logs, a filter and the board."""
    for path in ("KB0002/", "KB0002/logs/", "by/stage/ptxas/", "status/", "format/", ""):
        page = reader.open(path)
        page.click(".kb-language[hreflang=zh]")
        page.wait_for_selector("html[lang=zh]")
        assert page.url == f"{reader.url}zh/{path}"
        assert page.evaluate("document.documentElement.lang") == "zh"
        page.click(".kb-language[hreflang=en]")
        page.wait_for_selector("html[lang=en]")
        assert page.url == reader.url + path


def test_the_theme_stays(reader: Reader) -> None:
    """The button switches between light and dark, on every page from then on."""
    page = reader.open("KB0002/")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.click(".kb-theme")
    dark = page.evaluate(background)
    assert dark != light
    page = reader.open("status/")
    assert page.evaluate(background) == dark


@pytest.mark.parametrize(
    ("pasted", "answer"),
    [
        (
            "Package    Version\n---------- -------\ntorch      2.3.0\ntriton     2.3.0\n",
            "Affected",
        ),
        ("triton==3.1.0\ntorch==2.5.1+cu124", "Not affected"),
        ("PyTorch version: 2.3.1+cu121\n[pip3] triton==2.3.1\n[pip3] numpy==1.26.4\n", "Affected"),
        ("python               3.11.7\ntriton               3.9.0\n", "Not affected"),
        ("triton 3.0.0.dev20240301", "Unknown"),
        ("numpy==2.0", "Unknown"),
        ("nothing of the kind", ""),
    ],
)
def test_is_this_you(reader: Reader, pasted: str, answer: str) -> None:
    """What `pip list`, `pip freeze`, `collect_env` or `kbtools env` print is answered at once."""
    page = reader.open("KB0002/")
    page.fill("#kb-you-paste", pasted)
    word = page.locator(".kb-answer strong")
    assert (word.text_content() if word.count() else "") == answer


@pytest.mark.parametrize(
    ("also", "answer"),
    [
        ("", "Affected xformers 0.0.35 lies within ==0.0.35."),
        (
            "nvidia-cuda-runtime-cu12 12.8.90",
            "Not affected nvidia-cuda-runtime-cu12 12.8.90 is installed.",
        ),
    ],
)
def test_absent_packages(reader: Reader, also: str, answer: str) -> None:
    """A claim that a package is absent is answered by a version or by the installed package."""
    page = reader.open("KB0092/")
    page.fill("#kb-you-paste", f"xformers 0.0.35\ntorch 2.11.0\n{also}")
    assert page.locator(".kb-answer").text_content() == answer


def test_versions_can_be_typed(reader: Reader) -> None:
    """A version typed into its field answers, too; pasted text is kept for the next article."""
    page = reader.open("KB0002/")
    page.fill("#kb-you-triton", "2.2")
    assert page.locator(".kb-answer strong").text_content() == "Affected"
    page.fill("#kb-you-paste", "torch 2.7.1\ntriton 3.3.1")
    assert page.locator("#kb-you-triton").input_value() == "3.3.1"
    page = reader.open("KB0004/")
    assert page.locator(".kb-answer strong").text_content() == "Affected"


def test_the_probes_on_a_phone(reader: Reader) -> None:
    """Each probe's article stands within a narrow window."""
    page = reader.open("probes/")
    page.set_viewport_size({"width": 390, "height": 844})
    boxes = [link.bounding_box() for link in page.locator(".kb-probes td a").all()[:5]]
    assert all(box["x"] + box["width"] < 390 for box in boxes)


def test_cells_lead_to_their_logs(reader: Reader) -> None:
    """Every cell of the strip and every mark of the table opens the log of its run."""
    page = reader.open("KB0002/")
    links = page.eval_on_selector_all(
        ".kb-cells a, .kb-matrix td a", "links => links.map(link => link.getAttribute('href'))"
    )
    assert len(links) > 20
    page.locator(".kb-cells a").first.click()
    page.wait_for_url("**/KB0002/logs/#*")
    anchors = page.eval_on_selector_all("[id]", "elements => elements.map(element => element.id)")
    assert {link.partition("#")[2] for link in links} <= set(anchors)


def test_without_javascript(chromium: Any, our_site: Served) -> None:
    """A page has the essentials: the fix, where it was seen, the filters as pages, dark colours."""
    for scheme in ("light", "dark"):
        reader = Reader(chromium, our_site, java_script_enabled=False, color_scheme=scheme)
        page = reader.open("KB0002/")
        assert page.locator("#kb-fix-code").text_content() == COMMAND
        assert page.locator(".kb-cell--fails a").count() >= 2
        assert not page.locator(".kb-copy").first.is_visible()
        assert page.locator(".kb-you noscript").count() == 1
        page.click(".kb-chip >> text=triton-mlir")
        assert page.url == f"{reader.url}by/stage/triton-mlir/"
        page.click(".kb-row-link >> nth=0")
        page.click(".kb-nav >> text=Articles")
        everything = page.locator(".kb-row").count()
        originals = [
            f for f in (Path(__file__).parents[1] / "kb").glob("*.md") if f.suffixes == [".md"]
        ]
        assert everything == len(originals)
        page.click(".kb-choice >> nth=0")
        assert "/by/component/" in page.url
        page.click(".kb-language")
        assert "/zh/by/component/" in page.url
        page = reader.open("paste/")
        page.fill("#kb-log", "a log that nobody else is to see")
        assert page.locator(".kb-go").is_disabled(), "nothing could answer, and nothing is sent"
        assert page.locator("#kb-log").get_attribute("name") is None
        reader.context.close()
        assert reader.wrongs == []


def test_transfer(reader: Reader) -> None:
    """An article's page costs less than 100 kB compressed, the first search less than 600 kB."""
    page = reader.open("KB0002/")
    page.wait_for_load_state("networkidle")
    assert 20_000 < reader.weight() < 100_000
    page.click("[data-search-open]")
    page.keyboard.type("operand #1 does not dominate this use")
    page.wait_for_selector("dialog .kb-results li a")
    page.wait_for_load_state("networkidle")
    assert 50_000 < reader.weight() < 600_000


SEVERAL = """NameError: name 's2' is not defined
loc("wy_fast.py":1:2): error: operand #1 does not dominate this use
x.cu(1): error: identifier "entry" is undefined
x.cpp:1:1: error: conflicting declaration ‘float tmp_acc0_arr [2]’
ValueError: arange's range must be a power of 2
"""


def test_three_of_a_line_at_most(reader: Reader) -> None:
    """The search shows at most three articles that know a text; the box shows them all."""
    counts = reader.open("").evaluate(
        """async (text) => {
          const folder = document.querySelector('script[type=module][src]').src;
          const { recognise, matcher } = await import(new URL('matching/recognise.js', folder));
          const all = (await (await matcher()).diagnose(text)).matches;
          const few = await recognise('s2');
          return [(await recognise(text)).length, all.map((match) => match.id), few];
        }""",
        SEVERAL,
    )
    assert counts[0] == 3
    assert len(counts[1]) > 3, counts
    assert counts[2] == []
