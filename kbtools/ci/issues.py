"""One issue on GitHub for each article whose evidence changed, found again by a mark in its text.

It speaks to GitHub through its own program `gh`.
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
"""Only those who may sort issues can set it, so an issue of a stranger is not taken for ours."""


class GitHubError(KbtoolsError):
    """`gh` is not installed, or it refused a command."""


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


def issue(article: Article, news: ArticleChanges, config: Config) -> Issue:
    """What the issue about an article says from now on.

    Args:
        article: The article.
        news: What changed for it, and what is contradicted of it now.
        config: Name and address of the knowledge base.
    """
    link = links.markdown(article.matter, config.knowledge_base.url)
    title = f"{article.id}: {changes.headline(news.standing or news.changes)}"
    comment = "\n".join(f"- {code(changes.line(change))}" for change in news.changes) + "\n"
    if not news.standing:
        comment += f"\nNothing that was run contradicts {article.id} any more.\n"
    lines = [mark(article.id), f"Runs contradict what {link} says.", ""]
    lines += ["| snippet | verdict | on | when | why |", "| --- | --- | --- | --- | --- |"]
    lines += [_row(change) for change in news.standing]
    lines += ["", "New:", "", comment, "Next: run it, then correct the claim or the snippet:", ""]
    lines += [f"    kbtools verify {article.id} --all", ""]
    for reply in changes.replies(article, news.changes, config):
        head, _, text = reply.partition("\n\n")
        lines += [f"A reply that is ready. {code(head)}", "", _fenced(text), ""]
    return Issue(article.id, title[:250], "\n".join(lines), comment, not news.standing)


def _row(change: VerdictChange) -> str:
    cells = (change.snippet, change.after, change.where, change.when, code(change.reason))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def code(text: str) -> str:
    """A text as code: it mentions nobody, and leaves no trace in another project's issue."""
    line = " ".join(text.split())[:500]
    return f"`` {line.replace('``', '` `')} ``"


def _fenced(text: str) -> str:
    fence = "~" * 3
    while fence in text:
        fence += "~"
    return f"{fence}markdown\n{text.rstrip()}\n{fence}"


def post(issues: Sequence[Issue]) -> list[str]:
    """Opens each issue, or updates the open one; a line for each that says what was done.

    Raises:
        GitHubError: `gh` cannot be run, or refuses.
    """
    if not issues:
        return []
    _gh("label", "create", LABEL, "--force", "--description", "Found by kbtools")
    earlier = _open_issues(issues)
    return [_post(issue, *earlier.get(issue.article, (None, ""))) for issue in issues]


def _open_issues(issues: Sequence[Issue]) -> dict[str, tuple[int, str]]:
    """Id of an article → number and text of its open issue, the oldest if there are several."""
    listing = _gh(
        *("issue", "list", "--state", "open", "--label", LABEL),
        *("--limit", "1000", "--json", "number,body"),
    )
    earlier: dict[str, tuple[int, str]] = {}
    for entry in json.loads(listing):
        number, body = int(entry["number"]), str(entry["body"])
        for issue in issues:
            if body.startswith(issue.mark):
                place = (number, body)
                earlier[issue.article] = min(place, earlier.get(issue.article, place))
    return earlier


def _post(issue: Issue, number: int | None, body: str) -> str:
    """Opens an issue, or updates the open one with this number; a line that says what was done.

    `body` is the text of the open one: if it is the same, nobody is told again.
    """
    if number is None:
        if issue.solved:
            return f"{issue.article}: well again, and no issue is open"
        head = ("--title", issue.title, "--label", LABEL)
        address = _gh("issue", "create", *head, "--body-file", "-", stdin=issue.body)
        return f"{issue.article}: opened {address.strip()}"
    if body.split() == issue.body.split():
        return f"{issue.article}: #{number} says so already"
    if not issue.solved:
        edit = ("issue", "edit", str(number), "--title", issue.title, "--body-file", "-")
        _gh(*edit, stdin=issue.body)
    _gh("issue", "comment", str(number), "--body-file", "-", stdin=issue.comment)
    if issue.solved:
        _gh("issue", "close", str(number))
        return f"{issue.article}: closed #{number}"
    return f"{issue.article}: updated #{number}"


def _gh(*arguments: str, stdin: str = "") -> str:
    """What `gh` prints.

    Raises:
        GitHubError: it cannot be run, or refuses.
    """
    try:
        process = subprocess.run(
            ["gh", *arguments], input=stdin.encode(), capture_output=True, check=True
        )
    except OSError as error:
        raise GitHubError(f"gh, the program of GitHub, cannot be run: {error}") from error
    except subprocess.CalledProcessError as error:
        message = error.stderr.decode("utf-8", "replace").strip()
        raise GitHubError(f"gh {' '.join(arguments[:2])}: {message}") from error
    return process.stdout.decode("utf-8", "replace")
