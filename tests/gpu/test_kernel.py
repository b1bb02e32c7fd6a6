"""Kernels: their types, their tables, and their arguments at launch."""

import pickle
import re
import struct
import threading
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")


from bwarp.gpu import kernel as kernels
from bwarp.gpu.cuda import cuda, float64, int32, int64, types, uint8, uint16, uint32
from bwarp.gpu.kernel import kernel, kernels_in
from bwarp.runtime.timeline import record, span
from tests.helpers.gpu import emulated_cuda
from tests.helpers.gpu.pretended_device import device, pretend_gpu


class Ends(NamedTuple):
    begin: int64[::1]
    end: int64[::1]


class Hits(NamedTuple):
    """A table that contains another table and a number."""

    score: int32[::1]
    ends: Ends
    longest: int


class Costs(NamedTuple):
    match: int
    loss: int


@kernel(over="hits.score", per=2)
def add_ends(hits: Hits, costs: Costs, sums: int64[::1]):
    """Two threads per hit: one for each end."""
    i = cuda.grid(1)
    hit = i // 2
    if hit < hits.score.size:
        end = hits.ends.end[hit] if i % 2 else hits.ends.begin[hit]
        sums[i] = costs.match * hits.score[hit] + end + hits.longest


@kernel
def count_groups(
    groups: Annotated[tuple, types.UniTuple(int64, 2), types.UniTuple(int64, 3)], n: uint32
):
    pass


def some_hits():
    score, begin = np.array([3, 4, 5], np.int32), np.array([10, 20, 30])
    return Hits(device(score), Ends(device(begin), device(begin + 5)), 100)


def test_types_follow_from_annotations():
    [(hits, costs, sums)] = add_ends.signatures
    ends = types.NamedUniTuple(int64[::1], 2, Ends)
    assert hits == types.NamedTuple([int32[::1], ends, int64], Hits)
    assert costs == types.NamedUniTuple(int64, 2, Costs)
    assert sums == int64[::1]
    assert [len(groups) for groups, _ in count_groups.signatures] == [2, 3]
    assert pickle.loads(pickle.dumps(hits)) == hits


def test_a_module_has_the_kernels_it_defines_and_makes():
    module = SimpleNamespace(__name__=__name__, one=add_ends, other=len, MADE_KERNELS=(4711,))
    assert kernels_in(module) == [add_ends, 4711]
    assert kernels_in(SimpleNamespace(__name__="elsewhere", one=add_ends)) == []


def test_every_kernel_of_the_package_has_the_decorator():
    """Compiling ahead, and the tests, find kernels by the decorator."""
    sources = Path(kernels.__file__).parents[1].rglob("*.py")
    found = [
        path.name for path in sources
        if re.search(r"^ *@cuda\.jit(?!\(device=True)", path.read_text(), re.MULTILINE)
    ]  # fmt: skip
    assert found == []


def test_a_table_is_one_argument_and_says_how_many_threads_there_are(monkeypatch):
    pretend_gpu(monkeypatch, [])
    launched = []
    run = emulated_cuda.launch
    monkeypatch.setattr(
        emulated_cuda, "launch", lambda *given: launched.append(given[1:3]) or run(*given)
    )
    sums = device(np.zeros(6, np.int64))
    add_ends(some_hits(), Costs(2, 5), sums)
    assert sums.tolist() == [116, 121, 128, 133, 140, 145]
    add_ends[2, 32](some_hits(), Costs(2, 5), sums)
    assert launched == [(1, 128), (2, 32)]
    nothing = device(np.zeros(0, np.int32))
    add_ends(Hits(nothing, nothing, nothing), Costs(2, 5), sums)
    assert len(launched) == 2


def test_missing_types_are_refused(monkeypatch):
    pretend_gpu(monkeypatch, [])
    sums = device(np.zeros(6, np.int64))
    with pytest.raises(TypeError, match="add_ends: costs is of type Hits"):
        add_ends(some_hits(), some_hits(), sums)
    with pytest.raises(TypeError, match=r"add_ends: sums is of type array\(int32.*array\(int64"):
        add_ends(some_hits(), Costs(2, 5), device(np.zeros(6, np.int32)))
    with pytest.raises(TypeError, match="add_ends takes 3 arguments, not 2"):
        add_ends(some_hits(), sums)
    swapped = some_hits()._replace(score=some_hits().ends.begin)
    with pytest.raises(TypeError, match="add_ends: hits is of type Hits"):
        add_ends(swapped, Costs(2, 5), sums)
    with pytest.raises(TypeError, match="count_groups: groups is of type int64, not UniTuple"):
        count_groups[1, 32](1, np.uint32(1))
    # Index blocks also have other layouts, and numbers other widths.
    count_groups.require(((1, 2, 3, 4), 1))


class Dispatcher:
    """Replaces numba-cuda's dispatcher, and records the arguments of launches."""

    def __init__(self, argument_types, debug, launched):
        self.overloads = {("types",) * len(argument_types): Compiled(argument_types, debug)}
        self.launched = launched

    def typeof_pyval(self, _value):
        return "types"

    def __getitem__(self, configuration):
        return lambda *args: self.launched.append((configuration, args))


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
    """Return the calls of the driver and of numba-cuda, and a function that makes a kernel."""
    by_driver, by_numba = [], []

    def launch_kernel(function, grid, block, shared_bytes, extra):
        n_bytes = kernels._memory.size.value
        data = kernels._memory.buffer.raw[:n_bytes]
        assert extra is kernels._memory.extra
        by_driver.append((function.value, grid, block, shared_bytes, data))
        return grid != (13, 1, 1)

    monkeypatch.setattr(kernels, "launch_kernel", launch_kernel)
    monkeypatch.setattr(kernels, "current_device", lambda: 0)
    monkeypatch.setattr(kernels.Kernel, "require", lambda self, arguments: None)

    def made(argument_types, debug=False):
        one = kernel(lambda: None)
        one.dispatcher = Dispatcher(argument_types, debug, by_numba)
        return one

    return by_driver, by_numba, made


def test_numbers_are_packed_as_in_c(launched):
    by_driver, by_numba, made = launched
    pair = types.UniTuple(types.int32, 2)
    one = made((int64, uint8, pair, float64, types.boolean, uint16))
    first = -5, 200, (-7, 8), 0.5, True, 65535
    for numbers in (first, (1 << 62, 0, (1 << 30, -9), -1e300, False, 1)):
        one[3, (32, 4)](*numbers)
    # numba-cuda launches, and may compile, a kernel with new types.
    assert by_numba == [((3, (32, 4)), first)]
    layout = np.dtype("i8,u1,i4,i4,f8,?,u2", align=True)
    wanted = np.zeros(1, layout)
    wanted[0] = 1 << 62, 0, 1 << 30, -9, -1e300, False, 1
    ((function, grid, block, shared_bytes, data),) = by_driver
    assert (function, grid, block, shared_bytes) == (4711, (3, 1, 1), (32, 4, 1), 0)
    assert data == wanted.tobytes()[: len(data)]
    assert len(data) == 36


def test_arrays_are_aligned():
    formats = "".join(map(kernels._format_of, (uint8, int64[::1], uint8, int32[:, ::1])))
    words = bytes(range(1, 57)), bytes(range(57, 129))
    packed = struct.pack(f"@{formats}", 255, words[0], 254, words[1])
    assert packed == b"\xff" + bytes(7) + words[0] + b"\xfe" + bytes(7) + words[1]


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
def test_numba_launches_complicated_cases(launched, argument_types, debug, numbers, configuration):
    _, by_numba, made = launched
    one = made(argument_types, debug)
    for _ in range(3):
        one[configuration](*numbers)
    assert by_numba == [(configuration, numbers)] * 3


@kernel
def note(
    array: uint32[::1], column: int64[:], number: int, small: uint8, real: float,
    several: types.UniTuple(int64, 2), flag: bool, out: int64[::1],
):  # fmt: skip
    at = cuda.grid(1)
    if at == 0:
        out[0] = array[3] + array.size + array.shape[0]
        out[1] = column[2] + column.size
        out[2], out[3], out[4] = number, small, int(real * 4)
        out[5], out[6] = several[0] - several[1], 7 if flag else 8
    elif 6 < at < out.size:
        out[at] = at


@pytest.mark.gpu
def test_the_gpu_gets_the_same_arguments_as_from_numba():
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
    assert any(isinstance(plan, kernels._Plan) for plan in note._plans.values())


@pytest.mark.gpu
def test_kernels_are_on_the_timeline():
    array = cuda.to_device(np.arange(10, dtype=np.uint32))
    column = cuda.to_device(np.arange(20, dtype=np.int64).reshape(10, 2))[:, 1]
    out = cuda.to_device(np.zeros(300, np.int64))

    def run():
        note[3, 128](array, column, 1, np.uint8(2), 2.5, (5, -4), True, out)

    run()
    with record() as spans:
        for _ in range(3):
            run()
        with span("wait"):
            cuda.synchronize()
    (wait,) = (one for one in spans if one.name == "wait")
    kernels_run = [one for one in spans if one.thread < 0]
    assert [one.name for one in kernels_run] == ["note"] * 3
    assert all(0 <= one.start <= one.end for one in kernels_run)
    # The clocks of host and GPU agree to a millisecond, even if other processes use the GPU.
    assert kernels_run[-1].end <= wait.end + 1_000_000
    assert all(a.end <= b.start + 1000 for a, b in pairwise(kernels_run))
