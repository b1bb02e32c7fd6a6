"""The number of every window's histogram, by sliding over the references.

The number of a histogram (a, c, g, t) with a + c + g + t = length is its place among all of them
ordered by (a + c + g, a + c, a), the combinatorial number system:

    number = C(a + c + g + 2, 3) + C(a + c + 1, 2) + a        0 .. C(length + 3, 3) - 1

One 64-bit word holds the sums of a window, 16 bits each, and moves on by one letter with one
addition and one subtraction, since no field ever borrows from its neighbour:

    bits 63..48      47..32      31..16   15..0
         ambiguous   a + c + g   a + c    a
"""

from math import comb

import numba
import numpy as np

__all__ = [
    "AMBIGUOUS_WINDOW",
    "NO_WINDOW",
    "number_of_classes",
    "number_system",
    "number_windows",
]

#: No window that could hit begins here.
NO_WINDOW = -1
#: The window has ambiguous letters; its counts are given instead of a number.
AMBIGUOUS_WINDOW = -2


def number_of_classes(length: int) -> int:
    """How many histograms a window of `length` unambiguous letters can have."""
    return comb(length + 3, 3)


def number_system(length: int):
    """What each letter adds to a window's sums, and the binomials that number its histogram.

    Returns
    -------
    weights : ndarray, shape=(5,), dtype=uint64
    squares, cubes : ndarray, shape=(length + 1,), dtype=int64
        C(n + 1, 2) and C(n + 2, 3).
    """
    weights = np.array([1 | 1 << 16 | 1 << 32, 1 << 16 | 1 << 32, 1 << 32, 0, 1 << 48], np.uint64)
    n = np.arange(length + 1)
    squares = n * (n + 1) // 2
    cubes = n * (n + 1) * (n + 2) // 6
    return weights, squares, cubes


@numba.njit(cache=True, nogil=True)
def number_windows(
    codes, starts, length, first, stop, most_ambiguous, weights, squares, cubes, numbers, packed
):
    """Number the windows that begin in [first, stop).

    Parameters
    ----------
    most_ambiguous : int
        A window with more ambiguous letters than this is as good as none.
    numbers : ndarray, shape=(at least stop - first,), dtype=int64
        Filled with numbers, `NO_WINDOW` or `AMBIGUOUS_WINDOW`.
    packed : ndarray, of the same shape, dtype=uint64
        Where the number is `AMBIGUOUS_WINDOW`: the four counts, 16 bits each, A lowest.
    """
    numbers[: stop - first] = NO_WINDOW
    reference = np.searchsorted(starts, first, side="right") - 1
    while reference < len(starts) - 1 and starts[reference] < stop:
        begin = max(first, starts[reference])
        end = min(stop, starts[reference + 1] - length + 1)
        if begin < end:
            sums = np.uint64(0)
            for at in range(begin, begin + length - 1):
                sums += weights[codes[at]]
            for at in range(begin, end):
                sums += weights[codes[at + length - 1]]
                a = sums & np.uint64(0xFFFF)
                ac = (sums >> np.uint64(16)) & np.uint64(0xFFFF)
                acg = (sums >> np.uint64(32)) & np.uint64(0xFFFF)
                ambiguous = sums >> np.uint64(48)
                if ambiguous == np.uint64(0):
                    numbers[at - first] = cubes[acg] + squares[ac] + np.int64(a)
                elif ambiguous <= np.uint64(most_ambiguous):
                    numbers[at - first] = AMBIGUOUS_WINDOW
                    t = np.uint64(length) - acg - ambiguous
                    packed[at - first] = (
                        a
                        | (ac - a) << np.uint64(16)
                        | (acg - ac) << np.uint64(32)
                        | t << np.uint64(48)
                    )
                sums -= weights[codes[at]]
        reference += 1
