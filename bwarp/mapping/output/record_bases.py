"""Bases and qualities of records, on either strand: letters of SAM, and the nibbles of BAM.

Loops over bytes have unsigned indexes: only those does LLVM turn into loops over vectors.
"""

import numpy as np

from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

__all__ = ["put_letters", "put_nibbles", "put_raw_qualities", "put_turned"]


@compiled
def put_letters(out, at, codes, start, stop):
    """Codes as A, C, G, T and N; sums of comparisons, for those are made in vectors."""
    out, codes = uncounted((out, codes))
    to, begin = np.uint64(at), np.uint64(start)
    for i in range(np.uint64(stop - start)):
        code = codes[begin + i]
        base = np.uint8(65) + (code == 1) * np.uint8(2) + (code == 2) * np.uint8(6)
        out[to + i] = base + (code == 3) * np.uint8(19) + (code == 4) * np.uint8(13)
    return at + stop - start


@compiled
def put_turned(out, at, source, start, stop):
    """Bytes from the last to the first."""
    out, source = uncounted((out, source))
    to, last = np.uint64(at), np.uint64(stop - 1)
    for i in range(np.uint64(stop - start)):
        out[to + i] = source[last - i]
    return at + stop - start


@compiled(inline="always")
def _nibble(code):
    """A, C, G, T are a bit each, and N is all of them."""
    return min(np.uint8(1) << code, np.uint8(15))


@compiled
def put_nibbles(out, at, both, start, stop):
    """Two bases a byte, the first in the upper half."""
    out, both = uncounted((out, both))
    to, begin = np.uint64(at), np.uint64(start)
    for i in range(np.uint64((stop - start) // 2)):
        two = begin + i + i
        high, low = both[two], both[two + np.uint64(1)]
        out[to + i] = _nibble(high) << np.uint8(4) | _nibble(low)
    at += (stop - start) // 2
    if (stop - start) % 2:
        out[at] = _nibble(both[stop - 1]) << np.uint8(4)
        at += 1
    return at


@compiled
def put_raw_qualities(out, at, qualities, start, stop, first, last, turned):
    """The qualities of ``[start, stop)`` of a read at ``[first, last)``, seen on its strand."""
    out, qualities = uncounted((out, qualities))
    to, length = np.uint64(at), np.uint64(stop - start)
    if qualities.size == 0:
        for i in range(length):
            out[to + i] = 255
    elif turned:
        begin = np.uint64(last - 1 - start)
        for i in range(length):
            out[to + i] = qualities[begin - i] - np.uint8(33)
    else:
        begin = np.uint64(first + start)
        for i in range(length):
            out[to + i] = qualities[begin + i] - np.uint8(33)
    return at + stop - start
