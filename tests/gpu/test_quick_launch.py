"""Kernels that are launched quickly get the arguments that numba-cuda would hand them."""

import threading

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu import quick_launch
from bwarp.gpu.cuda import cuda, types
from bwarp.gpu.quick_launch import Launch


class Kernel:
    """Stands for numba-cuda's: it counts how often it is launched by that."""

    def __init__(self, argument_types, debug=False):
        self.overloads = {("types",): Compiled(argument_types, debug)}

    def typeof_pyval(self, _value):
        return "types"


class Compiled:
    cooperative, extensions = False, []

    def __init__(self, argument_types, debug):
        self.argument_types, self.debug = argument_types, debug
        self._codelibrary = self

    def get_cufunc(self):
        return self

    @property
    def kernel(self):
        return self

    handle = 4711


@pytest.fixture
def launched(monkeypatch):
    """What the driver is handed, and what numba-cuda is."""
    by_driver, by_numba = [], []

    def launch_kernel(function, grid, block, shared_bytes, extra):
        n_bytes = quick_launch._memory.size.value
        data = quick_launch._memory.buffer.raw[:n_bytes]
        assert extra is quick_launch._memory.extra
        by_driver.append((function.value, grid, block, shared_bytes, data))
        return grid != (13, 1, 1)

    monkeypatch.setattr(quick_launch, "launch_kernel", launch_kernel)
    monkeypatch.setattr(quick_launch, "current_device", lambda: 0)
    monkeypatch.setattr(
        quick_launch,
        "_numba_getitem",
        lambda kernel, configuration: lambda *args: by_numba.append((configuration, args)),
    )
    return by_driver, by_numba


def test_numbers_are_packed_as_c_lays_them_out(launched):
    by_driver, by_numba = launched
    pair = types.UniTuple(types.int32, 2)
    kernel = Kernel((types.int64, types.uint8, pair, types.float64, types.boolean, types.uint16))
    kernel.overloads = {("types",) * 6: kernel.overloads["types",]}
    first = -5, 200, (-7, 8), 0.5, True, 65535
    for numbers in (first, (1 << 62, 0, (1 << 30, -9), -1e300, False, 1)):
        Launch(kernel, (3, (32, 4)))(*numbers)
    # numba-cuda launches, and maybe compiles, what is seen for the first time.
    assert by_numba == [((3, (32, 4)), first)]
    layout = np.dtype("i8,u1,i4,i4,f8,?,u2", align=True)
    wanted = np.zeros(1, layout)
    wanted[0] = 1 << 62, 0, 1 << 30, -9, -1e300, False, 1
    ((function, grid, block, shared_bytes, data),) = by_driver
    assert (function, grid, block, shared_bytes) == (4711, (3, 1, 1), (32, 4, 1), 0)
    assert data == wanted.tobytes()[: len(data)]
    assert len(data) == 36


@pytest.mark.parametrize(
    ("argument_types", "debug", "numbers", "configuration"),
    [
        ((types.int64,), True, (1,), (1, 1)),
        ((types.complex64,), False, (1,), (1, 1)),
        ((types.int64,), False, ("a",), (1, 1)),
        ((types.UniTuple(types.int64, 2),), False, ((1, "a"),), (1, 1)),
        ((types.UniTuple(types.complex64, 1),), False, ((1,),), (1, 1)),
        ((types.uint32,), False, (-1,), (1, 1)),
        ((types.int64,), False, (1,), (1, 1, 5)),
        ((types.int64,), False, (1,), (13, 1)),
    ],
)
def test_numba_launches_what_is_not_simple(launched, argument_types, debug, numbers, configuration):
    _, by_numba = launched
    kernel = Kernel(argument_types, debug)
    for _ in range(3):
        Launch(kernel, configuration)(*numbers)
    assert by_numba == [(configuration, numbers)] * 3


@cuda.jit
def note(array, column, number, small, real, several, flag, out):
    at = cuda.grid(1)
    if at == 0:
        out[0] = array[3] + array.size + array.shape[0]
        out[1] = column[2] + column.size
        out[2], out[3], out[4] = number, small, int(real * 4)
        out[5], out[6] = several[0] - several[1], 7 if flag else 8
    elif 6 < at < out.size:
        out[at] = at


@pytest.mark.gpu
def test_the_gpu_gets_what_numba_hands_over():
    array = cuda.to_device(np.arange(10, dtype=np.uint32))
    column = cuda.to_device(np.arange(20, dtype=np.int64).reshape(10, 2))[:, 1]
    found = []

    def run():
        for at in (0, 2, 4):
            out = cuda.to_device(np.zeros(300, np.int64))
            note[3, 128](array, column, -(1 << 40), np.uint8(200), 2.5, (5, -4), at % 2 == 0, out)
            found.append(out.copy_to_host().tolist())

    for thread in [threading.Thread(target=run) for _ in range(4)]:
        thread.start()
        thread.join()
    run()
    assert found[0] == [23, 15, -(1 << 40), 200, 10, 9, 7, *range(7, 300)]
    assert all(one == found[0] for one in found)
    assert any(isinstance(plan, quick_launch._Plan) for plan in note._plans.values())
