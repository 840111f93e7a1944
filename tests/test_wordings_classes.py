"""How many programs say the same: each error of CUDA in each form, each thing that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbtools.matching import Matcher, load

ROOT = Path(__file__).parent.parent
FIRST = 3
"""Answers of which one must be the article: programs that have articles of their own come first."""


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    """The matcher of this knowledge base."""
    return Matcher(load(ROOT))


ERRORS = [
    (
        "KB0039",
        "IllegalAddress",
        "ILLEGAL_ADDRESS",
        "an illegal memory access was encountered",
        700,
    ),
    ("KB0039", "LaunchFailure", "LAUNCH_FAILED", "unspecified launch failure", 719),
    (
        "KB0022",
        "NoKernelImageForDevice",
        "NO_BINARY_FOR_GPU",
        "no kernel image is available for execution on the device",
        209,
    ),
    (
        "KB0026",
        "LaunchOutOfResources",
        "LAUNCH_OUT_OF_RESOURCES",
        "too many resources requested for launch",
        701,
    ),
    ("KB0028", "MisalignedAddress", "MISALIGNED_ADDRESS", "misaligned address", 716),
    (
        "KB0060",
        "UnsupportedPtxVersion",
        "UNSUPPORTED_PTX_VERSION",
        "the provided PTX was compiled with an unsupported toolchain.",
        222,
    ),
    ("KB0096", "SystemNotReady", "SYSTEM_NOT_READY", "system not yet initialized", 802),
    (
        "KB0096",
        "CompatNotSupportedOnDevice",
        "COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "forward compatibility was attempted on non supported HW",
        804,
    ),
    (
        "KB0213",
        "DevicesUnavailable",
        "DEVICE_UNAVAILABLE",
        "CUDA-capable device(s) is/are busy or unavailable",
        46,
    ),
    ("KB0138", "ECCUncorrectable", "ECC_UNCORRECTABLE", "uncorrectable ECC error encountered", 214),
]
"""The article, the runtime's name without `cudaError`, the driver's without `CUDA_ERROR_`, and
what both say, with the number."""
PROGRAMS = {
    "PyTorch": "RuntimeError: CUDA error: {text}",
    "PyTorch's log": "THCudaCheck FAIL file=a.cu line=3 error={code} : {text}",
    "PyTorch 1.0": "RuntimeError: cuda runtime error ({code}) : {text} at a.cu:22",
    "RELION": "ERROR: {text} in /a/b.cpp at line 126 (error-code {code})",
    "CUDA's samples": 'CUDA error at a.cu:39 code={code}(cudaError{runtime}) "cudaMalloc(&p, n)"',
    "an assertion": "GPUassert: {text} a.cu 12",
    "a check": "Cuda check failed ({code} vs. 0): {text}",
    "Caffe": "F0101 10:00:00.1 12 a.cpp:9] Check failed: e == cudaSuccess ({code} vs. 0)  {text}",
    "CuPy": "cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaError{runtime}: {text}",
    "PyCUDA": "pycuda._driver.LogicError: cuModuleLoad failed: {text}",
    "OpenMM": "openmm.OpenMMException: Error invoking kernel: CUDA_ERROR_{driver} ({code})",
    "Thrust": "  what():  parallel_for failed: cudaError{runtime}: {text}",
    "LightGBM": "[CUDA] {text} /a/b.cu 40",
    "TensorRT": "[TRT] [E] 1: [a.cpp::f::78] Error Code 1: Cuda Runtime ({text})",
    "OpenCV": "error: (-217:Gpu API call) {text} in function a",
    "GROMACS": "CUDA error #{code} (cudaError{runtime}): {text}.",
    "ONNX Runtime": "CUDA failure {code}: {text} ; GPU=0 ; hostname=a",
    "a title": "# It ends with cudaError{runtime}\n\nWhat can I do?",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_errors_of_cuda(matcher: Matcher, program: str) -> None:
    """Whatever program prints an error of CUDA, its article is found."""
    missed = [
        text
        for article, runtime, driver, words, code in ERRORS
        for text in [
            PROGRAMS[program].format(runtime=runtime, driver=driver, text=words, code=code)
        ]
        if article not in [match.id for match in matcher.diagnose(f"{text}\n").matches[:FIRST]]
    ]
    assert missed == []


THINGS = {
    "libcudart.so.12": "KB0056",
    "libcublas.so.11": "KB0056",
    "libnvrtc.so.12": "KB0056",
    "libcuda.so.1": "KB0150",
    "libcudnn_ops_infer.so.8": "KB0091",
    "libc10.so": "KB0053",
    "nvcc": "KB0054",
    "CUDA_HOME": "KB0054",
    "CUDA toolkit": "KB0054",
    "ninja": "KB0180",
    "cuda_runtime.h": "KB0199",
    "cudnn.h": "KB0178",
    "Python.h": "KB0058",
    "C compiler": "KB0058",
    "cl.exe": "KB0071",
}
IS_MISSING = (
    *("# {thing} not found\n\nHi", "# cannot find {thing}\n\nHi", "# Could not find {thing}\n\nHi"),
    *("# Unable to find {thing}\n\nHi", "# Missing {thing}\n\nHi", "# {thing} is missing\n\nHi"),
    *("# Can't find {thing} when building\n\nHi", "RuntimeError: {thing} not found"),
    *("error: {thing} could not be found", "找不到 {thing}", "# {thing} 找不到\n\nHi"),
)


def missing(matcher: Matcher) -> Iterator[str]:
    """The texts about a thing that is missing which are not answered with its article."""
    for thing, article in THINGS.items():
        for words in IS_MISSING:
            text = words.format(thing=thing)
            if article not in [match.id for match in matcher.diagnose(f"{text}\n").matches[:FIRST]]:
                yield text


def test_what_is_missing(matcher: Matcher) -> None:
    """However people say that a library, a header or a program is missing, it is understood."""
    assert list(missing(matcher)) == []


@pytest.mark.parametrize(
    ("title", "article"),
    [
        ("CUDA version mismatch while building", "KB0055"),
        ("dtype mismatch: Float and Half in PyTorch", "KB0044"),
        ("tensors on different devices: cuda:0 and cpu", "KB0043"),
        ("Out of memory on a 24GB GPU in train.py", "KB0227"),
        ("port 29500 already in use", "KB0037"),
        ("Not enough shared memory in Docker for the DataLoader", "KB0074"),
        ("GPU is not detected by PyTorch", "KB0046"),
        ("CUDA driver version is insufficient", "KB0096"),
        ("GLIBCXX_3.4.29 not found", "KB0116"),
        ("GLIBC_2.32 not found", "KB0219"),
        ("Building wheel for flash-attn is stuck", "KB0126"),
        ("No module named torch when installing flash-attn", "KB0057"),
        ("bitsandbytes compiled without GPU support", "KB0097"),
        ("xFormers not built for this PyTorch", "KB0092"),
        ("inplace operation error in backward", "KB0048"),
        ("weights_only error with PyTorch 2.6", "KB0045"),
        ("PyTorch does not support RTX 5090", "KB0022"),
        ("bf16 is not supported on this GPU", "KB0212"),
        ("FlashAttention not supported on a T4 GPU", "KB0161"),
        ("addmm_impl_cpu_ not implemented for Half", "KB0220"),
        ("FileNotFoundError in ~/.triton/cache", "KB0087"),
        ("probability tensor has nan", "KB0128"),
    ],
)
def test_titles(matcher: Matcher, title: str, article: str) -> None:
    """A title in a person's words names the failure, and is no sure answer."""
    [best, *_] = matcher.diagnose(f"# {title}\n\nIt was well last week.\n").matches
    assert best.id == article
    assert not best.confident


@pytest.mark.parametrize(
    "line",
    [
        "-- Looking for pthread_create in pthreads - not found",
        "# Add a test for a missing header\n\nPlease.",
        "-- Could NOT find Doxygen (missing: DOXYGEN_EXECUTABLE)",
        "# The page of the driver is not found\n\nHi",
        "# How do I choose a batch size?\n\nI have a GPU with 24 GB.",
        "# Support for RTX 5090 in the installer\n\nIt would be fine.",
    ],
)
def test_what_is_no_failure_of_these(matcher: Matcher, line: str) -> None:
    """Other things are missing, too."""
    assert matcher.diagnose(f"{line}\n").matches == ()
