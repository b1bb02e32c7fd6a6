"""Divide work into pieces that fit into the memory of a GPU."""

import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from bwarp.errors import GpuMemoryError
from bwarp.gpu import available_memory

Result = TypeVar("Result")

#: Successful pieces in a row before a larger size is tried for the first time.
BEFORE_A_LARGER = 8


class Pieces:
    """Divides work into pieces that fit into the GPU's memory.

    If a piece is too large, it and all later ones are halved. After several successful pieces the
    previous size is tried again, because other users of the memory may be gone; each failure
    doubles the number of pieces before the next try. Several threads may process pieces.

    Parameters
    ----------
    at_once : int
        Initial number of items per piece.
    refusal : GpuMemoryError
        Raised if the memory is not enough for the smallest piece.

    Attributes
    ----------
    at_once : int
        Number of items of the next piece.
    """

    def __init__(self, at_once: int, refusal: GpuMemoryError):
        self.at_once = at_once
        self._refusal, self._lock = refusal, threading.Lock()
        #: Value of `at_once` before each halving.
        self._larger: list[int] = []
        self._in_a_row, self._enough, self._tries_again = 0, BEFORE_A_LARGER, False

    @property
    def halvings(self) -> int:
        """Number of halvings in effect."""
        return len(self._larger)

    def each(self, work: Callable[[int, int], Result], count: int, step: int = 1) -> list[Result]:
        """Return the results of ``work(first, last)`` for all pieces, at least one, if empty.

        Parameters
        ----------
        count : int
            Total number of items.
        step : int
            Pieces start at multiples of this: 2 for pairs.
        """
        found, first = [], 0
        while not found or first < count:
            last = first + self._size_of_next(count - first, step)
            piece = available_memory.attempt(partial(work, first, last))
            if piece is not None:
                found.append(piece)
                first = last
                self._count_success()
                continue
            if last - first <= step:
                raise self._refusal
            self._halve(last - first)
        return found

    def _size_of_next(self, left: int, step: int) -> int:
        """Return the next size; the rest is divided into as few equal pieces as possible."""
        pieces = max(1, -(-left // max(self.at_once // step * step, step)))
        return min(-(-left // (pieces * step)) * step, left)

    def _halve(self, size: int) -> None:
        """Make pieces smaller than this size, which was too large."""
        with self._lock:
            if self._tries_again:
                self._enough *= 2
            self._in_a_row, self._tries_again = 0, False
            # Another thread may have halved this size already.
            if size // 2 < self.at_once:
                self._larger.append(self.at_once)
                self.at_once = size // 2

    def _count_success(self) -> None:
        """Undo the last halving after enough successful pieces in a row."""
        with self._lock:
            self._in_a_row += 1
            if self._in_a_row < self._enough:
                return
            self._in_a_row, self._tries_again = 0, bool(self._larger)
            if self._larger:
                self.at_once = self._larger.pop()
