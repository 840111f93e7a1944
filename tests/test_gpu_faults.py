"""Faults that need a GPU. Skipped where there is none; run on an H200 before each release."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest
from bases import Base, fence


def gpus() -> int:
    """How many GPUs this machine has."""
    if not shutil.which("nvidia-smi"):
        return 0
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return listed.stdout.count("GPU ")


pytestmark = pytest.mark.skipif(gpus() == 0, reason="needs a GPU")

SOUND = fence(
    "python control id=after requires=gpu",
    """
    import torch

    assert (torch.ones(8, device="cuda") + 1).sum().item() == 16
    """,
)
ASSERTION = """
    import torch

    x = torch.zeros(4, device="cuda")
    x[torch.tensor([10**6], device="cuda")]
    torch.cuda.synchronize()
    """
ILLEGAL = """
    #include <cstdio>
    __global__ void kernel(int *p) { p[1ll << 40] = 1; }
    int main() {
      int *p;
      cudaMalloc(&p, 4);
      kernel<<<1, 1>>>(p);
      cudaError_t status = cudaDeviceSynchronize();
      printf("%s\\n", cudaGetErrorString(status));
      return status != cudaSuccess;
    }
    """
ENDLESS = """
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def wait(x):
        while tl.load(x, volatile=True) == 0:
            pass


    x = torch.zeros(1, dtype=torch.int32, device="cuda")
    wait[(1,)](x)
    torch.cuda.synchronize()
    """


@pytest.mark.parametrize("isolation", ["fork", "spawn"])
def test_a_device_side_assert_poisons_nothing(base: Base, isolation: str) -> None:
    """A failed assertion on the device is that snippet's failure; the next one uses the GPU."""
    base.article(
        fence("python repro id=r1 requires=gpu timeout=120", ASSERTION),
        SOUND,
        literal="device-side assert triggered",
    )
    done = base.verify("--isolation", isolation, "--jobs", "1", timeout=300)
    assert done.verdicts == {"KB0001/r1": "reproduced", "KB0001/after": "holds"}


def test_an_illegal_access_poisons_nothing(base: Base) -> None:
    """A stray store in a CUDA program is that snippet's failure; the next one uses the GPU."""
    base.article(
        fence("cuda repro id=r1 requires=gpu timeout=120", ILLEGAL),
        SOUND,
        literal="an illegal memory access was encountered",
    )
    done = base.verify("--jobs", "1", timeout=300)
    assert done.verdicts == {"KB0001/r1": "reproduced", "KB0001/after": "holds"}


@pytest.mark.parametrize("isolation", ["fork", "spawn"])
def test_a_kernel_that_never_ends_is_ended(base: Base, isolation: str) -> None:
    """A kernel that never ends is ended at its limit, and the GPU is free for the next snippet."""
    base.article(fence("python repro id=r1 requires=gpu timeout=20 fails=timeout", ENDLESS), SOUND)
    started = time.monotonic()
    done = base.verify("--isolation", isolation, "--jobs", "1", timeout=300)
    assert done.verdicts == {"KB0001/r1": "reproduced", "KB0001/after": "holds"}
    assert done.result("r1")["seconds"] < 25
    assert time.monotonic() - started < 120


def test_many_snippets_share_a_gpu(base: Base) -> None:
    """Small snippets run side by side on one GPU, and each sees one device."""
    code = "import torch\nassert torch.cuda.device_count() == 1\ntorch.ones(1, device='cuda')"
    base.article(*(fence(f"python fix id=f{n} requires=gpu", code) for n in range(8)))
    done = base.verify("--jobs", "8", timeout=300)
    assert set(done.verdicts.values()) == {"holds"}


def test_a_gpu_to_itself(base: Base) -> None:
    """A snippet with `requires=gpus:1` meets nobody on its GPU, however many could share it."""
    shares = """
        import time

        import torch

        x = torch.zeros(4 << 30, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        time.sleep(1)
    """
    alone = """
        import torch

        torch.zeros(1, device="cuda")
        free, total = torch.cuda.mem_get_info()
        assert total - free < 4 << 30, "somebody else is here"
    """
    fences = [fence(f"python fix id=s{n} requires=gpu", shares) for n in range(4)]
    fences += [fence(f"python fix id=a{n} requires=gpus:1", alone) for n in range(2)]
    base.article(*fences)
    done = base.verify("--jobs", "6", timeout=300)
    assert set(done.verdicts.values()) == {"holds"}


def test_two_gpus_are_two(base: Base) -> None:
    """A snippet with `requires=gpus:2` sees two devices, or is skipped where there is one."""
    code = "import torch\nassert torch.cuda.device_count() == 2"
    base.article(fence("python fix id=f1 requires=gpus:2", code))
    done = base.verify(timeout=300)
    assert done.verdicts == {"KB0001/f1": "holds" if gpus() > 1 else "skipped"}
