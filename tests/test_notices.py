"""Notices: known from threads, not run here; no door shows one as anything else."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from examples import record_failure
from ledgers import LOG, REPRO, add_article, invoke, ledger, model_of, record

from kbtools.articles.notice_text import notice_markdown
from kbtools.articles.receipt_grammar import brackets
from kbtools.checks.base import load_base
from kbtools.config import Config
from kbtools.matching import Index, Matcher, of_base
from kbtools.matching.known import QuestionError, known_failures, parse_packages, sm_of
from kbtools.site.data import badges, texts
from kbtools.site.data.api import index as api_index
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.notice import notice_page


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A base of one notice, which has a signature."""
    return ledger(tmp_path)


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
        assert "What helps is reported, and was not run here (looked up on 2026-01-31)." in reply
        assert "What helps, as reported" in reply
        assert "executed" not in reply


def test_explain_and_search(config: Config) -> None:
    """`explain` begins with what a notice is worth; `search` says it, too; `kbn1` is an id."""
    text = invoke(config, "explain", "kbn1").output
    assert text.index("Reported, not run here; looked up on 2026-01-31") < text.index("Upgrade")
    assert "[owner/repo#13] [owner/repo@v3.6.0 python/core.py:120]" in text
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


def test_measured(config: Config) -> None:
    """Rows of its own snippet make a notice seen, then measured; nobody can write that."""
    file = config.notices / "KBN0001-wrong-gradients.md"
    file.write_text(file.read_text("utf-8") + REPRO, "utf-8")
    assert model_of(config).notices[0].view.state.word == "reported"
    record_failure(config, "KBN0001", "r1", "gradients are wrong here")
    # it ran with 2.3.0, which is outside the window
    assert model_of(config).notices[0].view.state.word == "contradicted"
    file.write_text(file.read_text("utf-8").replace(">=3.4", ">=2.2"), "utf-8")
    assert model_of(config).notices[0].view.state.word == "seen"
    assert of_base(config).notices[0].entry.standing == "seen"
    for version in ("2.1.0", "3.6.0"):
        record(config, version)
    assert model_of(config).notices[0].view.state.word == "measured"
    assert of_base(config).notices[0].entry.standing == "measured"
    [match] = Matcher(of_base(config)).diagnose(LOG).matches
    assert not match.confident  # its remedies were not run
    assert "what helps is reported" in match.hints[0]
    _, page = notice_page(Frame(model_of(config), "en", "KBN0001/"), model_of(config).notices[0])
    assert "measured: 2.3.0 | 3.6.0" in page.decode()
    assert "Reported, not run here" not in page.decode()


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
    assert known_failures(index, {"pytriton": "3.6.0"}).meant == {"pytriton": "triton"}


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
    assert all(brackets(receipt) in text for receipt in receipts)


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


def test_its_bounds_are_listed(config: Config) -> None:
    """`kbtools bounds KBN0001` shows each bound with its thread; without a name, only articles'."""
    listed = invoke(config, "bounds", "KBN0001").output.splitlines()
    assert [line.split()[:4] for line in listed[:2]] == [
        ["KBN0001", "triton>=3.4", "reported", "owner/repo#12"],
        ["KBN0001", "triton<3.6", "reported", "owner/repo#13,"],
    ]
    assert listed[2] == "2 bounds: 0 measured, 2 reported, 0 open"
    assert invoke(config, "bounds").output.startswith("0 bounds")
