"""Pinned memory of the host, lent to the threads that bring work to a GPU and back.

A GPU copies by itself, and fast, between its own and pinned memory; to pin memory takes longer
than to copy what it holds, so it stays pinned for the next one.
"""

import queue
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from bwarp.gpu.cuda import cuda

__all__ = ["PinnedBuffer", "PinnedBuffers"]


class PinnedBuffer:
    """Pinned memory for arrays of one kind of work after another; it grows to what is wanted."""

    #: Arrays begin at multiples of this.
    ALIGNMENT = 64

    def __init__(self):
        self._bytes = np.empty(0, np.uint8)

    def arrays(self, count: int, dtypes: list) -> list[np.ndarray]:
        """Arrays of so many elements of each type, side by side; what was here before is lost."""
        sizes = [-(-count * np.dtype(dtype).itemsize // self.ALIGNMENT) for dtype in dtypes]
        starts = np.cumsum([0, *sizes]) * self.ALIGNMENT
        if self._bytes.size < starts[-1]:
            # Pinning takes longer than copying: not for every few bytes more.
            wanted = max(int(starts[-1]) * 5 // 4, 2 * self._bytes.size)
            self._bytes = cuda.pinned_array(wanted, np.uint8)
        return [
            self._bytes[start : start + count * np.dtype(dtype).itemsize].view(dtype)
            for start, dtype in zip(starts, dtypes, strict=False)
        ]


class PinnedBuffers:
    """Some buffers that are lent to one thread each, and waited for."""

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
