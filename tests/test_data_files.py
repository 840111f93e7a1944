"""Data files that snippets share: each run gets copies, and evidence depends on their content."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from bases import Base, fence, git, rewrite

from kbtools import cache, config
from kbtools.articles.model import Article
from kbtools.checks.base import load_base
from kbtools.checks.cached import load_cached
from kbtools.running.kept import repeat_command
from kbtools.site.data import data_files
from kbtools.site.model import build_model
from kbtools.site.pages.downloads import stand_alone
from kbtools.site.watching import watched_folders

ORDERS = "id,price\n1,9.5\n"
READS = 'assert open("orders.csv").read() == "id,price\\n1,9.5\\n"\n'


@pytest.fixture
def data(base: Base) -> Base:
    """A base with one data file, and a repro, a fix and a script that name it."""
    base.article(
        fence('python repro id=r1 files="orders.csv"', READS + 'raise OSError("the failure")'),
        fence("python fix id=f1 files=orders.csv", READS + 'open("orders.csv", "w").write("")'),
        fence("bash fix id=f2 files=orders.csv", 'test "$(ls)" = orders.csv; grep -q 9.5 *'),
        fence("python fix id=f3 after=f1", 'assert open("orders.csv").read() == ""'),
        fence("python control id=c1", "import os\nassert os.listdir() == []"),
    )
    write(base, ORDERS)
    return base


def write(base: Base, text: str, name: str = "orders.csv") -> Path:
    """Writes a data file."""
    file = base.root / "kb/files" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, "utf-8")
    return file


def article_of(base: Base) -> Article:
    """The article of a base, read now."""
    [article] = load_base(config.find(base.root)).articles
    return article


def test_each_run_has_a_copy(data: Base) -> None:
    """Python and bash find the file where they run; what they write leaves the original alone."""
    done = data.verify()
    assert done.code == 0, done.out
    assert set(done.verdicts.values()) == {"reproduced", "holds"}
    assert (data.root / "kb/files/orders.csv").read_text("utf-8") == ORDERS
    assert data.kbtools("check").code == 0


def test_evidence_is_of_one_content(data: Base) -> None:
    """A changed file makes every snippet that names it another one, and no other snippet."""
    before = {snippet.id: snippet.digest for snippet in article_of(data).snippets}
    write(data, ORDERS + "2,1\n")
    after = {snippet.id: snippet.digest for snippet in article_of(data).snippets}
    assert {name for name in before if before[name] != after[name]} == {"r1", "f1", "f2", "f3"}


def test_a_changed_file_is_run_again(data: Base) -> None:
    """What is remembered and cached of an article does not survive a change of its data file."""
    assert data.kbtools("verify").code == 0
    rewrite(data.root / "kb/files/orders.csv", "9.5", "8.5")
    done = data.verify("KB0001/f1")
    assert (done.code, done.verdicts["KB0001/f1"]) == (1, "broken"), done.out


def test_a_cached_article_follows_its_files(data: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """An article is read again if a file that it names changes, keeps its size and its date."""
    monkeypatch.setattr(cache, "SETTLED", -(10**12))  # files count as settled at once
    settings = config.find(data.root)
    digest = load_cached(settings).articles[0].snippets[0].digest
    assert load_cached(settings).unread, "nothing changed, and the article is read again"
    rewrite(data.root / "kb/files/orders.csv", "9.5", "8.5")
    [article] = load_cached(settings).articles
    assert article.snippets[0].digest != digest
    assert article.snippets[0].digest == article_of(data).snippets[0].digest
    (data.root / "kb/files/orders.csv").unlink()
    assert [problem.rule for problem in load_cached(settings).problems] == ["KB009"] * 3


@pytest.mark.parametrize("link", ["file", "folder"])
def test_a_link_is_no_data_file(base: Base, tmp_path: Path, link: str) -> None:
    """A link in `kb/files/`, or in its place, shows no snippet a file from elsewhere."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/key.pem").write_text("secret")
    files = base.root / "kb/files"
    if link == "folder":
        files.symlink_to(tmp_path / "secrets")
    else:
        files.mkdir()
        (files / "key.pem").symlink_to(tmp_path / "secrets/key.pem")
    base.article(fence("python repro id=r1 files=key.pem", 'raise OSError("the failure")'))
    done = base.kbtools("verify")
    assert (done.code, "kb/files/ has no file `key.pem`" in done.err) == (2, True)


def test_a_kept_run_has_the_file_again(data: Base) -> None:
    """The command that repeats a kept run gives it the file as it was before the run."""
    data.kbtools("verify", "KB0001/f1", "--keep", "--all")
    folder = data.root / ".kbtools/kept/KB0001-f1"
    assert (folder / "scratch/work/orders.csv").read_text("utf-8") == ""
    for _ in range(2):
        subprocess.run(shlex.split(repeat_command(folder)), check=True, timeout=60)


def test_the_site_has_the_file(data: Base) -> None:
    """A download says how to fetch the data files, and the site has them; no other file."""
    write(data, "secret", "unused.csv")
    settings = data.root / "kbtools.toml"
    address = 'prefix = "KB"\nurl = "https://example.org/kb/"'
    settings.write_text(settings.read_text("utf-8").replace('prefix = "KB"', address), "utf-8")
    model = build_model(load_base(config.find(data.root)))
    assert dict(data_files(model)) == {"files/orders.csv": ORDERS.encode()}
    texts = {snippet.id: stand_alone(model, snippet) for snippet in article_of(data).snippets}
    line = "# beside it: curl -O https://example.org/kb/files/orders.csv\n"
    assert {name for name in texts if line in texts[name]} == {"r1", "f1", "f2", "f3"}


def test_serve_watches_the_files(data: Base) -> None:
    """A page shows what a run would do with the file as it is now."""
    settings = config.find(data.root)
    assert settings.data_files in watched_folders(settings)


def test_changed_since(data: Base) -> None:
    """A change of a data file is a reason to run the articles that name it."""
    data.article(fence("python repro id=r1", 'raise OSError("the failure")'), number=2)
    git(data, "init", "-q", "-b", "main")
    git(data, "add", "kb", "kbtools.toml")
    git(data, "commit", "-qm", "before")
    write(data, ORDERS + "2,1\n")
    done = data.kbtools("verify", "--changed-since", "main")
    assert "kb/files/orders.csv changed, which it uses: KB0001\n" in done.out + done.err
    assert "KB0002" not in done.out


def test_a_file_changed_meanwhile(data: Base) -> None:
    """No row says that a snippet ran on a content that it did not find."""
    model = build_model(load_base(config.find(data.root)))
    write(data, "another\n")
    with pytest.raises(config.KbtoolsError, match=r"kb/files/orders\.csv has changed since"):
        dict(data_files(model))


def test_the_wheel_has_the_files(data: Base) -> None:
    """The archive of a base in the wheel has its data files, too."""
    if not importlib.util.find_spec("hatchling"):
        pytest.skip("hatchling is not installed")
    hook = Path(__file__).parent.parent / "hatch_build.py"
    specification = importlib.util.spec_from_file_location("hatch_build", hook)
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    (data.root / "evidence").mkdir()
    assert ("kb/files/orders.csv", os.fsencode(ORDERS)) in list(module.members(data.root))


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not on the PATH")
def test_cuda(base: Base) -> None:
    """A CUDA program finds the file where it is compiled and run."""
    flags = 'requires=nvcc files=table.h env="NVCC_APPEND_FLAGS=-I."'
    base.article(
        fence(f"cuda repro id=r1 fails=AssertionError {flags}", '#include "none.h"'),
        fence(f"cuda fix id=f1 {flags}", '#include "table.h"\nint main() { return TABLE - 7; }'),
    )
    write(base, "#define TABLE 7\n", "table.h")
    done = base.verify("KB0001/f1", timeout=120)
    assert done.verdicts == {"KB0001/f1": "holds"}, done.out
