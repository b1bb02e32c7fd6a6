"""Clipped ends of alignments that lie across a long gap become a part of the alignment."""

import numpy as np
from numba import int64

from bwarp.alignment.pairs import DELETION, INSERTION, MATCH
from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.extension.gap_search import best_gap, gap_costs, least_clipped
from bwarp.mapping.output.final_alignments import MappedReads
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

__all__ = ["across_long_gaps"]

#: Columns of gaps: the alignment, at which end, by how much the far diagonal is more than the near
#: one, bases of the read from the outer end to the near stretch, bases that stay clipped, and by
#: how much the score rises.
_ROW, _RIGHT, _SHIFT, _SPLIT, _OUTER, _GAIN = range(6)


def across_long_gaps(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    mapped: MappedReads,
    parameters: MappingParameters,
) -> MappedReads:
    """The alignments, with those of their clipped ends that lie across a long gap.

    Parameters
    ----------
    both : ndarray, shape=(2 * n_bases,), dtype=uint8
        The reads, then their reverse complements.
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    mapped : MappedReads
        Row i is of read i.
    """
    if parameters.mode == END_TO_END:
        return mapped
    costs = gap_costs(parameters)
    gaps = np.empty((2 * mapped.positions.size, 6), np.int64)
    gaps = gaps[: _find_gaps(genome, both, offsets, mapped, costs, gaps)]
    if not len(gaps):
        return mapped
    joined = mapped._replace(
        positions=mapped.positions.copy(),
        read_starts=mapped.read_starts.copy(),
        read_ends=mapped.read_ends.copy(),
        scores=mapped.scores.copy(),
        cigar_offsets=np.zeros_like(mapped.cigar_offsets),
        cigar=np.empty(mapped.cigar.size + 2 * len(gaps), np.uint32),
    )
    _add_gaps(gaps, np.diff(offsets), mapped.cigar_offsets, mapped.cigar, joined)
    return joined


@compiled
def _find_gaps(genome, both, offsets, mapped, costs, gaps):
    """Write a row for every clipped end with a gap before it; returns how many there are."""
    genome, both, mapped, gaps = uncounted((genome, both, mapped, gaps))
    blocks, contig_starts = genome.blocks, genome.contig_starts
    least = least_clipped(costs)
    longest = np.diff(offsets).max() if offsets.size > 1 else 0
    near, far = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    n_found = 0
    for row in range(mapped.positions.size):
        length = offsets[row + 1] - offsets[row]
        position = mapped.positions[row]
        begin, end = int64(mapped.read_starts[row]), int64(mapped.read_ends[row])
        if position < 0 or max(begin, length - end) < least:
            continue
        base = offsets[row] + (both.size // 2 if mapped.strands[row] else 0)
        contig = np.searchsorted(contig_starts, position, side="right")
        low, high = contig_starts[contig - 1], contig_starts[contig]
        first, last = mapped.cigar_offsets[row], mapped.cigar_offsets[row + 1]
        diagonal = position - begin
        matched = int64(mapped.cigar[first] >> 4)
        for right in (False, True):
            clipped = length - end if right else begin
            if right:
                for at in range(first, last):
                    n, kind = int64(mapped.cigar[at] >> 4), mapped.cigar[at] & 15
                    if kind == INSERTION:
                        diagonal -= n
                    elif kind == DELETION:
                        diagonal += n
                if last - first > 1:
                    matched = int64(mapped.cigar[last - 1] >> 4)
            if clipped < least:
                continue
            shift, split, outer, gain = best_gap(
                blocks, both, base, length, right, diagonal, clipped, matched, low, high, costs,
                near, far,
            )  # fmt: skip
            if shift == 0:
                continue
            gaps[n_found, _ROW], gaps[n_found, _RIGHT] = row, right
            gaps[n_found, _SHIFT], gaps[n_found, _SPLIT] = shift, split
            gaps[n_found, _OUTER], gaps[n_found, _GAIN] = outer, gain
            n_found += 1
            # Of a single match, what is left for a gap at its other end.
            matched -= split - clipped
    return n_found


@compiled
def _add_gaps(gaps, lengths, offsets, cigar, joined):
    """Write the CIGARs of all rows, gaps added, and change what else a gap changes."""
    joined = uncounted(joined)
    used, at = 0, 0
    for row in range(lengths.size):
        begin = used
        for i in range(offsets[row], offsets[row + 1]):
            joined.cigar[used] = cigar[i]
            used += 1
        while at < len(gaps) and gaps[at, _ROW] == row:
            shift, outer, split = gaps[at, _SHIFT], gaps[at, _OUTER], gaps[at, _SPLIT]
            right = gaps[at, _RIGHT] == 1
            deleted = right == (shift > 0)
            gap = abs(shift) << 4 | (DELETION if deleted else INSERTION)
            aligned = split - outer - (0 if deleted else abs(shift))
            far = aligned << 4 | MATCH
            if right:
                grown = lengths[row] - joined.read_ends[row] - split
                joined.cigar[used - 1] = int64(joined.cigar[used - 1]) + (grown << 4)
                joined.cigar[used], joined.cigar[used + 1] = gap, far
                joined.read_ends[row] = lengths[row] - outer
            else:
                grown = joined.read_starts[row] - split
                for i in range(used - 1, begin - 1, -1):
                    joined.cigar[i + 2] = joined.cigar[i]
                joined.cigar[begin + 2] = int64(joined.cigar[begin + 2]) + (grown << 4)
                joined.cigar[begin], joined.cigar[begin + 1] = far, gap
                joined.positions[row] += shift + outer - joined.read_starts[row]
                joined.read_starts[row] = outer
            joined.scores[row] += gaps[at, _GAIN]
            used += 2
            at += 1
        joined.cigar_offsets[row + 1] = used
