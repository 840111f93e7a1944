"""Commands from a log to an article: `diagnose`, `link`, `score`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click
import msgspec

from kbtools.articles import links, replies
from kbtools.articles.links import NoAddressError
from kbtools.articles.model import FrontMatter
from kbtools.cli.errors import UnknownArticleError
from kbtools.cli.group import INDEX, config_of, config_to_read
from kbtools.config import KnowledgeBase

if TYPE_CHECKING:
    from kbtools.matching.doctor_report import DoctorReport

DOCTOR = click.option(
    "--doctor",
    "doctor_file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Read a report of the doctor's, of the machine in question: `kbtools doctor --json`.",
)
NO_LINK = "no link: {name} has no address; set `url` of [knowledge-base] in kbtools.toml"


@click.command(short_help="Find the article for a traceback or a log.")
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--reply", "as_reply", is_flag=True, help="Print a comment for an issue tracker.")
@click.option(
    "--top",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    metavar="N",
    help="Show at most N articles.",
)
@DOCTOR
@INDEX
@click.pass_context
def diagnose(
    ctx: click.Context,
    file: BinaryIO,
    as_json: bool,
    as_reply: bool,
    top: int,
    doctor_file: Path | None,
    index: Path | str | None,
) -> None:
    """Find the articles about the failure in FILE, a traceback or a log. [default: standard input]

    What `kbtools doctor` printed may stand in FILE, too: its versions count before those that the
    log shows, and of articles on the same line the one comes first whose cause it found.

    The exit code is 0 if there is an article and 3 if there is none. Nothing leaves this machine.
    """
    from kbtools import matching
    from kbtools.matching import log_ends
    from kbtools.reports import diagnosis

    if as_json and as_reply:
        raise click.UsageError("--json or --reply, not both")
    if file is sys.stdin.buffer and sys.stdin.isatty():
        click.echo("paste the log, then press Ctrl-D", err=True)
    if index is None:
        config_to_read(ctx)  # says so if it is the one that came with kbtools
    knowledge = matching.load(Path(ctx.obj), index)
    doctor = _report_in(doctor_file)
    ends = log_ends.read_ends(file)
    if not ends.text.strip():
        click.echo("the log is empty: give a file, or paste text", err=True)
    of_ends = matching.Matcher(knowledge).diagnose(ends.text, doctor=doctor)
    answer = log_ends.in_whole_log(of_ends, ends)
    if as_json:
        best = msgspec.structs.replace(answer, matches=answer.matches[:top])
        click.echo(msgspec.json.format(msgspec.json.encode(best)))
    elif as_reply:
        causes = {finding.article for finding in answer.findings}
        for match in answer.matches[:1]:
            if not match.confident:
                click.echo(f"not sure: {'; '.join(match.hints)}", err=True)
            line = f"line {match.line} of the log: `{match.text[:200].replace('`', chr(39))}`"
            line += "; the doctor found its cause, too" if match.id in causes else ""
            day = match.looked_up
            text = replies.reply(match, knowledge, line, is_matched=True, reported=day)
            click.echo(text, nl=False)
        if answer.matches and not knowledge.url:
            click.echo(NO_LINK.format(name=knowledge.name), err=True)
        if not answer.matches:
            click.echo("none: there is nothing to reply with", err=True)
    else:
        addresses = {match.id: knowledge.address(match.id) for match in answer.matches}
        click.echo(diagnosis.diagnosis(answer, top, addresses))
    sys.exit(0 if answer.matches else 3)


def _report_in(file: Path | None) -> DoctorReport | None:
    """The report in a file; None for no file."""
    from kbtools.matching.doctor_report import read_report

    return read_report(file.read_text("utf-8", "replace"), str(file)) if file else None


@click.command(short_help="Print the permanent link of an article.")
@click.argument("target", metavar="ID|OWNER/REPO#N|URL", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["url", "markdown", "reply", "badge", "threads"]),
    default="url",
    show_default=True,
    help="What to print for each article; `threads` lists the upstream threads that it names.",
)
@DOCTOR
@click.option(
    "--publish",
    is_flag=True,
    help=f"Add the addresses of all current articles to {links.PUBLISHED}.",
)
@click.pass_context
def link(
    ctx: click.Context, target: str | None, form: str, doctor_file: Path | None, publish: bool
) -> None:
    """Print the permanent link of an article, or the links of the articles about a thread.

    The argument is the id of an article, an upstream thread, or the address of either. With
    --doctor, a reply says whether that machine's versions are affected, and whether the doctor
    found the cause on it. The exit code is 3 if no article is about the thread.
    """
    from kbtools.checks.base import load_base
    from kbtools.checks.together import permanent_addresses

    if doctor_file and form != "reply":
        raise click.UsageError("--doctor goes with --format reply")
    settings = config_of(ctx) if publish else config_to_read(ctx)
    base = load_base(settings)
    report = _report_in(doctor_file)
    if publish:
        new = links.publish(permanent_addresses(base), settings)
        click.echo(
            "\n".join(
                (*new, f"{len(new)} address{'es' * (len(new) != 1)} added to {links.PUBLISHED}")
            )
        )
        return
    if target is None:
        raise click.UsageError("name an article, a thread or an address; see --help")
    matters = [
        *(article.matter for article in base.articles),
        *(notice.article.matter for notice in base.notices),
    ]
    days = {notice.id: str(notice.matter.looked_up) for notice in base.notices}
    identifier, thread = links.article_id(target, settings), links.parse_reference(target)
    if identifier:
        linked = tuple(matter for matter in matters if matter.id == identifier)
        if not linked:
            raise UnknownArticleError(f"no article `{identifier}`; see: kbtools list")
    elif thread:
        linked = links.articles_citing(thread, matters)
        if not linked:
            click.echo(f"no article is about {thread}", err=True)
            sys.exit(3)
    else:
        raise UnknownArticleError(
            f"`{target}` is not an article's id, not a thread as in owner/repo#12, and not the"
            " address of an article or a thread"
        )
    for matter in linked:
        day = days.get(matter.id, "")
        note = _on_machine(matter, report) if report else ""
        click.echo(_link_as(form, matter, settings.knowledge_base, day, note))
    if form in ("url", "reply") and not settings.knowledge_base.url:
        click.echo(NO_LINK.format(name=settings.knowledge_base.name), err=True)


def _on_machine(matter: FrontMatter, report: DoctorReport) -> str:
    """What a report of the doctor's says about an article: its cause, and the versions."""
    from kbtools.matching.versions import as_toolchain
    from kbtools.toolchains.affected import is_affected

    notes = []
    if any(finding.article == matter.id for finding in report.findings):
        notes.append("the doctor found its cause on this machine")
    answer = (
        is_affected(matter.affected, as_toolchain(report.versions)) if matter.affected else None
    )
    if isinstance(answer, bool):
        notes.append(f"the versions in the doctor's report are {'' if answer else 'not '}affected")
    return "; ".join(notes)


def _link_as(
    form: str, matter: FrontMatter, base: KnowledgeBase, reported: str, note: str = ""
) -> str:
    """The link of an article, in a format of `kbtools link --format`.

    `form` is that format; `base` says where the site is; `reported` is the day on which a notice
    was looked up, empty for an article; `note` is why a reply recommends it.
    """
    if form == "reply":
        return replies.reply(matter, base, note, reported=reported).rstrip("\n")
    if form in ("markdown", "badge"):
        if not base.url:
            raise NoAddressError(NO_LINK.format(name=base.name))
        return (
            links.markdown(matter, base.url)
            if form == "markdown"
            else links.badge(matter, base.url)
        )
    if form == "threads":
        return "\n".join(
            f"{thread.kind:<8} {links.upstream_url(thread.reference)}" for thread in matter.upstream
        )
    return links.url(matter.id, base.url)


@click.command(short_help="Measure `diagnose` on logs whose article is given.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), required=False)
@click.option(
    "--tail",
    type=click.IntRange(1),
    metavar="N",
    help="Measure shortened logs, too, which keep their last N lines. [default: 30]",
)
@click.option(
    "--threads",
    "pointers",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Measure public threads instead: JSON Lines with `thread` and `expected`.",
)
@click.option(
    "--texts",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="Where the text of thread owner/repo#12 lies, as owner__repo__12.txt.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@INDEX
@click.pass_context
def score(
    ctx: click.Context,
    folder: Path | None,
    tail: int | None,
    pointers: Path | None,
    texts: Path | None,
    as_json: bool,
    index: Path | str | None,
) -> None:
    """Measure how often `diagnose` finds the right article for the logs in FOLDER.

    FOLDER holds logs and `expected.toml`, which names the article for each of them. Without FOLDER,
    the logs are those of tests/logs and the recorded outputs of all snippets.

    With --threads and --texts, the texts are read where they lie, and nothing of them is printed:
    the rows of --json can be kept.
    """
    if (pointers is None) != (texts is None):
        raise click.UsageError("--threads and --texts go together")
    if pointers and texts:
        if folder or tail:
            raise click.UsageError("--threads takes no FOLDER and no --tail")
        _score_threads(ctx, pointers, texts, as_json, index)
        return
    from kbtools import matching
    from kbtools.checks.base import load_base
    from kbtools.matching import scoring
    from kbtools.reports import diagnosis

    settings = config_of(ctx)
    matcher = matching.Matcher(matching.load(settings.root, index))
    sets = {str(folder or "tests/logs"): [*scoring.corpus(folder or settings.root / "tests/logs")]}
    if folder is None:
        sets["recorded"] = [*scoring.recorded(load_base(settings).articles, settings)]
    for name in tuple(sets):
        sets[f"{name}, last {tail or scoring.TAIL} lines"] = [
            scoring.last_lines(case, tail or scoring.TAIL) for case in sets[name]
        ]
    logs_by_set = {name: scoring.scored(cases, matcher) for name, cases in sets.items()}
    if as_json:
        scores = {name: scoring.score(logs) for name, logs in logs_by_set.items()}
        click.echo(msgspec.json.format(msgspec.json.encode(scores)))
        return
    for name, logs in logs_by_set.items():
        click.echo(diagnosis.score(name, scoring.score(logs)))
        for line in diagnosis.wrong(logs):
            click.echo(line)


def _score_threads(
    ctx: click.Context, file: Path, texts: Path, as_json: bool, index: Path | str | None
) -> None:
    from kbtools import matching
    from kbtools.matching import threads
    from kbtools.reports import threads as report

    if index is None:
        config_to_read(ctx)  # says so if it is the one that came with kbtools
    matcher = matching.Matcher(matching.load(Path(ctx.obj), index))
    rows = tuple(threads.rows(threads.pointers(file), texts, matcher))
    result = threads.shares(rows)
    if as_json:
        answer = {"score": result, "rows": rows}
        click.echo(msgspec.json.format(msgspec.json.encode(answer)))
        return
    click.echo(report.shares(file.name, result))
    for line in report.not_right(rows):
        click.echo(line)
