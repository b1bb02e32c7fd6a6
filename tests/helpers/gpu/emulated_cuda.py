"""Runs CUDA kernels in plain Python without a GPU, including warp operations and inline PTX.

Numba's own simulator supports neither shuffles nor intrinsics. Here each thread of a block is a
greenlet that runs the Python source of the kernel. Names with another meaning on a GPU are rebound:
`cuda` to an object of this thread, the types int32, uint64, ... to functions that wrap around like
registers, operations of bwarp/gpu/ptx.py to those of bwarp/gpu/ptx_reference.py, and device
functions likewise. Arrays are checked: an index outside (or below 0, which Numba would wrap) is an
error, and so is a shuffle or barrier that the threads of a warp (block) do not reach together.

Greenlets take turns, so results never depend on chance (and a missing barrier may go unnoticed).
This is fast enough for a few thousand cells: it tests the logic, bit for bit; a GPU tests the rest.
"""

import operator
import threading
import types
from collections import Counter, deque
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from greenlet import getcurrent, greenlet

# Test modules that import this one are skipped with it.
pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu import ptx, ptx_reference
from bwarp.gpu.cuda import cuda

WARP = 32


class Memory:
    """An array whose elements read as Python integers and whose bounds are checked."""

    def __init__(self, array):
        self.array = array
        self.shape, self.size, self.ndim = array.shape, array.size, array.ndim
        self._item, self._is_flat = array.item, array.ndim == 1
        self._convert = None
        if array.dtype.kind in "iu":
            self._convert = _wrapping(8 * array.itemsize, array.dtype.kind == "i")

    def _checked(self, index):
        if self._is_flat and not isinstance(index, tuple):
            assert 0 <= index < self.size, f"index ({index},) outside of {self.shape}"
            return int(index)
        index = index if isinstance(index, tuple) else (index,)
        assert len(index) == self.ndim, "as many indices as dimensions"
        for i, length in zip(index, self.shape, strict=True):
            assert 0 <= i < length, f"index {index} outside of {self.shape}"
        return tuple(int(i) for i in index)

    def __getitem__(self, index):
        if self._is_flat and type(index) is int:
            # The most frequent case; a call per element of a table would be slow.
            assert 0 <= index < self.size, f"index ({index},) outside of {self.shape}"
            return self._item(index)
        return self._item(self._checked(index))

    def __setitem__(self, index, value):
        if self._is_flat and type(index) is int:
            assert 0 <= index < self.size, f"index ({index},) outside of {self.shape}"
        else:
            index = self._checked(index)
        self.array[index] = self._convert(value) if self._convert else value

    def __len__(self):
        return len(self.array)


def never_written(shape, dtype):
    """Return an array filled with numbers that are too large to be plausible."""
    array = np.empty(shape, dtype)
    array.view(np.uint8).fill(0x71)
    return array


def _wrapping(bits, signed):
    mask, half = (1 << bits) - 1, 1 << bits - 1
    if signed:

        def convert(value):
            return ((int(value) + half) & mask) - half
    else:

        def convert(value):
            return int(value) & mask

    convert.dtype = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
    return convert


_CONVERSIONS = {
    getattr(library, f"{sign}int{bits}"): _wrapping(bits, not sign)
    for library in (numba, np)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}


def _bits(truths):
    return sum(bool(truth) << lane for lane, truth in enumerate(truths))


class _Meeting:
    """A point that threads must reach together, where they exchange values.

    A thread that waits switches to the next one that is ready, or to the scheduler.
    """

    def __init__(self, ready, switches, scheduler):
        self.ready, self.switches, self.scheduler = ready, switches, scheduler
        self.operation, self.values = None, [None] * len(switches)
        self.arrived, self.exchanged = 0, None

    def exchange(self, thread, operation, value=None, combine=list):
        """Return `combine` of the values of all threads, computed once for all."""
        if not self.arrived:
            self.operation = operation
        elif operation != self.operation:
            raise AssertionError(
                f"threads meet in different operations: {self.operation}, {operation}"
            )
        self.values[thread] = value
        self.arrived += 1
        if self.arrived < len(self.values):
            (self.ready.popleft() if self.ready else self.scheduler)()
            return self.exchanged
        self.exchanged = combine(self.values)
        self.arrived = 0
        self.ready.extend(self.switches[:thread])
        self.ready.extend(self.switches[thread + 1 :])
        return self.exchanged


#: Operations in which threads wait for each other.
_MEETINGS = frozenset(
    (
        *("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync", "ballot_sync"),
        *("any_sync", "syncwarp", "syncthreads"),
    )
)


class _Block:
    """What the threads of a block share."""

    def __init__(self):
        self.grid_size, self.size, self.index = (types.SimpleNamespace(x=0) for _ in range(3))
        self.lock = threading.Lock()
        self.begin(0)

    def begin(self, index):
        """Become the next block."""
        self.index.x = index
        #: The shared arrays in the order in which each thread asks for them.
        self.arrays, self.counts = {}, Counter()


class _Thread:
    """The `cuda` of one thread."""

    def __init__(self, thread_index, block):
        self.threadIdx = types.SimpleNamespace(x=thread_index)
        self.gridDim, self.blockDim, self.blockIdx = block.grid_size, block.size, block.index
        self.laneid = thread_index % WARP
        self.local = types.SimpleNamespace(array=self._new_array)
        self.shared = types.SimpleNamespace(array=self._shared_array)
        self.atomic = types.SimpleNamespace(
            add=partial(self._atomic, operator.add),
            max=partial(self._atomic, max),
            min=partial(self._atomic, min),
            or_=partial(self._atomic, operator.or_),
        )
        self._block = block

    def meet_in(self, warp, block):
        """Exchange values with the other threads of a warp and block."""
        self._meet = partial(warp.exchange, self.laneid)
        self._meet_block = partial(block.exchange, self.threadIdx.x)

    def grid(self, _dimensions):
        return self.blockIdx.x * self.blockDim.x + self.threadIdx.x

    def gridsize(self, _dimensions):
        return self.gridDim.x * self.blockDim.x

    @staticmethod
    def _new_array(shape, dtype):
        return Memory(never_written(shape, dtype.dtype))

    def _shared_array(self, shape, dtype):
        block, thread = self._block, self.threadIdx.x
        with block.lock:
            block.counts[thread] += 1
            return block.arrays.setdefault(block.counts[thread], self._new_array(shape, dtype))

    def shared_address(self, memory):
        """Return an address; each shared array has its own 64 KiB of addresses."""
        arrays = self._block.arrays
        return next(number for number, array in arrays.items() if array is memory) << 16

    def load_shared_int32x4(self, address):
        assert address % 16 == 0, "aligned"
        array = self._block.arrays[address >> 16]
        first = (address & 0xFFFF) // 4
        return tuple(array[first + i] for i in range(4))

    def shfl_sync(self, _mask, value, lane):
        return self._meet("shfl", value)[lane % WARP]

    def shfl_up_sync(self, _mask, value, delta):
        values = self._meet("shfl_up", value)
        return values[self.laneid - delta] if self.laneid >= delta else value

    def shfl_down_sync(self, _mask, value, delta):
        values = self._meet("shfl_down", value)
        return values[self.laneid + delta] if self.laneid + delta < WARP else value

    def shfl_xor_sync(self, _mask, value, flip):
        return self._meet("shfl_xor", value)[self.laneid ^ flip]

    def ballot_sync(self, _mask, truth):
        return self._meet("ballot", truth, _bits)

    def any_sync(self, _mask, truth):
        return self._meet("any", truth, any)

    @staticmethod
    def popc(value):
        return value.bit_count()

    @staticmethod
    def ffs(value):
        return (value & -value).bit_length()

    @staticmethod
    def brev(value):
        """Reverse the bits of a uint64."""
        return int(f"{int(value):064b}"[::-1], 2)

    @staticmethod
    def clz(value):
        """Count the leading zeros of an int64."""
        return 64 - value.bit_length()

    def syncwarp(self):
        self._meet("syncwarp")

    def syncthreads(self):
        self._meet_block("syncthreads")

    def threadfence(self):
        pass

    threadfence_block = threadfence

    def _atomic(self, operation, memory, index, value):
        with self._block.lock:
            old = memory[index]
            memory[index] = operation(old, value)
            return old


class _Use(NamedTuple):
    """A name in a kernel's source, where it was looked up, and its value then."""

    where: Mapping
    name: str
    value: Any


def _bound(function, thread, names, uses):
    """Return `function` with its names bound for one thread; device functions likewise."""
    source = getattr(function, "py_func", function)
    new_globals = dict(source.__globals__)
    bound = types.FunctionType(
        source.__code__, new_globals, source.__name__, source.__defaults__, source.__closure__
    )
    if source in names:
        return names[source]
    names[source] = bound

    def meaning(name, value):
        if value is cuda:
            return thread
        if isinstance(value, numba.types.Integer | type) and value in _CONVERSIONS:
            return _CONVERSIONS[value]
        if getattr(ptx, name, None) is value:
            uses.append(_Use(vars(_Thread), name, vars(_Thread).get(name)))
            return getattr(thread, name, None) or getattr(ptx_reference, name)
        if hasattr(value, "py_func"):
            return _bound(value, thread, names, uses)
        return value

    for name in source.__code__.co_names:
        if name in new_globals:
            uses.append(_Use(source.__globals__, name, new_globals[name]))
            new_globals[name] = meaning(name, new_globals[name])
    if source.__closure__:
        cells = [
            types.CellType(meaning(name, cell.cell_contents))
            for name, cell in zip(source.__code__.co_freevars, source.__closure__, strict=True)
        ]
        bound = types.FunctionType(
            source.__code__, new_globals, source.__name__, source.__defaults__, tuple(cells)
        )
        names[source] = bound
    return bound


class _Crew:
    """The threads of a block, each with its bound kernel; reused by later launches."""

    def __init__(self, kernel):
        self.kernel, self.block = kernel, _Block()
        self.threads, self.functions, self.uses = [], [], []
        self.meets = False

    def is_of_today(self) -> bool:
        """Return whether all names still have the values that were bound."""
        return all(where.get(name) is value for where, name, value in self.uses)

    def grow(self, size: int) -> None:
        while len(self.threads) < size:
            self.uses = []  # the same for every thread
            thread = _Thread(len(self.threads), self.block)
            bound = {}
            self.threads.append(thread)
            self.functions.append(_bound(self.kernel, thread, bound, self.uses))
            self.meets = any(_MEETINGS.intersection(one.__code__.co_names) for one in bound)


_IDLE_CREWS: dict[Any, list[_Crew]] = {}


def _in_memory(argument):
    """Convert arrays and numbers to their form in kernels, including those in tuples."""
    if isinstance(argument, np.ndarray):
        return Memory(argument)
    if isinstance(argument, np.generic):
        return argument.item()
    if isinstance(argument, tuple) and hasattr(argument, "_fields"):
        return type(argument)(*map(_in_memory, argument))
    return argument


def launch(kernel, grid, block, *arguments):
    """Run `kernel[grid, block](*arguments)`; arrays are NumPy arrays, changed in place."""
    assert block % WARP == 0, "whole warps"
    arguments = [_in_memory(argument) for argument in arguments]
    idle = _IDLE_CREWS.setdefault(kernel, [])
    # Removed during the launch, because another host thread may launch the same kernel.
    crew = idle.pop() if idle else _Crew(kernel)
    if not crew.is_of_today():
        crew = _Crew(kernel)
    crew.grow(block)
    crew.block.grid_size.x, crew.block.size.x = grid, block
    run = _run_together if crew.meets else _run_in_turn
    run(crew, arguments)
    idle.append(crew)


def _run_in_turn(crew, arguments):
    """Run one thread after another, if none waits for others."""
    functions = crew.functions[: crew.block.size.x]
    for block_index in range(crew.block.grid_size.x):
        crew.block.begin(block_index)
        for function in functions:
            function(*arguments)


def _run_together(crew, arguments):
    """Run each thread in a greenlet, for all blocks, because beginning one takes long."""
    grid, block = crew.block.grid_size.x, crew.block.size.x
    ready, scheduler, finished = deque(), getcurrent().switch, []
    run = partial(_run_thread, arguments, grid, finished, scheduler)
    # An error in a thread is raised in the scheduler.
    switches = [greenlet(partial(run, function)).switch for function in crew.functions[:block]]
    whole_block = _Meeting(ready, switches, scheduler)
    for first in range(0, block, WARP):
        warp = _Meeting(ready, switches[first : first + WARP], scheduler)
        for thread in crew.threads[first : first + WARP]:
            thread.meet_in(warp, whole_block)
    for block_index in range(grid):
        finished.clear()
        crew.block.begin(block_index)
        # A greenlet that began in another one would continue its depth of recursion.
        for switch in switches:
            switch()
        while ready:
            ready.popleft()()
        assert len(finished) == block, "threads wait for others that wait elsewhere"


def _run_thread(arguments, grid, finished, next_turn, function):
    """Run a thread of all blocks, one block after another."""
    for block_index in range(grid):
        function(*arguments)
        finished.append(block_index)
        if block_index < grid - 1:
            next_turn()
