"""One issue for each article that news is about: found again by a mark in its text.

The only module that speaks to GitHub, through its own program `gh`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

import msgspec

from kbtools.articles import links
from kbtools.articles.model import Article
from kbtools.config import Config, KbtoolsError
from kbtools.evidence import changes
from kbtools.evidence.changes import ArticleChanges, VerdictChange

LABEL = "kbtools"
"""Only who may sort issues can set it: no stranger's issue is taken for ours."""


class Issue(msgspec.Struct, frozen=True):
    """The issue that an article ought to have."""

    article: str
    title: str
    body: str
    comment: str
    """What is new, for those who follow the issue already."""
    solved: bool
    """Nothing is contradicted any more."""

    @property
    def mark(self) -> str:
        """By which it is found again."""
        return mark(self.article)


def mark(article: str) -> str:
    """A comment of Markdown that nobody sees."""
    return f"<!-- kbtools:{article} -->"


def issue(article: Article, told: ArticleChanges, config: Config) -> Issue:
    """What the issue about an article says from now on."""
    link = links.markdown(article.matter, config.knowledge_base.url)
    standing = told.standing or told.changes
    title = f"{article.id}: {changes.headline(standing)}"
    comment = "\n".join(f"- {_code(changes.line(one))}" for one in told.changes) + "\n"
    if not told.standing:
        comment += f"\nNothing that was run contradicts {article.id} any more.\n"
    lines = [mark(article.id), f"Runs contradict what {link} says.", ""]
    lines += ["| snippet | verdict | on | when | why |", "| --- | --- | --- | --- | --- |"]
    lines += [_row(one) for one in told.standing]
    lines += ["", "New:", "", comment, "Next: run it, then correct the claim or the snippet:", ""]
    lines += [f"    kbtools verify {article.id} --all", ""]
    for reply in changes.replies(article, told.changes, config):
        head, _, text = reply.partition("\n\n")
        lines += [f"A reply that is ready. {_code(head)}", "", _fenced(text), ""]
    return Issue(article.id, title[:250], "\n".join(lines), comment, not told.standing)


def _row(one: VerdictChange) -> str:
    cells = (one.snippet, one.after, one.where, one.when, _code(one.reason))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _code(text: str) -> str:
    """A text as code: it mentions nobody, and leaves no trace in another project's issue."""
    line = " ".join(text.split())[:500]
    return f"`` {line.replace('``', '` `')} ``"


def _fenced(text: str) -> str:
    fence = "~" * 3
    while fence in text:
        fence += "~"
    return f"{fence}markdown\n{text.rstrip()}\n{fence}"


def post(wanted: Sequence[Issue]) -> list[str]:
    """Opens each issue, or updates the open one; a line for each that says what was done.

    Raises:
        KbtoolsError: `gh` cannot be run, or refuses.
    """
    if not wanted:
        return []
    _gh("label", "create", LABEL, "--force", "--description", "Found by kbtools")
    listed = _gh(
        *("issue", "list", "--state", "open", "--label", LABEL),
        *("--limit", "1000", "--json", "number,body"),
    )
    numbers: dict[str, int] = {}
    for one in json.loads(listed):
        for issue in wanted:
            if str(one["body"]).startswith(issue.mark):
                # of two that are open, by whatever mishap, the older one
                numbers[issue.article] = min(one["number"], numbers.get(issue.article, 10**12))
    return [_post(one, numbers.get(one.article)) for one in wanted]


def _post(one: Issue, number: int | None) -> str:
    if number is None:
        if one.solved:
            return f"{one.article}: well again, and no issue is open"
        words = ("issue", "create", "--title", one.title, "--label", LABEL, "--body-file", "-")
        return f"{one.article}: opened {_gh(*words, given=one.body).strip()}"
    if not one.solved:
        how = ("issue", "edit", str(number), "--title", one.title, "--body-file", "-")
        _gh(*how, given=one.body)
    _gh("issue", "comment", str(number), "--body-file", "-", given=one.comment)
    if one.solved:
        _gh("issue", "close", str(number))
        return f"{one.article}: closed #{number}"
    return f"{one.article}: updated #{number}"


def _gh(*words: str, given: str = "") -> str:
    try:
        done = subprocess.run(["gh", *words], input=given.encode(), capture_output=True, check=True)
    except OSError as error:
        raise KbtoolsError(f"gh, the program of GitHub, cannot be run: {error}") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip()
        raise KbtoolsError(f"gh {' '.join(words[:2])}: {said}") from error
    return done.stdout.decode("utf-8", "replace")
