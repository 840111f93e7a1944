"""What people on AMD GPUs and on Windows paste, where no run of ours prints the text."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbtools.matching import Matcher, load

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    """The matcher of this knowledge base."""
    return Matcher(load(ROOT))


@pytest.mark.parametrize(
    ("text", "article"),
    [
        ("RuntimeError: HIP error: device kernel image is invalid", "KB0183"),
        (
            "Memory access fault by GPU node-1 (Agent handle: 0x1f829860) on address"
            " 0x7a8a4be00000. Reason: Page not present or supervisor privilege.\n"
            "Aborted (core dumped)",
            "KB0203",
        ),
        (
            "33%|███ Memory access fault by GPU node-3 on address 0x709843600000. Reason: Write"
            " access to a read-only page.:54:01, 26.24s/it]",
            "KB0203",
        ),
        ("RuntimeError: HIP error: invalid device function", "KB0183"),
        (
            "torch.AcceleratorError: CUDA error: device kernel image is invalid\n"
            "Search for `hipErrorInvalidImage' in https://rocm.docs.amd.com/projects/HIP",
            "KB0183",
        ),
        (
            "RuntimeError: HIP error: no kernel image is available for execution on the device\n"
            "For debugging consider passing AMD_SERIALIZE_KERNEL=3",
            "KB0183",
        ),
        (
            "ggml_cuda_init: found 1 ROCm devices:\n  Device 0: AMD Radeon, gfx1035\n"
            "ROCm error: device kernel image is invalid",
            "KB0183",
        ),
        (
            "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: No such"
            " file or directory for GPU arch : gfx1103",
            "KB0183",
        ),
        (
            "RuntimeError: CUDA error: HIPBLAS_STATUS_NOT_SUPPORTED when calling"
            " `HIPBLAS_STATUS_NOT_SUPPORTED`",
            "KB0186",
        ),
        (
            "<stdin>:4: UserWarning: bgemm_internal_cublaslt error: HIPBLAS_STATUS_INTERNAL_ERROR"
            " when calling hipblasLtMatmul with transpose_mat1 n transpose_mat2 n m 1024\n"
            "torch.AcceleratorError: CUDA error: file not found",
            "KB0186",
        ),
        ("RuntimeError: Attempting to use hipBLASLt on a unsupported architecture!", "KB0186"),
        (
            "Can't import SageAttention: No module named 'triton'\n"
            '  File "C:\\ComfyUI\\nodes.py", line 253, in loadmodel\n'
            "ModuleNotFoundError: No module named 'triton'",
            "KB0184",
        ),
        (
            "A matching Triton is not available, some optimizations will not be enabled.\n"
            "Error caught was: No module named 'triton'",
            "KB0184",
        ),
        (
            "Windows\nThe conflict is caused by:\n"
            "    liger-kernel 0.5.10 depends on triton>=2.3.1\n"
            "ERROR: Cannot install liger-kernel==0.5.10 because these package versions have"
            " conflicting dependencies.",
            "KB0184",
        ),
        (
            "16:26:52-725979 ERROR    Triton: InductorError\n"
            "D:\\SD\\modules\\devices.py:397 in test_triton",
            "KB0184",
        ),
        (
            "Exception Code: 0x80000003\n"
            "0x00007FFFC0000000, C:\\python_embeded\\Lib\\site-packages\\triton\\_C\\libtriton.pyd",
            "KB0184",
        ),
        (
            "ImportError: DLL load failed while importing libtriton: "
            "动态链接库(DLL)初始化例程失败。",
            "KB0185",
        ),
        (
            "A matching Triton is not available, some optimizations will not be enabled\n"
            "ImportError: DLL load failed while importing libtriton: The specified module could not"
            " be found.",
            "KB0185",
        ),
    ],
)
def test_the_article_comes_first(matcher: Matcher, text: str, article: str) -> None:
    """A passage as it stands in threads finds the article about it."""
    assert [match.id for match in matcher.diagnose(text).matches][:1] == [article]


@pytest.mark.parametrize(
    "text",
    [
        "/Users/me/x.py\nModuleNotFoundError: No module named 'triton'",
        "[W617 C.cpp:291] Warning: Attempting to use hipBLASLt on an unsupported architecture!"
        " Overriding blas backend to hipblas (function operator())",
        "ERROR: Could not find a version that satisfies the requirement triton==2.0.0 (from"
        " versions: 3.2.0, 3.3.0)\nERROR: No matching distribution found for triton==2.0.0",
    ],
)
def test_nothing_is_answered(matcher: Matcher, text: str) -> None:
    """A warning, or the same text of another system, is not answered."""
    assert not matcher.diagnose(text).matches
