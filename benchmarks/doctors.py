"""Thirty broken environments and ten sound ones: what `kbtools doctor` and others say of them.

The others are env-doctor, cuda-doctor and ai-infradr.

    python benchmarks/doctors.py                      # ours alone, on planted machines
    python benchmarks/doctors.py --others PYTHON      # a Python with the other programs; as root
    python benchmarks/doctors.py --others PYTHON --in-full    # and what each of them says

With --others all four run in the same place (`doctor_machines.py`): a root directory in which the
packages, the toolkit, the devices, the driver's version and the size of /dev/shm stand where they
would, and in which the real machine's CUDA and compilers are not seen. PyTorch is a stand-in that
answers as the planted build would: it raises where a library is missing, and finds no GPU with a
driver that is too old. Ours is the file that the site offers.

The environments are our own cases: our column shows that probes do what they say and do not disturb
each other, and not how much of the world they know. Another program counts as having found
something when its JSON has any problem that it has not for the sound environment with the same
pieces, whichever that is; or when a line of what it prints for people is new and names the
breakage, and is not marked as well. Of a sound environment only the problems in its JSON count that
it grades worst, and that there is no GPU does not count where there is none.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import doctor_machines
import msgspec
from doctor_machines import Symptom

from kbtools import config
from kbtools.doctor import bundle, planting, trying
from kbtools.doctor.planting import MachineSpec
from kbtools.doctor.probe import Probe

ROOT = Path(__file__).parent.parent
OURS = "kbtools doctor"
TOOLS = {
    "env-doctor": (
        "from env_doctor.cli import main; main()",
        ("check", "--json"),
        (("check",), ("cuda-info",), ("cudnn-info",)),
    ),
    "cuda-doctor": (
        "from cuda_doctor.cli import main; main()",
        ("diagnose", "-f", "json"),
        (("diagnose",),),
    ),
    "ai-infradr": ("from ai_infradr.cli.main import main; main()", ("--json",), (("--verbose",),)),
}
"""Name → how it is started, its answer as JSON, and its answers for people."""
NAMES = {
    "cpu-build": r"cpu",
    "no-code-for-gpu": r"sm_?120|12\.0|capabilit|architecture",
    "driver-too-old": r"driver",
    "hidden-gpus": r"visible|hidden|is_available|unavailable",
    "triton-pin": r"triton",
    "triton-missing": r"triton",
    "torch-twice": r"twice|duplicate|several|multiple|two|shadow",
    "torch-half-replaced": r"metadata|mismatch|differ|inconsistent|half",
    "nvjitlink-from-outside": r"nvjitlink|LD_LIBRARY_PATH",
    "cudnn-parts-from-outside": r"cudnn|LD_LIBRARY_PATH",
    "cublas-from-outside": r"cublas|LD_LIBRARY_PATH",
    "torch-library-missing": r"librar|missing|not found",
    "cuda-wheel-missing": r"nvidia-|missing|not installed",
    "cudnn-of-two-cudas": r"cudnn",
    "extension-of-another-torch": r"extension|abi|flash",
    "torchvision-of-another-torch": r"torchvision",
    "xformers-of-another-torch": r"xformers",
    "engine-pins-another-torch": r"vllm|sglang|requires torch",
    "extension-of-another-cuda": r"cuda|extension",
    "wheel-of-another-torch": r"wheel|flash|extension|abi",
    "bitsandbytes-binary": r"bitsandbytes",
    "libstdcxx-too-old": r"libstdc|GLIBCXX",
    "cuda-home-leads-nowhere": r"CUDA_HOME",
    "toolkit-of-another-cuda": r"mismatch|toolkit|nvcc",
    "gcc-too-new-for-nvcc": r"gcc|host compiler",
    "no-c-compiler": r"gcc|compiler",
    "arch-list-without-this-gpu": r"ARCH_LIST|capabilit|architecture",
    "driver-library-of-another-version": r"libcuda|mismatch|driver",
    "small-shared-memory": r"shm|shared memory",
    "stale-extension-lock": r"lock",
}
"""Probe → a pattern: a new line of an answer that has it names the breakage."""
NO_FILE = "{}: cannot open shared object file: No such file or directory"
SYMPTOMS = {
    "nvjitlink-from-outside": Symptom(
        "libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12"
    ),
    "torch-library-missing": Symptom(NO_FILE.format("libnccl.so.2")),
    "cuda-wheel-missing": Symptom(NO_FILE.format("libnccl.so.2")),
    "driver-library-of-another-version": Symptom(
        of_smi="Failed to initialize NVML: Driver/library version mismatch"
    ),
}
"""Probe → what fails on its machine before anybody looks."""
BROKEN = tuple(NAMES)
"""Probes whose first planted machine is used."""
NO_GPU = re.compile(
    r"(gpu|driver|nvidia-smi|cuda).{0,40}(not|unavailable|False)|no .{0,8}gpu", re.I
)
"""That there is no GPU is no alarm where there is none."""
VARYING = re.compile(r"\d{4}-\d\d-\d\dT\S+|/venv\S*|[│┃╭╰┏┗┡├─━═]+")
"""What differs between two answers about one machine."""


WELL = re.compile("[✓✅📦ℹ]")
"""Marks of a line that says what is well, or what there is."""


class Answer(msgspec.Struct, frozen=True):
    """What one program said of one machine."""

    problems: frozenset[str]
    """In its JSON, without what is only information."""
    errors: frozenset[str] = frozenset()
    """Those that it grades worst."""
    lines: frozenset[str] = frozenset()
    """Of its answers for people, without those that say what is well."""
    fall: str = ""
    """The exception that an answer for people ended with."""


def answers_of(
    spec: MachineSpec, tools: Path | None, archive: bytes, probe: str = ""
) -> dict[str, Answer]:
    """What our doctor as one file, and each other program, say of a machine.

    `probe` is the one whose machine it is; empty for a sound one.
    """
    if tools is None:
        return {}
    with (
        tempfile.TemporaryDirectory() as folder,
        doctor_machines.placed(
            spec, Path(folder).resolve(), archive, SYMPTOMS.get(probe, Symptom())
        ) as machine,
    ):
        text, _ = machine.run("/venv/bin/python", "/doctor.pyz", "--json", "--lang", "en")
        findings = json.loads(text)["findings"]
        ours = frozenset(finding["article"] for finding in findings)
        answers = {OURS: Answer(ours, errors=ours)}
        more = {"PYTHONPATH": str(tools), "COLUMNS": "400"}
        for name, (code, as_json, for_people) in TOOLS.items():
            program = f"import sys; sys.argv = ['x', *sys.argv[1:]]; {code}"
            start = partial(machine.run, "/venv/bin/python", "-c", program, more=more)
            with ThreadPoolExecutor(2) as pool:
                printed, *texts = pool.map(
                    lambda words, run=start: run(*words), (as_json, *for_people)
                )
            answers[name] = answer_in(name, printed[0], texts)
    return answers


def answer_in(tool: str, printed: str, texts: Sequence[tuple[str, str]]) -> Answer:
    """The answer in a program's JSON and in its texts for people, each with its error output."""
    lines = (line for text, _ in texts for line in text.splitlines() if not WELL.search(line))
    falls = [errors.strip().splitlines()[-1] for _, errors in texts if "Traceback" in errors]
    try:
        grades = graded(tool, json.loads(printed[printed.find("{") :]))
    except ValueError:
        grades = {}
    return Answer(
        frozenset(grades),
        frozenset(text for text, is_worst in grades.items() if is_worst),
        frozenset(VARYING.sub("", line).strip() for line in lines) - {""},
        falls[0] if falls else "",
    )


def graded(tool: str, report: dict[str, Any]) -> dict[str, bool]:
    """The problems in a report, without what is only information → whether it grades them worst."""
    if tool != "env-doctor":
        return {
            str(issue.get("title")): issue.get("severity") not in ("WARNING", "medium", "low")
            for issue in report.get("issues") or report.get("diagnoses") or ()
            if str(issue.get("severity")).lower() != "info"
        }
    problems = {}
    for component in components(report["checks"]):
        is_worst = component.get("status") in ("error", "mismatch")
        texts = component.get("issues") or [component.get("message")] * is_worst
        problems |= {str(text): is_worst for text in texts}
    return problems


def components(checks: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tables with a status in a report of env-doctor, however deep."""
    for value in checks.values():
        if isinstance(value, dict):
            if "status" in value:
                yield value
            yield from components(value)


def baseline(spec: MachineSpec) -> str:
    """The sound machine with the same pieces as a broken one."""
    names = {"h100": "h100", "rtx5090": "rtx5090", "torch-cu128": "cuda-wheel-without-gpu"}
    names |= {"torch-cu126": "cuda-wheel-without-gpu", "torch-cpu": "cpu-box"}
    if "toolkit-128" in spec.pieces and "h100" in spec.pieces:
        return "h100-toolkit"
    return next((sound for piece, sound in names.items() if piece in spec.pieces), "empty")


def cell_of(problems: Iterable[str]) -> str:
    """Problems as a cell of the table."""
    return ("; ".join(sorted(problem[:60] for problem in problems))[:90]).replace("|", "/")


def row_of(about: str, article: str, cells: Sequence[str]) -> str:
    """A row of the table."""
    return f"| {about} | {article} | " + " | ".join(cells) + " |"


def table(
    probes: Sequence[Probe],
    planted: planting.Planted,
    tools: Path | None,
    archive: bytes,
    *,
    in_full: bool = False,
) -> int:
    """Prints a row for each environment, and the sums; how many of ours are wrong.

    `in_full` is whether each cell has the beginning of what was said.
    """
    names = [OURS, *(TOOLS if tools else ())]
    print(row_of("environment", "article", names))
    print("| --- | --- |" + " --- |" * len(names))
    hits, alarms = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    sound = {name: answers_of(spec, tools, archive) for name, spec in planted.sound.items()}
    articles = {probe.id: probe.article for probe in probes}
    for name in BROKEN:
        case = next(
            c for c in planted.cases if c.probe == name and c.kind == "finds" and c.number == 1
        )
        answers = answers_of(case.machine, tools, archive, name)
        reported = {a.probe.article for a in trying.examined(case.machine, probes) if a.findings}
        reported = set(answers[OURS].problems) if tools else reported
        more = ", ".join(sorted(reported - {articles[name]}))
        mark = "✓" if articles[name] in reported else "–"
        cells = [f"{mark}, and {more}" if more else mark]
        hits[OURS] += articles[name] in reported
        for tool in names[1:]:
            answer, before = answers[tool], sound[baseline(case.machine)][tool]
            lines = answer.lines - before.lines
            news = answer.problems - before.problems
            news |= {line for line in lines if re.search(NAMES[name], line, re.IGNORECASE)}
            hits[tool] += bool(news)
            fall = f"– (ends with {answer.fall})" if answer.fall and not before.fall else "–"
            cells.append((f"✓ {cell_of(news)}" if in_full else "✓") if news else fall)
        print(row_of(case.machine.about, articles[name], cells), flush=True)
    for name, spec in planted.sound.items():
        ours = {a.probe.article for a in trying.examined(spec, probes) if a.findings}
        answers = {OURS: frozenset(ours)} | {t: a.errors for t, a in sound[name].items()}
        has_gpu = "nvidia-smi --query-gpu=name" in spec.commands
        cells = []
        for tool in names:
            problems = {p for p in answers[tool] if has_gpu or not NO_GPU.search(p)}
            alarms[tool] += bool(problems)
            wrong = f"✗ {cell_of(problems)}" if in_full else "✗"
            cells.append(wrong if problems else "✓")
        print(row_of(f"*sound:* {spec.about or name}", "none", cells), flush=True)
    print()
    for name in names:
        totals = f"{hits[name]} of {len(BROKEN)} broken, {alarms[name]} of {len(sound)} sound"
        print(f"- {name}: reports {totals}")
    return len(BROKEN) - hits[names[0]] + alarms[names[0]]


def main() -> None:
    """Prints the table; the exit code is 1 if ours is wrong about one."""
    parser = argparse.ArgumentParser(description="What doctors say of forty environments.")
    parser.add_argument("--others", metavar="PYTHON", help="a Python with the other programs")
    parser.add_argument("--in-full", action="store_true", help="also what each of them says")
    options = parser.parse_args()
    python = options.others
    tools = None
    if python:
        doctor_machines.enter_namespace()
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        answer = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        tools = Path(answer.stdout.strip())
    settings = config.find(ROOT)
    os.environ.pop("VIRTUAL_ENV", None)
    probes = bundle.probes_of(settings)
    archive = bundle.build(settings, probes)
    planted = planting.read(settings.probes)
    sys.exit(1 if table(probes, planted, tools, archive, in_full=options.in_full) else 0)


if __name__ == "__main__":
    main()
