"""Compile kernels before a program launches them, in processes that do not use a GPU.

numba-cuda compiles a kernel at its first launch, in one thread, for the GPU in use. The annotations
of a kernel state the types of its arguments (`bwarp.gpu.kernel`). Therefore only the compute
capability of the GPU is needed to compile in advance; the launch finds the stored kernel.
"""

import importlib
from collections.abc import Iterable
from pathlib import Path

import bwarp
from bwarp.runtime.source_digest import imported_sources

_PACKAGE = Path(bwarp.__file__).parent

#: Compile time in seconds of the slowest kernel per module, if at least two.
SECONDS = {
    "bwarp.alignment.gatk_run_lengths_cuda": 2,
    "bwarp.alignment.int32_kernel_cuda": 3,
    "bwarp.alignment.packed_int16_kernel_cuda": 3,
    "bwarp.allmap.verify_cuda": 4,
    "bwarp.bam.duplicates_cuda": 3,
    "bwarp.records.bam_records_cuda": 6,
    "bwarp.records.paf_records_cuda": 3,
    "bwarp.records.sam_records_cuda": 5,
    "bwarp.mapping.primary_hits_cuda": 3,
    "bwarp.mapping.candidates_cuda": 2,
    "bwarp.seeding.search_schemes_cuda": 2,
}

#: Compile time in seconds of the sort of pairs (`bwarp.gpu.sums_and_sorts`).
SORT_SECONDS = 8

#: Kernels built by factories in addition to `MADE_KERNELS`: those that `map` launches for reads of
#: 150 bases, for many and for few pairs at once.
MADE = {
    "bwarp.alignment.int32_kernel_cuda": (
        "full_matrix_kernel", [(8, True, False, False)],
    ),
    "bwarp.alignment.packed_int16_kernel_cuda": (
        "packed_kernel", [(32, 5, True, True, False, True)],
    ),
}  # fmt: skip


def kernels_of(programs: Iterable[Path], capability: tuple[int, int]) -> list[tuple[str, int]]:
    """Return the kernels that programs may launch on such a GPU, as module and number.

    Parameters
    ----------
    programs : iterable of Path
        Source files; their imports are followed, including those inside functions.
    """
    listed = []
    for source in _sources(programs):
        if b"@kernel" in source.read_bytes():
            parts = source.relative_to(_PACKAGE.parent).with_suffix("").parts
            module = importlib.import_module(".".join(parts))
            if capability >= getattr(module, "LOWEST_ARCHITECTURE", capability):
                listed += [(module.__name__, number) for number in range(len(stated_types(module)))]
    return listed


def sorts_pairs(programs: Iterable[Path]) -> bool:
    """Return whether programs sort pairs on a GPU, with a sort that must be compiled as well."""
    of_gpu = [source for source in _sources(programs) if source.stem.endswith("_cuda")]
    return any(b"pair_sorter()" in source.read_bytes() for source in of_gpu)


def _sources(programs: Iterable[Path]) -> list[Path]:
    return sorted({source for one in programs for source in imported_sources(one, _PACKAGE)})


def stated_types(module) -> list[tuple]:
    """Return the kernels of a module, including `MADE`, with the types of their arguments."""
    from bwarp.gpu.kernel import kernels_in  # needs numba-cuda

    kernels = kernels_in(module)
    if module.__name__ in MADE:
        maker, made = MADE[module.__name__]
        kernels += [getattr(module, maker)(*arguments) for arguments in made]
    return [(kernel, types) for kernel in kernels for types in kernel.signatures]


def pretend_to_have(capability: tuple[int, int]) -> None:
    """Make numba-cuda compile in this process as for a GPU of this compute capability."""
    from bwarp.gpu.cuda import api, devices

    class Device:
        compute_capability = capability

    class Context:
        device = Device

    devices.get_context = api.current_context = lambda *_: Context


def compile_kernel(module: str, number: int) -> None:
    """Compile a kernel of a module and store it, unless it is stored already."""
    from bwarp.gpu.cuda import CompiledKernel

    kernel, types = stated_types(importlib.import_module(module))[number]
    kernel = kernel.dispatcher
    if kernel._cache.load_overload(types, kernel.targetctx) is None:
        compiled = CompiledKernel(kernel.py_func, types, **kernel.targetoptions)
        compiled._codelibrary.get_cubin()
        kernel._cache.save_overload(types, compiled)
