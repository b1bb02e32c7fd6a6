"""Names of queries and contigs as arrays, for compiled code that writes lines."""

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from bwarp.errors import InputError
from bwarp.io.fastx import SequenceBatch
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.threads import joined_stretches

# --------------------------------------------------------------------------------------------------
# Writing numbers and bytes into an array of text, in compiled code.
#
# The functions return the position after the text; the array must be long enough.
# Numbers are converted to int64 before a call, so that only one long function is compiled. LLVM
# inlines the short ones: Numba's inlining makes their callers take twice as long to compile.


#: Maximum length of a 64-bit number, including its sign.
MOST_DIGITS = 20


@compiled(counted=False)
def put_bytes(out, at, source, start, stop):
    """Copy ``source[start:stop]``."""
    # LLVM only vectorises the copy with unsigned indexes.
    to, begin = np.uint64(at), np.uint64(start)
    for i in range(np.uint64(stop - start)):
        out[to + i] = source[begin + i]
    return at + stop - start


@compiled(counted=False)
def _put_digits(out, at, number, width):
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


@compiled(counted=False, forceinline=True)
def put_number(out, at, number, width=1):
    """Write an integer in decimal digits, padded with blanks on the left to a width."""
    return _put_digits(out, at, np.int64(number), np.int64(width))


@compiled(counted=False, forceinline=True)
def put_field(out, at, number, ending, width=1):
    """Write an integer, and the byte that ends its column."""
    at = put_number(out, at, number, width)
    out[at] = ending
    return at + 1


class Names(NamedTuple):
    """Names as bytes: name i is ``text[bounds[i, 0]:bounds[i, 1]]``.

    Attributes
    ----------
    text : ndarray, dtype=uint8
        Read-only.
    bounds : ndarray, shape=(n, 2), dtype=int64
    """

    text: np.ndarray
    bounds: np.ndarray

    @classmethod
    def of(cls, names: Sequence[str]) -> "Names":
        """Return names encoded as UTF-8, concatenated."""
        encoded = [name.encode() for name in names]
        edges = np.cumsum([0] + [len(name) for name in encoded], dtype=np.int64)
        text = np.frombuffer(b"".join(encoded), np.uint8)
        return cls(text, np.column_stack([edges[:-1], edges[1:]]))

    def name(self, number: int) -> str:
        start, stop = self.bounds[number]
        return self.text[start:stop].tobytes().decode("utf-8", "replace")

    def listed(self, numbers: Iterable[int]) -> list[str]:
        """Return the names with these numbers."""
        return [self.name(number) for number in numbers]

    def strings(self) -> list[str]:
        """Return all names, as `name` does, in a fifth of the time."""
        text = self.text.tobytes()
        return [text[start:stop].decode("utf-8", "replace") for start, stop in self.bounds.tolist()]

    def part(self, start: int, stop: int) -> "Names":
        """Return the names in ``[start, stop)``, without other bytes."""
        bounds = self.bounds[start:stop]
        edges = np.zeros(len(bounds) + 1, np.int64)
        np.cumsum(bounds[:, 1] - bounds[:, 0], out=edges[1:])
        text = joined_stretches(read_only(self.text), np.ascontiguousarray(bounds[:, 0]), edges)
        return Names(read_only(text), np.column_stack([edges[:-1], edges[1:]]))

    def first_empty(self) -> int | None:
        """Return the number of the first empty name, or None."""
        empty = np.flatnonzero(self.bounds[:, 0] == self.bounds[:, 1])
        return int(empty[0]) if empty.size else None

    @property
    def longest(self) -> int:
        """Return the length of the longest name in bytes."""
        return int(np.diff(self.bounds).max(initial=0))


def query_names(sequences: SequenceBatch) -> Names:
    """Return the first word of each header, with the bytes of the file."""
    bounds = sequences.headers.copy()
    _keep_first_words(sequences.text, bounds)
    return Names(read_only(sequences.text), bounds)


def names_of(where: str | os.PathLike, sequences: SequenceBatch) -> Names:
    """Return `query_names`; raise an error that names `where` if one is empty."""
    names = query_names(sequences)
    refuse_empty_names(where, names, sequences.first_record)
    return names


def refuse_empty_names(where: str | os.PathLike, names: Names, first_record: int = 0) -> None:
    """Raise an error if a name is empty; the first one is that of record `first_record`."""
    nameless = names.first_empty()
    if nameless is not None:
        raise _nameless(where, first_record + nameless)


def refuse_nameless(where: str | os.PathLike, names: Sequence[str]) -> None:
    """Raise an error if a sequence has no name.

    Reads may have no name: SAM has a * for it.
    """
    if "" in names:
        raise _nameless(where, names.index(""))


def _nameless(where: str | os.PathLike, record: int) -> InputError:
    return InputError(f"{where}, record {record + 1} has no name: write one after > or @")


@compiled
def _is_blank(byte):
    """Return whether bytes.split() splits at a byte."""
    return byte == 32 or 9 <= byte <= 13


@compiled
def _keep_first_words(text, bounds):
    for i in range(len(bounds)):
        start, end = bounds[i]
        while start < end and _is_blank(text[start]):
            start += 1
        stop = start
        while stop < end and not _is_blank(text[stop]):
            stop += 1
        bounds[i, 0] = start
        bounds[i, 1] = stop


@compiled
def first_bad_name(text, names):
    """Return the first name that starts with @ or is not printable ASCII, which SAM does not allow,
    or -1.
    """
    for i in range(len(names)):
        start, stop = np.uint64(names[i, 0]), np.uint64(names[i, 1])
        bad = start < stop and text[start] == 64
        # Without an early exit, the loop is vectorised.
        for at in range(start, stop):
            bad |= text[at] < 33 or text[at] > 126
        if bad:
            return i
    return -1


@compiled(counted=False)
def put_name(out, at, names, number):
    """Write a name; return where it ends."""
    return put_bytes(out, at, names.text, names.bounds[number, 0], names.bounds[number, 1])
