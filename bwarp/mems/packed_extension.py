"""How far a match goes: packed bases compared 32 at a time, for the CPU and for CUDA kernels.

A match ends where the bases differ, and at the latest where the query's run or the reference's
segment does.
"""

from typing import NamedTuple

import numba
import numpy as np

from bwarp.reference import Reference
from bwarp.sequence import kmer_at

_u64 = np.uint64


class GenomeText(NamedTuple):
    """A reference's genome, packed, and where its segments lie (`bwarp.reference.Reference`)."""

    packed: np.ndarray
    segment_genome: np.ndarray
    segment_text: np.ndarray


def genome_text(reference: Reference) -> GenomeText:
    return GenomeText(reference.packed, reference.segment_genome, reference.segment_text)


@numba.jit
def leading_bases(bits):
    """How many of a word's first bases are 0; the word is not 0. Halving, as no engine shares a
    count of leading zeros."""
    n = _u64(0)
    for half in (32, 16, 8, 4, 2):
        if bits >> _u64(64 - half) == _u64(0):
            n += _u64(half // 2)
            bits <<= _u64(half)
    return n


@numba.jit
def trailing_bases(bits):
    """How many of a word's last bases are 0; the word is not 0."""
    n = _u64(0)
    for half in (32, 16, 8, 4, 2):
        if bits << _u64(64 - half) == _u64(0):
            n += _u64(half // 2)
            bits >>= _u64(half)
    return n


@numba.jit
def bases_before(words, position):
    """The 32 bases before a position above 0, the nearest lowest; in front of the text zeros."""
    if position >= _u64(32):
        return kmer_at(words, position - _u64(32), 32)
    return words[0] >> (_u64(64) - (position << _u64(1)))


@numba.jit
def equal_after(a, i, b, j, limit):
    """How many bases, at most `limit`, agree from a[i] and b[j] on. All numbers are uint64."""
    n = _u64(0)
    while n < limit:
        differences = kmer_at(a, i + n, 32) ^ kmer_at(b, j + n, 32)
        if differences != _u64(0):
            n += leading_bases(differences)
            break
        n += _u64(32)
    return min(n, limit)


@numba.jit
def equal_before(a, i, b, j, limit):
    """How many bases, at most `limit`, agree just before a[i] and b[j]. All numbers are uint64."""
    n = _u64(0)
    while n < limit:
        differences = bases_before(a, i - n) ^ bases_before(b, j - n)
        if differences != _u64(0):
            n += trailing_bases(differences)
            break
        n += _u64(32)
    return min(n, limit)


@numba.jit
def most_before(at, run_start, hit, segment_start):
    """How many bases a match can grow to the left at most: to where the query's run begins, or the
    reference's segment, `hit` being where in the reference's text the match begins so far."""
    return min(at - run_start, hit - segment_start)


@numba.jit
def most_after(end, run_stop, hit_end, next_segment):
    """How many bases a match can grow to the right at most; a separator ends each segment."""
    return min(run_stop - end, next_segment - _u64(1) - hit_end)


@numba.jit
def segment_of(segment_starts, position):
    """The last segment that begins at or before a position, by bisection."""
    low = _u64(0)
    high = _u64(segment_starts.size)
    while high - low > _u64(1):
        middle = (low + high) >> _u64(1)
        if _u64(segment_starts[middle]) <= position:
            low = middle
        else:
            high = middle
    return low
