"""Leaves what each snippet's Inductor would otherwise make first: headers, answers of the compiler.

Run once per toolchain, by `[run.store]` in kbtools.toml. What lies in `$TMPDIR` and in the caches
at its end is shown to snippets, so kernels go where nobody looks. Releases of torch that have no
precompiled headers leave the answers alone, and the oldest ones nothing.
"""

import importlib
import os
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a snippet may have all of a GPU's memory meanwhile

import torch
from torch._inductor import config

try:
    # leaves the small programs that it tries in the cache, named by compiler and flags
    importlib.import_module("torch._inductor.cpu_vec_isa").valid_vec_isa_list()
except ModuleNotFoundError:
    print("torch", torch.__version__, "asks its compiler elsewhere")

os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path("kernels").resolve())
if hasattr(config, "cpp_cache_precompile_headers"):
    for settings in ({}, {"cpp.simdlen": 1}):  # each has flags, and so a header, of its own
        torch._dynamo.reset()
        with config.patch(settings):
            torch.compile(lambda x: (x * 2 + 1).relu())(torch.ones(64))
