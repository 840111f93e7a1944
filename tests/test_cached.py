"""What is known of files that did not change is what reading them again would say."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from bases import Base, fence, rewrite
from click.testing import CliRunner, Result
from examples import EXAMPLES, lay_out

from kbtools import cache, config
from kbtools.articles.model import Article, Problem
from kbtools.checks.base import load_base, readable_articles
from kbtools.checks.cached import load_cached, readable_cached
from kbtools.cli import main
from kbtools.config import Config
from kbtools.evidence import store
from kbtools.evidence.rows import Row

ROOT = Path(__file__).parent.parent
PASSES = fence("python repro id=r1 fails=AssertionError", "assert False, 'the failure'")
FIX = fence("python fix id=f1", "assert True")

Readable = tuple[tuple[Article, ...], tuple[Problem, ...]]


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled the moment that they are written."""
    monkeypatch.setattr(cache, "SETTLED", -(10**12))


@pytest.fixture
def base(tmp_path: Path) -> Base:
    """A base of three articles, each with a repro and a fix."""
    made = Base.make(tmp_path / "base", tmp_path)
    for number in (1, 2, 3):
        made.article(PASSES, FIX, number=number)
    return made


def read(settings: Config) -> Readable:
    """What can be verified, and what keeps the rest from it: every file is read."""
    articles, problems = readable_articles(load_base(settings))
    return without_bodies(articles), problems


def from_cache(settings: Config) -> Readable:
    """The same by what is known: only what changed is read."""
    _, articles, problems = readable_cached(settings)
    return without_bodies(articles), problems


def without_bodies(articles: tuple[Article, ...]) -> tuple[Article, ...]:
    """Articles as far as they are kept."""
    return tuple(msgspec.structs.replace(article, body="") for article in articles)


def settings_of(base: Base) -> Config:
    """The configuration of a base."""
    return config.find(base.root)


def test_the_real_base(tmp_path: Path) -> None:
    """Of the real base the same is known as is read, and in the end no page is read."""
    real = msgspec.structs.replace(config.find(ROOT), root=tmp_path)
    for name in ("kb", "evidence"):
        (tmp_path / name).symlink_to(ROOT / name)
    assert from_cache(real) == from_cache(real) == read(real)
    base = load_cached(real)
    assert base.unread == {page.path for page in base.pages}
    names = [(page.path, page.language, page.matter["id"]) for page in load_base(real).pages]
    assert [(page.path, page.language, page.matter["id"]) for page in base.pages] == names


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_broken_base(name: str, tmp_path: Path) -> None:
    """A problem is found each time, with its line: only what is well is kept."""
    settings = lay_out(name, tmp_path)
    expected = read(settings)
    assert from_cache(settings) == expected
    assert from_cache(settings) == expected


def test_a_change_that_hides(base: Base) -> None:
    """Neither the size nor the modification time tells of this change; the change time does."""
    settings = settings_of(base)
    before = from_cache(settings)
    assert from_cache(settings) == before
    rewrite(base.root / "kb/KB0002-an-article.md", "article 2", "article 9")
    after = from_cache(settings)
    assert after == read(settings)
    assert after != before


def test_a_change_that_breaks(base: Base) -> None:
    """An article that was well and is broken now has its problem, and the others none."""
    settings = settings_of(base)
    from_cache(settings)
    rewrite(base.root / "kb/KB0002-an-article.md", "severity", "severitz")
    articles, problems = from_cache(settings)
    assert (articles, problems) == read(settings)
    assert [article.id for article in articles] == ["KB0001", "KB0003"]
    assert {problem.rule for problem in problems} == {"KB003", "KB004"}


def test_a_second_article_with_an_id(base: Base) -> None:
    """What is wrong with two files together is found if only one of them is new."""
    settings = settings_of(base)
    from_cache(settings)
    first = base.root / "kb/KB0001-an-article.md"
    for name in ("KB0001-a-copy.md", "KB0001-the-copy.md"):  # before it and after it
        (first.parent / name).write_bytes(first.read_bytes())
        assert from_cache(settings) == read(settings)
        assert from_cache(settings)[1][0].source == 'id: "KB0001"'
        (first.parent / name).unlink()


def test_an_article_that_is_gone(base: Base) -> None:
    """An article whose file is no more is not known."""
    settings = settings_of(base)
    from_cache(settings)
    (base.root / "kb/KB0003-an-article.md").unlink()
    assert from_cache(settings) == read(settings)


def test_other_settings(base: Base) -> None:
    """An article is read again when the settings have changed: its words may be others."""
    settings = settings_of(base)
    from_cache(settings)
    with (base.root / "kbtools.toml").open("a") as file:
        file.write('\n[article]\nseverities = ["slow"]\n')
    articles, problems = from_cache(settings_of(base))
    assert not articles
    assert {problem.rule for problem in problems} == {"KB005"}


def test_evidence_that_is_broken(base: Base) -> None:
    """Evidence that could be read and cannot any more is a problem; repaired, it is none."""
    settings = settings_of(base)
    file = base.root / "evidence/KB0002.jsonl"
    file.parent.mkdir()
    file.write_text("\n", "utf-8")
    file.write_text("", "utf-8")
    assert not from_cache(settings)[1]
    file.write_text("{", "utf-8")
    assert [problem.rule for problem in from_cache(settings)[1]] == ["KB306"]
    assert [problem.rule for problem in from_cache(settings)[1]] == ["KB306"]
    assert from_cache(settings) == read(settings)
    file.unlink()
    assert not from_cache(settings)[1]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"article 2", b"article 7"),
        lambda content: content[:32] + b"\xc1" + content[33:],
        lambda content: content + b"\0",
        lambda content: bytes(len(content)),
    ],
    ids=["empty", "cut", "half", "another word", "not msgpack", "longer", "zeros"],
)
def test_a_damaged_cache(base: Base, damage: Callable[[bytes], bytes]) -> None:
    """A cache that is not as it was written is ignored, and written again."""
    settings = settings_of(base)
    from_cache(settings)
    files = list(settings.cache.iterdir())
    contents = {file: file.read_bytes() for file in files}
    for file, content in contents.items():
        file.write_bytes(damage(content))
    assert from_cache(settings) == read(settings)
    assert load_cached(settings).unread
    assert {file: file.read_bytes() for file in files} == contents


def test_another_version(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another kbtools kept is not used, whatever it says."""
    settings = settings_of(base)
    monkeypatch.setattr(cache, "code_state", lambda: b"another kbtools")
    load_cached(settings)
    assert load_cached(settings).unread
    monkeypatch.undo()
    monkeypatch.setattr(cache, "SETTLED", -(10**12))
    assert not load_cached(settings).unread


def test_kbtools_that_was_just_changed(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kbtools whose next change might not show keeps nothing."""
    monkeypatch.setattr(cache, "code_state", lambda: b"")
    load_cached(settings_of(base))
    assert not load_cached(settings_of(base)).unread
    assert not (base.root / ".kbtools").exists()


def test_a_file_that_was_just_changed(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose next change might have the same time is read again."""
    monkeypatch.setattr(cache, "SETTLED", 10**12)
    cache.code_state.cache_clear()
    monkeypatch.setattr(cache, "code_state", lambda: b"kbtools")
    load_cached(settings_of(base))
    assert not load_cached(settings_of(base)).unread


def test_a_file_that_changes_while_it_is_read(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read of a file that changed meanwhile is not kept under its new state."""
    file = base.root / "kb/KB0002-an-article.md"

    def load_and_change(settings: Config, paths: list[Path]) -> object:
        loaded = load_base(settings, paths)
        rewrite(file, "article 2", "article 9")
        return loaded

    monkeypatch.setattr("kbtools.checks.cached.load_base", load_and_change)
    load_cached(settings_of(base))
    monkeypatch.undo()
    monkeypatch.setattr(cache, "SETTLED", -(10**12))
    titles = [article.matter.title for article in load_cached(settings_of(base)).articles]
    assert titles == ["article 1", "article 9", "article 3"]


def test_a_folder_that_cannot_be_written(base: Base) -> None:
    """Without a cache everything is read, and nobody is told."""
    (base.root / ".kbtools").write_text("a file where the folder would be", "utf-8")
    settings = settings_of(base)
    assert from_cache(settings) == from_cache(settings) == read(settings)


def test_several_at_once(base: Base) -> None:
    """Processes that load one base at once agree, and leave a cache that is whole."""
    processes = [base.start("list") for _ in range(6)]
    outputs = {process.communicate(timeout=60)[0] for process in processes}
    assert len(outputs) == 1
    assert [process.returncode for process in processes] == [0] * 6
    assert from_cache(settings_of(base)) == read(settings_of(base))
    assert not list((base.root / ".kbtools").rglob(".*"))


def verify(base: Base, *words: str) -> Result:
    """Runs `kbtools verify` in this process, where files settle at once."""
    return CliRunner().invoke(main, ["-C", str(base.root), "verify", *words])


def lines_of(result: Result) -> list[str]:
    """What was printed, without seconds, in an order that does not depend on which ended first."""
    return sorted(re.sub(r"\d+\.\d s", "… s", result.output).splitlines())


@pytest.mark.parametrize(
    "words", [(), ("-q",), ("KB0002",), ("KB0001/r1", "KB0003"), ("--role=fix",)]
)
def test_nothing_to_do(base: Base, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing to do `verify` prints what it prints after reading all files, and reads none."""
    verify(base)
    with monkeypatch.context() as slow:
        slow.setattr("kbtools.cli.verify.VerifyOptions.needs_outcomes", property(lambda _: True))
        expected = verify(base, *words)
    verify(base)  # the verdicts on what is remembered are kept
    with monkeypatch.context() as unread:
        unread.setattr(store, "read", lambda *_: pytest.fail("a row was read"))
        unread.setattr("kbtools.articles.parsing.parse_page", lambda *_: pytest.fail("a page"))
        result = verify(base, *words)
    assert result.exit_code == expected.exit_code == 0
    assert lines_of(result) == lines_of(expected)
    assert "remembered" in result.output


def prepared(base: Base) -> Path:
    """A base of which everything is known; the memory of its second article."""
    for _ in range(3):
        verify(base)
    return base.root / ".kbtools/memory/KB0002.jsonl"


def snippets_run(result: Result) -> set[str]:
    """The snippets that were run, and not remembered."""
    lines = [line.split() for line in result.output.splitlines() if line.startswith(("✓", "✗"))]
    return {words[2] for words in lines if "remembered" not in words}


def test_an_edited_article(base: Base) -> None:
    """The snippet whose code was edited is run at once, and no other one."""
    prepared(base)
    rewrite(base.root / "kb/KB0002-an-article.md", "assert True", "assert 1==1")
    result = verify(base)
    assert snippets_run(result) == {"KB0002/f1"}
    assert "6 snippets" in result.output
    assert not snippets_run(verify(base))


def test_a_claim_that_changed(base: Base) -> None:
    """A claim that was edited is judged anew, and is red if what is remembered contradicts it."""
    prepared(base)
    rewrite(base.root / "kb/KB0002-an-article.md", "fails=AssertionError", "fails=AttributeError")
    for _ in range(2):  # a red verdict is not kept
        result = verify(base)
        assert result.exit_code == 1
        assert snippets_run(result) == {"KB0002/r1"}


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.unlink(),
        lambda file: rewrite(file, '"passed"', '"failed"'),
        lambda file: file.write_bytes(file.read_bytes()[:-9]),
    ],
    ids=["gone", "edited, with its time put back", "cut"],
)
def test_a_memory_that_changed(base: Base, change: Callable[[Path], None]) -> None:
    """What the changed memory does not hold is run again; that of other articles stays known."""
    change(prepared(base))
    result = verify(base)
    assert result.exit_code == 0
    assert "KB0002/f1" in snippets_run(result)
    assert all(name.startswith("KB0002/") for name in snippets_run(result))
    assert "6 snippets" in result.output


def test_all_runs_everything(base: Base) -> None:
    """`--all` runs what is known, too."""
    prepared(base)
    assert len(snippets_run(verify(base, "--all"))) == 6


def test_reports_and_evidence(base: Base) -> None:
    """Reports have the outcomes of what is known, and `--record` writes them down."""

    def reports() -> tuple[list[str], list[str]]:
        files = base.root / "report.json", base.root / "report.xml"
        verify(base, "--json", str(files[0]), "--junit", str(files[1]))
        results = msgspec.json.decode(files[0].read_bytes())["results"]
        cases = re.findall(r"(?s)<testcase.*?(?=<testcase|</testsuite)", files[1].read_text())
        return sorted(map(str, results)), sorted(cases)

    verify(base)
    before = reports()
    prepared(base)
    assert reports() == before
    assert [len(part) for part in before] == [6, 6]
    verify(base, "--record")
    assert len(base.rows(2)) == 2


def test_a_helper_that_changed(base: Base, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Verdicts are not known for another helper module than that of the run."""
    prepared(base)
    helper = tmp_path / "repro.py"
    helper.write_text("", "utf-8")
    monkeypatch.setattr("kbtools.verification.cached.REPRO", helper)
    reads: set[str] = set()
    read_rows = store.read

    def read_noted(folder: Path, article: str) -> tuple[Row, ...]:
        reads.add(article)
        return read_rows(folder, article)

    monkeypatch.setattr(store, "read", read_noted)
    verify(base)
    assert reads == {"KB0001", "KB0002", "KB0003"}


def test_another_time_limit(tmp_path: Path) -> None:
    """A snippet that a short limit ended is run again when it gets more time."""
    base = Base.make(tmp_path / "base", tmp_path)
    base.article(fence("python repro id=r1 fails=timeout", "import time; time.sleep(60)"), FIX)
    for _ in range(3):
        assert verify(base, "--timeout", "0.3").exit_code == 0
    assert not snippets_run(verify(base, "--timeout", "0.3"))
    assert snippets_run(verify(base, "--timeout", "0.6")) == {"KB0001/r1"}


def test_in_a_process_of_its_own(base: Base) -> None:
    """The command itself keeps what settled, and prints the same with it as without it."""
    base.kbtools("verify")
    time.sleep(2.2)  # until the files have settled
    outputs = [base.kbtools("verify", "-q").out for _ in range(3)]
    assert {re.sub(r"\d+\.\d s", "… s", output) for output in outputs} == {
        re.sub(r"\d+\.\d s", "… s", outputs[0])
    }
    assert list((base.root / ".kbtools/cache").glob("verdicts-*"))
