"""The command line: the only place that prints or exits.

Exit codes of every command: 0 well; 1 a claim is contradicted or a check failed; 2 the input or
the call cannot be read; 3 nothing could be concluded; 130 Ctrl-C, with what finished kept.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import msgspec

from kbtools import __version__, config
from kbtools.article import Article, Role
from kbtools.config import Config, Unreadable


class Group(click.Group):
    """Turns what may go wrong below into a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        # a CI that cancels: end as on Ctrl-C, with what finished kept and nothing left running
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return super().invoke(ctx)
        except Unreadable as error:
            click.echo(f"kbtools: {error}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            sys.exit(130)
        except BrokenPipeError:
            # the reader of the pipe has left; the interpreter must not flush into it again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(128 + signal.SIGPIPE)
        except OSError as error:
            click.echo(f"kbtools: {error}", err=True)
            sys.exit(2)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@click.option(
    "-C",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Work on the knowledge base that this folder lies in.",
)
@click.pass_context
def main(ctx: click.Context, folder: Path) -> None:
    """A knowledge base in which every claim is executed."""
    ctx.obj = folder


def found(ctx: click.Context) -> Config:
    """The configuration of the knowledge base that the command is about."""
    return config.find(Path(ctx.obj))


@main.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.pass_context
def check(ctx: click.Context, paths: tuple[Path, ...]) -> None:
    """Reports every problem of every article, or of those at PATHS."""
    from kbtools import checks
    from kbtools.reports import text

    base = checks.load(found(ctx))
    wanted = {selected_path(base, str(path)) for path in paths}
    problems = [p for p in checks.check(base) if not wanted or p.place.path in wanted]
    for problem in problems:
        click.echo(text.problem(problem) + "\n")
    files = len(wanted) or len(base.pages)
    click.echo(
        f"{files} file{'s' * (files != 1)} checked, {len(problems) or 'no'} problem"
        f"{'s' * (len(problems) != 1)}"
    )
    sys.exit(1 if problems else 0)


def selected_path(base: Any, word: str) -> str:
    """The path of the page that an argument names, by id or by path."""
    for page in base.pages:
        same_id = page.matter.get("id") == word
        if same_id or page.path == word or (base.config.root / page.path) == Path(word).resolve():
            return str(page.path)
    raise Unreadable(f"no article `{word}`; kbtools list shows what there is")


@main.command()
@click.pass_context
def rules(ctx: click.Context) -> None:
    """Prints the rules that `check` holds articles to."""
    from kbtools import checks

    for rule in checks.RULES:
        click.echo(f"{click.style(rule.code, bold=True)} {rule.name}\n")
        click.echo("    " + rule.page.replace("\n", "\n    ") + "\n")


@main.command()
@click.pass_context
def schema(ctx: click.Context) -> None:
    """Prints the JSON Schema of an article's front matter, for editors."""
    from kbtools.schema import front_matter_schema

    click.echo(msgspec.json.format(msgspec.json.encode(front_matter_schema(found(ctx)))))


@main.command()
@click.argument("title")
@click.pass_context
def new(ctx: click.Context, title: str) -> None:
    """Writes the skeleton of an article TITLE, with the next free id."""
    from kbtools.starting import new_article

    base = found(ctx)
    file = new_article(base, title)
    click.echo(f"{file.relative_to(base.root)}\n\nIt is valid and runs as it is. Try:\n")
    click.echo(f"    kbtools verify {file.name.split('-')[0]}")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--name", prompt="Name of the knowledge base", help="As shown to readers.")
@click.option("--prefix", prompt="Prefix of its ids", default="KB", help="Capital letters.")
def init(folder: Path, name: str, prefix: str) -> None:
    """Starts a knowledge base of your own in FOLDER."""
    from kbtools.starting import new_base

    try:
        for file in new_base(folder, name, prefix):
            click.echo(f"wrote {file}")
    except OSError as error:
        raise Unreadable(f"{folder}: {error}") from error
    click.echo(f"\nTry it:\n\n    cd {folder} && kbtools check && kbtools verify")


@main.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    """Lists the articles with the state that follows from their evidence."""
    from kbtools import checks
    from kbtools.state import state_of

    base = checks.load(found(ctx))
    rows = [(one, state_of(one, base.config)) for one in base.articles]
    if as_json:
        whole = [
            {**msgspec.to_builtins(one.matter), "state": s, "path": one.path} for one, s in rows
        ]
        click.echo(msgspec.json.format(msgspec.json.encode(whole)))
        return
    for one, state in rows:
        click.echo(f"{click.style(one.id, bold=True)}  {state.word:<12} {one.matter.title}")
    refuse_broken(base.problems)


@main.command()
@click.argument("article")
@click.pass_context
def explain(ctx: click.Context, article: str) -> None:
    """Shows an ARTICLE in the terminal, with its computed state."""
    from rich.console import Console
    from rich.markdown import Markdown

    from kbtools import checks
    from kbtools.state import as_markdown

    base = checks.load(found(ctx))
    path = selected_path(base, article)
    refuse_broken([p for p in base.problems if p.place.path == path])
    one = next(a for a in base.articles if a.path == path)
    text = as_markdown(one, base.config)
    if sys.stdout.isatty():
        Console().print(Markdown(text))
    else:
        click.echo(text)


def refuse_broken(problems: Iterable[Any]) -> None:
    """Reports what keeps articles from being read, and exits with 2 if there is any of it."""
    from kbtools.reports import text

    shown = [text.problem(problem) for problem in problems]
    if shown:
        click.echo("\n\n".join(shown), err=True)
        click.echo("\nkbtools: these articles cannot be read; see: kbtools check", err=True)
        sys.exit(2)


@main.command()
@click.pass_context
def build(ctx: click.Context) -> None:
    """Builds the site: pages of Markdown in build/pages, HTML in site."""
    from kbtools import checks
    from kbtools.site.build import build as build_html
    from kbtools.site.generate import generate

    base = checks.load(found(ctx))
    refuse_broken(base.problems)
    changed = generate(base, base.config.root / "build" / "pages")
    click.echo(f"{len(base.articles)} articles, {len(changed)} pages changed")
    click.echo(f"the site is in {build_html(base.config).relative_to(base.config.root)}/")


TOOLCHAIN = click.option(
    "--toolchain",
    metavar="NAME|PYTHON",
    help="One of toolchains.toml, or the path of an interpreter. [default: this one]",
)


@main.command()
@TOOLCHAIN
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def env(ctx: click.Context, toolchain: str | None, as_json: bool) -> None:
    """Shows what the toolchain is, as evidence would record it."""
    from kbtools import environments

    where = environments.find(found(ctx), toolchain)
    holds = environments.describe(where)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(holds)))
        return
    for key, value in environments.as_rows(holds, where):
        click.echo(f"{click.style(key, bold=True):<28} {value}")


@main.command()
@click.argument("articles", nargs=-1, metavar="[ID|PATH|ID/SNIPPET]...")
@click.option("--jobs", "-j", type=click.IntRange(1), default=os.cpu_count(), show_default="cores")
@click.option("--all", "again", is_flag=True, help="Run what is remembered, too.")
@click.option(
    "--role",
    "roles",
    type=click.Choice([str(r) for r in Role]),
    multiple=True,
    help="Only snippets of this role; may be given several times.",
)
@TOOLCHAIN
@click.option(
    "--isolation",
    type=click.Choice(["fork", "spawn"]),
    default="fork",
    show_default=True,
    help="A fork of a warm interpreter for each snippet, or a new one.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Instead of what configuration and fences say.",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first red verdict.")
@click.option("--record", is_flag=True, help="Write what was seen to evidence/.")
@click.option("--json", "json_file", metavar="FILE", help="Write JSON to FILE, or to - .")
@click.option("--junit", "junit_file", metavar="FILE", help="Write JUnit XML to FILE.")
@click.option("--quiet", "-q", is_flag=True, help="Only the summary.")
@click.option("--no-sandbox", is_flag=True, help="Do not shut snippets in.")
@click.pass_context
def verify(ctx: click.Context, /, articles: tuple[str, ...], **given: Any) -> None:
    """Runs the snippets of ARTICLES (default: all) and judges them against their claims.

    Exits with 0 when no claim is contradicted, 1 when one is, 2 when an article cannot be read,
    3 when nothing could be concluded.
    """
    from kbtools import checks, environments
    from kbtools.verifying import Options, plan

    base = checks.load(found(ctx))
    readable, problems = checks.readable(base)
    chosen, only, refused = select(base, readable, problems, articles)
    where = environments.find(base.config, given["toolchain"])
    toolchain = environments.describe(where)
    roles = [Role(role) for role in given["roles"]] or list(Role)
    tasks = plan(chosen, toolchain, where.name, roles)
    tasks = tuple(t for t in tasks if not only or t.snippet.name in only or t.article.id in only)
    options = Options(
        jobs=given["jobs"],
        again=given["again"],
        record=given["record"],
        fresh=given["isolation"] == "spawn",
        timeout=given["timeout"],
        fail_fast=given["fail_fast"],
        sandbox=not given["no_sandbox"],
    )
    results, seconds, interrupted = run_all(base.config, where.python, tasks, options, given)
    report(results, toolchain, seconds, given)
    colours = {result.verdict.colour for result in results}
    if interrupted:
        click.echo(f"interrupted: {len(results)} of {len(tasks)} finished, and kept", err=True)
        sys.exit(130)
    refuse_broken(refused)
    if any(result.trouble for result in results):
        sys.exit(2)
    sys.exit(1 if "red" in colours else 0 if "green" in colours else 3)


def select(
    base: Any, readable: Iterable[Article], problems: Iterable[Any], words: tuple[str, ...]
) -> tuple[list[Article], set[str], list[Any]]:
    """The articles that words name, what to keep of them, and what cannot be read."""
    readable, problems = list(readable), list(problems)
    if not words:
        return readable, set(), problems
    chosen, only, paths = [], set(), set()
    for word in words:
        identifier, slash, snippet = word.partition("/")
        is_snippet = bool(slash) and base.config.id_pattern.fullmatch(identifier)
        path = selected_path(base, identifier if is_snippet else word)
        paths.add(path)
        for one in readable:
            if one.path != path:
                continue
            if is_snippet and snippet not in [s.id for s in one.snippets]:
                there = ", ".join(s.name for s in one.snippets)
                raise Unreadable(f"no snippet `{word}`; there are: {there}")
            only.add(word if is_snippet else one.id)
            chosen += [one] if one not in chosen else []
    return chosen, only, [p for p in problems if p.place.path in paths]


def run_all(
    base: Config, python: str, tasks: Any, options: Any, given: dict[str, Any]
) -> tuple[list[Any], float, bool]:
    """Runs the tasks and shows them as they end; the results, the seconds, whether Ctrl-C came."""
    from contextlib import ExitStack

    from kbtools.reports import text
    from kbtools.running.executor import ZygoteFailed
    from kbtools.verifying import Bench

    # with JSON on standard output, what is for people goes to standard error
    aside = given["json_file"] == "-"
    stream = sys.stderr if aside else sys.stdout
    results, started, interrupted = [], time.monotonic(), False
    bench = Bench(base, python, tasks, options)
    with ExitStack() as stack:
        progress = None
        if stream.isatty() and not given["quiet"]:
            from rich.console import Console

            from kbtools.reports.progress import Progress

            progress = stack.enter_context(Progress(len(tasks), Console(file=stream)))
        try:
            for result in bench.verify(progress.started if progress else lambda *_: None):
                results.append(result)
                line = text.verdict(result)
                if progress:
                    progress.finished(result, line)
                elif not given["quiet"]:
                    click.echo(line, err=aside)
        except KeyboardInterrupt:
            interrupted = True
        except ZygoteFailed as error:
            raise Unreadable(str(error)) from error
    return results, time.monotonic() - started, interrupted


def report(results: list[Any], toolchain: Any, seconds: float, given: dict[str, Any]) -> None:
    """Prints the summary and writes the files that were asked for."""
    from kbtools.reports import machine, text

    aside = given["json_file"] == "-"
    click.echo(
        ("" if given["quiet"] else "\n") + text.summary(results, seconds, toolchain.label),
        err=aside,
    )
    for name, printer in (("json_file", machine.as_json), ("junit_file", machine.as_junit)):
        if given[name] == "-":
            click.echo(printer(results, toolchain), nl=False)
        elif given[name]:
            try:
                Path(given[name]).write_bytes(printer(results, toolchain))
            except OSError as error:
                raise Unreadable(f"cannot write {given[name]}: {error}") from error


if __name__ == "__main__":
    main()
