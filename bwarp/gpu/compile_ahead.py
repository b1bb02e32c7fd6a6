"""Kernels are compiled before a program launches them, in processes that use no GPU.

numba-cuda compiles a kernel when it is first launched, in one thread, for the GPU in use. The
annotations of a kernel say which types it is launched with (`bwarp.gpu.kernel`). So all that is
needed of a GPU is its compute capability, and the compiled kernel is kept where the launch looks
for it.
"""

import importlib
from collections.abc import Iterable
from pathlib import Path

import bwarp
from bwarp.runtime.source_digest import imported_sources

_PACKAGE = Path(bwarp.__file__).parent

#: Seconds that the slowest kernel of a module takes to compile, where it is two or more.
SECONDS = {
    "bwarp.alignment.gatk_run_lengths_cuda": 2,
    "bwarp.alignment.int32_kernel_cuda": 3,
    "bwarp.alignment.packed_int16_kernel_cuda": 3,
    "bwarp.loci.verify_cuda": 4,
    "bwarp.records.bam_records_cuda": 6,
    "bwarp.mapping.primary_hits_cuda": 3,
    "bwarp.mapping.candidates_cuda": 2,
    "bwarp.seeding.search_schemes_cuda": 2,
}

#: What functions of modules make besides `MADE_KERNELS`: what `map` launches for reads of 150
#: bases, for many pairs at once and for few.
MADE = {
    "bwarp.alignment.int32_kernel_cuda": (
        "full_matrix_kernel", [(8, True, False, False)],
    ),
    "bwarp.alignment.packed_int16_kernel_cuda": (
        "packed_kernel", [(32, 5, True, True, False, True)],
    ),
}  # fmt: skip


def kernels_of(programs: Iterable[Path], capability: tuple[int, int]) -> list[tuple[str, int]]:
    """The kernels that programs may launch on such a GPU: modules, and numbers within them.

    Parameters
    ----------
    programs : iterable of Path
        Source files; what they import counts, also within functions.
    """
    sources = {source for program in programs for source in imported_sources(program, _PACKAGE)}
    listed = []
    for source in sorted(sources):
        if b"@kernel" in source.read_bytes():
            parts = source.relative_to(_PACKAGE.parent).with_suffix("").parts
            module = importlib.import_module(".".join(parts))
            if capability >= getattr(module, "LOWEST_ARCHITECTURE", capability):
                listed += [(module.__name__, number) for number in range(len(stated_types(module)))]
    return listed


def stated_types(module) -> list[tuple]:
    """The kernels of a module, `MADE` ones too, each with the types of its arguments."""
    from bwarp.gpu.kernel import kernels_in  # which needs numba-cuda

    kernels = kernels_in(module)
    if module.__name__ in MADE:
        maker, made = MADE[module.__name__]
        kernels += [getattr(module, maker)(*arguments) for arguments in made]
    return [(kernel, types) for kernel in kernels for types in kernel.signatures]


def pretend_to_have(capability: tuple[int, int]) -> None:
    """Let numba-cuda compile, in this process, as if there were a GPU of a compute capability."""
    from bwarp.gpu.cuda import api, devices

    class Device:
        compute_capability = capability

    class Context:
        device = Device

    devices.get_context = api.current_context = lambda *_: Context


def compile_kernel(module: str, number: int) -> None:
    """Compile a kernel of a module, and keep it, unless that is done."""
    from bwarp.gpu.cuda import CompiledKernel

    kernel, types = stated_types(importlib.import_module(module))[number]
    kernel = kernel.dispatcher
    if kernel._cache.load_overload(types, kernel.targetctx) is None:
        compiled = CompiledKernel(kernel.py_func, types, **kernel.targetoptions)
        compiled._codelibrary.get_cubin()
        kernel._cache.save_overload(types, compiled)
