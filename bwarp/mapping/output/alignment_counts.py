"""What alignments say of bases: how many are aligned, inserted and edited, and the depth.

The depth is that of some positions of the reference, evenly spaced: enough to know how many bases
have which depth, and counts that add up, where those of a whole genome would be large.

depth_step 4     ACGTACGTACGTACGT       depths 1 2 1 0
                 |   ----|---
                 ------- |
"""

from typing import NamedTuple

import numpy as np

from bwarp.alignment.pairs import DELETION, INSERTION, MATCH
from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.output.final_alignments import MappedReads
from bwarp.mapping.reads.base_bits_cpu import differing, prefetch_bases
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import population_count
from bwarp.runtime.uncounted import uncounted

__all__ = ["DEPTH_POSITIONS", "BaseCounts", "count_bases", "depth_step"]

#: Positions whose depth is counted, or fewer: the share of bases of a depth is known to 0.5 %.
DEPTH_POSITIONS = 10_000


#: How many alignments ahead the genome is prefetched.
_AHEAD = 12


class BaseCounts(NamedTuple):
    """Counts of bases in alignments.

    Attributes
    ----------
    aligned : int
        Bases of reads aligned with bases of the reference.
    inserted : int
    edits : int
        Mismatches, inserted and deleted bases: the sum of the tags NM.
    spans : ndarray, shape=(n,), dtype=int64
        The bases of the reference that each alignment takes up; 0 for none.
    """

    aligned: int
    inserted: int
    edits: int
    spans: np.ndarray


def depth_step(reference_bases: int) -> int:
    """The distance of the positions whose depth is counted; the first is that of the first base."""
    return max(1, -(-reference_bases // DEPTH_POSITIONS))


def count_bases(
    genome: Genome,
    offsets: np.ndarray,
    both: np.ndarray,
    reads: np.ndarray,
    alignments: MappedReads,
    depths: np.ndarray,
) -> BaseCounts:
    """Count the bases of alignments, and add to the depths of positions.

    Parameters
    ----------
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    both : ndarray, shape=(2 * n_bases,), dtype=uint8
        The reads, then their reverse complements.
    reads : ndarray, shape=(n,), dtype=int64
        The read of each alignment.
    depths : ndarray, dtype=int64
        Of every `depth_step`-th position.
    """
    reverse = alignments.strands.astype(np.int64) * (both.size // 2)
    starts = offsets[reads] + reverse + alignments.read_starts
    step = depth_step(int(genome.contig_starts[-1]))
    spans = np.zeros(starts.size, np.int64)
    aligned, inserted, edits = _count(
        genome.blocks, both, starts, alignments.positions, alignments.cigar_offsets,
        alignments.cigar, step, depths, spans,
    )  # fmt: skip
    return BaseCounts(aligned, inserted, edits, spans)


@compiled
def _count(blocks, both, starts, positions, offsets, cigar, step, depths, spans):
    blocks, both, cigar, depths = uncounted((blocks, both, cigar, depths))
    aligned, inserted, edits = np.int64(0), np.int64(0), np.int64(0)
    for row in range(starts.size):
        if row + _AHEAD < starts.size and positions[row + _AHEAD] >= 0:
            prefetch_bases(blocks, positions[row + _AHEAD])
        position, read = positions[row], starts[row]
        if position < 0:
            continue
        for at in range(offsets[row], offsets[row + 1]):
            length, operation = np.int64(cigar[at] >> 4), cigar[at] & 15
            if operation == MATCH:
                aligned += length
                for begin in range(0, length, 64):
                    n = min(np.int64(64), length - begin)
                    bits = differing(blocks, position + begin, both, read + begin, n)
                    edits += np.int64(population_count(bits))
                site = (position + step - 1) // step
                while site * step < position + length:
                    depths[site] += 1
                    site += 1
                read += length
                position += length
            elif operation == INSERTION:
                inserted += length
                edits += length
                read += length
            elif operation == DELETION:
                edits += length
                position += length
        spans[row] = position - positions[row]
    return aligned, inserted, edits
