"""How other releases and other systems say what an article is about, and who else says the same."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from kbtools.matching import Diagnosis, Matcher, load

ROOT = Path(__file__).parent.parent
ENGINE = 'File "/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py", line 7, in step\n'
"""A frame of a program whose kernels its user cannot change."""


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    """The matcher of this knowledge base."""
    return Matcher(load(ROOT))


WORDINGS = tomllib.loads(Path(__file__).with_name("wordings.toml").read_text("utf-8"))["wording"]
"""Those that are longer than a line, or many."""


def first(diagnosis: Diagnosis) -> str:
    """The best article, or nothing."""
    return diagnosis.matches[0].id if diagnosis.matches else ""


@pytest.mark.parametrize(
    ("text", "article"),
    [
        (
            'File "/venv/torch/_inductor/codecache.py", line 3, in f\n    x\n'
            + "  more\n" * 20
            + "NameError: name 's7' is not defined",
            "KB0001",
        ),
        (
            "AssertionError: Loop carried variable acc changed type, was int32 but is now fp32",
            "KB0013",
        ),
        (
            "AssertionError: initial value for `x` is of type int32, but the then block redefines"
            " it as fp32",
            "KB0013",
        ),
        (
            "ERROR 01-02 10:00:00 engine.py:387] 0 active drivers ([]). There should only be one.",
            "KB0017",
        ),
        ("cudaCheckError() failed : invalid device function", "KB0022"),
        ("RuntimeError: CUDA error: invalid device function", "KB0022"),
        (
            "ptxas x.ptx, line 9; error : Instruction 'tensormap.replace' not supported on"
            " .target 'sm_90'",
            "KB0024",
        ),
        (
            'error: no suitable user-defined conversion from "__half" to "Vec" exists',
            "KB0029",
        ),
        ('error: identifier "__hmul2" is undefined', "KB0029"),
        (
            "x.o: multiple definition of `__cudaRegisterLinkedBinary_61_tmpxft_0a'; y.o: first"
            " defined here",
            "KB0030",
        ),
        (
            "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
            "KB0034",
        ),
        (
            '  File "/venv/torch/distributed/rendezvous.py", line 2, in f\n    TCPStore()\n'
            "RuntimeError: Address already in use",
            "KB0037",
        ),
        ("RuntimeError: cublas runtime error : library not initialized at x.cpp:216", "KB0038"),
        (
            "RuntimeError: cuda runtime error (77) : an illegal memory access was encountered at"
            " /x/THCTensor.cu:5",
            "KB0039",
        ),
        (
            "RuntimeError: cuda runtime error (59) : device-side assert triggered at x.cu:5",
            "KB0040",
        ),
        ("THCudaCheck FAIL file=x.cpp line=39 error=59 : device-side assert triggered", "KB0040"),
        (
            "NLLLoss2d.cu:103: nll_loss2d_forward_kernel: block: [0,0,0] Assertion `t >= 0 && t <"
            " n_classes` failed.",
            "KB0040",
        ),
        (
            "RuntimeError: Expected object of device type cuda but got device type cpu for"
            " argument #1 'self' in call to _th_and",
            "KB0043",
        ),
        ("RuntimeError: Expected object of backend CPU but got backend CUDA", "KB0043"),
        (
            "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor)"
            " should be the same",
            "KB0043",
        ),
        (
            "RuntimeError: Input type (torch.FloatTensor) and bias type (torch.DoubleTensor) should"
            " be the same",
            "KB0044",
        ),
        ("RuntimeError: Input type (float) and bias type (c10::Half) should be the same", "KB0044"),
        (
            "RuntimeError: mixed dtype (CPU): expect parameter to have scalar type of Float",
            "KB0044",
        ),
        (
            "RuntimeError: Expected object of scalar type Float but got scalar type Double",
            "KB0044",
        ),
        (
            "RuntimeError: A view was created in no_grad mode and is being modified inplace with"
            " grad mode enabled.",
            "KB0048",
        ),
        ("symbol not found in flat namespace '__ZN3c105ErrorC1E'", "KB0053"),
        ("bash: nvcc: command not found", "KB0054"),
        ("/bin/sh: 1: nvcc: not found", "KB0054"),
        ("tcc: error: include file 'Python.h' not found", "KB0058"),
        (
            '  File "/venv/torch/serialization.py", line 9, in load\n    f()\n'
            "_pickle.UnpicklingError: invalid load key, '\\x0a'.",
            "KB0069",
        ),
        ("UserWarning: Memory efficient kernel not used because: (Triggered internally", "KB0072"),
        (
            "AttributeError: partially initialized module 'torchvision' has no attribute"
            " 'extension' (most likely due to a circular import)",
            "KB0075",
        ),
        (
            "host_config.h(160): fatal error C1189: #error:  -- unsupported Microsoft Visual Studio"
            " version! Only the versions between 2017 and 2022 (inclusive) are supported!",
            "KB0076",
        ),
        ("AssertionError: Torch is not able to use GPU; add --skip-torch-cuda-test", "KB0046"),
        (
            "RuntimeError: It looks like your LightningModule has parameters that were not used in"
            " producing the loss returned by training_step.",
            "KB0036",
        ),
        ("CUDA kernel failed : an illegal memory access was encountered", "KB0039"),
        ('it only shows "Failed to find C compiler. Please specify via CC"', "KB0058"),
        ("collect2: fatal error: ld terminated with signal 9 [Killed]", "KB0086"),
        (
            "FileExistsError: [WinError 183] Cannot create a file when that file already exists:"
            " 'C:\\\\Users\\\\x\\\\Temp\\\\torchinductor_x\\\\ab\\\\c.py'",
            "KB0090",
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/torchinductor_x/a/x.tmp'"
            " -> '/tmp/torchinductor_x/a/x.py'",
            "KB0090",
        ),
        (
            "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory",
            "KB0091",
        ),
        ("    PyTorch 2.9.0+cu128 with CUDA 1208 (you have 2.10.0+cu128)", "KB0092"),
        ("RuntimeError: CuDNN error: CUDNN_STATUS_SUCCESS", "KB0093"),
        ("RuntimeError: CUDA SETUP: Setup Failed!", "KB0097"),
        (
            "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0\n"
            "RuntimeError: CUDA error: device-side assert triggered",
            "KB0128",
        ),
        ("steps:   1%| | 7/900 [00:36<1:17:03,  5.18s/it, avr_loss=nan]", "KB0141"),
        ("{'loss': nan, 'learning_rate': 1e-05, 'epoch': 0.1}", "KB0141"),
        ("Loss is nan, stopping training", "KB0141"),
        ("box: Test NCCL failure common.cu:700 'unhandled system error'", "KB0134"),
        (
            "n1:7:9 [0] misc/socket.cc:533 NCCL WARN socketPollConnect: Connect to 10.9.0.4<40001>"
            " returned 113(No route to host) errno 115(Operation now in progress)",
            "KB0134",
        ),
        (
            "n1:7:9 [0] include/socket.h:400 NCCL WARN Connect to 10.9.0.4<40001> failed :"
            " Connection timed out",
            "KB0134",
        ),
        (
            "n1:7:9 [0] include/socket.h:360 WARN Call to connect failed : Connection refused",
            "KB0134",
        ),
        ("NVRM: GPU at 0000:01:00.0 has fallen off the bus.", "KB0138"),
        (
            "Valid epoch 1:   9%|# | 1/11 [00:01<00:13,  1.33s/it]THCudaCheck FAIL"
            " file=/pytorch/THCStorage.cu line=58 error=2 : out of memory",
            "KB0049",
        ),
        (
            "Warp UserWarning: Failed to configure kernel dynamic shared memory for this device,"
            " tried to configure k for 101120 bytes, but maximum available is 101376",
            "KB0148",
        ),
        (
            "include/socket.h:344 WARN Socket creation failed : Address family not supported by"
            " protocol",
            "KB0134",
        ),
        ("RuntimeError: Expected is_sm80 to be true, but got false.", "KB0161"),
        ("It ends with Head dim > 64 backward requires A100 or H100", "KB0161"),
        (
            "torch._dynamo.guards.__recompiles: [DEBUG] Recompiling function f in m.py:6\n" * 3,
            "KB0140",
        ),
        ("# Grad_norm is nan and the loss is 0\n\nIt begins after some steps.", "KB0141"),
        ("# AssertionError: expected size 64==64\n\nThe shapes are those of a layer.", "KB0139"),
        ("# Importing tensorflow after torch crashes\n\nThe other order works.", "KB0151"),
        ("# Strange segfault on import\n\nIt is a new environment.", "KB0151"),
        (">>> import torch\n*** Error in `python3': free(): invalid pointer: 0x7f28 ***", "KB0151"),
        (
            "Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error",
            "KB0138",
        ),
        ("n1:7:9 [0] shm.h:27 NCCL WARN Call to shm_open failed : Permission denied", "KB0134"),
        ("Error while creating shared memory segment /dev/shm/nccl-Ab1 (size 9637888)", "KB0134"),
        (
            "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling 'cublasSgemm( handle, opa)'",
            "KB0163",
        ),
        ("AttributeError: Cannot set attribute 'src' directly", "KB0175"),
        (
            "DSLRuntimeError: Unable to convert dynamic Boolean value to bool at compile time",
            "KB0157",
        ),
        ("# [BUG] no available layout found\n\ntilelang/jit.py, line 7", "KB0159"),
        ("CUDA error : invalid argument\nTried to unpin a tensor that is not pinned", "KB0165"),
        (
            "ptxas k.ptx, line 9; error   : Feature 'cvt.bf16.f32' requires .target sm_80 or"
            " higher",
            "KB0145",
        ),
        ("# mma layout conversion is only supported on Ampere\n\nA V100.", "KB0147"),
        ("     aten::slow_conv_dilated3d     99.20%       1.204s", "KB0167"),
        ("NCCL failure common.cu:900 'unhandled cuda error'", "KB0137"),
        (
            "ValueError: The model's max seq len (8192) is larger than the maximum number of tokens"
            " that can be stored in KV cache (512).",
            "KB0169",
        ),
        ("RuntimeError: No grad accumulator for a saved leaf!", "KB0143"),
        ("ImportError: m/_C.abi3.so: undefined symbol _ZN3c106detail1fEv", "KB0053"),
        ("WARNING:root:NaN or Inf found in input tensor.", "KB0141"),
        ("After two epochs the loss becomes 'nan'.", "KB0141"),
        ("A small kernel triggers `CUDA driver error: invalid argument` on one GPU", "KB0162"),
        (
            "NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: 10de:2330) installed in this system"
            " has\nNVRM: fallen off the bus and is not responding to commands.",
            "KB0138",
        ),
        ("NameError: name 'selective_scan_cuda_oflex' is not defined", "KB0154"),
        ("# Segmentation Fault when importing PyTorch\n\nIt is a new environment.", "KB0151"),
        ("When I import torchvision I get a segmentation fault.", "KB0151"),
        (
            "RuntimeError: cublas runtime error : the GPU program failed to execute at"
            " /pytorch/aten/src/THC/THCBlas.cu:400",
            "KB0163",
        ),
        (
            "Epoch: 3 [40/900]\nRuntimeError: cuda runtime error (2) : out of memory at"
            " /pytorch/torch/lib/THC/generic/THCStorage.cu:58",
            "KB0049",
        ),
        (
            "CalledProcessError: Command '['which', 'c++']' returned non-zero exit status 1.",
            "KB0071",
        ),
        (
            "subprocess.CalledProcessError: Command '['where', 'cl']' returned non-zero exit"
            " status 1.",
            "KB0071",
        ),
        (
            f"{ENGINE}RuntimeError: CUDA error: an illegal memory access was encountered\nCUDA"
            " kernel errors might be asynchronously reported at some other API call",
            "KB0121",
        ),
        (
            "RuntimeError: cuda runtime error (2) : out of memory at /pytorch/THCStorage.cu:58",
            "KB0227",
        ),
    ],
)
def test_how_others_say_it(matcher: Matcher, text: str, article: str) -> None:
    """Releases of years ago, Windows, macOS, other compilers."""
    assert first(matcher.diagnose(text)) == article


@pytest.mark.parametrize(
    "text",
    [
        f"{ENGINE}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
        f"{ENGINE}RuntimeError: CUDA error: operation not permitted when stream is capturing",
        "Ignore import error when loading models.new: No module named 'cutlass'",
        "W dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror:"
        " libcudart.so.11.0: cannot open shared object file: No such file or directory",
        "torch-npu 2.5.1\nAssertionError: Torch not compiled with CUDA enabled",
        "NameError: name 'selective_scan_fn' is not defined",
        "torch._dynamo.guards.__recompiles: [DEBUG] Recompiling function f in m.py:6",
        "import torch\nThe training crashed after two epochs: Segmentation fault (core dumped)",
        "n1:7:9 [0] NCCL INFO Call to connect returned Connection refused, retrying",
        "g++ -lcuda\n/usr/bin/ld: cannot find -lcuda\nmake: *** [Makefile:9: x] Error 1",
    ],
)
def test_the_same_text_of_another_cause(matcher: Matcher, text: str) -> None:
    """A log that shows another cause of the text is not answered."""
    assert first(matcher.diagnose(text)) == ""


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
        "RuntimeError: CUDA error: invalid argument",
        "RuntimeError: Triton Error [CUDA]: invalid argument",
        "RuntimeError: CUDA error: device-side assert triggered",
        "CUDA error: device kernel image is invalid",
        "CUDA driver version is insufficient for CUDA runtime version",
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(h)`",
        "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "RuntimeError: PassManager::run failed",
        "RuntimeError: cublas runtime error : the GPU program failed to execute at THCBlas.cu:4",
        "NameError: name 'selective_scan_cuda' is not defined",
        "RuntimeError: No grad accumulator for a saved leaf!",
        "# Segmentation fault when importing torch\n\nIt is a new environment.",
    ],
)
def test_a_text_of_many_causes_is_not_sure(matcher: Matcher, text: str) -> None:
    """What many causes print is not sure by its text."""
    assert not any(match.confident for match in matcher.diagnose(text).matches)


@pytest.mark.parametrize("wording", WORDINGS, ids=[wording["text"][:60] for wording in WORDINGS])
def test_words_of_threads(matcher: Matcher, wording: dict[str, str]) -> None:
    """The article is found by a title, a sentence, or a line of another program."""
    assert first(matcher.diagnose(wording["text"])) == wording["article"]
