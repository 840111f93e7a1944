"""Pages of notices, of packages and of releases; the feed; what the radar proposes."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest
from ledgers import add_article, invoke, ledger, model_of, open_window
from packaging.version import Version

from kbtools.articles.receipt_grammar import url
from kbtools.checks.base import load_base
from kbtools.cli import radar as radar_command
from kbtools.config import Config
from kbtools.integrations import github
from kbtools.site import windows
from kbtools.site.data import feeds, notices
from kbtools.site.model import cells_of
from kbtools.site.pages.article import article_page
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.notice import notice_page
from kbtools.site.pages.releases import release_pages
from kbtools.site.windows import packages
from kbtools.toolchains import pip_settings, radar
from kbtools.toolchains.pip_settings import PipSettings


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A base of one notice, which has a signature."""
    return ledger(tmp_path)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_page(config: Config, language: str) -> None:
    """A page has the day, each bound and remedy with its receipts, in the words of its language."""
    model = model_of(config)
    _, content = notice_page(Frame(model, language, "KBN0001/"), model.notices[0])
    page = content.decode()
    assert {"en": "Reported, not run here. Looked up on 2026-01-31", "zh": "未在此运行"}[
        language
    ] in page
    assert {"en": "Upgrade to triton 3.6.0.", "zh": "升级到 triton 3.6.0。"}[language] in page
    for receipt in ("owner/repo#12", "owner/repo#13", "owner/repo@v3.6.0 python/core.py:120"):
        assert url(receipt) in page
    assert "kb-state--reported" in page
    assert "kb-state--measured" not in page


def test_package_page(config: Config) -> None:
    """A package's page groups articles and notices by the release in which they end."""
    add_article(config)
    model = model_of(config)
    [package] = packages(model)
    assert package.name == "project"
    assert [(w.view.id, str(w.end)) for w in package.windows] == [
        ("KBN0001", "3.6"),
        ("KB0001", "3.0"),
    ]
    pages = dict(release_pages(model, "zh"))
    assert "首个没有此故障的版本" in pages["zh/known/project.md"].decode()
    page = dict(release_pages(model, "en"))["known/project.md"].decode()
    assert page.index("Ends in 3.6") < page.index("KBN0001") < page.index("Ends in 3.0")
    assert "1 article, executed here, and 1 notice, reported." in page


def test_release_page(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release with enough failures has a page, with those that it has and no other."""
    monkeypatch.setattr(windows, "FEW", 1)
    add_article(config)
    pages = dict(release_pages(model_of(config), "en"))
    assert "known/project/3.4.md" in pages
    page = pages["known/project/3.4.md"].decode()
    assert "KBN0001" in page
    assert "KB0001" not in page
    assert "known/project/3.6.md" not in pages


def test_no_end(config: Config) -> None:
    """A window without an end stands first; the notice's page says on which day none was known."""
    open_window(config)
    add_article(config)
    model = model_of(config)
    assert [w.view.id for w in packages(model)[0].windows] == ["KBN0001", "KB0001"]
    _, page = notice_page(Frame(model, "en", "KBN0001/"), model.notices[0])
    assert "On 2026-01-31 no release without this failure was known." in page.decode()


def test_feed_and_api(config: Config) -> None:
    """The feed of notices and notices.json say that nothing was run."""
    add_article(config)
    model = model_of(config)
    feed = feeds.notices(model, "en").decode()
    assert "KBN0001 · reported, not run here" in feed
    assert "KB0001 ·" not in feed
    [document] = notices.notices(model).notices
    assert document.standing == "reported"
    assert set(document.words) == {"en", "zh"}


def test_article_and_notice_lead_to_each_other(config: Config) -> None:
    """A notice that names its article links to it, and the article's page lists the notice."""
    add_article(config)
    file = config.notices / "KBN0001-wrong-gradients.md"
    file.write_text(file.read_text("utf-8").replace("basis:", "article: KB0001\nbasis:"), "utf-8")
    model = model_of(config)
    _, page = notice_page(Frame(model, "en", "KBN0001/"), model.notices[0])
    assert "../KB0001/" in page.decode()
    cells = cells_of(model.views[0], model.toolchains)
    _, page = article_page(Frame(model, "en", "KB0001/"), model.views[0], cells)
    assert "../KBN0001/" in page.decode()


DAYS = {
    Version("3.5.0"): datetime.date(2026, 1, 1),
    Version("3.6.0"): datetime.date(2026, 3, 1),
    Version("3.7.0"): None,
}


def test_radar(config: Config) -> None:
    """A notice without an end is proposed once releases came after the day of its look-up."""
    [closed] = load_base(config).notices
    assert list(radar.proposals([closed], lambda _: DAYS, lambda _: "merged")) == []
    open_window(config)
    [notice] = load_base(config).notices
    [proposal] = radar.proposals([notice], lambda _: DAYS, lambda _: "merged")
    assert (proposal.notice, proposal.package) == ("KBN0001", "triton")
    assert proposal.releases == ("3.6.0", "3.7.0")
    assert list(radar.proposals([notice], lambda _: DAYS, lambda _: "open")) == []
    assert list(radar.proposals([notice], lambda _: {}, lambda _: "merged")) == []


def test_radar_command(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command asks the index that pip uses, here a folder, and ends with 1 for a proposal."""
    project = tmp_path / "index" / "triton"
    project.mkdir(parents=True)
    links = '<a href="triton-3.7.0-py3-none-any.whl">a</a><a href="triton-3.3.0.tar.gz">b</a>'
    (project / "index.html").write_text(links, "utf-8")
    settings = PipSettings(project.parent.as_uri())
    monkeypatch.setattr(pip_settings, "read_pip_settings", lambda: settings)
    result = invoke(config, "radar")
    assert (result.exit_code, "no notice without an end" in result.output) == (0, True)
    open_window(config)
    result = invoke(config, "radar")
    assert result.exit_code == 1
    assert "triton has 3.7.0 since 2026-01-31; no end is known" in result.output
    assert "read owner/repo#13" in result.output


@pytest.mark.parametrize(
    ("issue", "state"),
    [
        ({"state": "closed", "pull_request": {"merged_at": "2026-01-01T00:00:00Z"}}, "merged"),
        ({"state": "closed", "pull_request": {"merged_at": None}}, "closed"),
        ({"state": "open"}, "open"),
    ],
)
def test_thread_state(monkeypatch: pytest.MonkeyPatch, issue: object, state: str) -> None:
    """What became of a thread is read off GitHub's answer; a commit is no thread."""
    content = json.dumps(issue).encode()
    answer = github.Response(200, {}, content)
    monkeypatch.setattr(github.GitHub, "request", lambda *_: answer)
    assert radar_command.thread_state("owner/repo#12") == state
    assert radar_command.thread_state("owner/repo@1a2b3c4") == "unknown"
