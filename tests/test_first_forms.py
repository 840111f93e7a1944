"""What failed first: forms of programs, and of people who write titles."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbtools.matching import Matcher, load

MATCHER = Matcher(load(Path(__file__).parent.parent))


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("EOFError: Ran out of input\n10:00:00 ERROR Exception: No model! Ran out of input\n", 1),
        ("EOFError\nValueError: a\n", 2),
        ("# It has an error\n\nError occurred when executing KSampler:\n\ntwo devices\n", 3),
        ("# It ends in an error\n\n  (0) INTERNAL:  NCCL: unhandled system error.\n", 3),
        ("# It is the wrong cuDNN\n\nE a/cuda/cuda_dnn.cc:347] Loaded runtime: 5103\n", 3),
        ("I a/dso_loader.cc:126] opened\nW a/op.cc:1] error: a retry\nOSError: disk\n", 3),
        ("# The kernel does nothing\n\n`error in deform_im2col: invalid function`\nHi\n", 3),
        ("# xFormers\n\n`cutlassF` is not supported because:\n    it is too new\n", 3),
        ("# NCCL\n\nn5:24:24 [6] misc/a.cc:5 NCCL WARN Connect to 10.0.0.4 failed\n", 3),
        ("# No GPU\n\n/a/b.py:88: UserWarning: CUDA initialization: no device (a.cpp:1)\n", 3),
        ('# It raises RuntimeError "still in flight" after 14 steps\n\nI train a model.\n', 1),
        ("# `cuda_runtime_api.h` not found\n\nRuntimeError: Error building extension 'a'\n", 1),
        ('# undefined symbol\n\n  File "a.py", line 3, in f\n    import a\n', 1),
        ("# (Import Erro)undefined symbol: _Z4f\n\nOSError     Traceback (most recent\n", 1),
        ("# It hangs\n\n02:54:18-197331 ERROR    Das Modul wurde nicht gefunden.\n", 3),
        ("# W a/b/dso_loader.cc:64] Could not load dynamic library 'a.so.8'\n\nHi\n", 1),
        ("# [Bug] PassManager::run failed on Colab\n\nYesterday it worked.\n", 1),
        ("# RuntimeError: disk\n\nERROR 01-22 00:13:32 a.py:2] NoneType: None\n", 1),
        ("# RuntimeError: disk\n\nCRITICAL 02-25 11:11:34 a.py:1] TheEngine is already dead\n", 1),
        ("# [Bug]: (v0.7): RuntimeError: disk\n\nTheEngine is already dead, so\n", 1),
        (
            "2024-12-19 21:40:35 ERROR 565 [a.py:64]   return f()^M\n"
            "2024-12-19 21:40:35 ERROR 565 [a.py:64] RuntimeError: disk^M\n",
            2,
        ),
        (
            '(Server pid=2) ERROR 11-03 23:14 [a.py:45]   File "a.py", line 574, in f\n'
            "(Server pid=2) ERROR 11-03 23:14 [a.py:45]   out = q.get()\n"
            "(Server pid=2) ERROR 11-03 23:14 [a.py:45] RuntimeError: disk\n",
            3,
        ),
        (
            "# It fails\n\nE1122 00:10:47.2  29 a.cc:3] Step failed: no memory\n"
            'Traceback (most recent call last):\n  File "a.py", line 9, in f\n    g(\n',
            3,
        ),
        (
            "# RuntimeError: disk\n\nERROR:root:!!! Exception during processing !!!\n"
            'ERROR:root:Traceback (most recent call last):\n  File "a.py", line 9, in f\n',
            1,
        ),
        (
            "[W socket.cpp:401] [c10d] It failed to bind (errno: 98 - Address already in use).\n"
            "[E socket.cpp:435] [c10d] It failed to listen on any address.\n",
            2,
        ),
        ("# RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.\n\nHi\n", 1),
        ("# cudaGetDeviceCount\n\n`-> CUDA driver version is too low`\nResult = FAIL\n", 3),
        ("# No extension\n\nLater I had one error : it is gone\nERROR:a.b:a not installed.\n", 4),
        (
            "# Address already in use: two jobs\n\nTraceback (most recent call last):\n"
            '  File "a.py", line 9, in f\n    g(\n',
            1,
        ),
        ("# cuda execution failed with error 98\n\nTraceback (most recent call last):\n", 1),
        ("# awq_ext is not defined\n\nThe module can't be loaded:\n", 1),
        ("# It is stuck\n\nThe client socket has failed to connect to [a]:24355 (errno: 99)\n", 3),
        (
            "# No kernel is there, RuntimeError: disk\n\nTraceback (most recent call last):\n"
            '  File "a.py", line 9, in f\n    g()\nRuntime\n',
            1,
        ),
        ("# 显示RuntimeError: disk\n\nTraceback (most recent call last):\n", 1),
        ("# Cuda check failed (11 vs. 0): invalid argument\n\nStarting\n", 1),
        ("# Two nodes\n\n> -:60:62 [1] a.cc:538 NCCL WARN Net : Connection closed by peer\n", 3),
        ("# An avi file\n\n[HWContext @ 0x5599facb8080] Could not dynamically load it\n", 3),
        ('# It ends\n\n  File "a.py", line 8, in f\n    raise OSError("no disk")\n', 4),
        (
            "# It ends\n\nTraceback (most recent call last):\n"
            '  File "a.py", line 8, in f\n    raise OSError("no disk")\n```\n',
            5,
        ),
        ('# A mode\n\nwhen training, it would raise the error of "some were not used".\n', 3),
        ("# Unused\n\nParameters which did not receive grad for rank 3: neck.bias,\n", 3),
        ("# llocated memory try setting max_size to avoid fragmentation\n\nHow?\n", 1),
        ("# A layout\n\nopt: /a/Layout.cpp:512: Layout a::b(c) const: Assertion `d() == e(f\n", 3),
        ("# UserWarning: Failed to launch kernels\n\na.py:42: UserWarning: Failed to launch\n", 1),
        ("# 5090不支持\n\nDevice sm_120 is not compatible with the current installation.\n", 3),
        ("# Mismatch\n\nindices should be either on cpu or on the same device as a tensor\n", 3),
        ("# It cannot run\n\nAttention only supports newer devices.\n", 3),
        (
            "# Issue with NaNs\n\n`Trial 0 is FAIL because the objective function returned nan.`\n",
            3,
        ),
        (
            "slurmstepd: error: abc: container start failed with error code: 1\n"
            "slurmstepd: error: abc: printing its log file:\n"
            "slurmstepd: error: abc:     [ERROR] Command not found: b\n",
            3,
        ),
        (
            "# Stuck\n\npython: can't open file 'a.py': [Errno 2] No such file or directory`\n"
            '\nTraceback (most recent call last):\n  File "b.py", line 5, in f\n    import c\n'
            "ModuleNotFoundError: No module named 'c'\n",
            3,
        ),
        (
            "LoadError: Error -1 calling f\nwhile loading a.jl\n\n"
            "ERROR: LoadError: Unable to load dependency file a.jl.\n",
            1,
        ),
        (
            "# Can't export A, graph input is not implemented yet\n\n"
            "I get an error `AssertionError: graph input is not implemented yet.` which is odd.\n",
            3,
        ),
        ("# modulenotfounderror: no module named 'a.b'\n\nHi\n", 1),
        ("epoch: 3450 loss: 0.3\nepoch: 3451 loss: nan\nepoch: 3452 loss: nan\n", 2),
        ("INFO train: {'loss': 0.2, 'grad_norm': nan, 'epoch': 0.53}\n", 1),
        ("# Training is odd\n\nMismatched elements: 14534 / 16384 (88.7%)\n", 3),
        ("10:00 start\n      Access violation detected at Fri Jun 07 03:26:23 2019\n", 2),
        ("Loading\nfunction 'cadam32bit_grad_fp32' not found\n", 2),
        ("node: argument of type 'WindowsPath' is not iterable\n", 1),
        ("# The test\n\nCouldn't open CUDA library libcuda.so.1\n", 3),
        ("W a/b/op_kernel.cc:1855] OP_REQUIRES failed at x.cc:590 : UNAVAILABLE: No PTX\n", 1),
        (
            "terminate called after throwing\n  what():  driver\n"
            "[n:3] *** Process received signal ***\n",
            2,
        ),
        (
            "model_load: error loading model: invalid type\nTraceback (most recent call last):\n"
            '  File "a.py", line 9, in f\n    g()\n'
            "OSError: exception: access violation reading 0\n",
            1,
        ),
        ('It dies.\n\n  File "a.py", line 9, in f\n    return g()\nRuntimeError\nINFO: b\n', 5),
        # a title in words of its own: the best where nothing else says it
        ("# ZLUDA device does not pass: operation not supported\n\nIt is a card of AMD.\n", 1),
        ("# No kernel image is available\n\nTraceback (most recent call last):\n", 1),
        ("# Inference fails\n\nERROR 01-02 10:00:00 a.py:1] disk\n", 3),
        ("# Inference fails\n\nValueError: disk\n", 3),
        ("# Worker exited unexpectedly\n\n`Worker (pid(s) 25) exited unexpectedly`\n", 3),
        ("# Cuda error in func 'f' at line 161 : unknown error.\n\nIt died twice.\n", 1),
        ('# It is slow\n\nIt gives error "0xc000001d"\n', 3),
        ("# A profile\n\n### Error Message Output\n\nUnknown task type is decoded from tag\n", 5),
        ("# In 2.6, we changed the default value of `a` from `False` to `True`.\n\nHi\n", 1),
        ("# For debugging consider passing A_BLOCKING=1.\n\nHi\n", 1),
        # a sentence that names the error says more than a title that does not
        ("# Training failed on two GPUs\n\nI get RuntimeError: disk 7 is full after a step.\n", 3),
        ("# Training fails\n\nIt always ends with CUDA error: out of memory for me.\n", 3),
        ("# It failed on a card\n\nThis crashes with PassManager::run failed at the end.\n", 3),
        # a title that is an exception is not repeated by a sentence about it
        (
            "# A.B.CudaException: 'unknown error'\n\nHi\n\n"
            '@b The message "no JIT" may mean a kernel, and the "unknown error" a driver.\n',
            1,
        ),
        # a heading of a block of code, the prompt of a shell
        ("# A link\n\nERROR:\n```\n(base) a@b:~/c$ python d.py\nCUDA linking Failed!\n", 6),
    ],
)
def test_forms_of_programs(log: str, line: int) -> None:
    """Forms that ComfyUI, TensorFlow, NCCL, xFormers and people have of their own."""
    first = MATCHER.diagnose(log).first
    assert first is not None
    assert first.line == line


@pytest.mark.parametrize(
    "log",
    [
        "Clang version: Could not collect\n",
        "# [Feature] Say what is not supported\n\nPlease do.\n",
        "# Add a message where it fails\n\nPlease do.\n",
        "epoch: 1 loss: 0.3 nan_count: 0\n",
        "3 passed, 0 failed in 2 s\n",
        "Nan is a name, loss is 0.3\n",
        "Unexpected keys: 780\n",
        "root@a:/b# grep error: c.log\n",
    ],
)
def test_what_is_no_failure(log: str) -> None:
    """What is asked for, or was not collected, has not failed."""
    assert MATCHER.diagnose(log).first is None


def test_what_an_empty_level_says() -> None:
    """A level with nothing behind it is never the sure answer."""
    first = MATCHER.diagnose("in: a.h, line 81\nERROR: \nERROR: \n\nA function was lost.\n").first
    assert first is None or not first.confident


def test_a_signal_below_what_the_program_said() -> None:
    """A crash that follows from an error just above it is not sure."""
    first = MATCHER.diagnose("a.cpp: not enough space: failed to load\nSegmentation fault\n").first
    assert first is not None
    assert not first.confident
