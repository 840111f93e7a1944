"""Commands about the site of a knowledge base: build it, show it while it is written."""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path

import click
import msgspec

from kbtools.cli.group import config_of, main, refuse_broken
from kbtools.config import Config, KbtoolsError

STEPS = ("generate", "html", "search", "links")


class SiteAddressError(KbtoolsError):
    """The option `--url` does not have the form of an address."""


@click.command(short_help="Build the site.")
@click.option(
    "--only",
    type=click.Choice(STEPS),
    help="Do one step alone. `html` makes no search index; `search` and `links` work on site/.",
)
@click.option("--no-search", is_flag=True, help="Do everything but the search index.")
@click.option("--url", help="Address of the site. [default: `url` in kbtools.toml]")
@click.pass_context
def build(ctx: click.Context, only: str | None, no_search: bool, url: str | None) -> None:
    """Build the site: Markdown in build/pages, HTML in site/ and the search index; check all links.

    The last site is replaced when the new one is complete. If a step fails, the last site stays.
    """
    from kbtools.checks.base import load_base
    from kbtools.site import build as steps
    from kbtools.site import search_index

    # nearly every object lives to the end: looking for unused ones took a fifth of the time
    gc.disable()
    config = with_url(config_of(ctx), url)
    base = load_base(config)
    refuse_broken(base.problems)
    folders = steps.Folders(config.root)
    with steps.build_lock(config):
        steps.recover(config)
        site = folders.site
        if only in (None, "generate"):
            count, changed = len(base.articles), len(steps.generate(base, main).changed)
            articles = f"{count} article{'s' * (count != 1)}"
            click.echo(f"{articles}, {changed} file{'s' * (changed != 1)} changed")
        if only in (None, "html"):
            site = steps.html(config)
        if only in ("search", "links") and not site.is_dir():
            raise steps.SiteBuildError("there is no site yet; see: kbtools build")
        if only == "search" or (only is None and not no_search):
            counts = search_index.index(site, steps.addresses(base))
            parts = (f"{count} pages in {name}" for name, count in sorted(counts.items()))
            click.echo(f"search index: {', '.join(parts)}")
        if only in (None, "links"):
            check_links(site, config)
        if only in (None, "html"):
            steps.publish(config)
            click.echo("the site is in site/")


@click.command(short_help="Show the site while you write.")
@click.option(
    "--port", default=8000, show_default=True, help="Port of the local server; 0 takes a free one."
)
@click.pass_context
def serve(ctx: click.Context, port: int) -> None:
    """Show the site while you write: a saved file is built at once, and open pages reload."""
    import threading

    from kbtools.site import build as steps
    from kbtools.site.live import Live
    from kbtools.site.server import Server

    config = config_of(ctx)
    with steps.build_lock(config):
        live = Live(config, main, click.echo)
        server = Server(live, port)
        server.start()
        click.echo(f"{server.url} (Ctrl-C ends it)")
        live.run(threading.Event())


def with_url(config: Config, url: str | None) -> Config:
    """The configuration with another address of the site; as it is if `url` is None.

    Raises:
        SiteAddressError: `url` is not an address.
    """
    if url is None:
        return config
    if not re.match(r"https?://[^/]+(/|$)", url):
        raise SiteAddressError(
            f"`{url}` is not the address of a site; an example is https://example.org/kb/"
        )
    knowledge_base = msgspec.structs.replace(config.knowledge_base, url=url)
    return msgspec.structs.replace(config, knowledge_base=knowledge_base)


def check_links(site: Path, config: Config) -> None:
    """Reports every broken link, and exits with 1 if there is any."""
    from kbtools.site import linkcheck

    broken = linkcheck.check(site, config.knowledge_base.url)
    for link in broken:
        address = f"{link.address}: " if link.address else ""
        click.echo(f"{site.name}/{link.page}: {address}{link.why}", err=True)
    if broken:
        count = f"{len(broken)} broken link{'s' * (len(broken) > 1)}"
        click.echo(f"\nkbtools: {count}; see {site.relative_to(config.root)}/", err=True)
        sys.exit(1)
