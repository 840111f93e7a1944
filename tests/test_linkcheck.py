"""The link check: what it finds on built pages, and what it leaves alone."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from kbtools.site import build
from kbtools.site.linkcheck import Broken, NestingError, check, take_apart


def site(folder: Path, **files: str) -> Path:
    """A site of these files; `__` in a name is a slash, the last `_` a dot."""
    for name, text in files.items():
        path = "/".join(name.split("__"))
        stem, _, suffix = path.rpartition("_")
        file = folder / f"{stem}.{suffix}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return folder


GOOD = {
    "relative file": '<a href="page/index.html">',
    "relative page": '<a href="page/">',
    "anchor of another page": '<a href="page/#deep">',
    "anchor by name": '<a href="page/#named">',
    "anchor of this page": '<b id=x></b><a href="#x">',
    "anchor in percent signs": '<b id="符号"></b><a href="#%E7%AC%A6%E5%8F%B7">',
    "top": '<a href="#top">',
    "query": '<a href="page/?a=b#deep">',
    "another site": '<a href="https://example.org/x">',
    "mail": '<a href="mailto:a@example.org">',
    "text that looks like a link": "&lt;a href=&quot;nowhere/&quot;&gt;",
    "a value that looks like a link": """<a title='see href="nowhere/"' href="page/">""",
    "a greater-than sign in a value": '<a title="a > b" href="page/">',
    "in a comment": '<!-- <a href="nowhere/"> -->',
    "in a script": "<script>x = '<a href=\"nowhere/\">'</script>",
    "picture in the page": '<img src="data:image/gif;base64,R0lG">',
    "set of pictures": '<img srcset="page/index.html 1x, a.css 2x">',
    "up and down": '<a href="page/../page/">',
    "the root": '<a href="./">',
}
BROKEN = {
    "no file": ('<a href="nowhere/">', "there is no such file"),
    "no file in a tag on two lines": ('<a class="x"\n  href="nowhere/">', "there is no such file"),
    "no anchor": ('<a href="page/#gone">', "page/index.html has no anchor `gone`"),
    "no anchor here": ('<a href="#gone">', "index.html has no anchor `gone`"),
    "no slash": ('<a href="page">', "the address of a page must end with `/`"),
    "absolute": ('<a href="/page/">', "not relative: it would break under another base path"),
    "above": ('<a href="../page/">', "outside of the site"),
    "script": ('<a href="javascript:alert(1)">', "an address must not begin with `javascript:`"),
    "script in entities": (
        '<a href="&#106;avascript:alert(1)">',
        "an address must not begin with `javascript:`",
    ),
    "data": ('<a href="data:text/html,x">', "an address must not begin with `data:`"),
    "no picture": ('<img src="no.png">', "there is no such file"),
    "no quotes": ("<img src=no.png>", "there is no such file"),
    "one picture of a set": (
        '<img srcset="page/index.html 1x, no.png 2x">',
        "there is no such file",
    ),
    "a picture of another origin": (
        '<img src="https://example.org/a.png">',
        "loaded from another origin",
    ),
    "no scheme": ('<script src="//example.org/a.js"></script>', "loaded from another origin"),
    "a style sheet of another origin": (
        '<link rel="preload stylesheet" href="https://example.org/a.css">',
        "loaded from another origin",
    ),
    "no target of a form": ('<form action="nowhere/">', "there is no such file"),
}


@pytest.mark.parametrize("html", GOOD.values(), ids=GOOD)
def test_what_leads_somewhere(html: str, tmp_path: Path) -> None:
    """These are no broken links."""
    page = '<h2 id="deep"></h2><a name="named"></a>'
    assert check(site(tmp_path, index_html=html, page__index_html=page, a_css="")) == ()


@pytest.mark.parametrize(("html", "why"), BROKEN.values(), ids=BROKEN)
def test_what_leads_nowhere(html: str, why: str, tmp_path: Path) -> None:
    """These are, and each is reported with its page, its address and why."""
    folder = site(tmp_path, index_html=html, page__index_html='<h2 id="deep">')
    [broken] = check(folder)
    assert (broken.page, broken.why) == ("index.html", why)


def test_style_sheets(tmp_path: Path) -> None:
    """What a style sheet loads is there, and is of this site."""
    css = "a{background:url(no.png)} b{background:url('https://example.org/a.png')} @import 'c.css'"
    assert check(site(tmp_path, a__b_css=css + " c{mask:url(#x)} d{x:url(data:a)}")) == (
        Broken("a/b.css", "c.css", "there is no such file"),
        Broken("a/b.css", "https://example.org/a.png", "loaded from another origin"),
        Broken("a/b.css", "no.png", "there is no such file"),
    )


def test_the_404_page(tmp_path: Path) -> None:
    """Only it may have absolute links, and they are below the path of the site."""
    html = '<a href="/kb/page/"><a href="/page/"><a href="/kb/gone/"><a href="/kb/">'
    folder = site(tmp_path, **{"404_html": html, "page__index_html": "", "index_html": ""})
    reasons = {broken.address: broken.why for broken in check(folder, "https://example.org/kb/")}
    assert reasons == {
        "/page/": "outside of the site, whose path is /kb/",
        "/kb/gone/": "there is no such file",
    }


def test_the_address_of_the_site_itself(tmp_path: Path) -> None:
    """Whole addresses of this site lead somewhere, too."""
    html = (
        '<link rel="canonical" href="https://example.org/kb/page/">'
        '<a href="https://example.org/kb/gone/"><a href="https://example.org/kbx/">'
    )
    folder = site(tmp_path, index_html=html, page__index_html="")
    [broken] = check(folder, "https://example.org/kb")
    assert broken == Broken("index.html", "https://example.org/kb/gone/", "there is no such file")


@pytest.mark.parametrize(
    "unit",
    ['"', "<", "<!--", "<a b='", "<a href=x>", "&amp;", "<p>x</p>", "<script>"],
)
def test_hostile_pages_are_read_in_linear_time(unit: str) -> None:
    """Of a text that is repeated, four times as much takes at most some eight times as long."""

    def seconds(length: int) -> float:
        html = (unit * (length // len(unit))).encode()
        times = []
        for _ in range(3):
            began = time.process_time()
            with suppress(NestingError):
                take_apart(html)
            times.append(time.process_time() - began)
        return min(times)

    assert seconds(2_000_000) < max(8 * seconds(500_000), 0.2)


@pytest.mark.parametrize("tags", ["<div>", "<blockquote><p>", "<UL><LI>"])
def test_nesting(tags: str, tmp_path: Path) -> None:
    """A page of elements nested a hundred thousand deep is reported and not read."""
    folder = site(tmp_path, index_html=tags * 100_000, deep_html=tags * 500 + '<a href="gone/">')
    assert check(folder) == (
        Broken("deep.html", "gone/", "there is no such file"),
        Broken("index.html", "", "elements are nested more than 5000 deep"),
    )


def test_many_elements_are_not_deep(tmp_path: Path) -> None:
    """A table of a hundred thousand cells is read, pictures and line breaks nest nothing."""
    html = "<table>" + "<tr><td><br>1<img src=x.png></td></tr>" * 100_000 + "</table>"
    assert check(site(tmp_path, index_html=html, x_png="")) == ()


def test_two_pages_with_one_address() -> None:
    """Neither is overwritten in silence: both are named, with their titles."""
    pages = [("a.md", b"# One\n"), ("b.md", b"# B\n"), ("a/index.md", b"---\ntitle: Two\n---\n")]
    with pytest.raises(build.SiteBuildError, match=r"/a/: a\.md \(“One”\) and a/index"):
        build.by_address(pages)
    with pytest.raises(build.SiteBuildError, match=r"b\.md \(“B”\) and b\.md \(“C”\)"):
        build.by_address([*pages[:2], ("b.md", b"# C\n")])
    assert list(build.by_address(pages[:2])) == ["a.md", "b.md"]
