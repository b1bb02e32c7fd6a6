"""Every CUDA kernel compiles for every architecture from sm_75 to sm_120; no GPU is needed.

The annotations of kernels give the types of their arguments (`bwarp.gpu.kernel`). A module with
kernels may also define:

MADE_KERNELS
    kernels made by a function of the module, which are also compiled here.
LOWEST_ARCHITECTURE
    the minimum compute capability for its instructions, for example (9, 0) for s16x2.
INLINE_PTX
    dict: kernel -> tuple of instructions from bwarp.gpu.ptx that must appear in its code.
LOCAL_MEMORY
    dict: kernel -> bytes that a thread may keep outside registers; 0 for other kernels.
DOUBLE_PRECISION
    set of the kernels that use float64 on purpose. In any other kernel it is a mistake, such as `/`
    between integers, or an integer with a Python float.
"""

import importlib
from pathlib import Path

import pytest

import bwarp
from tests.helpers.gpu.cuda_compiler import (
    ARCHITECTURES,
    compile_for_all,
    compile_ptx,
    local_memory,
    missing_compiler,
)

PACKAGE = Path(bwarp.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in PACKAGE.rglob("*.py")
    if "@kernel" in path.read_text()
)

if missing_compiler():
    pytest.skip(missing_compiler(), allow_module_level=True)

pytestmark = pytest.mark.compiler


def test_local_memory_and_accidental_float64_are_found():
    from bwarp.gpu.cuda import cuda, types

    @cuda.jit
    def kernel(numbers):
        spilled = cuda.local.array(64, types.int64)
        for i in range(numbers.size):
            spilled[numbers[i] & 63] += numbers[i]
        numbers[0] = spilled[numbers[1] & 63]
        numbers[1] = numbers[0] / numbers[2]

    ptx = compile_ptx(kernel, (types.int64[::1],), (8, 0))
    assert local_memory(ptx, (8, 0)) >= 512
    assert ".f64" in ptx


@pytest.mark.parametrize("name", ["bwarp.gpu.sums_and_sorts", "bwarp.seeding.exact_cuda"])
def test_gpus_before_blackwell_are_given_the_same_ptx(name):
    """`compile_for_all` relies on this."""
    from bwarp.gpu.kernel import kernels_in

    for kernel in kernels_in(importlib.import_module(name)):
        types = kernel.signatures[0]
        for architecture, ptx in compile_for_all(kernel.dispatcher, types).items():
            assert ptx == compile_ptx(kernel.dispatcher, types, architecture)


def test_the_package_has_cuda_modules():
    assert "bwarp.index.suffix_array_cuda" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_kernels_compile(name):
    from bwarp.gpu.kernel import kernels_in

    module = importlib.import_module(name)
    kernels = kernels_in(module)
    extras = [getattr(module, name, {}) for name in ("INLINE_PTX", "LOCAL_MEMORY")]
    assert {kernel for extra in extras for kernel in extra} <= set(kernels)
    lowest = getattr(module, "LOWEST_ARCHITECTURE", ARCHITECTURES[0])
    for kernel in kernels:
        for types in kernel.signatures:
            for architecture, ptx in compile_for_all(kernel.dispatcher, types, lowest).items():
                what = f"{kernel.__name__}{types} on {architecture}"
                check_kernel(module, kernel, what, architecture, ptx)


def check_kernel(module, kernel, what, architecture, ptx):
    for instruction in getattr(module, "INLINE_PTX", {}).get(kernel, ()):
        assert instruction in ptx, f"{what} has no {instruction}"
    if kernel not in getattr(module, "DOUBLE_PRECISION", ()):
        assert ".f64" not in ptx, f"{what} computes in float64"
    used = local_memory(ptx, architecture, kernel.dispatcher.targetoptions.get("max_registers"))
    allowed = getattr(module, "LOCAL_MEMORY", {}).get(kernel, 0)
    assert used <= allowed, f"{what} keeps {used} bytes outside registers"
