"""The command line of `doctor.pyz`, and what `kbtools doctor` does, too."""

from __future__ import annotations

import argparse
import json
import os
import pkgutil
import sys
import time
from typing import List, Optional, Sequence

from kbtools.doctor import report
from kbtools.doctor.collection import ProbeError, load
from kbtools.doctor.machine import InterpreterError, machine_of
from kbtools.doctor.probe import Probe, examine

SECONDS = 2.5
"""After which the passive probes start no program any more."""
ACTIVE_SECONDS = 120.0
"""The same with `--gpu`: two processes have to import a library and reach the GPUs."""


def language_of(environment: "os._Environ[str] | dict[str, str]") -> str:
    """`zh` if the user's locale is Chinese, otherwise `en`."""
    values = [environment.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG")]
    return "zh" if next(filter(None, values), "").startswith("zh") else "en"


def answer(
    probes: Sequence[Probe],
    about: report.About,
    *,
    python: str = "",
    form: str = "text",
    gpu: bool = False,
    language: str = "",
    colour: bool = False,
) -> "tuple[str, int]":
    """Runs probes on this machine: what to print, and the exit code.

    Args:
        probes: of the knowledge base.
        about: the knowledge base.
        python: the interpreter to look at; empty: that which runs this.
        form: `text`, `json` or `paste`.
        gpu: whether probes may use the GPUs.
        language: `en` or `zh`; empty: that of the user's locale.
        colour: whether the text is for a terminal with colours.

    Raises:
        InterpreterError: the interpreter cannot be run.
    """
    language = language or language_of(os.environ)
    start = time.monotonic()
    machine = machine_of(python, seconds=ACTIVE_SECONDS if gpu else SECONDS, active=gpu)
    examined = list(examine(machine, probes))
    seconds = time.monotonic() - start
    record = report.record_of(machine, examined, about, language, seconds)
    if form == "json":
        text = report.as_json(record)
    elif form == "paste":
        text = report.as_paste(record, os.environ, language, about.url)
    else:
        text = report.as_text(record, language, colour)
    return text, report.exit_code(record)


def about_of(content: bytes) -> report.About:
    """The knowledge base, of the file `about.json` in the archive."""
    return report.About(**json.loads(content.decode("utf-8")))


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(
        prog="doctor.pyz",
        description="Looks for what is wrong with a Python environment, and for what will be."
        " Reads and never writes; uses no network."
        " Exit code: 0 nothing is surely wrong, 1 something is, 2 usage.",
    )
    options.add_argument("--python", default="", metavar="PYTHON", help="look at this interpreter")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_argument(
        "--paste", action="store_true", help="print Markdown for an issue, without names and tokens"
    )
    options.add_argument("--gpu", action="store_true", help="use the GPUs, too: up to two minutes")
    options.add_argument("--lang", choices=["en", "zh"], default="", help="of the answer")
    return options


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the probes that are packed beside this module; the exit code."""
    options = parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a login node may have the locale C
            stream.reconfigure(encoding="utf-8", errors="replace")
    form = "json" if options.json else "paste" if options.paste else "text"
    try:
        about = about_of(pkgutil.get_data("kbtools.doctor", "about.json") or b"{}")
        text, code = answer(
            load(),
            about,
            python=options.python,
            form=form,
            gpu=options.gpu,
            language=options.lang,
            colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
        )
    except (InterpreterError, ProbeError) as error:
        print(f"doctor: {error}", file=sys.stderr)
        return 2
    print(text)
    return code
