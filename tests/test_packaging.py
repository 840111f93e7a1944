"""The wheel: what is in it works in an environment of its own, far from any knowledge base."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import click
import pytest
from bases import KBTOOLS

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.evidence.state import observations

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel of this checkout, beside which the dependencies are found."""
    if not importlib.util.find_spec("hatchling"):
        pytest.skip("hatchling is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--quiet", str(wheel)], check=True)
    [site_packages] = home.glob("lib/python*/site-packages")
    # not a second time what the checkout's own .pth file adds: such files are not read twice
    (site_packages / "dependencies.pth").write_text(f"{Path(click.__file__).parent.parent}\n")
    return home


def elsewhere(home: Path) -> dict[str, str]:
    """The environment of a user of the installed program, who has no checkout."""
    variables = {**os.environ, "XDG_CACHE_HOME": str(home / "cache")}
    variables.pop("PYTHONPATH", None)
    return variables


def kbtools(home: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the installed program in the environment's folder."""
    return subprocess.run(
        [str(home / "bin" / "kbtools"), *words],
        cwd=home,
        env=elsewhere(home),
        input=stdin,
        capture_output=True,
        text=True,
    )


def test_the_wheel_is_what_runs(installed: Path) -> None:
    """What these tests run is the wheel's content, not the checkout."""
    code = "import kbtools; print(kbtools.__file__)"
    python = str(installed / "bin" / "python")
    process = subprocess.run(
        [python, "-c", code],
        cwd=installed,
        env=elsewhere(installed),
        capture_output=True,
        text=True,
    )
    assert str(installed) in process.stdout


def test_types_are_installed(installed: Path) -> None:
    """A type checker reads the annotations of the installed package (PEP 561)."""
    [site_packages] = installed.glob("lib/python*/site-packages")
    assert (site_packages / "kbtools" / "py.typed").is_file()


def test_metadata(installed: Path) -> None:
    """A package index shows who wrote it, what it is for, where it runs; no address is made up."""
    [distribution] = importlib.metadata.distributions(
        name="kbtools", path=[str(folder) for folder in installed.glob("lib/python*/site-packages")]
    )
    metadata = distribution.metadata
    assert metadata["Author"] == "The kbtools authors"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert metadata["Keywords"]
    assert bool(metadata.get_all("Project-URL")) == bool(
        config.find(ROOT).knowledge_base.repository
    )


def test_a_log_is_diagnosed_anywhere(installed: Path) -> None:
    """A log of this knowledge base finds its article where there is no knowledge base."""
    log = (ROOT / "tests/logs/triton23-chunk-attention-cut.log").read_text("utf-8")
    process = kbtools(installed, "diagnose", "--json", stdin=log)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["matches"][0]["id"] == "KB0002"
    explained = kbtools(installed, "explain", "KB0002")
    assert explained.returncode == 0, explained.stderr
    assert "State: reproduced;" in explained.stdout


def test_it_is_small(installed: Path) -> None:
    """The wheel has the base as one archive, and the articles' files are not there twice."""
    [package] = installed.glob("lib/python*/site-packages/kbtools")
    assert (package / "packaged.tar.xz").is_file()
    assert not list(package.rglob("KB*"))


def test_its_size_is_as_the_page_says(installed: Path) -> None:
    """`docs/install.md` and its translation have the sizes of today, to a fifth."""
    assert kbtools(installed, "explain", "KB0002").returncode == 0
    [package] = installed.glob("lib/python*/site-packages/kbtools")
    base = installed / "cache" / "kbtools"
    unpacked = sum(file.stat().st_size for file in base.rglob("*") if file.is_file())
    sizes = {(package / "packaged.tar.xz").stat().st_size, unpacked}
    for name, texts in (
        ("install.md", (r"one archive of ([\d.]+) MB", r"its files are (\d+) MB")),
        ("install.zh.md", (r"一个 ([\d.]+) MB 的压缩归档", r"文件共 (\d+) MB")),
    ):
        page = (ROOT / "docs" / name).read_text("utf-8")
        for size, text in zip(sorted(sizes), texts, strict=True):
            stated = re.search(text, page)
            assert stated and 0.8 < float(stated[1]) * 1e6 / size < 1.2, (name, text, size)


def test_the_extract_has_the_same_verdicts(tmp_path: Path) -> None:
    """The evidence in the wheel is shortened, and every verdict and its reason stay as they are."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec and spec.loader
    hook = importlib.util.module_from_spec(spec)
    pytest.importorskip("hatchling")
    spec.loader.exec_module(hook)
    for name, content in hook.members(ROOT):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    whole, extract = load_base(config.find(ROOT)), load_base(config.find(tmp_path))
    assert len(extract.articles) == len(whole.articles) > 0
    for here, there in zip(whole.articles, extract.articles, strict=True):
        verdicts, shortened = (
            [(o.snippet.name, o.row.toolchain, o.row.when, o.verdict) for o in observations(*of)]
            for of in ((here, whole.config), (there, extract.config))
        )
        assert shortened == verdicts, here.id
    size = sum(file.stat().st_size for file in (tmp_path / "evidence").iterdir())
    assert size < sum(file.stat().st_size for file in (ROOT / "evidence").iterdir())


COMMANDS = (
    ("list",),
    ("explain", "kb2"),
    ("explain", "KB0002", "--fix"),
    ("search", "显存"),
    ("link", "KB0002", "--format", "threads"),
    ("matrix",),
    ("env",),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_reading_commands_work_anywhere(installed: Path, words: tuple[str, ...]) -> None:
    """Every reading command serves the packaged base as it would serve the checkout's."""
    process = kbtools(installed, *words)
    assert process.returncode == 0, process.stderr
    name = config.find(ROOT).knowledge_base.name
    assert f"this is `{name}`" in process.stderr
    if words != ("env",):  # it is about the interpreter that runs it
        at_home = subprocess.run(
            [*KBTOOLS, "-C", str(ROOT), *words], capture_output=True, text=True, check=True
        )
        assert process.stdout == at_home.stdout


def test_an_article_is_verified_on_an_interpreter_of_ones_own(installed: Path) -> None:
    """Snippets of the packaged base run on another Python, and are remembered in the cache."""
    words = ["verify", "KB0044", "--toolchain", sys.executable, "--json", "-"]
    first, second = kbtools(installed, *words), kbtools(installed, *words)
    for process in (first, second):
        assert process.returncode in (0, 3), process.stderr  # 3: all of it needs torch
        results = json.loads(process.stdout)["results"]
        assert {result["article"] for result in results} == {"KB0044"}
        assert "this is `" in process.stderr
    remembered = list((installed / "cache" / "kbtools").glob("base-*/.kbtools/memory/KB0044.jsonl"))
    assert len(remembered) == (first.returncode == 0)
    [package] = installed.glob("lib/python*/site-packages")
    assert not list(package.rglob(".kbtools"))


def test_all_of_the_packaged_base_is_not_run_unasked(installed: Path) -> None:
    """`kbtools verify` in a folder without a base is a slip, and would take minutes."""
    process = kbtools(installed, "verify")
    assert process.returncode == 2
    assert "name an article: kbtools verify ID" in process.stderr


def test_a_program_is_run_anywhere(installed: Path) -> None:
    """`kbtools run` finds the same, offline."""
    log = ROOT / "tests/logs/triton23-chunk-attention-cut.log"
    process = kbtools(installed, "run", "--", "sh", "-c", 'cat "$0" >&2; exit 5', str(log))
    assert process.returncode == 5
    assert "\nkbtools: KB0002: " in process.stderr
