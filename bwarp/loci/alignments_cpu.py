"""How a read aligns at each of its loci: CIGARs with as few edits as the locus has.

Of several such alignments that with the fewest gap letters is taken, and of these the one whose
gaps are farthest to the left: from the last base back, a match or mismatch is taken where it can
be, else a deleted base, else an inserted one.
"""

from typing import NamedTuple

import numba
import numpy as np

from bwarp.alignment.pairs import DELETION, INSERTION, MATCH
from bwarp.loci.options import FoundLoci
from bwarp.loci.read_blocks import mismatches
from bwarp.mapping.reads.base_bits_cpu import SLACK, put_bases

__all__ = ["LocusAlignments", "align_loci"]

_NONE = 255


class LocusAlignments(NamedTuple):
    """CIGARs of loci, M, I and D, ``length << 4 | operation`` as in BAM.

    Attributes
    ----------
    offsets : ndarray, shape=(n + 1,), dtype=int64
    cigar : ndarray, dtype=uint32
    """

    offsets: np.ndarray
    cigar: np.ndarray


def align_loci(
    genome: np.ndarray,
    both: np.ndarray,
    blocks: np.ndarray,
    offsets: np.ndarray,
    loci: FoundLoci,
    gaps: np.ndarray,
) -> LocusAlignments:
    """The alignment of every locus.

    Parameters
    ----------
    genome : ndarray, dtype=uint64
        Blocks of the genome.
    both, blocks : ndarray, dtype=uint8 and uint64
        The reads on both strands, and their blocks.
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    gaps : ndarray, shape=(n_reads,), dtype=int64
        The most gap letters of a locus of each read.
    """
    n = len(loci.reads)
    # A gap letter needs an operation for itself, and one before it; and one comes last.
    most = int((2 * loci.distances + 1).sum(dtype=np.int64))
    cigar_offsets, cigar = np.zeros(n + 1, np.int64), np.empty(most, np.uint32)
    begins = offsets[loci.reads] + loci.strands.astype(np.int64) * (both.size // 2)
    lengths = np.diff(offsets)[loci.reads]
    used = _align(
        genome, both, blocks, begins, lengths, loci.starts, loci.ends, loci.distances,
        gaps[loci.reads], cigar_offsets, cigar,
    )  # fmt: skip
    return LocusAlignments(cigar_offsets, cigar[:used].copy())


@numba.njit(cache=True, nogil=True)
def _align(
    genome, both, blocks, begins, lengths, starts, ends, distances, gaps, cigar_offsets, cigar
):
    costs = np.empty(4096, np.uint8)
    window = np.empty(256, np.uint8)
    used = 0
    for i in range(begins.size):
        length, size = lengths[i], ends[i] - starts[i]
        if (
            length == size
            and mismatches(genome, starts[i], blocks, begins[i], length) == distances[i]
        ):
            cigar[used] = np.uint32(length) << np.uint32(4) | np.uint32(MATCH)
            used += 1
        else:
            most = min(gaps[i], np.int64(distances[i]))
            layer = 2 * most + 3
            if costs.size < (length + 1) * (most + 1) * layer:
                costs = np.empty((length + 1) * (most + 1) * layer, np.uint8)
            if window.size < size + SLACK:
                window = np.empty(2 * size + SLACK, np.uint8)
            put_bases(window, 0, genome, starts[i], ends[i])
            _fill(both, begins[i], length, window, size, most, costs)
            used = _trace(both, begins[i], length, window, size, most, costs, cigar, used)
        cigar_offsets[i + 1] = used
    return used


@numba.njit(nogil=True, inline="always")
def _cost(both, begin, window, row, column):
    """That of aligning two bases, each the last of so many."""
    base = both[begin + row - 1]
    return np.int64(base != window[column - 1] or base > 3)


@numba.njit(nogil=True)
def _fill(both, begin, length, window, size, most, costs):
    """The fewest edits of the first bases of read and window, with exactly so many gap letters.

    At ``(row * (most + 1) + letters) * (2 * most + 3) + most + 1 + k``: `row` bases of the read
    with ``row + k`` of the window.
    """
    layer = 2 * most + 3
    costs[: (length + 1) * (most + 1) * layer] = _NONE
    for row in range(length + 1):
        for letters in range(most + 1):
            here = (row * (most + 1) + letters) * layer + most + 1
            for k in range(-letters, letters + 1, 2):
                column = row + k
                if column < 0 or column > size:
                    continue
                best = np.int64(0 if row == 0 and letters == 0 else _NONE)
                above = here - (most + 1) * layer
                if row > 0 and column > 0 and costs[above + k] != _NONE:
                    cost = costs[above + k] + _cost(both, begin, window, row, column)
                    best = min(best, np.int64(cost))
                if letters > 0 and column > 0 and costs[here - layer + k - 1] != _NONE:
                    best = min(best, np.int64(costs[here - layer + k - 1]) + 1)
                if letters > 0 and row > 0 and costs[above - layer + k + 1] != _NONE:
                    best = min(best, np.int64(costs[above - layer + k + 1]) + 1)
                costs[here + k] = min(best, np.int64(_NONE))


@numba.njit(nogil=True)
def _trace(both, begin, length, window, size, most, costs, cigar, used):
    """The operations from the last base back, then turned round."""
    layer = 2 * most + 3
    row, k = length, size - length
    letters, least = np.int64(0), np.int64(_NONE)
    for n in range(most + 1):
        cost = np.int64(costs[(row * (most + 1) + n) * layer + most + 1 + k])
        if cost < least:
            letters, least = n, cost
    first = used
    while row > 0 or row + k > 0:
        here = (row * (most + 1) + letters) * layer + most + 1
        above = here - (most + 1) * layer
        cost = np.int64(costs[here + k])
        operation = np.uint32(INSERTION)
        if (
            row > 0
            and row + k > 0
            and costs[above + k] != _NONE
            and costs[above + k] + _cost(both, begin, window, row, row + k) == cost
        ):
            operation = np.uint32(MATCH)
            row -= 1
        elif row + k > 0 and letters > 0 and costs[here - layer + k - 1] + 1 == cost:
            operation = np.uint32(DELETION)
            k -= 1
            letters -= 1
        else:
            row -= 1
            k += 1
            letters -= 1
        if used > first and cigar[used - 1] & np.uint32(15) == operation:
            cigar[used - 1] += np.uint32(16)
        else:
            cigar[used] = np.uint32(16) | operation
            used += 1
    cigar[first:used] = cigar[first:used][::-1].copy()
    return used
