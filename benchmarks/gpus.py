"""The sandbox around a GPU, and several GPUs against one, in one run.

    python benchmarks/gpus.py --json FILE

Attacks (tests/attacks.py) with and without the sandbox; CUDA, Triton, Inductor, nvcc, NCCL within;
then wall time of the same snippets on one GPU and on two, four, eight of them. Ends with 1 when
something is not as it should be; what a machine lacks is skipped, and says so.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[0:0] = [str(ROOT), str(ROOT / "tests")]

from attacks import ATTACKS, plant, snippets  # noqa: E402
from bases import Base, Finished, fence  # noqa: E402

from kbtools.config import Running  # noqa: E402
from kbtools.running import Executor, Run  # noqa: E402
from kbtools.verification.schedule import Capacity, Job, Placement, Schedule  # noqa: E402
from kbtools.verification.workers import Workers  # noqa: E402

RANK = """
import torch
import torch.distributed as dist
{more}

def work(rank{arguments}):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", {address}rank=rank, world_size=2)
    x = torch.full((1 << 20,), float(rank + 1), device="cuda")
    dist.all_reduce(x)
    assert x.eq(3).all().item()
    dist.destroy_process_group()

"""
WORKS = {
    "cuda": (
        "python control requires=gpu",
        "import torch\n\nassert (torch.ones(8, device='cuda') + 1).sum().item() == 16",
    ),
    "triton": (
        "python control requires=gpu",
        """
        import torch, triton
        import triton.language as tl


        @triton.jit
        def double(x, y, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


        x = torch.ones(1000, device="cuda")
        y = torch.empty_like(x)
        double[(8,)](x, y, 1000, 128)
        assert y.sum().item() == 2000
        """,
    ),
    "inductor": (
        "python control requires=gpu",
        """
        import torch


        @torch.compile
        def f(x):
            return (x * 2 + 1).relu()


        assert f(torch.ones(1024, device="cuda")).sum().item() == 3072
        """,
    ),
    "inductor-cpp": (
        "python control",
        """
        import torch


        @torch.compile
        def f(x):
            return (x * 2 + 1).relu()


        assert f(torch.ones(1024)).sum().item() == 3072
        """,
    ),
    "nvcc": (
        "cuda control requires=gpu",
        """
        __global__ void kernel(int *x) { *x = 7; }
        int main() {
          int *p, x = 0;
          cudaMalloc(&p, 4);
          kernel<<<1, 1>>>(p);
          cudaMemcpy(&x, p, 4, cudaMemcpyDeviceToHost);
          return x != 7;
        }
        """,
    ),
    "nccl-by-spawn": (
        "python control requires=gpus:2",
        RANK.format(
            more="import torch.multiprocessing as mp",
            arguments="",
            address="'tcp://127.0.0.1:29500', ",
        )
        + "if __name__ == '__main__':\n    mp.spawn(work, nprocs=2)\n",
    ),
    "nccl-by-torchrun": (
        "bash control requires=gpus:2",
        "cat >work.py <<'EOF'\n"
        + RANK.format(more="import os", arguments="", address="").strip()
        + "\n\nwork(int(os.getenv('LOCAL_RANK')))\nEOF\n"
        + "python -m torch.distributed.run --standalone --nproc-per-node 2 work.py\n",
    ),
}
HEAVY = """
import torch

x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
for _ in range({count}):
    y = x @ x
torch.cuda.synchronize()
"""
TINY = "import torch\n\nassert (torch.ones(8, device='cuda') + {n}).sum().item() == 8 * (1 + {n})\n"
TRIVIAL = "x = {n}\n"


def verified(base: Base, *words: str) -> tuple[Finished, float]:
    """A run of `kbtools verify`, and its seconds."""
    started = time.perf_counter()
    report = base.verify("--all", "-j", "8", *words, timeout=300)
    if not report.json:
        raise SystemExit(f"no report: {report.out}{report.err}")
    return report, time.perf_counter() - started


def as_a_table(title: str, rows: Sequence[Sequence[object]]) -> None:
    """Prints a block of the summary."""
    print(f"\n{title}")
    for first, *cells in rows:
        print(f"  {first!s:<36} " + "  ".join(f"{cell!s:<16}" for cell in cells), flush=True)


def attacks(base: Base, folder: Path) -> tuple[dict[str, Any], bool]:
    """Each attack within the sandbox and without it."""
    with plant(folder) as words:
        base.article(*snippets({**words, "base": str(base.root)}))
        within, _ = verified(base)
        without, _ = verified(base, "--no-sandbox")
    results: dict[str, dict[str, str]] = {}
    good = within.json["unsandboxed"] == ""
    for attack in ATTACKS:
        inside, outside = within.result(attack.name), without.result(attack.name)
        failed, succeeded = inside["verdict"] == "reproduced", outside["verdict"] != "reproduced"
        good &= failed and (succeeded or not attack.sure)
        results[attack.name] = {
            "within": "fails" if failed else "SUCCEEDS",
            "without": "succeeds" if succeeded else "fails",
            "by": inside["reason"],
        }
    as_a_table(
        f"attacks, within and without; not sandboxed: {within.json['unsandboxed'] or 'nothing'}",
        [
            (name, result["within"], result["without"], result["by"])
            for name, result in results.items()
        ],
    )
    return {"unsandboxed": within.json["unsandboxed"], "attacks": results}, bool(good)


def works(base: Base) -> tuple[dict[str, Any], bool]:
    """What must work within the sandbox."""
    base.article(*(fence(f"{info} id={name}", code) for name, (info, code) in WORKS.items()))
    report, seconds = verified(base)
    results = {
        name: {
            "verdict": result["verdict"],
            "seconds": result["seconds"],
            "reason": result["reason"],
        }
        for name in WORKS
        for result in [report.result(name)]
    }
    rows = [
        (n, o["verdict"], f"{o['seconds']:.1f} s", o["reason"][:90]) for n, o in results.items()
    ]
    as_a_table(f"within the sandbox ({seconds:.0f} s)", rows)
    for name, result in results.items():
        if result["verdict"] == "broken":
            print(f"\n{name}:\n{report.result(name)['outcome']['output'][-1500:]}")
    return results, all(result["verdict"] in ("holds", "skipped") for result in results.values())


def timed(executor: Executor, sources: Sequence[str], gpus: int, jobs: int) -> float:
    """Wall seconds of these snippets on so many GPUs (0: none); each must pass."""

    def run(placement: Placement) -> str:
        source = sources[placement.job.number]
        chosen = placement.gpus
        return executor.run(Run(source, "python", "kb/KB0001.md", timeout=120, gpus=chosen)).status

    started = time.perf_counter()
    each = [Job(number, min(gpus, 1)) for number in range(len(sources))]
    workers = Workers(Schedule(each, Capacity(jobs, gpus)), run, executor.prepare_forks)
    statuses = set(workers.results())
    workers.stop()
    seconds = time.perf_counter() - started
    if statuses != {"passed"}:
        raise SystemExit(f"the snippets do not pass: {statuses}")
    return seconds


def timings(gpus: int, options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """The same snippets on one GPU and on two, four, eight; what the sandbox costs."""
    figures: dict[str, Any] = {}
    running, good = Running(gpu_memory_gib=1024), True
    trivial = [TRIVIAL.format(n=n) for n in range(200)]
    for name in ("where allowed", "none"):
        with Executor(sys.executable, running, sandbox=name) as executor:  # type: ignore[arg-type]
            timed(executor, trivial[:2], 0, 1)
            figures[f"trivial, sandbox {name}"] = timed(executor, trivial, 0, 2) / len(trivial)
    rows = [(name, f"{1000 * s:.2f} ms a snippet", "2 jobs") for name, s in figures.items()]
    kinds = {
        f"{options.heavy} of {options.products} products": [HEAVY.format(count=options.products)]
        * options.heavy,
        f"{options.tiny} that add two tensors": [TINY.format(n=n) for n in range(options.tiny)],
    }
    with Executor(sys.executable, running, preload=["torch"]) as executor:
        if gpus:
            timed(executor, [TINY.format(n=1)] * 2 * gpus, gpus, 2 * gpus)  # what a first use costs
        for name, sources in kinds.items() if gpus else ():
            alone = timed(executor, sources[:1], 1, 1)
            one_gpu = timed(executor, sources, 1, 8)
            figures[name] = {"alone": alone, "1": one_gpu}
            row = [name, f"alone {alone:.2f} s", f"one GPU {one_gpu:.2f} s"]
            for count in (2, 4, 8)[: gpus.bit_length() - 1]:
                seconds = figures[name][str(count)] = timed(executor, sources, count, 8)
                row.append(f"{count}: {seconds:.2f} s, {seconds / one_gpu:.2f} of it")
                good &= "products" not in name or count > 2 or seconds / one_gpu <= 0.6
            rows.append(tuple(row))
    as_a_table("wall time, 8 jobs, the zygote warm", rows)
    return figures, good


def main() -> None:
    """Prints the summary and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--timings", action="store_true", help="only these")
    parser.add_argument("--heavy", type=int, default=8, help="snippets with seconds of work each")
    parser.add_argument("--products", type=int, default=1500, help="bf16 products of 8192² each")
    parser.add_argument("--tiny", type=int, default=16)
    options = parser.parse_args()
    started = time.perf_counter()
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
        gpus = listed.stdout.count("GPU ")
    except FileNotFoundError:
        gpus = 0
    print(f"{gpus} GPUs here; Python {sys.version.split()[0]}", flush=True)
    ours = (ROOT / "kbtools.toml").read_text("utf-8")
    table = re.search(r"^\[run\]\n(.*?)^\[toolchain\]", ours, re.MULTILINE | re.DOTALL)
    assert table, "kbtools.toml has no tables [run] and [run.preload] before [toolchain]"
    figures: dict[str, Any] = {"gpus": gpus}
    good: dict[str, bool] = {}
    with tempfile.TemporaryDirectory(prefix="kbt-") as name:
        folder = Path(name)
        for part in ("attacks", "works", "outside", "tmp"):
            (folder / part).mkdir()
        if not options.timings:
            base = Base.make(folder / "attacks", folder / "tmp")
            results, good["attacks"] = attacks(base, folder / "outside")
            figures |= results
            base = Base.make(folder / "works", folder / "tmp", table[1])
            figures["works"], good["works"] = works(base)
    figures["timings"], good["timings"] = timings(gpus, options)
    seconds = time.perf_counter() - started
    print(f"\n{seconds:.0f} s in all; as it should be: {good}")
    if options.json:
        figures |= {"good": good, "seconds": seconds}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    sys.exit(0 if all(good.values()) else 1)


if __name__ == "__main__":
    main()
