"""The page for maintainers of other projects: what they can paste, as far as it works today.

Links, badges and the action need the address of the site; the action needs a repository on GitHub
with an `action.yml`; a command needs what installs kbtools. What the configuration does not name is
not offered.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping

import msgspec

from kbtools.articles import links
from kbtools.config import Config
from kbtools.site.model import issue_path, prefix
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.lists import telling

PATH = "maintainers/"
ACTION = "action.yml"
"""The action that replies to issues, at the root of the repository that has it."""


class Offer(msgspec.Struct, frozen=True):
    """Something to paste."""

    name: str
    """A key of its words: `maintainers.<name>` and `maintainers.<name>-about`."""
    text: str
    file: str = ""
    """Where it belongs in their repository; empty for any comment or page."""


def maintainers_page(frame: Frame) -> tuple[str, bytes]:
    """What to paste, and the threads of their projects that articles mention."""
    return frame.plain(
        "maintainers.html",
        frame.words("maintainers.title"),
        frame.words("maintainers.lead"),
        offers=offers(frame),
        url=frame.model.config.knowledge_base.url,
        projects=projects(frame),
    )


def offers(frame: Frame) -> list[Offer]:
    """What works with the configuration as it is."""
    model = frame.model
    base = model.config.knowledge_base
    form = Offer("form", issue_form(frame), ".github/ISSUE_TEMPLATE/failure.yml")
    if not base.url:
        return [form]
    result = [form]
    if action := action_of(model.config):
        result.append(Offer("action", workflow(action, base.url), ".github/workflows/diagnose.yml"))
    example = telling(model) or next(iter(model.views), None)
    if example:
        matter = example.article.matter
        result.append(Offer("link", links.markdown(matter, base.url)))
        result.append(Offer("badge", links.badge(matter, base.url)))
    return result


def action_of(config: Config) -> str:
    """The repository whose action replies to issues, as `owner/repo`; empty if there is none."""
    match = re.fullmatch(
        r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", config.knowledge_base.repository
    )
    return match[1] if match and (config.root / ACTION).is_file() else ""


def workflow(repository: str, url: str) -> str:
    """The workflow that replies to new issues.

    Args:
        repository: The one that has the action, as `owner/repo`.
        url: The address of the site.
    """
    return f"""on: {{issues: {{types: [opened, edited]}}}}
permissions: {{issues: write}}
concurrency: kbtools-${{{{ github.event.issue.number }}}}
jobs:
  diagnose:
    runs-on: ubuntu-latest
    steps:
      - uses: {repository}@COMMIT
        with:
          index: {json.dumps(url)}"""


def issue_form(frame: Frame) -> str:
    """The questions of an issue form whose answers can be diagnosed."""
    words, base = frame.words, frame.model.config.knowledge_base
    before = ""
    if base.url:
        paste = f"{base.url.rstrip('/')}/{prefix(frame.model, frame.language)}paste/"
        before = words("maintainers.form-search", name=base.name, url=paste)
    if base.install:
        source = "" if base.install == "kbtools" else f"--from {shlex.quote(base.install)} "
        command = words("maintainers.form-command", command=f"uvx {source}kbtools diagnose LOG")
        before = f"{before} {command}".strip()
    head = f"  - type: markdown\n    attributes:\n      value: {quoted(before)}\n" if before else ""
    return f"""body:
{head}  - type: textarea
    id: log
    attributes:
      label: {quoted(words("maintainers.form-log"))}
      description: {quoted(words("maintainers.form-log-about"))}
      render: text
    validations: {{required: true}}
  - type: textarea
    id: versions
    attributes:
      label: {quoted(words("maintainers.form-versions"))}
      description: {quoted(words("maintainers.form-versions-about"))}
      render: text
    validations: {{required: true}}"""


def quoted(text: str) -> str:
    """A text as YAML, whatever it holds: JSON is YAML."""
    return json.dumps(text, ensure_ascii=False)


def projects(frame: Frame) -> Mapping[str, list[tuple[str, str]]]:
    """`owner/repo` → its threads that articles mention, each with the page about it."""
    threads: dict[str, list[tuple[str, str]]] = {}
    for reference in frame.model.issues:
        project = re.split("[#@]", reference)[0]
        page = frame.to(issue_path(frame.model, reference, frame.language))
        threads.setdefault(project, []).append((reference.removeprefix(project), page))
    for of_project in threads.values():
        of_project.sort(key=lambda thread: (len(thread[0]), thread[0]))  # numbers by their size
    return dict(sorted(threads.items(), key=lambda item: (-len(item[1]), item[0])))
