"""Rules that a notice must keep: what it says was not run here, so a receipt stands behind it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from packaging.utils import canonicalize_name

from kbtools.articles.decoding import parse_affected
from kbtools.articles.model import ABSENT, Problem
from kbtools.articles.notices import Notice
from kbtools.articles.parsing import Page
from kbtools.articles.receipt_grammar import Kind
from kbtools.articles.receipts import receipts_in
from kbtools.config import Config
from kbtools.toolchains.affected import parse_range
from kbtools.toolchains.model import MACHINE

LONGEST = 1500
"""Characters of a notice's text, without its blocks of code."""
NO_RECEIPTS = (Kind.INFERRED, Kind.MALFORMED)
"""What stands in brackets and leads to nothing."""


def kb401_bound_without_receipt(page: Page, notice: Notice, config: Config) -> Iterator[Problem]:
    """Every clause of `affected` stands in `bounds` with its receipt, and `bounds` has no other.

    Nobody here has run what a notice says. So a bound that no thread, changelog or source states
    is not written: without a lower bound the page says that the first release is not known.
    """
    stated: set[tuple[str, str]] = set()
    for i, bound in enumerate(notice.matter.bounds):
        line = page.line_of(f"bounds[{i}].bound")
        try:
            ends = set(_ends(parse_affected(bound.bound)))
        except ValueError as error:
            yield page.problem(line, f"`bound`: {error}", 'write it as "package<2.8"')
            continue
        stated |= ends
        for name, clause in sorted(ends - set(_ends(notice.matter.affected))):
            message = f"`{name}{clause}` is not a clause of `affected`"
            yield page.problem(line, message, "write the bound as it stands in `affected`")
    for i, alternative in enumerate(notice.matter.affected):
        for name, clause in _ends((alternative,)):
            if (name, clause) not in stated:
                yield page.problem(
                    page.line_of(f"affected[{i}].{name}"),
                    f"no receipt for the bound `{name}{clause}`",
                    f'add - {{bound: "{name}{clause}", receipt: owner/repo#123}} to `bounds`,'
                    " or leave the bound out",
                )


def _ends(affected: tuple[dict[str, str], ...]) -> Iterator[tuple[str, str]]:
    """The single clauses of ranges, each with its name; none of a text that is not a range."""
    for alternative in affected:
        for name, text in alternative.items():
            try:
                clauses = [f" {ABSENT}"] if text == ABSENT else sorted(map(str, parse_range(text)))
            except ValueError:
                continue  # KB103 says so
            for clause in clauses:
                yield name, clause


def kb402_name_in_affected(page: Page, notice: Notice, config: Config) -> Iterator[Problem]:
    """A name in `affected` is written as package indexes write it; GPUs stand in `hardware`.

    Lower-case letters, digits and hyphens: `flashinfer-python`. A project without a distribution
    has the name of its repository. By these names the pages of packages are made.
    """
    for i, alternative in enumerate(notice.matter.affected):
        for name in alternative:
            line = page.line_of(f"affected[{i}].{name}")
            if name == "sm":
                step = "write it as hardware: {sm: …, receipt: …}"
                yield page.problem(line, "`sm` stands in `hardware` of a notice", step)
            elif name not in MACHINE and name != canonicalize_name(name):
                step = f"write `{canonicalize_name(name)}`"
                yield page.problem(line, f"`{name}` is not written as an index writes it", step)


def kb403_looked_up(page: Page, notice: Notice, config: Config) -> Iterator[Problem]:
    """`looked-up` is the day on which somebody read the threads to their ends, so not tomorrow."""
    if notice.matter.looked_up > datetime.datetime.now(datetime.UTC).date():
        line = page.line_of("looked-up")
        yield page.problem(line, "looked up in the future", "write the day on which you read it")


def kb404_hardware(page: Page, notice: Notice, config: Config) -> Iterator[Problem]:
    """`hardware` has a range of compute capabilities (`sm`), words, or both."""
    hardware = notice.matter.hardware
    if hardware is None:
        return
    if not (hardware.sm or hardware.words):
        step = 'add sm: ">=9.0,<10.0" or words: "H100"'
        yield page.problem(page.line_of("hardware"), "`hardware` names no hardware", step)
    try:
        parse_range(hardware.sm or "")
    except ValueError as error:
        line = page.line_of("hardware.sm")
        yield page.problem(line, f"`sm`: {error}", 'write it as sm: ">=9.0,<10.0"')


def kb405_text(page: Page, notice: Notice, config: Config) -> Iterator[Problem]:
    """The text of a notice is short, at most 1,500 characters, and cites what stands behind it.

    As in `[owner/repo#12]`, at the end of a sentence. Who has more to say writes an article.
    """
    code = {
        line
        for fence in page.fences
        for line in range(fence.line, fence.line + fence.code.count("\n") + 2)
    }
    below = enumerate(page.lines[page.opening :], page.opening + 1)
    text = "\n".join(line for number, line in below if number not in code).strip()
    line = min(page.opening + 2, len(page.lines))
    cited = any(receipt.kind not in NO_RECEIPTS for receipt in receipts_in(text))
    if not cited and "](https://" not in text:
        step = "end a sentence with [owner/repo#12], the thread that says so"
        yield page.problem(line, "no sentence of the text has a receipt", step)
    if len(text) > LONGEST:
        message = f"the text has {len(text)} characters; at most {LONGEST} are allowed"
        yield page.problem(line, message, "shorten it, or write an article")
