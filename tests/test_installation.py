"""How one gets kbtools: what is said where, and that nothing is promised that is not there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from bases import Base, fence
from markupsafe import escape

from kbtools import config, installation
from kbtools.checks.base import load_base
from kbtools.site.generate import tree
from kbtools.site.model import build_model

ROOT = Path(__file__).parent.parent
REQUIRES = """Requires-Dist: click>=8.1
Provides-Extra: test
Requires-Dist: jinja2; extra == "test"
Provides-Extra: site
Requires-Dist: Jinja2>=3.1; extra == "site"
Requires-Dist: watchfiles<2,>=1.3; extra == "site"
"""


def distribution(folder: Path, origin: object = None) -> PathDistribution:
    """An installed kbtools with the extra `site`; `origin` is what PEP 610 has of its source."""
    info = folder / "kbtools-1.dist-info"
    info.mkdir()
    text = f"Metadata-Version: 2.4\nName: kbtools\nVersion: 1\n{REQUIRES}"
    (info / "METADATA").write_text(text)
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps(origin))
    return PathDistribution(info)


def test_from_a_package_index(tmp_path: Path) -> None:
    """Only a kbtools that an index gave is asked for by its name."""
    command = installation.command_for("site", distribution(tmp_path))
    assert command == "pip install 'kbtools[site]'"


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ({"dir_info": {}}, "pip install '{path}[site]'"),
        ({"dir_info": {"editable": True}}, "pip install -e '{path}[site]'"),
        ({"archive_info": {}}, "pip install '{path}[site]'"),
    ],
    ids=["checkout", "editable", "wheel"],
)
def test_from_a_path(origin: dict[str, object], expected: str, tmp_path: Path) -> None:
    """A checkout or a file is named by its path, blanks quoted."""
    path = tmp_path / "a checkout"
    path.mkdir()
    installed = distribution(tmp_path, {"url": path.as_uri(), **origin})
    assert installation.command_for("site", installed) == expected.format(path=path)


def test_from_a_path_that_is_gone(tmp_path: Path) -> None:
    """If the checkout or the wheel is not there any more, the packages themselves are named."""
    installed = distribution(tmp_path, {"url": (tmp_path / "gone").as_uri(), "dir_info": {}})
    expected = "pip install 'Jinja2>=3.1' 'watchfiles<2,>=1.3'"
    assert installation.command_for("site", installed) == expected


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        ({"url": "https://a.example/k", "vcs_info": {"vcs": "git"}}, "git+https://a.example/k"),
        ({"url": "https://a.example/k.whl", "archive_info": {}}, "https://a.example/k.whl"),
    ],
    ids=["git", "archive"],
)
def test_from_an_address(origin: dict[str, object], source: str, tmp_path: Path) -> None:
    """An address is named with what it was fetched by."""
    command = installation.command_for("site", distribution(tmp_path, origin))
    assert command == f"pip install 'kbtools[site] @ {source}'"


def test_a_module_and_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra for users comes before those for tests; a module of no extra has none."""
    installed = distribution(tmp_path)
    monkeypatch.setattr(installation, "distribution", lambda _: installed)
    assert installation.extra_with("jinja2.sandbox") == "site"
    assert installation.extra_with("watchfiles") == "site"
    assert installation.extra_with("click") is None
    assert installation.extra_with("nonesuch") is None


@pytest.mark.parametrize("command", ["build", "serve"])
def test_a_command_without_its_extra(command: str, base: Base) -> None:
    """It says in one line which package is missing and what installs it, with exit code 2."""
    base.article(fence("python repro", "raise ValueError('the failure')"))
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        f"from kbtools.cli import main; main(['-C', {str(base.root)!r}, {command!r}])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode == 2
    assert process.stderr.startswith("kbtools: this needs jinja2")
    assert process.stderr.endswith(f"; next: {installation.command_for('site')}\n")


BY_NAME = re.compile(
    r"(?:pip3?|uv pip|pipx|uv tool) install [^\n`;&#]*?(?<![\w./-])kbtools(?![\w./-])"
    r"|uvx (?:--from kbtools )?kbtools\b|pipx run kbtools\b"
)
"""What works only once a package index has kbtools, and the base in it."""


def pages() -> list[Path]:
    """What people read, and what prints to them.

    Two modules say it where it is true: of an installed kbtools, and where `install` is set.
    """
    files = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "action.yml")]
    for folder in ("docs", "kbtools", "kb", "fleet", ".github"):
        files += (file for file in (ROOT / folder).rglob("*") if file.is_file())
    own = (ROOT / "kbtools" / "installation.py", ROOT / "kbtools" / "articles" / "replies.py")
    return [file for file in files if file not in own and "__pycache__" not in file.parts]


@pytest.mark.parametrize(
    ("text", "is_by_name"),
    [
        ("pip install kbtools", True),
        ("pip install -U 'kbtools[mcp]'", True),
        ("pipx install kbtools", True),
        ("uv tool install kbtools", True),
        ("uvx kbtools diagnose train.log", True),
        ("uvx --from kbtools kbtools list", True),
        ("uvx --from . kbtools diagnose train.log", False),
        ("pip install '.[mcp]'", False),
        ("pip install ./kbtools", False),
        ("pip install torch; kbtools verify", False),
    ],
)
def test_what_is_by_name(text: str, is_by_name: bool) -> None:
    """The check below sees what it is to see."""
    assert bool(BY_NAME.search(text)) is is_by_name


def test_no_page_promises_what_is_not_there() -> None:
    """As long as `install` of kbtools.toml is empty, nobody is told to install it by its name."""
    if config.find(ROOT).knowledge_base.install:
        pytest.skip("it can be installed by its name")
    promises = {file.name: BY_NAME.findall(file.read_text("utf-8", "replace")) for file in pages()}
    assert {name: texts for name, texts in promises.items() if texts} == {}


def test_the_readme_begins_with_what_gives_an_answer() -> None:
    """The first command needs no more than a checkout; once `install` is set, not even that."""
    source = config.find(ROOT).knowledge_base.install or "."
    readme = (ROOT / "README.md").read_text("utf-8")
    block = readme.partition("```sh\n")[2].partition("```\n")[0]
    command = "uvx kbtools" if source == "kbtools" else f"uvx --from {source} kbtools"
    assert block.startswith(f"{command} diagnose ")


@pytest.mark.parametrize(
    ("install", "command"),
    [
        ("", "kbtools verify KB0001/r1"),
        ("kbtools", 'uvx kbtools verify KB0001/r1 --toolchain "$(command -v python)"'),
    ],
)
def test_the_site_says_what_strangers_can_type(install: str, command: str, base: Base) -> None:
    """The command above a snippet is one for readers without a checkout, once there is one."""
    toml = base.root / "kbtools.toml"
    toml.write_text(toml.read_text().replace("[run]", f'install = "{install}"\n\n[run]'))
    base.article(fence("python repro id=r1", "raise ValueError('the failure')"))
    model = build_model(load_base(config.find(base.root)))
    [text] = [content.decode() for path, content in tree(model) if path == "KB0001.md"]
    assert f'<code id="r1-run">{escape(command)}</code>' in text
