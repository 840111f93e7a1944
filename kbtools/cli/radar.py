"""What new releases may have changed: notices to look up again, and the steps of a nightly job."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from packaging.version import Version

from kbtools.cli.group import config_of, refuse_broken
from kbtools.toolchains.model import MACHINE

if TYPE_CHECKING:
    import datetime
    from collections.abc import Iterator, Sequence

    from kbtools.articles.notices import Notice
    from kbtools.config import Config
    from kbtools.toolchains.radar import Proposal, ThreadState


@click.group(invoke_without_command=True, short_help="Say what new releases may have changed.")
@click.option("--threads", is_flag=True, help="Ask GitHub what became of each notice's threads.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.pass_context
def radar(ctx: click.Context, threads: bool, as_json: bool) -> None:
    """Propose the notices whose window has no end, though newer releases are out.

    The package index that pip uses is asked for releases. With --threads, GitHub is asked, too, and
    a notice is left out while all of its threads are open; the token is in GH_TOKEN. Nothing is
    changed: read the thread and the changelog, then write the bound with its receipt.

    The commands below are the steps of a nightly job, fleet/radar.sh and fleet/releases.sh.

    The exit code is 1 if there is a proposal.
    """
    if ctx.invoked_subcommand:
        if threads or as_json:
            raise click.UsageError("give options behind the command")
        return
    from kbtools.checks.base import load_base
    from kbtools.toolchains import radar as radars
    from kbtools.toolchains.package_index import release_days
    from kbtools.toolchains.pip_settings import read_pip_settings

    base = load_base(config_of(ctx))
    settings = read_pip_settings()
    ask = thread_state if threads else _nobody
    listed = [
        *radars.proposals(base.notices, cache(lambda name: release_days(name, settings)), ask)
    ]
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(listed)))
    for proposal in () if as_json else listed:
        newest = ", ".join(proposal.releases[-3:])
        click.echo(f"{click.style(proposal.notice, bold=True)}  {proposal.title}")
        click.echo(f"  {proposal.package} has {newest} since {proposal.looked_up}; no end is known")
        for thread, state in proposal.threads.items():
            click.echo(f"  read {thread}" + ("" if state == "unknown" else f" ({state})"))
        click.echo()
    if not as_json and not listed:
        click.echo("no notice without an end has a newer release")
    refuse_broken(base.problems)
    sys.exit(1 if listed else 0)


@radar.command(short_help="List releases that no toolchain names yet.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.pass_context
def releases(ctx: click.Context, as_json: bool) -> None:
    """List the toolchains that new releases make, as names that `toolchain sync` builds.

    Of each package in `headline` of kbtools.toml the package index is asked for a release that is
    newer than all that toolchains.toml names. What evidence was recorded with is left out.
    """
    from kbtools.checks.cached import load_cached
    from kbtools.ci.releases import tried
    from kbtools.evidence import store as rows
    from kbtools.toolchains import declared
    from kbtools.toolchains import radar as radars
    from kbtools.toolchains.package_index import release_days
    from kbtools.toolchains.pip_settings import read_pip_settings

    config = config_of(ctx)
    settings = read_pip_settings()
    packages = _distributions(config)
    recorded = {
        article.id: rows.read(config.evidence, article.id)
        for article in load_cached(config).articles
    }
    present = {*tried({}, recorded, packages)}
    declarations = declared.read_declarations(config)
    listed = [
        release
        for release in radars.new_releases(
            declarations, packages, lambda name: release_days(name, settings)
        )
        if f"{release.package} {release.version}" not in present
    ]
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(listed)))
        return
    for release in listed:
        click.echo(release.toolchain)


@radar.command(short_help="Say what new releases changed, as one issue.")
@click.option(
    "--since", "ref", metavar="REF", required=True, help="Compare with what this commit has."
)
@click.option(
    "--unbuilt",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Lines of toolchains that could not be built, each with a tab and the reason.",
)
@click.option("--issue", "is_posted", is_flag=True, help="Open or update one issue, with gh.")
@click.pass_context
def report(ctx: click.Context, ref: str, unbuilt: Path | None, is_posted: bool) -> None:
    """Say what new releases changed since a commit, by the evidence, the tables and the index.

    An article that is fixed, one that is back, a name that is gone, a pin that moved, a toolchain
    that could not be built, and notices without an end whose package has a release since that day.
    """
    from kbtools.checks.base import load_base, readable_articles
    from kbtools.ci import git, issues
    from kbtools.ci import releases as news_of
    from kbtools.evidence import changes
    from kbtools.evidence import store as rows
    from kbtools.tables import changes as of_tables
    from kbtools.tables import store

    config = config_of(ctx)
    base = load_base(config)
    readable, _ = readable_articles(base)
    after = {article.id: rows.read(config.evidence, article.id) for article in readable}
    before = git.evidence_at(ref, config)
    tables = store.read(config)
    failures = unbuilt.read_text("utf-8").splitlines() if unbuilt else ()
    headline = tuple(config.toolchain.headline)
    news = news_of.News(
        tried=news_of.tried(before, after, _distributions(config)),
        failures=tuple(
            news_of.Failure(name, reason)
            for name, _, reason in (line.partition("\t") for line in failures)
        ),
        articles=changes.changes_between(before, after, readable, headline),
        tables=of_tables.changes_between(
            git.tables_at(ref, tables.tables, config), {**tables.releases, **tables.statements}
        ),
        proposals=(),
    )
    fresh = {text.partition(" ")[0] for text in news.tried} | {c.package for c in news.tables}
    proposals = tuple(_since(git.day_of(ref, config), fresh, base.notices))
    news = msgspec.structs.replace(news, proposals=proposals)
    issue = news_of.issue(news, config)
    click.echo("\n".join(news_of.lines(news)).strip() if issue else "nothing changed")
    for line in issues.post([issue]) if issue and is_posted else ():
        click.echo(line, err=True)


def _distributions(config: Config) -> tuple[str, ...]:
    """Those by which toolchains are named."""
    return tuple(name for name in config.toolchain.headline if name not in MACHINE)


def _since(day: datetime.date, fresh: set[str], notices: Sequence[Notice]) -> Iterator[Proposal]:
    """The proposals that a release makes which was published on a day or later.

    `fresh` are the packages with a new release, where the index does not say the day.
    """
    from kbtools.toolchains import radar as radars
    from kbtools.toolchains.package_index import release_days
    from kbtools.toolchains.pip_settings import read_pip_settings

    settings = read_pip_settings()
    days_of = cache(lambda name: release_days(name, settings))
    for proposal in radars.proposals(notices, days_of, _nobody):
        days = days_of(proposal.package)
        newest = [days[Version(text)] for text in proposal.releases]
        days_known = [published for published in newest if published]
        if any(d >= day for d in days_known) or (not days_known and proposal.package in fresh):
            yield proposal


def _nobody(_: str) -> ThreadState:
    return "unknown"


def thread_state(reference: str) -> ThreadState:
    """What became of a thread, as GitHub says; `unknown` for a commit.

    Args:
        reference: As in `owner/repo#12`.

    Raises:
        KbtoolsError: GitHub refuses, or does not answer.
    """
    from kbtools.integrations.github import API, GitHub

    repository, hash_sign, number = reference.partition("#")
    if not hash_sign:
        return "unknown"
    client = GitHub(os.environ.get("GH_TOKEN", ""), os.environ.get("GITHUB_API_URL") or API)
    issue = client.request("GET", f"/repos/{repository}/issues/{number}").value or {}
    if (issue.get("pull_request") or {}).get("merged_at"):
        return "merged"
    return "closed" if issue.get("state") == "closed" else "open"
