"""Notices: known from threads, not run here; no door shows one as anything else."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from examples import lay_out, record_failure
from packaging.version import Version

from kbtools.articles.notice_text import notice_markdown
from kbtools.articles.notices import receipt_url
from kbtools.checks.base import load_base
from kbtools.cli import main
from kbtools.cli import radar as radar_command
from kbtools.config import Config, find
from kbtools.integrations import github
from kbtools.matching import Index, Matcher, of_base
from kbtools.matching.known import QuestionError, known_failures, parse_packages, sm_of
from kbtools.site import windows
from kbtools.site.data import badges, feeds, notices, texts
from kbtools.site.data.api import index as api_index
from kbtools.site.model import SiteModel, build_model, cells_of
from kbtools.site.pages.article import article_page
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.notice import notice_page
from kbtools.site.pages.releases import release_pages
from kbtools.site.windows import packages
from kbtools.toolchains import pip_settings, radar
from kbtools.toolchains.pip_settings import PipSettings

SIGNATURE = """signatures:
  - literal: "gradients are wrong here"
"""
ARTICLE = """---
id: KB0001
title: "error: gradients are wrong here"
summary: "Upgrade."
components: [triton]
stage: runtime
severity: crash
affected:
  - {triton: "<3.0"}
signatures:
  - literal: "gradients are wrong here"
    near: 'never there'
---

## Symptom

```python repro id=r1
raise SystemExit("gradients are wrong here")
```

## Fix

```python fix id=f1
pass
```
"""
REPRO = """
```python repro id=r1
raise SystemExit("gradients are wrong here")
```
"""
LOG = "triton==3.5.0\nRuntimeError: gradients are wrong here\n"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A base of one notice, which has a signature."""
    settings = lay_out("sound-notice", tmp_path)
    file = settings.notices / "KBN0001-wrong-gradients.md"
    file.write_text(file.read_text("utf-8").replace("basis:", f"{SIGNATURE}basis:"), "utf-8")
    toml = tmp_path / "kbtools.toml"
    more = (
        '\n[toolchain.gpus]\nH100 = "9.0"\n[toolchain.families]\nproject = ["triton", "tritium"]\n'
    )
    toml.write_text(toml.read_text("utf-8") + more, "utf-8")
    return find(tmp_path)


def add_article(config: Config) -> None:
    """Adds an article with the same signature."""
    (config.articles / "KB0001-wrong.md").write_text(ARTICLE, "utf-8")


def model_of(config: Config) -> SiteModel:
    """The site's model of a base."""
    return build_model(load_base(config))


def invoke(config: Config, *arguments: str, stdin: str = "") -> Result:
    """Runs a command in the base."""
    return CliRunner().invoke(main, ["-C", str(config.root), *arguments], input=stdin)


@pytest.mark.parametrize(
    ("version", "affected", "words"),
    [
        ("3.5.0", "affected", "inside the reported window"),
        ("3.6.0", "not affected", "not affected by what was reported"),
        ("", "unknown", "unknown"),
    ],
)
def test_diagnose_is_never_sure(config: Config, version: str, affected: str, words: str) -> None:
    """Text alone, and versions inside the window, do not make a notice sure; both are said."""
    log = LOG.replace("triton==3.5.0", f"triton=={version}" if version else "")
    [match] = Matcher(of_base(config)).diagnose(log).matches
    assert (match.standing, match.looked_up, match.confident) == ("reported", "2026-01-31", False)
    assert match.affected == affected
    assert "reported, and was not run here (looked up on 2026-01-31)" in match.hints[0]
    printed = invoke(config, "diagnose", stdin=log)
    assert "reported, not run here; looked up on 2026-01-31" in printed.output
    assert f"your versions {words}" in printed.output
    assert "what helps" not in printed.output
    answer = json.loads(invoke(config, "diagnose", "--json", stdin=log).output)
    assert answer["matches"][0]["standing"] == "reported"


def test_outside_the_hardware(config: Config) -> None:
    """A GPU on which it is not reported rules a notice out, whatever the versions are."""
    index = of_base(config)
    assert not known_failures(index, {"triton": "3.5.0"}, "8.0").failures
    assert known_failures(index, {"triton": "3.5.0"}, "NVIDIA H100 80GB HBM3").failures


def test_article_comes_first(config: Config) -> None:
    """Of the same line, an article ranks above a notice, though its `near` is not in the log."""
    add_article(config)
    matches = Matcher(of_base(config)).diagnose("RuntimeError: gradients are wrong here").matches
    assert [match.id for match in matches] == ["KB0001", "KBN0001"]


def test_browser_agrees(config: Config) -> None:
    """The site's box gives the same answer, field by field."""
    pytest.importorskip("py_mini_racer", reason="mini-racer is not installed")
    from v8 import Browser

    add_article(config)
    index = of_base(config)
    for log in (LOG, LOG.replace("3.5.0", "3.6.0"), "RuntimeError: gradients are wrong here"):
        ours = json.loads(msgspec.json.encode(Matcher(index).diagnose(log)))
        assert Browser(index).diagnose(log) == ours
        assert any(match["standing"] == "reported" for match in ours["matches"])


def test_reply_says_so(config: Config) -> None:
    """A reply to an issue does not say that a notice was executed."""
    for reply in (
        invoke(config, "diagnose", "--reply", stdin=LOG).stdout,
        invoke(config, "link", "KBN0001", "--format", "reply").stdout,
    ):
        assert "This is reported, and was not run here (looked up on 2026-01-31)." in reply
        assert "What helps, as reported" in reply
        assert "executed" not in reply


def test_explain_and_search(config: Config) -> None:
    """`explain` begins with what a notice is worth; `search` says it, too; `kbn1` is an id."""
    text = invoke(config, "explain", "kbn1").output
    assert text.index("Reported, not run here; looked up on 2026-01-31") < text.index("Upgrade")
    assert "[owner/repo#13, owner/repo@v3.6.0 python/core.py:120]" in text
    assert (
        "reported, not run here; looked up on 2026-01-31"
        in invoke(config, "search", "gradients").output
    )


def test_no_article(config: Config) -> None:
    """No list, board or count of articles has a notice; its badge is grey."""
    add_article(config)
    model = model_of(config)
    assert [view.id for view in model.views] == ["KB0001"]
    assert [name for name, _ in model.board.rows] == ["KB0001"]
    assert [entry.id for entry in api_index(model).articles] == ["KB0001"]
    assert "KBN" not in invoke(config, "list").output
    assert "KBN" not in invoke(config, "matrix").output
    badge = dict(badges.files(model))["badges/KBN0001.svg"].decode()
    assert "reported, not run here" in badge
    assert badges.RIGHT["reported"] == badges.RIGHT["not run"]
    assert "## Reported, not run here" in texts.overview(model)


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
        assert receipt_url(receipt) in page
    assert "kb-state--reported" in page
    assert "kb-state--measured" not in page


def test_measured(config: Config) -> None:
    """Rows of its own snippet make a notice measured; nobody can write that."""
    file = config.notices / "KBN0001-wrong-gradients.md"
    file.write_text(file.read_text("utf-8") + REPRO, "utf-8")
    assert model_of(config).notices[0].view.state.word == "reported"
    record_failure(config, "KBN0001", "r1", "gradients are wrong here")
    # it ran with 2.3.0, which is outside the window
    assert model_of(config).notices[0].view.state.word == "contradicted"
    file.write_text(file.read_text("utf-8").replace(">=3.4", ">=2.2"), "utf-8")
    assert model_of(config).notices[0].view.state.word == "measured"
    assert of_base(config).notices[0].entry.standing == "measured"


def test_known(config: Config) -> None:
    """Versions inside the window are told, with receipts; a name of the project finds it, too."""
    index = of_base(config)
    [failure] = known_failures(index, {"Triton": "3.5.0"}, "sm_90a").failures
    assert (failure.answer, failure.standing, failure.window) == (
        "affected",
        "reported",
        "triton >=3.4,<3.6",
    )
    assert failure.receipts[0] == "owner/repo#13"
    assert (
        known_failures(index, {"project": "3.5.0"}).failures
        == known_failures(index, {"triton": "3.5.0"}).failures
    )
    assert not known_failures(index, {"triton": "3.6.0"}).failures
    assert known_failures(index, {"triton": "3.6.0", "other": "1"}).not_mentioned == ("other",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("triton",), "is not NAME==VERSION"),
        (("triton==new",), "is not a version"),
        (("triton==3.5", "--gpu", "Voodoo"), "unknown GPU `Voodoo`"),
    ],
)
def test_known_refuses(config: Config, arguments: tuple[str, ...], words: str) -> None:
    """A question that cannot be understood ends with 2 and says how to ask."""
    result = invoke(config, "known", *arguments)
    assert result.exit_code == 2
    assert words in result.output


def test_known_command(config: Config) -> None:
    """The command ends with 0 where something is known, with 3 where nothing is."""
    result = invoke(config, "known", "triton==3.5.0", "--gpu", "H100")
    assert result.exit_code == 0
    assert "reported, not run here; looked up on 2026-01-31" in result.output
    assert json.loads(invoke(config, "known", "triton==3.5.0", "--json").output)["failures"]
    assert invoke(config, "known", "triton==3.6.0").exit_code == 3


def test_mcp_is_limited(config: Config) -> None:
    """An assistant gets at most twelve failures, each with its standing, and how many were cut."""
    pytest.importorskip("mcp", reason="mcp is not installed")
    from kbtools.integrations import mcp_server
    from kbtools.matching.known import Known

    index = of_base(config)
    answer = known_failures(index, {"triton": "3.5.0"})
    many = Known(answer.packages, "", answer.failures * 20, ())
    short = mcp_server._known_answer(many, index)
    assert (len(short.failures), short.more) == (12, 8)
    assert short.failures[0]["standing"] == "reported"
    assert short.failures[0]["receipts"]


def test_markdown_of_all(config: Config) -> None:
    """The document of a notice has every receipt that its front matter has."""
    [notice] = load_base(config).notices
    text = notice_markdown(notice, config)
    matter = notice.matter
    receipts = [bound.receipt for bound in matter.bounds]
    receipts += [remedy.receipt for remedy in matter.remedies]
    receipts += [dead.receipt for dead in matter.no_help]
    assert all(receipt in text for receipt in receipts)


def test_sm_of(config: Config) -> None:
    """A GPU is given by capability or by name; the longest name that fits is meant."""
    index: Index = msgspec.structs.replace(
        of_base(config), gpus={"L4": "8.9", "A10": "8.6", "A100": "8.0"}
    )
    assert [sm_of(gpu, index) for gpu in ("9.0", "sm_100a", "A100-SXM4-80GB", "NVIDIA A10")] == [
        "9.0",
        "10.0",
        "8.0",
        "8.6",
    ]
    with pytest.raises(QuestionError):
        sm_of("A1000", index)
    assert parse_packages(["a==1", "b == 2"]) == {"a": "1", "b": "2"}


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


def open_window(config: Config) -> None:
    """Takes the end of the notice's window away."""
    file = config.notices / "KBN0001-wrong-gradients.md"
    text = file.read_text("utf-8").replace(">=3.4,<3.6", ">=3.4")
    kept = [line for line in text.split("\n") if "triton<3.6" not in line]
    file.write_text("\n".join(kept), "utf-8")


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
