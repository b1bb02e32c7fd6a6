"""The operations of bwarp.gpu.ptx agree with bwarp.gpu.ptx_reference."""

import numpy as np
import pytest
from numba.core.errors import TypingError

from bwarp.gpu import ptx_reference
from tests.helpers.gpu.cuda_compiler import compile_ptx

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu import ptx
from bwarp.gpu.cuda import cuda, types

#: Loads of neighbours: element type, elements, instruction.
LOADS = {
    "load_uint32x2": (np.uint32, 2, "ld.global.nc.v2.u32"),
    "load_uint32x4": (np.uint32, 4, "ld.global.nc.v4.u32"),
    "load_uint64x2": (np.uint64, 2, "ld.global.nc.v2.u64"),
}

#: Addresses in shared memory mean nothing outside a kernel; kernels that use them are tested.
SHARED_MEMORY = {"load_shared_int32x4", "shared_address"}


def load_kernel(load, count):
    """Return a kernel that copies groups of `count` elements by index, one thread per group."""

    @cuda.jit
    def copy_groups(array, groups, copied):
        i = cuda.grid(1)
        if i < groups.size:
            loaded = load(array, groups[i] * count)
            for j in range(count):
                copied[i * count + j] = loaded[j]

    return copy_groups


def test_every_operation_has_its_meaning_in_plain_python():
    assert set(ptx.__all__) - SHARED_MEMORY == set(ptx_reference.__all__)


@pytest.mark.compiler
@pytest.mark.parametrize("name", LOADS)
def test_load_is_one_instruction(name):
    dtype, count, instruction = LOADS[name]
    array = types.Array(types.uint32 if dtype == np.uint32 else types.uint64, 1, "C")
    kernel = load_kernel(getattr(ptx, name), count)
    for index in (types.uint32, types.int64, types.uint64):
        text = compile_ptx(kernel, (array, index[::1], array), (7, 5))
        assert text.count("ld.global.nc") == 1
        assert instruction in text


@pytest.mark.compiler
@pytest.mark.parametrize(
    "wrong", [types.int32[::1], types.uint32[::], types.uint32[:, ::1], types.uint32], ids=str
)
def test_load_from_another_array_is_refused(wrong):
    kernel = load_kernel(ptx.load_uint32x4, 4)
    with pytest.raises(TypingError, match=r"needs a contiguous 1-d array of uint32, not "):
        compile_ptx(kernel, (wrong, types.int64[::1], types.uint32[::1]), (7, 5))


@pytest.mark.gpu
@pytest.mark.parametrize("index", [np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("name", LOADS)
def test_load_on_the_gpu(name, index):
    dtype, count, _ = LOADS[name]
    rng = np.random.default_rng(7)
    array = rng.integers(0, np.iinfo(dtype).max, 4096, dtype, endpoint=True)
    groups = rng.integers(0, array.size // count, 1000).astype(index)
    copied = cuda.device_array(groups.size * count, dtype)
    load_kernel(getattr(ptx, name), count)[4, 256](
        cuda.to_device(array), cuda.to_device(groups), copied
    )
    meaning = getattr(ptx_reference, name)
    expected = [meaning(array, int(group) * count) for group in groups]
    assert copied.copy_to_host().reshape(-1, count).tolist() == [list(row) for row in expected]


@cuda.jit
def add_to_products(a, b, c, sums):
    i = cuda.grid(1)
    if i < sums.size:
        sums[i] = ptx.add_rounded(a[i] * b[i], c[i])


@pytest.mark.compiler
def test_a_rounded_sum_is_not_fused_with_a_product():
    text = compile_ptx(add_to_products, (types.float64[::1],) * 4, (7, 5))
    assert "add.rn.f64" in text
    assert "fma" not in text


@pytest.mark.gpu
def test_a_rounded_sum_on_the_gpu():
    a, b, c = np.random.default_rng(3).random((3, 1000))
    sums = cuda.device_array(1000, np.float64)
    add_to_products[4, 256](*map(cuda.to_device, (a, b, c)), sums)
    expected = [ptx_reference.add_rounded(x * y, z) for x, y, z in zip(a, b, c, strict=True)]
    assert sums.copy_to_host().tolist() == expected
