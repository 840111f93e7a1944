"""Thirty broken environments and ten sound ones: what `kbtools doctor` and others say of them.

The others are env-doctor, cuda-doctor and ai-infradr.

    python benchmarks/doctors.py                      # ours alone
    python benchmarks/doctors.py --others PYTHON      # a Python with the other programs

Ours looks at all forty as they are planted for its probes: they are its own cases, so its column
shows that probes do what they say and do not disturb each other, and not how much of the world they
know. For another program the same is planted as far as an ordinary user can: packages that can be
imported, variables, programs on the PATH. What is of the kernel (devices, /proc, the size of
/dev/shm, ages) it cannot see; three rows say so, and in others it knows less than we do. It does
see a toolkit of the real machine: run this where there is none in /usr/local/cuda.

Of a broken environment another program counts as having found something when it reports any problem
that it does not report of the sound environment with the same pieces: which problem is not judged,
which is generous. Of a sound one, all problems count that are more than information.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kbtools import config
from kbtools.doctor import bundle, planting, trying
from kbtools.doctor.planting import MachineSpec
from kbtools.doctor.probe import Probe

ROOT = Path(__file__).parent.parent
BROKEN = (
    *(
        "cpu-build",
        "no-code-for-gpu",
        "driver-too-old",
        "hidden-gpus",
        "triton-pin",
        "triton-missing",
    ),
    *("torch-twice", "torch-half-replaced", "nvjitlink-from-outside", "cudnn-parts-from-outside"),
    *("cublas-from-outside", "torch-library-missing", "cuda-wheel-missing", "cudnn-of-two-cudas"),
    *("extension-of-another-torch", "torchvision-of-another-torch", "xformers-of-another-torch"),
    *("engine-pins-another-torch", "extension-of-another-cuda", "wheel-of-another-torch"),
    *(
        "bitsandbytes-binary",
        "libstdcxx-too-old",
        "cuda-home-leads-nowhere",
        "toolkit-of-another-cuda",
    ),
    *("gcc-too-new-for-nvcc", "no-c-compiler", "arch-list-without-this-gpu"),
    *("driver-library-of-another-version", "small-shared-memory", "stale-extension-lock"),
)
"""Probes whose first planted machine is used."""
OF_THE_KERNEL = {"small-shared-memory", "stale-extension-lock", "driver-library-of-another-version"}
"""What an ordinary user cannot plant for another program."""
CUDA_OF = {"470": "11.4", "535": "12.2", "570": "12.8", "580": "13.0"}
"""Major version of a driver → the CUDA that nvidia-smi names for it."""
TOOLS = {
    "env-doctor": "from env_doctor.cli import main; main()|check --json",
    "cuda-doctor": "from cuda_doctor.cli import main; main()|diagnose -f json",
    "ai-infradr": "from ai_infradr.cli.main import main; main()|--json",
}
TORCH = """
from types import SimpleNamespace as _N
from .version import __version__, cuda as _cuda
version = _N(cuda=_cuda, hip=None, git_version="")
_seen = bool(_cuda) and {gpus} and {count} > 0
cuda = _N(
    is_available=lambda: _seen, device_count=lambda: {count} if _seen else 0,
    get_arch_list=lambda: {targets!r}.split(), get_device_name=lambda i=0: {name!r},
    get_device_capability=lambda i=0: {capability},
    get_device_properties=lambda i=0: _N(
        name={name!r}, major={capability}[0], minor={capability}[1], total_memory=85 * 10**9
    ),
    is_initialized=lambda: False,
    nccl=_N(version=lambda: (2, 27, 3)),
)
backends = _N(cudnn=_N(version=lambda: 91002, is_available=lambda: _seen, enabled=True))
distributed = _N(is_available=lambda: True, is_nccl_available=lambda: bool(_cuda))
"""
SMI = """#!{python}
import sys
rows, cuda = {rows!r}, {cuda!r}
query = next((a for a in sys.argv if a.startswith("--query-gpu=")), "")
if query:
    for index, (name, capability, driver) in enumerate(rows):
        fields = {{"name": name, "compute_cap": capability, "driver_version": driver}}
        fields["gpu_name"] = name
        fields |= {{"index": str(index), "memory.total": "81559 MiB", "uuid": f"GPU-{{index}}"}}
        print(", ".join(fields.get(f, "[N/A]") for f in query.partition("=")[2].split(",")))
elif "-L" in sys.argv:
    print(*[f"GPU {{i}}: {{row[0]}} (UUID: GPU-{{i}})" for i, row in enumerate(rows)], sep="\\n")
else:
    print(f"| NVIDIA-SMI {{rows[0][2]}}  Driver Version: {{rows[0][2]}}  CUDA Version: {{cuda}} |")
"""


def planted_for_others(spec: MachineSpec, root: Path, tools: Path) -> dict[str, str]:
    """Writes an environment with a Python that runs; gives the variables of a process in it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / "venv"], check=True)
    site = next((root / "venv/lib").glob("python*/site-packages"))
    inside = "/" + site.relative_to(root).as_posix()
    machine = planting.plant(msgspec.structs.replace(spec, site=inside), root)
    result = machine.run(["nvidia-smi", "--query-gpu=name,compute_cap,driver_version"])
    rows = [row.split(", ") for row in result.output.strip().splitlines()] if result else []
    _driver(spec, rows)
    _torch(spec, site, rows)
    _programs(spec, root, rows)
    variables = {}
    for name, value in machine.environment.items():
        parts = value.split(":") if name.endswith("PATH") else [value]
        mapped = [
            str(root) + p if (root / p.lstrip("/")).exists() and p[:1] == "/" else p for p in parts
        ]
        variables[name] = ":".join(mapped)
    folders = [root / "usr/bin", root / "usr/local/cuda/bin", root / "sbin"]
    variables["PATH"] = ":".join(str(folder) for folder in folders if folder.is_dir())
    home = root / "home/ada"
    home.mkdir(parents=True, exist_ok=True)
    return {
        **variables,
        "HOME": str(home),
        "PYTHONPATH": str(tools),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _driver(spec: MachineSpec, rows: list[list[str]]) -> None:
    """nvidia-smi of a real machine has the version that the kernel has."""
    text = spec.files.get("/proc/driver/nvidia/version", "")
    versions = [word for word in text.split() if word[:3].isdigit() and "." in word]
    for row in rows if versions else ():
        row[2] = versions[0]


def _torch(spec: MachineSpec, site: Path, rows: list[list[str]]) -> None:
    if not (site / "torch/version.py").is_file():
        return
    library = next((s for p, s in spec.libraries.items() if p.endswith("libtorch_python.so")), None)
    visible = spec.environment.get("CUDA_VISIBLE_DEVICES", "0")
    fields = {
        "gpus": bool(rows) and visible in ("0", "1"),
        "count": len(rows),
        "targets": library.text if library else "",
        "name": rows[0][0] if rows else "",
        "capability": tuple(int(n) for n in rows[0][1].split(".")) if rows else (0, 0),
    }
    (site / "torch/__init__.py").write_text(TORCH.format(**fields))


def _programs(spec: MachineSpec, root: Path, rows: list[list[str]]) -> None:
    """Scripts that print what is planted for them; nvidia-smi answers any question about fields."""
    folder = root / "usr/bin"
    folder.mkdir(parents=True, exist_ok=True)
    outputs: dict[str, list[tuple[str, str]]] = {}
    for line, output in spec.commands.items():
        name, _, arguments = line.partition(" ")
        outputs.setdefault(name, []).append((arguments, output))
    for name, answers in outputs.items():
        if name in ("python", "nvidia-smi", "dmesg"):
            continue
        cases = "\n".join(f"  '{a}'*) printf '%s' '{o.lstrip('!')}' ;;" for a, o in answers)
        places = [root / p.lstrip("/") for p in spec.programs if p.endswith(f"/{name}")]
        for place in places or [folder / name]:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f'#!/bin/sh\ncase "$*" in\n{cases}\nesac\n')
            place.chmod(0o755)
    if rows:
        major = rows[0][2].partition(".")[0]
        script = SMI.format(python=sys.executable, rows=rows, cuda=CUDA_OF.get(major, "12.8"))
        (folder / "nvidia-smi").write_text(script)
        (folder / "nvidia-smi").chmod(0o755)


def problems_of(spec: MachineSpec, tools: Path | None) -> dict[str, set[str]]:
    """The problems that each other program reports of an environment."""
    if tools is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        variables = planted_for_others(spec, root, tools)
        return {tool: answer(tool, root, variables) for tool in TOOLS}


def answer(tool: str, root: Path, variables: dict[str, str]) -> set[str]:
    """The problems that one program reports of the environment in a folder."""
    code, _, arguments = TOOLS[tool].partition("|")
    program = f"import sys; sys.argv = ['x', *sys.argv[1:]]; {code}"
    process = subprocess.run(
        [str(root / "venv/bin/python"), "-c", program, *arguments.split()],
        env=variables,
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    try:
        report = json.loads(process.stdout[process.stdout.find("{") :])
    except ValueError:
        return {"no JSON: " + (process.stderr.strip().splitlines() or [""])[-1][:80]}
    return {problem.replace(str(root), "") for problem in listed(tool, report)}


def listed(tool: str, report: dict[str, object]) -> set[str]:
    """The problems in a report, without what is only information."""
    problems = msgspec.convert(report, dict[str, object])
    if tool == "ai-infradr":
        issues = msgspec.convert(problems.get("issues", []), list[dict[str, object]])
        return {str(i["code"]) for i in issues if i.get("severity") != "info"}
    if tool == "env-doctor":
        checks = msgspec.convert(problems.get("checks", {}), dict[str, object])
        entries = [c for c in checks.values() if isinstance(c, dict)]
        lists = [c for c in checks.values() if isinstance(c, list)]
        entries += [c for several in lists for c in several if isinstance(c, dict)]
        return {str(issue) for entry in entries for issue in entry.get("issues") or ()}
    findings = problems.get("findings") or problems.get("issues") or problems.get("diagnoses") or []
    entries = msgspec.convert(findings, list[dict[str, object]])
    severe = [
        e for e in entries if str(e.get("severity", "")).lower() not in ("info", "ok", "pass")
    ]
    return {str(e.get("id") or e.get("code") or e.get("rule_id") or e.get("title")) for e in severe}


def baseline(spec: MachineSpec) -> str:
    """The sound machine with the same pieces as a broken one."""
    names = {"h100": "h100", "rtx5090": "rtx5090", "torch-cu128": "cuda-wheel-without-gpu"}
    names |= {"torch-cu126": "cuda-wheel-without-gpu", "torch-cpu": "cpu-box"}
    if "toolkit-128" in spec.pieces and "h100" in spec.pieces:
        return "h100-toolkit"
    return next((sound for piece, sound in names.items() if piece in spec.pieces), "empty")


def cell_of(problems: set[str]) -> str:
    """Problems as a cell of the table."""
    return ("; ".join(sorted(problem[:60] for problem in problems))[:90]).replace("\n", " ")


def table(probes: Sequence[Probe], planted: planting.Planted, tools: Path | None) -> int:
    """Prints a row for each environment, and the sums; how many of ours are wrong."""
    names = ["kbtools doctor", *(TOOLS if tools else ())]
    print("| environment | article | " + " | ".join(names) + " |")
    print("| --- | --- |" + " --- |" * len(names))
    hits, alarms = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    sound = {name: problems_of(spec, tools) for name, spec in planted.sound.items()}
    articles = {probe.id: probe.article for probe in probes}
    for name in BROKEN:
        case = next(
            c for c in planted.cases if c.probe == name and c.kind == "finds" and c.number == 1
        )
        reported = {a.probe.article for a in trying.examined(case.machine, probes) if a.findings}
        right = articles[name] in reported
        hits[names[0]] += right
        more = ", ".join(sorted(reported - {articles[name]}))
        cells = [("✓" if right else "✗") + (f" and {more}" if more else "")]
        if name in OF_THE_KERNEL:
            cells += ["not planted"] * (len(names) - 1)
        else:
            for tool, problems in problems_of(case.machine, tools).items():
                news = problems - sound[baseline(case.machine)][tool]
                hits[tool] += bool(news)
                cells.append(f"✓ {cell_of(news)}" if news else "–")
        print(
            f"| {case.machine.about} | {articles[name]} | " + " | ".join(cells) + " |", flush=True
        )
    for name, spec in planted.sound.items():
        ours = {a.probe.id for a in trying.examined(spec, probes) if a.findings}
        answers = {names[0]: ours, **sound[name]}
        for tool, problems in answers.items():
            alarms[tool] += bool(problems)
        cells = [f"✗ {cell_of(problems)}" if problems else "✓" for problems in answers.values()]
        print(f"| *sound:* {spec.about or name} | none | " + " | ".join(cells) + " |")
    print()
    for name in names:
        totals = f"{hits[name]} of {len(BROKEN)} broken, {alarms[name]} of {len(sound)} sound"
        print(f"- {name}: reports {totals}")
    return len(BROKEN) - hits[names[0]] + alarms[names[0]]


def main() -> None:
    """Prints the table; the exit code is 1 if ours is wrong about one."""
    parser = argparse.ArgumentParser(description="What doctors say of forty environments.")
    parser.add_argument("--others", metavar="PYTHON", help="a Python with the other programs")
    python = parser.parse_args().others
    tools = None
    if python:
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        answer = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        tools = Path(answer.stdout.strip())
    settings = config.find(ROOT)
    os.environ.pop("VIRTUAL_ENV", None)
    probes = bundle.probes_of(settings)
    sys.exit(1 if table(probes, planting.read(settings.probes), tools) else 0)


if __name__ == "__main__":
    main()
