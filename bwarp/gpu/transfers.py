"""Copy arrays to a GPU and back.

A GPU copies fast and independently between its own memory and *pinned* memory of the host.
Therefore pieces of large arrays pass through pinned memory that stays allocated, with one slot per
thread:

    thread 0    fill slot 0 | GPU fetches | fill slot 0 | GPU fetches ...
    thread 1    fill slot 1 | GPU fetches | fill slot 1 | ...

and in the other direction likewise. Several small arrays go to the GPU in one slot.
"""

import functools
import queue
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, driver
from bwarp.gpu.device_arrays import dtypes_of
from bwarp.gpu.memory_pool import are_neighbours, cut, device_array, room_for
from bwarp.runtime.timeline import on_timeline

#: Bytes per slot; with smaller slots the overhead per copy dominates.
SLOT = 4 << 20
#: Minimum number of bytes per thread.
LEAST_A_THREAD = 2 << 20
#: This number of threads saturates the memory.
MOST_THREADS = 8


class _Workers(NamedTuple):
    """The threads of one GPU, with a slot and a stream each, and a lock."""

    pool: ThreadPoolExecutor
    slots: list
    lock: threading.Lock


@on_timeline("copy to the GPU")
def to_gpu(arrays: Sequence[np.ndarray], threads: int = 1) -> list:
    """Copy contiguous 1-d arrays to adjacent memory on the current GPU."""
    begins, n_bytes = _side_by_side(arrays)
    memory = device_array(max(1, n_bytes), np.uint8)
    copies = [
        cut(memory, begin, array.size, array.dtype)
        for begin, array in zip(begins, arrays, strict=True)
    ]
    if len(arrays) > 1 and n_bytes <= SLOT:
        workers = _workers(cuda.get_current_device().id)
        with workers.lock:
            slot, _ = workers.slots[0]
            for begin, array in zip(begins, arrays, strict=True):
                slot[begin : begin + array.nbytes] = array.view(np.uint8)
            driver.host_to_device(memory, slot, n_bytes)
    elif threads > 1 and n_bytes > SLOT:
        _through_slots(_send, arrays, copies, threads)
    else:
        for array, copy in zip(arrays, copies, strict=True):
            if array.size:
                # As cuda.to_device, which inspects every array several times, in a third of the
                # time.
                driver.host_to_device(copy, array, array.nbytes)
    return copies


@on_timeline("wait for the GPU and copy from it")
def to_host(arrays: Sequence, threads: int = 1) -> list[np.ndarray]:
    """Copy 1-d device arrays to one piece of host memory, which is faster for large arrays.

    Arrays that are adjacent on the GPU are also copied faster.
    """
    begins, n_bytes = _side_by_side(arrays)
    memory = np.empty(n_bytes, np.uint8)
    copies = [
        memory[begin : begin + array.nbytes].view(array.dtype)
        for begin, array in zip(begins, arrays, strict=True)
    ]
    if threads > 1 and n_bytes > LEAST_A_THREAD:
        _through_slots(_receive, copies, arrays, threads)
    else:
        first = 0
        for last, array in enumerate(arrays):
            if last + 1 == len(arrays) or not are_neighbours(array, arrays[last + 1]):
                stop = begins[last] + array.nbytes
                if stop > begins[first]:
                    here = memory[begins[first] : stop]
                    driver.device_to_host(here, arrays[first], here.size)
                first = last + 1
    return copies


@on_timeline("wait for the GPU and copy from it")
def into_host(target: np.ndarray, array, threads: int = 1) -> None:
    """Copy a 1-d device array to a contiguous host array of the same size and type."""
    if threads > 1 and array.nbytes > LEAST_A_THREAD:
        _through_slots(_receive, [target], [array], threads)
    elif array.size:
        driver.device_to_host(target, array, array.nbytes)


def _side_by_side(arrays) -> tuple[list[int], int]:
    """Return the byte offset of each array in one piece of memory, and the total size."""
    begins, end = [], 0
    for array in arrays:
        begins.append(end)
        end += room_for(array.nbytes)
    return begins, end


def _through_slots(move, on_host, on_gpu, threads: int) -> None:
    """Distribute pieces of arrays over threads, each with its slot of pinned memory."""
    pieces = []
    n_bytes = sum(host.nbytes for host in on_host)
    threads = max(1, min(threads, MOST_THREADS, n_bytes // LEAST_A_THREAD))
    piece = min(SLOT, room_for(n_bytes // threads + 1))
    for host, gpu in zip(on_host, on_gpu, strict=True):
        host_bytes = host.view(np.uint8)
        for first in range(0, host.nbytes, piece):
            pieces.append((host_bytes[first : first + piece], gpu, first))

    def work(number, slot, stream):
        for host, gpu, first in pieces[number::threads]:
            move(host, cut(gpu, first, host.size, np.uint8), slot, stream)

    workers = _workers(cuda.get_current_device().id)
    with workers.lock:
        jobs = [
            workers.pool.submit(work, number, *workers.slots[number]) for number in range(threads)
        ]
        for job in jobs:
            job.result()


def _send(host, gpu, slot, stream) -> None:
    np.copyto(slot[: host.size], host)
    driver.host_to_device(gpu, slot, host.size, stream)
    stream.synchronize()


def _receive(host, gpu, slot, stream) -> None:
    driver.device_to_host(slot, gpu, host.size, stream)
    stream.synchronize()
    np.copyto(host, slot[: host.size])


@functools.lru_cache(maxsize=16)
def _workers(_gpu) -> _Workers:
    slots = [(cuda.pinned_array(SLOT, np.uint8), cuda.stream()) for _ in range(MOST_THREADS)]
    pool = ThreadPoolExecutor(MOST_THREADS, initializer=cuda.current_context().push)
    return _Workers(pool, slots, threading.Lock())


class Mirrored:
    """A table on the current GPU, and the same table in pinned memory of the host.

    The columns of both are adjacent, so that one copy takes them all.

    Attributes
    ----------
    on_gpu, on_host : tuple
        Tables of device arrays, and of NumPy arrays.
    """

    def __init__(self, table: type[tuple], sizes: Sequence[int]):
        dtypes = [dtype for _, dtype in dtypes_of(table)]
        rooms = [room_for(n * dtype.itemsize) for n, dtype in zip(sizes, dtypes, strict=True)]
        begins = np.cumsum([0, *rooms]).tolist()
        self._gpu = cuda.device_array(begins[-1], np.uint8)
        self._host = cuda.pinned_array(begins[-1], np.uint8)
        parts = list(zip(begins, sizes, dtypes, strict=False))
        self.on_gpu = table(*(cut(self._gpu, *part) for part in parts))
        self.on_host = table(
            *(
                self._host[begin : begin + size * dtype.itemsize].view(dtype)
                for begin, size, dtype in parts
            )
        )
        self._last, self._item = begins[-2], dtypes[-1].itemsize

    def send(self, last: int) -> None:
        """Copy all columns to the GPU; of the last one, only the first `last` elements."""
        driver.host_to_device(self._gpu, self._host, self._last + last * self._item)

    def receive(self, last: int) -> None:
        """Copy the columns to the host as `send` does, after the kernels that compute them."""
        driver.device_to_host(self._host, self._gpu, self._last + last * self._item)


# --------------------------------------------------------------------------------------------------
# Pinned host memory, lent to the threads that transfer work to a GPU and back.
#
# Pinning memory takes longer than copying its contents, so memory stays pinned for reuse.


class PinnedBuffer:
    """Pinned memory for arrays, reused for one task after another; it grows as needed."""

    #: Arrays start at multiples of this.
    ALIGNMENT = 64

    def __init__(self):
        self._bytes = np.empty(0, np.uint8)

    def arrays(self, count: int, dtypes: list) -> list[np.ndarray]:
        """Return adjacent arrays of `count` elements per type; previous contents are lost."""
        sizes = [-(-count * np.dtype(dtype).itemsize // self.ALIGNMENT) for dtype in dtypes]
        starts = np.cumsum([0, *sizes]) * self.ALIGNMENT
        self._grow(int(starts[-1]))
        return [
            self._bytes[start : start + count * np.dtype(dtype).itemsize].view(dtype)
            for start, dtype in zip(starts, dtypes, strict=False)
        ]

    def filled(self, arrays: Sequence[np.ndarray]) -> "FilledBuffer":
        """Copy contiguous 1-d arrays into this memory, to be sent to a GPU in one transfer."""
        begins, n_bytes = _side_by_side(arrays)
        self._grow(n_bytes)
        for begin, array in zip(begins, arrays, strict=True):
            self._bytes[begin : begin + array.nbytes] = array.view(np.uint8)
        parts = [(begin, a.size, a.dtype) for begin, a in zip(begins, arrays, strict=True)]
        return FilledBuffer(self._bytes[:n_bytes], parts)

    def _grow(self, n_bytes: int) -> None:
        if self._bytes.size < n_bytes:
            # Grow in large steps, because pinning takes longer than copying.
            wanted = max(n_bytes * 5 // 4, 2 * self._bytes.size)
            self._bytes = cuda.pinned_array(wanted, np.uint8)


class FilledBuffer(NamedTuple):
    """Arrays to be sent to a GPU: their memory, and the begin, size and type of each."""

    memory: np.ndarray
    parts: list[tuple[int, int, np.dtype]]

    def to_gpu(self) -> list:
        """Copy the arrays to adjacent memory on the current GPU; the buffer is then free again."""
        there = cuda.device_array(max(1, self.memory.size), np.uint8)
        if self.memory.size:
            driver.host_to_device(there, self.memory, self.memory.size)
        return [cut(there, *part) for part in self.parts]


class PinnedBuffers:
    """Buffers lent to one thread each; further threads wait."""

    def __init__(self, count: int):
        self._free = queue.Queue()
        for _ in range(count):
            self._free.put(PinnedBuffer())

    @contextmanager
    def lent(self) -> Iterator[PinnedBuffer]:
        buffer = self._free.get()
        try:
            yield buffer
        finally:
            self._free.put(buffer)
