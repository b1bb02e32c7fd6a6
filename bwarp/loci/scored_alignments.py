"""How a read aligns at each of its loci by scores, with affine gaps: semi-globally or locally.

Which loci there are is a matter of edits. A read is aligned within the stretch of its locus, by the
rules of `bwarp.alignment.pairs`:

    semiglobal   the whole read; bases at the ends of the stretch may be left over
    local        the part of the read that scores most (Smith-Waterman); its ends may be clipped

Scores may be such that a whole read would rather be inserted as one than aligned: then the whole
stretch is aligned, too.

Where no gap can score as much, nothing is to be aligned. Of a stretch as long as the read a gap
costs a match besides itself, for one base of the read at least is inserted. And a local alignment
may lose as little on a diagonal nearby; it needs no aligning where all bases agree.
"""

import numpy as np

from bwarp.alignment.pairs import MATCH, SOFT_CLIP, Alignments, PairBatch, Sequences
from bwarp.alignment.pairwise.pairs_cpu import pair_alignments
from bwarp.alignment.scoring import FITTING, GLOBAL, LOCAL
from bwarp.loci.alignments_cpu import LocusAlignments
from bwarp.loci.options import Extension, FoundLoci
from bwarp.loci.verifying.read_blocks import mismatches
from bwarp.mapping.reads.base_bits_cpu import copy_bases
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

__all__ = ["align_by_score"]

#: Loci that are aligned at a time: their stretches are copied out of the genome.
_AT_ONCE = 1 << 16


def align_by_score(
    genome: np.ndarray,
    both: np.ndarray,
    blocks: np.ndarray,
    offsets: np.ndarray,
    loci: FoundLoci,
    extension: Extension,
) -> LocusAlignments:
    """The best-scoring alignment of every locus.

    Parameters
    ----------
    genome : ndarray, dtype=uint64
        Blocks of the genome.
    both, blocks : ndarray, dtype=uint8 and uint64
        The reads and then their reverse complements, and their blocks.
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    """
    n = len(loci.reads)
    begins = offsets[loci.reads] + loci.strands.astype(np.int64) * offsets[-1]
    lengths = np.diff(offsets)[loci.reads].astype(np.int32)
    starts, ends = loci.starts.copy(), loci.ends.copy()
    distances, scores = np.zeros((2, n), np.int32)
    read_starts, read_ends = np.zeros(n, np.int32), lengths.copy()
    operations = np.zeros((2, n), np.int64)
    match, mismatch = extension.scoring.match_mismatch
    waiting = _without_gaps(
        genome, blocks, begins, lengths, starts, ends, loci.distances, match, mismatch,
        _most_mismatches(extension), distances, scores,
    )  # fmt: skip
    parts, n_operations = [np.empty(0, np.uint32)], 0

    def align(rows: np.ndarray, mode) -> np.ndarray:
        """Align reads at some loci; returns those of them where no base is aligned."""
        nonlocal n_operations
        sizes = (loci.ends[rows] - loci.starts[rows]).astype(np.int32)
        stretches = Sequences(*copy_bases(genome, loci.starts[rows], sizes), sizes)
        reads = Sequences(both, begins[rows], lengths[rows])
        found: Alignments = pair_alignments(PairBatch(reads, stretches), extension.scoring, mode)
        starts[rows] = loci.starts[rows] + found.reference_starts
        ends[rows] = loci.starts[rows] + found.reference_ends
        read_starts[rows], read_ends[rows] = found.query_starts, found.query_ends
        distances[rows], scores[rows] = found.edit_distances, found.scores
        operations[0, rows] = n_operations + found.cigar_offsets[:-1]
        operations[1, rows] = n_operations + found.cigar_offsets[1:]
        parts.append(found.cigar)
        n_operations += found.cigar.size
        return rows[found.reference_starts == found.reference_ends]

    for first in range(0, waiting.size, _AT_ONCE):
        unaligned = align(waiting[first : first + _AT_ONCE], LOCAL if extension.local else FITTING)
        if unaligned.size:
            align(unaligned, GLOBAL)
    cigar_offsets = np.zeros(n + 1, np.int64)
    cigar = np.empty(3 * n + n_operations, np.uint32)
    used = _join(
        lengths, read_starts, read_ends, *operations, np.concatenate(parts), cigar_offsets, cigar
    )
    return LocusAlignments(cigar_offsets, cigar[:used].copy(), starts, ends, distances, scores)


def _most_mismatches(extension: Extension) -> int:
    """With no more than these, nothing scores as much as the read does without a gap."""
    if extension.local:
        return 0
    scoring = extension.scoring
    match, mismatch = scoring.match_mismatch
    return (match + scoring.gap_open + scoring.gap_extend - 1) // (match - mismatch)


@compiled
def _without_gaps(
    genome, blocks, begins, lengths, starts, ends, edits, match, mismatch, most, distances, scores
):
    """Score what needs no aligning; returns the other loci."""
    genome, blocks = uncounted((genome, blocks))
    others = np.empty(begins.size, np.int64)
    n_others = 0
    for i in range(begins.size):
        length = np.int64(lengths[i])
        differing = most + 1
        if ends[i] - starts[i] == length and edits[i] <= most:
            differing = mismatches(genome, starts[i], blocks, begins[i], length)
        if differing <= most:
            distances[i] = differing
            scores[i] = match * (length - differing) + mismatch * differing
        else:
            others[n_others] = i
            n_others += 1
    return others[:n_others]


@compiled
def _join(lengths, read_starts, read_ends, begins, ends, operations, offsets, cigar):
    """CIGARs with clipped ends, = and X joined to M; returns how many operations they have."""
    used = np.int64(0)
    for i in range(lengths.size):
        before, after = read_starts[i], lengths[i] - read_ends[i]
        if before:
            cigar[used] = np.uint32(before) << np.uint32(4) | np.uint32(SOFT_CLIP)
            used += 1
        first = used
        if begins[i] == ends[i]:
            cigar[used] = np.uint32(lengths[i]) << np.uint32(4) | np.uint32(MATCH)
            used += 1
        for at in range(begins[i], ends[i]):
            operation, size = operations[at] & np.uint32(15), operations[at] & ~np.uint32(15)
            operation = np.uint32(MATCH) if operation > 6 else operation
            if used > first and cigar[used - 1] & np.uint32(15) == operation:
                cigar[used - 1] += size
            else:
                cigar[used] = size | operation
                used += 1
        if after:
            cigar[used] = np.uint32(after) << np.uint32(4) | np.uint32(SOFT_CLIP)
            used += 1
        offsets[i + 1] = used
    return used
