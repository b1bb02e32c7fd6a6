"""Scanning lines of text in vectors: find a byte, turn letters into codes, copy and check.

Reading sequence files examines each byte once or twice; a loop over single bytes would be the
bottleneck of the whole program. All functions work on a range of one uint8 array, and process
single bytes at its end, where a vector would reach past the array.
"""

import numpy as np

from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.simd import (
    VECTOR_BYTES,
    equal,
    fill,
    greater,
    load,
    lookup,
    mask_bits,
    minimum,
    population_count,
    store,
)

#: Arrays written to need this many elements more than what is written.
SLACK = VECTOR_BYTES

_NOT_ALLOWED = 255
_LAST_ASCII = 127


def letter_table(code_of_byte: np.ndarray) -> np.ndarray:
    """Return the 128 entries in which `encode_line` looks up codes.

    Bytes from 127 on belong to no alphabet; all of them share the last entry, 255.
    """
    table = code_of_byte[: _LAST_ASCII + 1].copy()
    table[_LAST_ASCII] = _NOT_ALLOWED
    return table


@inner(forceinline=True)
def _first_lane(bits):
    """Return the index of the lowest set bit."""
    word = np.uint64(bits)
    return np.int64(population_count(~word & (word - np.uint64(1))))


@compiled
def count_byte(data, start, stop, wanted):
    """Count a byte in data[start:stop]; five times as fast as bytes.count."""
    vector = fill(np.uint8(wanted))
    found = np.int64(0)
    while start + VECTOR_BYTES <= stop:
        found += population_count(np.uint64(mask_bits(equal(load(data, start), vector))))
        start += VECTOR_BYTES
    while start < stop:
        found += data[start] == wanted
        start += 1
    return found


@compiled
def find_byte(data, start, stop, wanted):
    """Return the first position of a byte in data[start:stop], or `stop`."""
    vector = fill(np.uint8(wanted))
    # A vector may reach past `stop`: most lines are shorter than one.
    while start < stop and start + VECTOR_BYTES <= data.size:
        found = mask_bits(equal(load(data, start), vector))
        if found:
            return min(start + _first_lane(found), stop)
        start += VECTOR_BYTES
    while start < stop and data[start] != wanted:
        start += 1
    return min(start, stop)


@compiled
def find_blank(data, start, stop):
    """Return the first position of a blank or tab in data[start:stop], or `stop`."""
    blank, tab = fill(np.uint8(32)), fill(np.uint8(9))
    while start < stop and start + VECTOR_BYTES <= data.size:
        letters = load(data, start)
        found = mask_bits(equal(letters, blank)) | mask_bits(equal(letters, tab))
        if found:
            return min(start + _first_lane(found), stop)
        start += VECTOR_BYTES
    while start < stop and data[start] != 32 and data[start] != 9:
        start += 1
    return min(start, stop)


@compiled
def line_end(data, start):
    """Return the line feed that ends the line (or the end), and the end of the text without CR."""
    feed = find_byte(data, start, data.size, 10)
    stop = feed - 1 if feed > start and data[feed - 1] == 13 else feed
    return feed, stop


@compiled
def encode_line(data, start, stop, table, codes, used):
    """Write codes[used + i] = table[data[start + i]]; return the first invalid position, or `stop`.

    `table` is a `letter_table`. Up to `SLACK` elements of `codes` past the last are overwritten.
    """
    refused = fill(np.uint8(_NOT_ALLOWED))
    last = fill(np.uint8(_LAST_ASCII))
    at = start
    while at < stop and at + VECTOR_BYTES <= data.size:
        found = lookup(table, 0, 128, minimum(load(data, at), last))
        store(codes, used + at - start, found)
        bad = mask_bits(equal(found, refused))
        if bad:
            return min(at + _first_lane(bad), stop)
        at += VECTOR_BYTES
    while at < stop:
        code = table[min(data[at], np.uint8(_LAST_ASCII))]
        if code == _NOT_ALLOWED:
            return at
        codes[used + at - start] = code
        at += 1
    return stop


@compiled
def copy_between(data, start, stop, least, most, copied, used):
    """Copy data[start:stop] to copied[used:]; return the first position with an invalid byte.

    Bytes from `least` to `most` are valid; returns `stop` if all are. Overwrites `copied` like
    `encode_line`.
    """
    lowest = fill(np.uint8(least))
    highest = fill(np.uint8(most))
    at = start
    while at < stop and at + VECTOR_BYTES <= data.size:
        letters = load(data, at)
        store(copied, used + at - start, letters)
        bad = mask_bits(greater(lowest, letters)) | mask_bits(greater(letters, highest))
        if bad:
            return min(at + _first_lane(bad), stop)
        at += VECTOR_BYTES
    while at < stop:
        if not least <= data[at] <= most:
            return at
        copied[used + at - start] = data[at]
        at += 1
    return stop
