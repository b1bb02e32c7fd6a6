"""The number of every window's histogram, by sliding over the references.

The number of a histogram (a, c, g, t) with a + c + g + t = length is

    number = (a * (length + 1) + c) * (length + 1) + g          0 .. (length + 1)**3 - 1

Five in six of these numbers stand for no histogram (their a + c + g is above the length), but the
number moves on by one base with one addition and one subtraction, and the histograms that occur
lie close together in a table. An ambiguous base adds one to the bits from 40 on.
"""

import numpy as np

from bwarp.runtime.compiled_code import compiled

__all__ = [
    "AMBIGUOUS_WINDOW",
    "NO_WINDOW",
    "base_weights",
    "number_of_classes",
    "number_windows",
]

#: No window that could hit begins here.
NO_WINDOW = -1
#: The window has ambiguous bases; its counts are given instead of a number.
AMBIGUOUS_WINDOW = -2

_AMBIGUOUS_BIT = 40


def number_of_classes(length: int) -> int:
    """The end of the numbers of windows of `length` unambiguous bases."""
    return (length + 1) ** 3


def base_weights(length: int) -> np.ndarray:
    """What each base adds to the number of a window (shape=(5,), dtype=int64)."""
    side = length + 1
    return np.array([side * side, side, 1, 0, 1 << _AMBIGUOUS_BIT], np.int64)


@compiled
def number_windows(codes, starts, length, first, stop, most_ambiguous, weights, numbers, packed):
    """Number the windows that begin in [first, stop).

    Parameters
    ----------
    most_ambiguous : int
        A window with more ambiguous bases than this is as good as none.
    weights : ndarray, shape=(5,), dtype=int64
        Those of `base_weights`.
    numbers : ndarray, shape=(at least stop - first,), dtype=int32
        Filled with numbers, `NO_WINDOW` or `AMBIGUOUS_WINDOW`.
    packed : ndarray, of the same shape, dtype=uint64
        Where the number is `AMBIGUOUS_WINDOW`: the four counts, 16 bits each, A lowest.
    """
    side = length + 1
    numbers[: stop - first] = NO_WINDOW
    reference = np.searchsorted(starts, first, side="right") - 1
    while reference < len(starts) - 1 and starts[reference] < stop:
        begin = max(first, starts[reference])
        end = min(stop, starts[reference + 1] - length + 1)
        if begin < end:
            number = 0
            for at in range(begin, begin + length - 1):
                number += weights[codes[at]]
            # Slices, counted from 0, spare the check for negative indices.
            coming = codes[begin + length - 1 : end + length - 1]
            going = codes[begin:end]
            here = numbers[begin - first : end - first]
            for i in range(here.size):
                number += weights[coming[i]]
                here[i] = number
                if number >> _AMBIGUOUS_BIT:
                    here[i] = NO_WINDOW
                    ambiguous = number >> _AMBIGUOUS_BIT
                    if ambiguous <= most_ambiguous:
                        here[i] = AMBIGUOUS_WINDOW
                        rest = number - (ambiguous << _AMBIGUOUS_BIT)
                        a, c, g = rest // (side * side), rest // side % side, rest % side
                        t = length - ambiguous - a - c - g
                        packed[begin - first + i] = a | c << 16 | g << 32 | t << 48
                number -= weights[going[i]]
        reference += 1
