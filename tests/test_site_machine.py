"""What the site has for programs: each document is what its schema or its format says."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import feedparser
import jinja2
import jsonschema
import pytest
from bases import Base, fence

from kbtools import config
from kbtools.articles import links
from kbtools.checks.base import load_base
from kbtools.site import data as machine
from kbtools.site import theming
from kbtools.site.data import badges, osv, structured, texts
from kbtools.site.model import SiteModel, build_model

HOSTILE = "</script><script>alert(1)</script>]]>& \"x\" 'y' | [a](javascript:b) \u2028 `c` {{ d }}"
FAILS = fence("python repro id=r1", 'raise RuntimeError("the failure")')
PASSES = fence("python fix id=f1", "assert True")


@pytest.fixture(scope="module")
def recorded(new_base: Callable[..., Base]) -> Base:
    """Five articles, some of which were run: one true, one false, one hostile, one retired."""
    base = new_base()
    base.article(
        FAILS, PASSES, number=1, matter='upstream: [{report: a/b#1}, {fix: "c/d@1a2b3c4"}]'
    )
    base.article(fence("python repro id=r1", "assert True"), number=2)
    hostile = base.article(FAILS, number=3)
    text = hostile.read_text("utf-8").replace('"article 3"', json.dumps(HOSTILE))
    hostile.write_text(text.replace('"Do it right."', json.dumps(HOSTILE)), "utf-8")
    base.article(FAILS, number=4)
    base.article(FAILS, number=5, matter='affected: [{python: ">=3.9"}]')
    assert base.verify("--record").code == 1
    retired = 'retired: {since: 2020-01-01, reason: "gone"}'
    base.article(FAILS, number=4, matter=retired)
    base.article(FAILS, number=6)  # never run
    return base


def model_of(base: Base, url: str = "", languages: str = "") -> SiteModel:
    """The model of a base, as if its site had that address and those languages."""
    settings = config.find(base.root)
    knowledge_base = settings.knowledge_base
    text = (base.root / "kbtools.toml").read_text("utf-8")
    words = f'prefix = "KB"\nurl = "{url}"\n' + (f"languages = {languages}\n" if languages else "")
    settings = config.decode(text.replace('prefix = "KB"\n', words), base.root)
    assert knowledge_base.prefix == settings.knowledge_base.prefix
    return build_model(load_base(settings))


def documents(model: SiteModel) -> dict[str, Any]:
    """Every JSON document, decoded."""
    files = machine.files(model)
    return {name: json.loads(content) for name, content in files if name.endswith(".json")}


@pytest.mark.parametrize("url", ["", "https://example.org/kb/"])
def test_every_document_is_what_its_schema_says(recorded: Base, url: str) -> None:
    """Every document of the API keeps the schema that is published beside it."""
    published = documents(model_of(recorded, url))
    schemas = {Path(name).stem: schema for name, schema in published.items() if "/schemas/" in name}
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    checked = set()
    for name, document in published.items():
        if not name.startswith("api/v1/") or "/schemas/" in name or "/osv/" in name:
            continue
        stem = Path(name).stem
        kind = stem if stem in schemas else "article"
        jsonschema.validate(document, schemas[kind])
        checked.add(kind)
    assert checked == set(schemas)


def test_what_the_documents_say(recorded: Base) -> None:
    """State, verdicts and dates are those of the evidence, and addresses those of the site."""
    published = documents(model_of(recorded))
    states = {entry["id"]: entry["state"] for entry in published["api/v1/index.json"]["articles"]}
    assert states == {
        "KB0001": "reproduced",
        "KB0002": "contradicted",
        "KB0003": "reproduced",
        "KB0004": "retired",
        "KB0005": "reproduced",
        "KB0006": "not run",
    }
    first = published["api/v1/KB0001.json"]
    [run] = first["snippets"][0]["runs"]
    [row] = [row for row in recorded.rows() if row["snippet"] == "r1"]
    assert run["verdict"] == "reproduced"
    assert run["when"] == row["when"]
    assert run["log"].startswith("KB0001/logs/#r1-")
    assert run["toolchain"] in {
        toolchain["id"] for toolchain in published["api/v1/toolchains.json"]["toolchains"]
    }
    assert published["api/v1/KB0006.json"]["snippets"][0]["runs"] == []
    threads = {
        entry["reference"]: entry["articles"]
        for entry in published["api/v1/issues.json"]["threads"]
    }
    assert threads["a/b#1"] == ["KB0001"]
    changes = {
        entry["article"]: entry["after"] for entry in published["api/v1/changes.json"]["changes"]
    }
    assert changes == {k: v for k, v in states.items() if v != "not run"}


OSV_RANGES = {
    ">=2.2,<3.0": [{"introduced": "2.2"}, {"fixed": "3.0"}],
    ">=2.4": [{"introduced": "2.4"}],
    "<3.5": [{"introduced": "0"}, {"fixed": "3.5"}],
    "<=3.5": [{"introduced": "0"}, {"last_affected": "3.5"}],
    "==2.5.1": [{"introduced": "2.5.1"}, {"last_affected": "2.5.1"}],
    "==2.5.*": [{"introduced": "2.5"}, {"fixed": "2.6"}],
    "~=2.5.1": [{"introduced": "2.5.1"}, {"fixed": "2.6"}],
    ">=2,<=2.9,<2.5": [{"introduced": "2"}, {"fixed": "2.5"}],
    ">2.2": [],
    ">=2.2,!=2.4": [],
    ">=3,<2": [],
}


@pytest.mark.parametrize(("claim", "events"), OSV_RANGES.items(), ids=OSV_RANGES)
def test_a_range_in_osv(claim: str, events: list[dict[str, str]]) -> None:
    """A range is said in events only where they mean the same."""
    assert list(osv.range_events(claim)) == events


def osv_schema() -> Any:
    """OSV's own schema, from the package `osv` (installed without what it depends on).

    The newest one there is older than format 1.7, which lets ids of other databases begin with x_.
    """
    try:
        files = importlib.metadata.files("osv") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package osv is not installed: pip install --no-deps osv==0.0.22")
    [file] = [file for file in files if str(file) == "osv/osv-schema/validation/schema.json"]
    schema = json.loads(file.read_text("utf-8"))
    prefix = schema["$defs"]["prefix"]
    prefix["pattern"] = prefix["pattern"].replace("^(", "^(x_|(").replace(")-", ")-)")
    return schema


def test_osv(base: Base) -> None:
    """A record keeps OSV's own schema; what a package's range alone does not say is left out."""
    name = "msgspec"
    claims = {
        1: f'[{{{name}: ">=0.1"}}, {{{name}: ">=0.1,<9"}}]',
        2: f'[{{{name}: ">=0.1", python: ">=3.9"}}]',
        3: '[{python: ">=3.9"}]',
        5: f'[{{{name}: ">=0.1"}}]',
    }
    (base.root / "kbtools.toml").write_text(
        (base.root / "kbtools.toml").read_text("utf-8") + f'\n[toolchain]\npackages = ["{name}"]\n'
    )
    upstream = "upstream: [{report: a/b#1}, {fix: a/b#2}, {fix: a/b#3, basis: inferred}]"
    for number, claim in claims.items():
        base.article(FAILS, number=number, matter=f"affected: {claim}\n{upstream}")
    base.article(FAILS, number=4, matter=f"affected: {claims[1]}")
    assert base.verify("KB0001", "KB0002", "KB0003", "KB0005", "--record").code == 0
    for url in ("", "https://example.org/kb"):
        published = documents(model_of(base, url))
        records = {name: document for name, document in published.items() if "/osv/" in name}
        # KB0002 asks for a Python, too; KB0003 for no package; KB0004 was not run; of KB0005 no
        # version is known on which it does not fail
        assert set(records) == {"api/v1/osv/KB0001.json"}
        [record] = records.values()
        validator = jsonschema.Draft202012Validator(
            osv_schema(), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
        )
        validator.validate(record)
        assert record["id"] == "x_KB0001"
        [affected] = record["affected"]
        assert affected["package"] == {"name": name, "ecosystem": "PyPI"}
        assert len(affected["ranges"]) == 2
        kinds = [(link["type"], link["url"][-1]) for link in record["references"]]
        page = [("ARTICLE", "/")] if url else []
        assert kinds == [*page, ("REPORT", "1"), ("FIX", "2"), ("WEB", "3")]
    index = documents(model_of(base))["api/v1/index.json"]["articles"]
    assert [entry["osv"] for entry in index] == ["api/v1/osv/KB0001.json", *4 * [None]]


def test_osv_of_this_knowledge_base() -> None:
    """All records keep the whole schema, and each range excludes a version: no usage error does."""
    model = build_model(load_base(config.find(Path(__file__).parent)))
    validator = jsonschema.Draft202012Validator(
        osv_schema(), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    records = [document for name, document in documents(model).items() if "/osv/" in name]
    assert records
    for record in records:
        validator.validate(record)
        view = model.by_id[record["id"].removeprefix("x_")]
        ends = any(
            {"fixed", "last_affected"} & event.keys()
            for affected in record["affected"]
            for range_ in affected["ranges"]
            for event in range_["events"]
        )
        seen = {observation.verdict.name for observation in view.observations}
        assert ends or "resolved" in seen, record["id"]


@pytest.mark.parametrize("url", ["", "https://example.org/kb/"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_feed_reader_accepts_the_feed(recorded: Base, url: str, language: str) -> None:
    """The feed is Atom: unique ids, dates, links; and it says what evidence says, no more."""
    model = model_of(recorded, url, '["en", "zh"]')
    files = dict(machine.files(model))
    content = files["feed.xml" if language == "en" else f"{language}/feed.xml"]
    read = feedparser.parse(content)
    assert not read.bozo, read.get("bozo_exception")
    assert read.version == "atom10"
    assert read.feed.id.startswith("urn:uuid:")
    assert read.feed.language == language
    newest = max(datetime.datetime.fromisoformat(row["when"]) for row in recorded.rows())
    assert read.feed.updated_parsed is not None
    ids = [entry.id for entry in read.entries]
    assert len(set(ids)) == len(ids) == 5
    by_article = {re.findall(r"KB\d{4}", entry.link)[-1]: entry for entry in read.entries}
    first = by_article["KB0001"]
    assert first.tags[0].term == "reproduced"
    assert first.updated <= f"{newest:%Y-%m-%dT%H:%M:%SZ}"
    start = url or ("../" if language == "zh" else "")
    prefix = "zh/" if language == "zh" else ""
    assert first.link == f"{start}{prefix}KB0001/"
    assert "r1: reproduced" in first.content[0].value
    hostile = by_article["KB0003"]
    assert hostile.title_detail.type == hostile.content[0].type == "text/plain"
    assert hostile.title.endswith(HOSTILE.replace("\u2028", "\ufffd"))
    assert set(by_article) == {f"KB000{n}" for n in range(1, 6)}  # KB0006 was not run


def test_the_feed_keeps_rfc_4287(recorded: Base) -> None:
    """Every element that RFC 4287 demands is there once; every date is one of RFC 3339."""
    root = ElementTree.fromstring(dict(machine.files(model_of(recorded)))["feed.xml"])
    space = "{http://www.w3.org/2005/Atom}"
    assert root.tag == f"{space}feed"
    for element in (root, *root.findall(f"{space}entry")):
        for name in ("id", "title", "updated"):
            assert len(element.findall(space + name)) == 1, name
        date = element.findtext(f"{space}updated") or ""
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", date)
    assert root.findtext(f"{space}author/{space}name") == "a test"
    relations = [element.get("rel") for element in root.findall(f"{space}link")]
    assert relations == ["self", "alternate"]


def test_no_news(base: Base) -> None:
    """A knowledge base of which nothing was run has a feed that is valid and empty."""
    base.article(FAILS)
    read = feedparser.parse(dict(machine.files(model_of(base)))["feed.xml"])
    assert not read.bozo
    assert read.entries == []


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True)))


@pytest.mark.parametrize("colour", sorted({badges.LEFT, *badges.RIGHT.values()}))
def test_a_badge_can_be_read(colour: str) -> None:
    """White text on any colour of a badge has a contrast of at least 4.5."""
    assert 1.05 / (luminance(colour) + 0.05) >= 4.5


def test_badges(recorded: Base) -> None:
    """Each is an SVG with a title and nothing active, and JSON as shields.io reads it."""
    model = model_of(recorded)
    files = dict(machine.files(model))
    for view in model.views:
        picture = ElementTree.fromstring(files[f"badges/{view.id}.svg"])
        space = "{http://www.w3.org/2000/svg}"
        assert picture.get("role") == "img"
        title = picture.findtext(f"{space}title") or ""
        assert title == picture.get("aria-label")
        assert title.startswith(f"{view.id}: ")
        assert {element.tag.removeprefix(space) for element in picture.iter()} <= {
            *("svg", "title", "clipPath", "rect", "g", "text")
        }
        shield = json.loads(files[f"badges/{view.id}.json"])
        assert shield["schemaVersion"] == 1
        assert set(shield) == {"schemaVersion", "label", "message", "color"}
        link = links.badge(view.article.matter, "https://example.org")
        assert f"/badges/{view.id}.svg" in link


def test_plain_texts(recorded: Base) -> None:
    """Every article is there as Markdown with its snippets and evidence; llms.txt lists them."""
    files = {name: text.decode() for name, text in machine.files(model_of(recorded))}
    first = files["KB0001.md"]
    assert first.startswith("# KB0001: article 1\n")
    assert 'raise RuntimeError("the failure")' in first
    assert re.search(r"\| r1 \(repro\) \| reproduced \| .* \| \d{4}-\d\d-\d\d \|", first)
    assert "https://github.com/a/b/issues/1" in first
    assert "| not run |" in files["KB0006.md"]
    overview = files["llms.txt"]
    assert overview.startswith("# a test\n\n> ")
    listed = re.findall(r"^- \[.*?(?<!\\)\]\(([^()]+)\)", overview, re.MULTILINE)
    assert all(name in files for name in listed)
    assert [name for name in listed if name.startswith("KB")] == [
        f"KB000{n}.md" for n in range(1, 7)
    ]


def test_sitemap_and_robots(recorded: Base) -> None:
    """The sitemap has every page by its whole address, with the day of the newest evidence."""
    model = model_of(recorded, "https://example.org/kb", '["en", "zh"]')
    pages = ["index.md", "KB0001.md", "zh/index.md", "zh/KB0001.md", "KB0001/logs.md", "KB0006.md"]
    files = dict(machine.files(model, pages))
    assert b"Sitemap: https://example.org/kb/sitemap.xml" in files["robots.txt"]
    root = ElementTree.fromstring(files["sitemap.xml"])
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    addresses = {entry.findtext(f"{space}loc"): entry.findtext(f"{space}lastmod") for entry in root}
    [day] = {row["when"][:10] for row in recorded.rows()}
    assert addresses == {
        "https://example.org/kb/": None,
        "https://example.org/kb/KB0001/": day,
        "https://example.org/kb/KB0001/logs/": day,
        "https://example.org/kb/KB0006/": None,
        "https://example.org/kb/zh/": None,
        "https://example.org/kb/zh/KB0001/": day,
    }
    without = dict(machine.files(model_of(recorded), pages))
    assert "sitemap.xml" not in without
    assert b"Sitemap" not in without["robots.txt"]


def test_more_pages_than_a_sitemap_may_hold(
    recorded: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then there are several, and one that lists them."""
    monkeypatch.setattr(texts, "SITEMAP_LIMIT", 2)
    model = model_of(recorded, "https://example.org/kb/")
    files = dict(texts.sitemaps(model, ["a.md", "b.md", "c.md"]))
    assert set(files) == {"sitemap.xml", "sitemap-1.xml", "sitemap-2.xml", "robots.txt"}
    assert b"<loc>https://example.org/kb/sitemap-2.xml</loc>" in files["sitemap.xml"]


@pytest.mark.parametrize("url", ["", "https://example.org/kb/"])
def test_the_head_of_a_page(recorded: Base, url: str) -> None:
    """OpenGraph and JSON-LD say what the page says; nothing in them can end its element."""
    model = model_of(recorded, url)
    for view in model.views:
        head = structured.head(model, view, "en")
        assert "\n" not in head
        match = re.findall(r'<script type="application/ld\+json">(.*?)</script>', head)
        assert len(match) == 1
        assert head.count("<script") == 1
        data = json.loads(match[0])
        assert data["@type"] == "TechArticle"
        assert data["identifier"] == view.id
        assert data["description"]
        assert ("url" in data) == bool(url)
        assert ("dateModified" in data) == (view.newest is not None)
        assert f'<meta property="og:title" content="{view.id}: ' in head
        assert ('property="og:url"' in head) == bool(url)


def test_where_a_feed_reader_looks_for_the_feed(recorded: Base) -> None:
    """Each page names the feed of its language once; a page without a language the first one."""
    model = model_of(recorded, languages='["en", "zh"]')
    environment = jinja2.Environment(autoescape=True)
    environment.filters["url"] = "../{}".format
    template = environment.from_string(theming.feed_links(model))
    addresses = {"en": "../feed.xml", "zh": "../zh/feed.xml", "": "../feed.xml"}
    for language, address in addresses.items():
        html = template.render(page={"meta": {"kb_language": language} if language else {}})
        assert re.findall(r'<link rel="alternate" type="application/atom\+xml".*?>', html) == [html]
        assert f'href="{address}"' in html
        assert 'title="a test: ' in html
