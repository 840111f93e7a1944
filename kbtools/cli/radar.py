"""The command that proposes which notices to look up again."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING

import click
import msgspec

from kbtools.cli.group import config_of, refuse_broken

if TYPE_CHECKING:
    from kbtools.toolchains.radar import ThreadState


@click.command(short_help="Propose notices to look up again.")
@click.option("--threads", is_flag=True, help="Ask GitHub what became of each notice's threads.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.pass_context
def radar(ctx: click.Context, threads: bool, as_json: bool) -> None:
    """Propose the notices whose window has no end, though newer releases are out.

    The package index that pip uses is asked for releases. With --threads, GitHub is asked, too, and
    a notice is left out while all of its threads are open; the token is in GH_TOKEN. Nothing is
    changed: read the thread and the changelog, then write the bound with its receipt.

    The exit code is 1 if there is a proposal.
    """
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
