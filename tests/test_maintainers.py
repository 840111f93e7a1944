"""The page for maintainers of other projects: it offers what works, and nothing else."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
import yaml
from bases import Base, fence

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.site.model import build_model
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.maintainers import ACTION, PATH, maintainers_page

DOCS = Path(__file__).parents[1] / "docs" / "action.md"
FAILS = fence("python repro id=r1", 'raise RuntimeError("the failure")')
URL = 'url = "https://kb.example/a/"\n'
REPOSITORY = 'repository = "https://github.com/them/base"\n'


def page(base: Base, settings: str = "", language: str = "en") -> str:
    """The page of a base of one article, with these lines in `[knowledge-base]`."""
    base.article(FAILS, matter="upstream: [{report: a/b#112}, {related: a/b#13}, {report: c/d#1}]")
    text = (base.root / "kbtools.toml").read_text("utf-8")
    words = f'prefix = "KB"\nlanguages = ["en", "zh"]\n{settings}'
    settings_of_base = config.decode(text.replace('prefix = "KB"\n', words), base.root)
    model = build_model(load_base(settings_of_base))
    return maintainers_page(Frame(model, language, PATH))[1].decode()


def pasted(text: str) -> dict[str, str]:
    """Name of an offer → what it has to paste."""
    blocks = re.findall(r'<pre id="kb-([\w-]+)"[^>]*><code>(.*?)</code>', text)
    return {name: html.unescape(block) for name, block in blocks}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_without_an_address(base: Base, language: str) -> None:
    """Only the questions of a form work then: no link, badge, action, command or address."""
    (base.root / ACTION).write_text("name: an action\n")
    text = page(base, REPOSITORY, language)
    offers = pasted(text)
    assert list(offers) == ["form"]
    assert "kb-notice" in text
    for promise in ("https://", "uvx", "uses:", "badges/"):
        assert promise not in offers["form"]
    kinds = [item["type"] for item in yaml.safe_load(offers["form"])["body"]]
    assert kinds == ["textarea", "textarea"]


@pytest.mark.parametrize(
    ("settings", "has_action", "names"),
    [
        (URL + REPOSITORY, True, ["form", "action", "link", "badge"]),
        (URL + REPOSITORY, False, ["form", "link", "badge"]),
        (URL, True, ["form", "link", "badge"]),
        (URL + 'repository = "https://git.example/x/y"\n', True, ["form", "link", "badge"]),
    ],
)
def test_with_an_address(base: Base, settings: str, has_action: bool, names: list[str]) -> None:
    """The action is offered only where the repository is on GitHub and has one."""
    if has_action:
        (base.root / ACTION).write_text("name: an action\n")
    offers = pasted(page(base, settings))
    assert list(offers) == names
    assert "(https://kb.example/a/KB0001/)" in offers["link"]
    assert "(https://kb.example/a/badges/KB0001.svg)" in offers["badge"]


def test_the_workflow(base: Base) -> None:
    """It is the one of docs/action.md, with this base's repository and address."""
    (base.root / ACTION).write_text("name: an action\n")
    workflow = yaml.safe_load(pasted(page(base, URL + REPOSITORY))["action"])
    [documented] = re.findall(r"```yaml\n(on:.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    filled_in = documented.replace("OWNER/REPO", "them/base").replace("example/", "example/a/")
    assert workflow == yaml.safe_load(filled_in)
    [step] = workflow["jobs"]["diagnose"]["steps"]
    assert step == {"uses": "them/base@COMMIT", "with": {"index": "https://kb.example/a/"}}


@pytest.mark.parametrize(
    ("language", "address"),
    [("en", "https://kb.example/a/paste/"), ("zh", "https://kb.example/a/zh/paste/")],
)
def test_the_form(base: Base, language: str, address: str) -> None:
    """It leads to the page for logs in its language, and has the command if there is one."""
    settings = URL + 'install = "git+https://kb.example/it"\n'
    first, *questions = yaml.safe_load(pasted(page(base, settings, language))["form"])["body"]
    assert address in first["attributes"]["value"]
    assert "uvx --from git+https://kb.example/it kbtools diagnose" in first["attributes"]["value"]
    assert [question["id"] for question in questions] == ["log", "versions"]


def test_threads_by_project(base: Base) -> None:
    """The project with most threads is first; each thread leads to its page, by its number."""
    text = page(base, language="zh")
    projects = re.findall(r"<summary>(.*?) <span.*?</summary><p>(.*?)</p>", text)
    assert [project for project, _ in projects] == ["a/b", "c/d"]
    assert re.findall(r'href="(.*?)">(.*?)<', projects[0][1]) == [
        ("../../zh/issues/a/b/13/", "#13"),
        ("../../zh/issues/a/b/112/", "#112"),
    ]
