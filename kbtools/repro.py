"""What a snippet needs on a machine without a GPU: compile for one, launch nothing.

`triton_aot` compiles one `@triton.jit` kernel for a named architecture, on Triton 2.0 to 3.9;
`inductor_to_cubin` sends a function that launches such kernels through `torch.compile` down to
their cubins, on torch 2.4 to 2.13. Errors of the compilers come out unchanged. NVIDIA only.

Needs Python 3.9 or newer and nothing else of kbtools: every toolchain gets a copy of this one file.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import os
import sys
from importlib import metadata
from types import ModuleType, SimpleNamespace
from typing import Any, Callable, Iterator
from unittest import mock

STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin")


def triton_aot(
    kernel: Any, signature: dict[str, str], constants: dict[str, Any] | None = None, *,
    sm: int = 80, num_warps: int = 4, num_stages: int = 3, until: str = "cubin",
) -> dict[str, str | bytes]:  # fmt: skip
    """Compile a `@triton.jit` kernel ahead of time; needs neither GPU nor driver nor torch.

    kernel: the jitted function, defined in a real file (Triton reads its source).
    signature: Triton's type of each run-time argument: {"x": "*fp32", "n": "i32"}. Pointers count
        as 16-byte aligned, as torch's own allocations are.
    constants: the value of each `tl.constexpr` argument.
    sm: compute capability as major * 10 + minor: 80 is sm_80, 90 is sm_90.
    until: the last stage to run, one of STAGES.

    Returns what each stage up to `until` made: text, and bytes for "cubin". No cache is read.
    Raises ValueError where the arguments do not describe the kernel, otherwise whatever the
    compiler raises. MLIR prints its diagnostics on standard error.
    """
    names, given = kernel.arg_names, {**signature, **(constants or {})}
    if until not in STAGES:
        raise ValueError(f"until={until!r} is none of {', '.join(STAGES)}")
    if sorted(given) != sorted(names):
        raise ValueError(f"the kernel takes {names}, signature and constants give {[*given]}")
    types = {i: signature[name] for i, name in enumerate(names) if name in signature}
    values = {i: given[name] for i, name in enumerate(names) if name not in signature}
    pointers = tuple(i for i in types if types[i].startswith("*"))
    options = {"num_warps": num_warps, "num_stages": num_stages}
    _tell_target(sm)
    prepare = _prepare_3 if _triton() >= (3, 0) else _prepare_2
    module, stages, meta = prepare(kernel, types, values, pointers, sm, options)
    asm = {}
    # triton.compile would read its cache and, on 2.x, build a launcher, which needs libcuda.
    for name in STAGES[: STAGES.index(until) + 1]:
        module = stages[name](module, meta)
        asm[name] = module if isinstance(module, (bytes, str)) else str(module)
    return asm


def _tell_target(sm: int) -> None:
    """Let whoever runs the snippet know what it was compiled for: evidence then says so."""
    if "KBTOOLS_TARGETS" in os.environ:
        with open(os.environ["KBTOOLS_TARGETS"], "a") as file:
            file.write(f"sm_{sm}\n")


def _triton() -> tuple[int, ...]:
    """Triton's major and minor version."""
    return tuple(int(part) for part in metadata.version("triton").split(".")[:2])


def _prepare_2(kernel, types, values, pointers, sm, options):
    if _triton() < (2, 2):
        return _prepare_2_0(kernel, types, values, pointers, sm, options)
    from triton.compiler import compiler as c

    if _triton() >= (2, 3):
        attrs = c.AttrsDescriptor(divisible_by_16=set(pointers))
        source = c.ASTSource(kernel, types, constants=values, attrs=attrs)
        backend, stages = c.CUDABackend(("cuda", sm)), {}
        parsed = backend.parse_options(options)
        backend.add_stages(stages, parsed)
        meta = {"target": ("cuda", sm), **vars(parsed), **source.metadata()}
        return source.make_ir(parsed), stages, meta
    warps, depth = options["num_warps"], options["num_stages"]
    target = c.CudaTargetDescriptor(capability=sm, num_warps=warps, enable_fp_fusion=True)
    attrs = c.instance_descriptor(divisible_by_16=set(pointers))

    def ttgir(m, _):  # False: no warp specialisation, persistent kernels, epilogue, as by default
        m = c.ttir_to_ttgir(m, warps, 1, target)
        return c.optimize_ttgir(m, depth, warps, 1, target, c.ClusterInfo(), False, False, False)

    stages = {
        "ttir": lambda m, _: c.optimize_ttir(m, target),
        "ttgir": ttgir,
        "llir": lambda m, _: c.ttgir_to_llir(m, {}, target, c.TMAInfos()),
        "ptx": lambda m, _: c.llir_to_ptx(m, target),
        "cubin": lambda m, _: c.ptx_to_cubin(m, target),
    }
    return c.ast_to_ttir(kernel, types, attrs, values, debug=False, target=target), stages, {}


def _prepare_2_0(kernel, types, values, pointers, sm, options):
    from triton import compiler as c

    warps, depth = options["num_warps"], options["num_stages"]
    early = _triton() < (2, 1)  # ttir is optimised where it is made; and it needs a true torch
    if not early:
        from triton.compiler import compiler as c

    def ttgir(m, _):
        if early:
            return c.ttir_to_ttgir(m, warps, depth, sm)
        return c.optimize_ttgir(c.ttir_to_ttgir(m, warps), depth, sm)

    stages = {
        "ttir": lambda m, _: m if early else c.optimize_ttir(m, sm),
        "ttgir": ttgir,
        "llir": lambda m, _: c.ttgir_to_llir(m, {}, sm),
        "ptx": lambda m, _: c.llir_to_ptx(m, sm),
        "cubin": lambda m, _: c.ptx_to_cubin(m, sm),
    }
    attrs = c.instance_descriptor(set(pointers), set())
    target = {} if early else {"debug": False, "arch": sm}
    return c.ast_to_ttir(kernel, types, attrs, values, **target), stages, {}


def _prepare_3(kernel, types, values, pointers, sm, options):
    from triton._C.libtriton import ir
    from triton.backends import compiler as b
    from triton.compiler import compiler as c

    if _triton() < (3, 2):  # arguments by position
        attrs = c.AttrsDescriptor(divisible_by_16=pointers, equal_to_1=())
    elif _triton() < (3, 3):  # by name
        types, values = ({kernel.arg_names[i]: x for i, x in d.items()} for d in (types, values))
        attrs = b.AttrsDescriptor.from_hints(dict.fromkeys(pointers, 16))
    else:  # types by name, constants among them
        types = {name: types.get(i, "constexpr") for i, name in enumerate(kernel.arg_names)}
        attrs = {(i,): [["tt.divisibility", 16]] for i in pointers}
        values = {(i,): value for i, value in values.items()}
    fixed = "constants" if _triton() < (3, 3) else "constexprs"
    source = c.ASTSource(kernel, types, attrs=attrs, **{fixed: values})
    target = b.GPUTarget("cuda", sm, 32)
    backend, stages = c.make_backend(target), {}
    parsed = backend.parse_options(options)
    wants_language = "language" in inspect.signature(backend.add_stages).parameters
    backend.add_stages(stages, parsed, *([source.language] if wants_language else []))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    codegen = backend.get_codegen_implementation
    codegen = codegen(parsed) if inspect.signature(codegen).parameters else codegen()
    offered = {"options": parsed, "context": context, "target": target, "codegen_fns": codegen}
    offered["module_map"] = backend.get_module_map() if hasattr(backend, "get_module_map") else {}
    module = source.make_ir(**{k: offered[k] for k in inspect.signature(source.make_ir).parameters})
    return module, stages, {"target": target, **vars(parsed)}


def inductor_to_cubin(
    fn: Callable[..., Any], *calls: tuple,
    dynamic: bool | None = True, fullgraph: bool = True, sm: int = 80,
) -> list[tuple[str, bytes]]:  # fmt: skip
    """Send `fn`, which launches Triton kernels of its own, through `torch.compile` down to cubins.

    Dynamo, AOTAutograd, Inductor, the import of its generated module and Triton's compiler all run,
    for the forward pass. No kernel does: results are uninitialised memory.

    calls: one tuple of positional arguments, with CPU tensors, per call, in this order. With
        dynamic=None, torch.compile's default, a size becomes symbolic once two calls differ in it.
    dynamic, fullgraph: as for torch.compile. With fullgraph=False the parts that Dynamo leaves to
        eager mode run, and a kernel they launch is compiled and listed like the others.
    sm: as for `triton_aot`.

    Returns (kernel name, cubin) per compilation, in order; caches are off, so recompiling shows.
    Raises what torch.compile raises, graph breaks unless fullgraph=False, and RuntimeError where
    no kernel was compiled, which would prove nothing.
    """
    with _pretend_gpu(sm) as cubins:
        import torch
        from torch._inductor.compile_fx import compile_fx
        from torch._inductor.utils import clear_inductor_caches

        def inductor(graph, inputs):  # named for the error text: backend='inductor' raised
            clear_inductor_caches()  # the one in memory, too
            compile_fx(graph, inputs)
            return _without_launching(graph)

        torch._dynamo.reset()
        compiled = torch.compile(fn, backend=inductor, dynamic=dynamic, fullgraph=fullgraph)
        for arguments in calls:
            compiled(*arguments)
    if not cubins:
        raise RuntimeError("no Triton kernel reached the compiler: nothing was tested")
    return cubins


def _without_launching(graph: Any) -> Callable[..., list]:
    """Stands in for the compiled graph: the right shapes and types, arbitrary contents."""
    import torch

    shapes = torch._guards.TracingContext.get().fake_mode.shape_env
    traced = [node.meta["example_value"] for node in graph.graph.find_nodes(op="placeholder")]
    nodes = graph.graph.find_nodes(op="output")[0].args[0]
    outputs = [n.meta["example_value"] if isinstance(n, torch.fx.Node) else n for n in nodes]

    def run(*inputs):
        sizes = shapes.bind_symbols(traced, inputs)

        def concrete(x):
            if isinstance(x, torch.Tensor):
                return torch.empty([concrete(size) for size in x.shape], dtype=x.dtype)
            return int(x.node.expr.xreplace(sizes)) if isinstance(x, torch.SymInt) else x

        return [concrete(x) for x in outputs]

    return run


@contextlib.contextmanager
def _pretend_gpu(sm: int) -> Iterator[list[tuple[str, bytes]]]:
    """Let torch and Triton compile for `sm` with tensors on the CPU; yields the cubins."""
    import torch.utils._triton
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import CompiledKernel

    _tell_target(sm)
    loaded = 5 if "n_max_threads" in inspect.getsource(CompiledKernel) else 4
    driver = SimpleNamespace(  # all that the compile path asks, and a launch that does nothing
        get_current_target=lambda: GPUTarget("cuda", sm, 32),
        get_current_device=lambda: 0,
        get_current_stream=lambda device: 0,
        get_benchmarker=lambda: lambda *a, **k: [0.0, 0.0, 0.0],  # for autotune
        launcher_cls=lambda source, meta: lambda *a, **k: None,
        utils=SimpleNamespace(
            get_device_properties=lambda device: {"max_shared_mem": 232448},
            load_binary=lambda *a: (None, None, 0, 0, 1024)[:loaded],
        ),
    )
    cubins: list[tuple[str, bytes]] = []
    init = CompiledKernel.__init__

    def record(self, *args):
        init(self, *args)
        cubins.append((self.metadata.name, self.asm["cubin"]))

    with contextlib.ExitStack() as stack:
        patch = lambda *what: stack.enter_context(mock.patch.object(*what))  # noqa: E731
        # else Dynamo knows no kernels; torch 2.15 asks with an argument
        patch(torch.utils._triton, "has_triton", lambda *a, **k: True)
        from torch._higher_order_ops import triton_kernel_wrap
        from torch._inductor import config
        from torch._inductor.codegen import common
        from torch._inductor.runtime import hints, triton_helpers, triton_heuristics

        if hasattr(triton_kernel_wrap, "JITFunction"):  # empty classes, if imported without a GPU
            patch(triton_kernel_wrap, "JITFunction", triton.JITFunction)
            patch(triton_kernel_wrap, "Autotuner", triton.runtime.Autotuner)
        if hasattr(triton_helpers, "set_driver_to_gpu"):  # torch 2.6+ looks for a real driver
            patch(triton_helpers, "set_driver_to_gpu", lambda: None)
        if common.get_device_op_overrides("cpu") is None:  # torch <= 2.5 lacks it
            common.register_device_op_overrides("cpu", common.get_device_op_overrides("cuda"))
        gpu = {"type": "cuda", "index": 0, "cc": sm, "major": sm // 10, "warp_size": 32,
               "multi_processor_count": 108, "regs_per_multiprocessor": 65536,
               "max_threads_per_multi_processor": 2048}  # fmt: skip
        gpu = {name: gpu[name] for name in hints.DeviceProperties._fields if name in gpu}
        patch(hints.DeviceProperties, "create", classmethod(lambda cls, device: cls(**gpu)))
        tuner = triton_heuristics.CachingAutotuner
        precompile = tuner.precompile  # warm_cache_only: load nothing, as Inductor's own workers do
        patch(tuner, "precompile", lambda self, *a, **k: precompile(self, warm_cache_only=True))
        patch(CompiledKernel, "__init__", record)
        stack.enter_context(config.patch(compile_threads=1, force_disable_caches=True))
        stack.enter_context(mock.patch.dict(os.environ, TRITON_ALWAYS_COMPILE="1"))
        stack.enter_context(mock.patch.dict(vars(triton.runtime.driver)))  # put back after
        triton.runtime.driver.set_active(driver)
        yield cubins


# Triton 2.x wants `torch.version.hip` (2.2: on import) and nothing else to compile.
with contextlib.suppress(metadata.PackageNotFoundError):
    if _triton() < (3, 0) and not (sys.modules.get("torch") or importlib.util.find_spec("torch")):
        sys.modules["torch"] = stub = ModuleType("torch")
        stub.version = SimpleNamespace(hip=None)
