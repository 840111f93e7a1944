"""Replies on issues: one for each, however often and by how many runs; what GitHub may answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from github_host import LIMITS, SECONDARY, TOKEN, Answer, Host, refusal

from kbtools.integrations import comments
from kbtools.integrations.comments import Comment
from kbtools.integrations.github import (
    GitHub,
    NoAnswerError,
    RateLimitError,
    RefusedError,
)

SITE = "https://example.org/kb/"


def text_of(
    article: str = "KB0001", edition: str = "2026-01-01T00:00:00Z", site: str = SITE
) -> str:
    """A reply as `kbtools answer` writes it."""
    return f"{comments.mark(article, site, edition)}\nThis looks like {article}.\n"


@pytest.fixture
def host() -> Iterator[Host]:
    """A repository without comments."""
    host = Host()
    yield host
    host.close()


class Run:
    """A run of the action, which waits for nothing but notes for how long it would have waited."""

    def __init__(self, host: Host, token: str = TOKEN) -> None:
        self.pauses: list[float] = []
        self.reports: list[str] = []
        self.github = GitHub(token, host.url, self.reports.append, self.pauses.append)

    def send(self, text: str = text_of()) -> Comment:
        """Sends a reply to issue 12."""
        return comments.send(self.github, "owner/repo", 12, text)


def bodies(host: Host) -> list[str]:
    """The texts of all comments."""
    return [comment["body"] for comment in host.comments]


def test_one_comment_however_often(host: Host) -> None:
    """The first run comments; every further one, a job run again too, leaves that comment alone."""
    first = Run(host).send()
    assert first == Comment("created", host.comments[0]["html_url"])
    for edition in ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"):
        later = Run(host).send(text_of(edition=edition))
        assert (later.action, later.address) == ("left", first.address)
    assert bodies(host) == [text_of()]
    assert host.notifications == 1


def test_an_edited_issue_may_be_about_another_article(host: Host) -> None:
    """Its comment is updated, which notifies nobody; a run of an older edition changes nothing."""
    Run(host).send(text_of(edition="2026-01-02T00:00:00Z"))
    assert Run(host).send(text_of("KB0002", "2026-01-01T00:00:00Z")).action == "left"
    newer = text_of("KB0002", "2026-01-03T00:00:00Z")
    assert Run(host).send(newer).action == "updated"
    assert bodies(host) == [newer]
    assert host.notifications == 1


def test_two_knowledge_bases(host: Host) -> None:
    """An issue that another knowledge base has answered gets no second reply."""
    Run(host).send()
    other = Run(host).send(text_of("DATA0001", "2027-01-01T00:00:00Z", "https://other.example/"))
    assert other.action == "left"
    assert other.reason == f"the reply is one of {SITE}"
    assert bodies(host) == [text_of()]


@pytest.mark.parametrize("position", [0, 99, 100, 150, 249])
def test_every_page_is_read(host: Host, position: int) -> None:
    """The reply is found wherever it stands among 250 comments, and nothing is posted."""
    for number in range(250):
        host.add(text_of() if number == position else "Me too", "Bot")
    assert Run(host).send().action == "left"
    assert len(host.comments) == 250
    assert host.requests == ["GET /repos/owner/repo/issues/12/comments"] * 3


def test_a_stranger_cannot_silence_it(host: Host) -> None:
    """A mark that a stranger wrote, or quoted, is none; that of a member's own token is."""
    host.add(text_of())
    host.add("> " + text_of(), "Bot")
    assert Run(host).send().action == "created"
    host.comments[-1]["user"]["type"] = "User"
    host.comments[-1]["author_association"] = "MEMBER"
    assert Run(host).send().action == "left"


def test_two_runs_at_once(host: Host) -> None:
    """Both find no reply and comment at the same time: one comment remains."""
    both = threading.Barrier(2, timeout=30)
    host.before_post = both.wait
    results: list[Comment] = []
    threads = [threading.Thread(target=lambda: results.append(Run(host).send())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert host.notifications == 2
    assert bodies(host) == [text_of()]
    assert {result.address for result in results} == {host.comments[0]["html_url"]}
    assert "left" in {result.action for result in results}


def soon(seconds: float) -> str:
    """A time as `x-ratelimit-reset` has it: in UTC epoch seconds."""
    return str(int(time.time() + seconds))


@pytest.mark.parametrize(
    ("answer", "least", "most"),
    [
        (refusal(403, SECONDARY, LIMITS, retry_after="7"), 7, 7),
        (refusal(429, SECONDARY, LIMITS, retry_after="7"), 7, 7),
        (refusal(403, SECONDARY, LIMITS), 60, 60),
        (refusal(429, "Too Many Requests", LIMITS), 60, 60),
        (
            refusal(
                403,
                "API rate limit exceeded for installation ID 1.",
                LIMITS,
                x_ratelimit_limit="1000",
                x_ratelimit_remaining="0",
                x_ratelimit_reset="soon",
            ),
            200,
            301,
        ),
    ],
    ids=["403 retry-after", "429 retry-after", "403 alone", "429 alone", "primary"],
)
@pytest.mark.parametrize("number", [0, 1, 2], ids=["list", "create", "look again"])
def test_it_waits_as_long_as_github_asks(
    host: Host, answer: Answer, least: float, most: float, number: int
) -> None:
    """By `retry-after`, by `x-ratelimit-reset`, or one minute; then there is one comment."""
    status, headers, value = answer
    if "x-ratelimit-reset" in headers:
        headers = {**headers, "x-ratelimit-reset": soon(300)}
    host.next_answers = [*[None] * number, (status, headers, value)]
    run = Run(host)
    assert run.send().action == "created"
    [pause] = run.pauses
    assert least <= pause <= most
    assert "GitHub limits the rate of requests" in run.reports[0]
    assert bodies(host) == [text_of()]


def test_it_waits_longer_each_time(host: Host) -> None:
    """While a secondary limit lasts, every pause is twice the one before."""
    host.next_answers = [refusal(403, SECONDARY, LIMITS)] * 3
    run = Run(host)
    assert run.send().action == "created"
    assert run.pauses == [60, 120, 240]


def test_it_does_not_wait_for_ever(host: Host) -> None:
    """A job does not wait an hour: it fails and says to run it again."""
    host.next_answers = [refusal(403, SECONDARY, LIMITS, retry_after="3600")]
    run = Run(host)
    with pytest.raises(RateLimitError, match=r"asks to wait 3600 s.* run the job again later"):
        run.send()
    assert (run.pauses, bodies(host)) == ([], [])


PERMISSIONS = "permissions: {issues: write}"


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (
            refusal(
                403,
                "Resource not accessible by integration",
                x_accepted_github_permissions="issues=write; pull_requests=write",
            ),
            rf"{PERMISSIONS}.*of a fork .* only reads .*issues=write; pull_requests=write",
        ),
        (refusal(403, "Resource not accessible by personal access token"), PERMISSIONS),
        (refusal(404, "Not Found"), f"may not see it.*{PERMISSIONS}"),
        (refusal(401, "Bad credentials", "https://docs.github.com/rest"), "token is not valid"),
        (refusal(422, "Validation Failed"), "does not accept the text"),
    ],
    ids=["read only", "personal", "404", "401", "422"],
)
@pytest.mark.parametrize("number", [0, 1], ids=["list", "create"])
def test_a_refusal_says_what_to_set(host: Host, answer: Answer, advice: str, number: int) -> None:
    """A token that may not comment is an error, at once, with what to do about it."""
    host.next_answers = [*[None] * number, answer]
    run = Run(host)
    with pytest.raises(RefusedError, match=advice):
        run.send()
    assert (run.pauses, bodies(host)) == ([], [])


def test_a_wrong_token(host: Host) -> None:
    """It is refused, and no part of it is shown."""
    with pytest.raises(RefusedError, match="token is not valid") as refused:
        Run(host, "another-token").send()
    assert "another-token" not in str(refused.value)


def test_a_text_that_is_too_long(host: Host) -> None:
    """The details of a refusal are part of the message."""
    with pytest.raises(RefusedError, match=r"Validation Failed; Body is too long \(maximum"):
        Run(host).send(text_of() + "x" * 70_000)


@pytest.mark.parametrize(
    "answer",
    [
        refusal(403, "Unable to create comment because issue is locked."),
        refusal(410, "This issue was deleted"),
        refusal(410, "Issues are disabled for this repo"),
    ],
    ids=["locked", "deleted", "disabled"],
)
def test_an_issue_that_takes_no_comment(host: Host, answer: Answer) -> None:
    """A conversation that is locked or gone is nobody's mistake: no comment, and no failure."""
    host.next_answers = [None, answer]
    result = Run(host).send()
    assert (result.action, result.reason) == ("none", answer[2]["message"])


SERVER_ERROR = (502, {"content-type": "text/html"}, {"message": "Server Error"})


def test_an_error_of_the_server_when_reading(host: Host) -> None:
    """What only reads is tried again."""
    host.next_answers = [SERVER_ERROR, SERVER_ERROR]
    run = Run(host)
    assert run.send().action == "created"
    assert run.pauses == [2, 4]
    host.next_answers = [SERVER_ERROR] * 10
    with pytest.raises(NoAnswerError, match="502: Server Error"):
        run.send()


@pytest.mark.parametrize("was_created", [False, True])
def test_an_error_of_the_server_when_writing(host: Host, was_created: bool) -> None:
    """A comment whose fate is unknown is looked for before it is sent again."""
    if was_created:
        host.fails_after_creating = True
    else:
        host.next_answers = [None, SERVER_ERROR]
    result = Run(host).send()
    assert result.action == ("left" if was_created else "created")
    assert bodies(host) == [text_of()]
    assert host.notifications == 1


def test_nothing_answers(host: Host) -> None:
    """A host that cannot be reached is an error that names it."""
    host.close()
    with pytest.raises(NoAnswerError, match=r"no answer from 127\.0\.0\.1:"):
        Run(host).send()


def test_redirections(host: Host) -> None:
    """They are followed with the same method, but the token is not sent to another host."""
    moved = {"location": f"{host.url}/repositories/1300192/issues/12/comments"}
    host.next_answers = [(301, moved, None), None, (307, moved, None)]
    assert Run(host).send().action == "created"
    assert [request.split()[0] for request in host.requests] == [*["GET"] * 2, *["POST"] * 2, "GET"]
    other = Host()
    host.next_answers = [(301, {"location": f"{other.url}/repos/owner/repo"}, None)]
    with pytest.raises(RefusedError, match="address of another host"):
        Run(host).send()
    assert other.requests == []
    other.close()


def test_an_answer_that_is_no_json(host: Host) -> None:
    """A page of HTML with a status of failure is an error with that status."""
    host.next_answers = [(418, {"content-type": "text/html"}, None)]
    with pytest.raises(RefusedError, match="418, status 418"):
        Run(host).send()


def test_only_what_answer_wrote_is_sent(host: Host) -> None:
    """A text without a mark would be posted again and again: it is refused."""
    with pytest.raises(comments.UnmarkedReplyError):
        Run(host).send("Hello.")
    assert host.requests == []
