"""BAM records as concatenated bytes, and access to them without an object per record.

data    |size contig position ... tags|size contig ...|...|
starts   0                          ^               ^     one more than there are records
"""

from dataclasses import dataclass

import numpy as np

from bwarp.bam.fields import FIXED_BYTES, SIZE_BYTES
from bwarp.runtime.compiled_code import compiled

#: Letters of the operations of a CIGAR, in the order of their numbers in BAM.
_OPERATIONS = np.frombuffer(b"MIDNSHP=X", np.uint8)

#: Values in place of the number of an operation: for other letters, and at the end of a CIGAR.
OTHER_LETTER, END_OF_CIGAR = 10, 11


@dataclass(frozen=True)
class Records:
    """Some BAM records, or records as lines of text.

    Attributes
    ----------
    data : ndarray, dtype=uint8
        Whole records; those of BAM begin with their size.
    starts : ndarray, shape=(n + 1,), dtype=int64
        Start of each record, and the end of the last.
    keys : ndarray, shape=(n,), dtype=uint64
        Sort keys (see `bwarp.bam.sort_keys`); 0 for text, which is not sorted.
    """

    data: np.ndarray
    starts: np.ndarray
    keys: np.ndarray

    @property
    def count(self) -> int:
        return len(self.keys)


def unsorted_lines(text: np.ndarray, starts: np.ndarray) -> Records:
    """Return lines of text as records."""
    return Records(text, starts, np.zeros(starts.size - 1, np.uint64))


# With unsigned indexes, LLVM merges the byte stores below into one.


@compiled(counted=False, forceinline=True)
def put_int16(out, at, number):
    to, number = np.uint64(at), np.int64(number)
    out[to] = number & 255
    out[to + np.uint64(1)] = number >> 8 & 255
    return at + 2


@compiled(counted=False, forceinline=True)
def put_int32(out, at, number):
    to, number = np.uint64(at), np.int64(number)
    out[to] = number & 255
    out[to + np.uint64(1)] = number >> 8 & 255
    out[to + np.uint64(2)] = number >> 16 & 255
    out[to + np.uint64(3)] = number >> 24 & 255
    return at + 4


@compiled(counted=False, forceinline=True)
def put_int64(out, at, number):
    return put_int32(out, put_int32(out, at, number), number >> 32)


@compiled(forceinline=True)
def get_int16(data, at):
    """Return the non-negative number at ``data[at:at + 2]``."""
    return np.int64(data[at]) | np.int64(data[at + 1]) << 8


@compiled(forceinline=True)
def get_int32(data, at):
    """Return the signed number at ``data[at:at + 4]``."""
    begin = np.uint64(at)
    number = (
        np.int64(data[begin])
        | np.int64(data[begin + np.uint64(1)]) << 8
        | np.int64(data[begin + np.uint64(2)]) << 16
        | np.int64(data[begin + np.uint64(3)]) << 24
    )
    return (number ^ 0x80000000) - 0x80000000


@compiled(inline="always")
def consumes_reference(kind):
    """Return whether an operation of a CIGAR, its number in MIDNSHP=X, consumes reference bases."""
    return kind == 0 or kind == 2 or kind == 3 or kind == 7 or kind == 8


@compiled
def text_operation(data, at):
    """Return an operation of a CIGAR as text, which ends with 0: its length, its kind (see
    `consumes_reference`; `OTHER_LETTER`, or `END_OF_CIGAR` at the end), and the offset after it.

    Lengths have 32 bits.
    """
    length = np.int64(0)
    while 48 <= data[at] <= 57:
        length = (10 * length + np.int64(data[at]) - 48) & 0xFFFFFFFF
        at += 1
    letter = data[at]
    if letter == 0:
        return np.int64(0), np.int64(END_OF_CIGAR), at
    kind = np.int64(OTHER_LETTER)
    for i in range(_OPERATIONS.size):
        if _OPERATIONS[i] == letter:
            kind = np.int64(i)
    return length, kind, at + 1


@compiled
def first_bin(start, stop, shift=14, depth=5):
    """Return the smallest bin of the BAI and CSI binning scheme that holds ``[start, stop)``."""
    stop -= 1
    offset = ((1 << 3 * depth) - 1) // 7
    for level in range(depth, 0, -1):
        if start >> shift == stop >> shift:
            return offset + (start >> shift)
        shift += 3
        offset -= 1 << 3 * (level - 1)
    return np.int64(0)


@compiled
def record_starts(data):
    """Return the start of each complete record, and the end of the last.

    Returns
    -------
    starts : ndarray, shape=(n + 1,), dtype=int64
    """
    starts = np.empty(data.size // (SIZE_BYTES + FIXED_BYTES) + 1, np.int64)
    starts[0] = 0
    count = 0
    at = np.int64(0)
    while at + SIZE_BYTES <= data.size:
        size = get_int32(data, at)
        if size < FIXED_BYTES or at + SIZE_BYTES + size > data.size:
            break
        at += SIZE_BYTES + size
        count += 1
        starts[count] = at
    return starts[: count + 1].copy()
