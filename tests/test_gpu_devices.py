"""A snippet on a machine with several GPUs sees the device files of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kbtools.config import Running
from kbtools.running import Executor, Run
from kbtools.running.environment import snippet_environment
from kbtools.running.gpu_devices import GpuDevice, files_of_others, gpu_devices

INFORMATION = """Model: 		 NVIDIA H200
IRQ:   		 {irq}
GPU UUID: 	 {uuid}
Bus Location: 	 {bus}
Device Minor: 	 {minor}
GPU Excluded:	 No
"""
DEVICES = [GpuDevice(f"GPU-{letter}1", f"/dev/nvidia{n}") for n, letter in enumerate("abcd")]


def test_the_driver_lists_gpus_with_their_device_files(tmp_path: Path) -> None:
    """In the order of PCI addresses, which need not be that of the device files."""
    for bus, uuid, minor in (("0000:8a:00.0", "GPU-b", 0), ("0000:1b:00.0", "GPU-a", 1)):
        (tmp_path / bus).mkdir()
        text = INFORMATION.format(irq=7, uuid=uuid, bus=bus, minor=minor)
        (tmp_path / bus / "information").write_text(text)
    assert gpu_devices(tmp_path) == [
        GpuDevice("GPU-a", "/dev/nvidia1"),
        GpuDevice("GPU-b", "/dev/nvidia0"),
    ]


def test_without_a_driver_there_is_none(tmp_path: Path) -> None:
    """As on a laptop."""
    assert gpu_devices(tmp_path / "nothing") == []


@pytest.mark.parametrize(
    ("names", "gpus", "hidden"),
    [
        (["0", "1", "2", "3"], (1,), ["/dev/nvidia0", "/dev/nvidia2", "/dev/nvidia3"]),
        (["2", " 3"], (1,), ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2"]),
        (["2", "3"], (0, 1), ["/dev/nvidia0", "/dev/nvidia1"]),
        (["GPU-c"], (0,), ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia3"]),
        (["MIG-c"], (0,), []),
        (["GPU-"], (0,), []),
        (["7"], (0,), []),
    ],
)
def test_the_others_are_hidden(names: list[str], gpus: tuple[int, ...], hidden: list[str]) -> None:
    """By number or UUID; where a name is not one whole GPU, nothing is."""
    assert files_of_others(DEVICES, names, gpus) == hidden


def test_cuda_counts_from_zero_what_it_can_see(tmp_path: Path) -> None:
    """Two GPUs of four are 0 and 1 for CUDA, if it sees no others."""
    run = Run("", "python", "kb/KB0001.md", gpus=(2, 3))
    shown = snippet_environment({}, run, tmp_path, tmp_path)
    alone = snippet_environment({}, run, tmp_path, tmp_path, others_hidden=True)
    assert shown["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert alone["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_a_hidden_device_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two devices that every machine has stand for two GPUs: a snippet opens only its own."""
    source = """
    import os

    open("/dev/full", "r+b", buffering=0).close()
    try:
        open("/dev/zero", "r+b", buffering=0)
    except OSError:
        pass
    else:
        raise AssertionError("the other one can be opened")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"
    """
    run = Run("if True:" + source, "python", "kb/KB0001.md", gpus=(1,))
    devices = [GpuDevice("GPU-a", "/dev/zero"), GpuDevice("GPU-b", "/dev/full")]
    monkeypatch.setattr("kbtools.running.executor.gpu_devices", lambda: devices)
    with Executor(sys.executable, Running()) as executor:
        outcome = executor.run(run)
        if "sight" in executor.unsandboxed:
            pytest.skip(executor.unsandboxed)
    assert outcome.status == "passed", outcome.output
