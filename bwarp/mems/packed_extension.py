"""Extend matches over packed bases, 32 at a time; for the CPU and for CUDA kernels.

A match ends where the bases differ, or where the run of the query or the segment of the reference
ends.
"""

from typing import NamedTuple

import numpy as np

from bwarp.reference import Reference
from bwarp.runtime.compiled_code import inner
from bwarp.sequence import kmer_at

_u64 = np.uint64


class GenomeText(NamedTuple):
    """The packed genome of a reference, and its segments (`bwarp.reference.Reference`)."""

    packed: np.ndarray
    segment_genome: np.ndarray
    segment_text: np.ndarray


def genome_text(reference: Reference) -> GenomeText:
    return GenomeText(reference.packed, reference.segment_genome, reference.segment_text)


@inner
def leading_bases(bits):
    """Count the leading bases of a nonzero word that are 0. By bisection, because the engines have
    no common function for leading zeros.
    """
    n = _u64(0)
    for half in (32, 16, 8, 4, 2):
        if bits >> _u64(64 - half) == _u64(0):
            n += _u64(half // 2)
            bits = _u64(bits << _u64(half))
    return n


@inner
def trailing_bases(bits):
    """Count the trailing bases of a nonzero word that are 0."""
    n = _u64(0)
    for half in (32, 16, 8, 4, 2):
        if _u64(bits << _u64(64 - half)) == _u64(0):
            n += _u64(half // 2)
            bits >>= _u64(half)
    return n


@inner
def bases_before(words, position):
    """Return the 32 bases before a position above 0, the nearest lowest; zeros before the text."""
    if position >= _u64(32):
        return kmer_at(words, position - _u64(32), 32)
    return words[0] >> (_u64(64) - (position << _u64(1)))


@inner
def equal_after(a, i, b, j, limit):
    """Count bases, at most `limit`, that agree from a[i] and b[j] on. All numbers are uint64."""
    n = _u64(0)
    while n < limit:
        differences = kmer_at(a, i + n, 32) ^ kmer_at(b, j + n, 32)
        if differences != _u64(0):
            n += leading_bases(differences)
            break
        n += _u64(32)
    return min(n, limit)


@inner
def equal_before(a, i, b, j, limit):
    """Count bases, at most `limit`, that agree before a[i] and b[j]. All numbers are uint64."""
    n = _u64(0)
    while n < limit:
        differences = bases_before(a, i - n) ^ bases_before(b, j - n)
        if differences != _u64(0):
            n += trailing_bases(differences)
            break
        n += _u64(32)
    return min(n, limit)


@inner
def most_before(at, run_start, hit, segment_start):
    """Return how far a match can be extended to the left: to the start of the query's run or of the
    reference's segment; `hit` is the text position where the match begins so far.
    """
    return min(at - run_start, hit - segment_start)


@inner
def most_after(end, run_stop, hit_end, next_segment):
    """Return how far a match can be extended to the right; a separator ends each segment."""
    return min(run_stop - end, next_segment - _u64(1) - hit_end)


@inner
def segment_of(segment_starts, position):
    """Return the last segment that begins at or before a position, by bisection."""
    low = _u64(0)
    high = _u64(segment_starts.size)
    while high - low > _u64(1):
        middle = (low + high) >> _u64(1)
        if _u64(segment_starts[middle]) <= position:
            low = middle
        else:
            high = middle
    return low
