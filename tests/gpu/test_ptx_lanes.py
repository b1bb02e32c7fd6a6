"""The operations of bwarp.gpu.ptx on packed lanes: their meaning, and their results on a GPU."""

import numpy as np
import pytest

from bwarp.gpu import ptx_reference
from tests.helpers.gpu.cuda_compiler import compile_ptx

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu import ptx
from bwarp.gpu.cuda import cuda, types

#: Operands, and the instruction.
OPERATIONS = {
    "max_lanes": (2, "max.s16x2"),
    "max3_lanes": (3, "max.s16x2"),
    "add_max_lanes": (3, "add.s16x2"),
    "multiply_add": (3, "mad.lo.s32"),
    "permute_bytes": (3, "prmt.b32"),
    "opaque": (1, "mov.b32"),
}


def kernel_of(name):
    """Return a kernel that applies an operation to each element."""
    operation, operands = getattr(ptx, name), OPERATIONS[name][0]

    @cuda.jit
    def apply_three(a, b, c, results):
        i = cuda.grid(1)
        if i < results.size:
            results[i] = operation(a[i], b[i], c[i])

    @cuda.jit
    def apply_two(a, b, c, results):
        i = cuda.grid(1)
        if i < results.size:
            results[i] = operation(a[i], b[i])

    @cuda.jit
    def apply_one(a, b, c, results):
        i = cuda.grid(1)
        if i < results.size:
            results[i] = operation(a[i])

    return (apply_one, apply_two, apply_three)[operands - 1]


def random_registers(seed):
    registers = np.random.default_rng(seed).integers(-(2**31), 2**31, (3, 2000))
    registers[:, :8] = [0, -1, 1, 0x7FFF, 0x8000, 0x7FFF7FFF, -(2**31), 2**31 - 1]
    return registers.astype(np.int32)


def lanes(registers):
    return registers.astype(np.int32).view("<i2").reshape(-1, 2).astype(np.int64)


def apply_meaning(name, registers):
    meaning = getattr(ptx_reference, name)
    columns = registers[: OPERATIONS[name][0]].tolist()
    return np.array([meaning(*operands) for operands in zip(*columns, strict=True)])


def test_meaning_of_maxima_and_sums():
    registers = random_registers(1)
    a, b, c = (lanes(register) for register in registers)
    largest = np.maximum(a, b)
    assert (lanes(apply_meaning("max_lanes", registers)) == largest).all()
    assert (lanes(apply_meaning("max3_lanes", registers)) == np.maximum(largest, c)).all()
    wrapped = (a + b).astype(np.int16)
    assert (lanes(apply_meaning("add_max_lanes", registers)) == np.maximum(wrapped, c)).all()
    a, b, c = registers.astype(np.int64)
    product = (a * b + c).astype(np.int32)
    assert (apply_meaning("multiply_add", registers) == product).all()
    assert (apply_meaning("opaque", registers) == a).all()


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (0x3210, 0x44332281),
        (0x7654, 0x88776605),
        (0x8888, 0xFFFFFFFF - 2**32),
        (0xC480, 0x0005FF81),
        (0x0123, 0x81223344 - 2**32),
    ],
)
def test_meaning_of_permuted_bytes(selector, expected):
    b = 0x88776605 - 2**32
    if selector == 0x7654:
        expected -= 2**32
    assert ptx_reference.permute_bytes(0x44332281, b, selector) == expected


@pytest.mark.compiler
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_is_its_instruction(name):
    text = compile_ptx(kernel_of(name), (types.int32[::1],) * 4, (9, 0))
    assert OPERATIONS[name][1] in text


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_on_the_gpu(name):
    if "lanes" in name and cuda.get_current_device().compute_capability < (9, 0):
        pytest.skip("packed lanes need compute capability 9.0")
    registers = random_registers(2)
    results = cuda.device_array(registers.shape[1], np.int32)
    arguments = [cuda.to_device(np.ascontiguousarray(register)) for register in registers]
    kernel_of(name)[16, 128](*arguments, results)
    np.testing.assert_array_equal(results.copy_to_host(), apply_meaning(name, registers))
