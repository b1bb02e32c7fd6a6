"""The suffix array on the CPU, by Yuta Mori's divsufsort."""

import ctypes

import numpy as np
from pydivsufsort.dll import libdivsufsort, libdivsufsort64

__all__ = ["keep_every", "suffix_array"]

#: The longest text that the 32-bit sort takes.
LONGEST_32_BIT = 2**31 - 1

#: Elements copied at a time when 64-bit positions are narrowed in place.
_CHUNK = 1 << 20


def suffix_array(text: np.ndarray) -> np.ndarray:
    """The start positions of all suffixes of a text, in the order of the suffixes.

    Works in one thread and leaves the others free to run (it holds no lock of Python's). Takes 4
    bytes a base beside the text, or 8 from 2**31 bases on, of which 4 are given back.

    Parameters
    ----------
    text : ndarray, shape=(n,), dtype=uint8
        0 is a separator, 1 to 4 are A C G T. The text ends with a separator, does not begin with
        one and has no two side by side; n is at most 2**32 - 2.

    Returns
    -------
    suffixes : ndarray, shape=(n,), dtype=uint32
        Of two suffixes where one begins with the other, the shorter comes first.
    """
    if text.size <= LONGEST_32_BIT:
        return _sort(text, np.empty(text.size, np.uint32), libdivsufsort.divsufsort)
    suffixes = np.empty(text.size, np.int64)
    return _narrow(_sort(text, suffixes, libdivsufsort64.divsufsort64))


def keep_every(suffixes: np.ndarray, rate: int) -> np.ndarray:
    """Entries 0, rate, 2 rate, ... in the memory of the array, the rest of it given back."""
    n = -(-suffixes.size // rate)
    for start in range(0, n, _CHUNK):
        stop = min(start + _CHUNK, n)
        suffixes[start:stop] = suffixes[start * rate : stop * rate : rate].copy()
    if suffixes.base is not None:
        return suffixes[:n].copy()
    suffixes.resize(n, refcheck=False)
    return suffixes


def _sort(text, suffixes, divsufsort):
    # The package's own function returns memory that it clears first and that cannot be shrunk.
    text = np.ascontiguousarray(text)
    integer = ctypes.c_int32 if suffixes.itemsize == 4 else ctypes.c_int64
    failure = divsufsort(
        ctypes.c_void_p(text.ctypes.data),
        ctypes.c_void_p(suffixes.ctypes.data),
        integer(text.size),
    )
    if failure:
        raise MemoryError
    return suffixes


def _narrow(suffixes):
    """Turn int64 that fit 32 bits into uint32 in the same memory, and give the rest back."""
    n = suffixes.size
    narrow = suffixes.view(np.uint32)
    # Front to back: what is written lies at or before what is read, in half the space.
    for start in range(0, n, _CHUNK):
        stop = min(start + _CHUNK, n)
        narrow[start:stop] = suffixes[start:stop].astype(np.uint32)
    del narrow
    suffixes.resize((n + 1) // 2, refcheck=False)
    return suffixes.view(np.uint32)[:n]
