"""Numbers and stretches of bytes, written into an array of text by compiled code.

The functions return where they stopped; the array must be long enough.
Numbers become int64 before a call, so that one function is compiled for numbers of all types.
"""

import numpy as np

from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

__all__ = ["MOST_DIGITS", "put_bytes", "put_field", "put_number"]

#: The longest that a 64-bit number gets, its sign included.
MOST_DIGITS = 20


@compiled(inline="always")
def put_bytes(out, at, source, start, stop):
    """Copy ``source[start:stop]``."""
    # Only unsigned indexes let LLVM copy in vectors.
    to, begin = np.uint64(at), np.uint64(start)
    for i in range(np.uint64(stop - start)):
        out[to + i] = source[begin + i]
    return at + stop - start


@compiled
def _put_digits(out, at, number, width):
    out = uncounted(out)
    value = number
    if value < 0:
        out[at] = 45
        at += 1
        value = -value
    rest = np.uint64(value)
    digits = 1
    power = np.uint64(10)
    while rest >= power:
        digits += 1
        power *= np.uint64(10)
    for _ in range(digits, width):
        out[at] = 32
        at += 1
    for i in range(digits - 1, -1, -1):
        out[np.uint64(at + i)] = np.uint64(48) + rest % np.uint64(10)
        rest //= np.uint64(10)
    return at + digits


@compiled(inline="always")
def put_number(out, at, number, width=1):
    """Write a whole number in decimal digits, with blanks before it up to a width."""
    return _put_digits(out, at, np.int64(number), np.int64(width))


@compiled(inline="always")
def put_field(out, at, number, ending, width=1):
    """Write a whole number, and the byte that ends its column."""
    at = put_number(out, at, number, width)
    out[at] = ending
    return at + 1
