"""Align reads at their loci: CIGARs with the fewest edits, or with the best affine-gap score.

An alignment depends on the read and the locus alone. Without scores, `align_loci` returns the
alignment with the edits of the locus and the fewest gap letters. Among equal ones, gaps are
leftmost: tracing back from the last base prefers a match or mismatch, then a deleted base, then an
inserted one. With scores, `align_by_score` aligns each read semi-globally or locally within the
stretch of its locus.

The traceback reads furthest-reaching rows (`verify_cpu`), one set per number of gap letters: how
many bases of the read can be aligned on a diagonal with a number of edits. It skips runs of equal
bases 64 at a time and consults the rows only where a base differs.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bwarp.alignment.pair_ends_cpu import pair_alignments
from bwarp.alignment.pairs import (
    DELETION,
    INSERTION,
    MATCH,
    SOFT_CLIP,
    Alignments,
    PairBatch,
    Sequences,
)
from bwarp.alignment.scoring import FITTING, GLOBAL, LOCAL, Mode
from bwarp.allmap.candidates_cpu import mismatches
from bwarp.allmap.options import Extension, FoundLoci, LocusOptions
from bwarp.allmap.verify_cpu import LEFT, NOWHERE, RIGHT, Compared, agreeing, furthest
from bwarp.errors import InputError
from bwarp.reads.base_bits_cpu import copy_bases
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.threads import bounded_ranges
from bwarp.runtime.uncounted import uncounted


class LocusAlignments(NamedTuple):
    """Alignments of reads at their loci.

    Attributes
    ----------
    offsets : ndarray, shape=(n + 1,), dtype=int64
    cigar : ndarray, dtype=uint32
        M, I, D and S, ``length << 4 | operation`` as in BAM.
    starts, ends : ndarray, shape=(n,), dtype=int64
        Start and end of the aligned bases in the genome, within the locus.
    distances, scores : ndarray, shape=(n,), dtype=int32
        Edits of these alignments; their scores, or the negated edits.
    """

    offsets: np.ndarray
    cigar: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    distances: np.ndarray
    scores: np.ndarray


def align(
    genome: np.ndarray,
    both: np.ndarray,
    blocks: np.ndarray,
    offsets: np.ndarray,
    loci: FoundLoci,
    limits: LocusOptions,
    extension: Extension | None,
) -> LocusAlignments:
    """Align every read at each of its loci, by score or, without `extension`, by edits.

    Parameters
    ----------
    genome : ndarray, dtype=uint64
        Blocks of the genome.
    both, blocks : ndarray, dtype=uint8 and uint64
        The reads followed by their reverse complements, and the blocks of both.
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    limits : LocusOptions
        The limits that the loci were searched with.
    """
    if extension is None:
        gaps = limits.gaps_of(limits.edits_of(np.diff(offsets)))
        return align_loci(genome, blocks, offsets, loci, gaps)
    return align_by_score(genome, both, blocks, offsets, loci, extension)


class ReadsAtLoci(NamedTuple):
    """The read of each locus, and the locus.

    Attributes
    ----------
    begins, lengths : ndarray, shape=(n,), dtype=int64
        Where the read begins on its strand, among the reads and their reverse complements.
    starts, ends : ndarray, shape=(n,), dtype=int64
    distances : ndarray, shape=(n,), dtype=int32
    """

    begins: np.ndarray
    lengths: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    distances: np.ndarray


def reads_at(offsets: np.ndarray, loci: FoundLoci) -> ReadsAtLoci:
    """Return the reads at loci, given where each read begins."""
    begins = offsets[loci.reads] + loci.strands.astype(np.int64) * offsets[-1]
    lengths = np.diff(offsets)[loci.reads]
    return ReadsAtLoci(begins, lengths, loci.starts, loci.ends, loci.distances)


def no_alignment() -> InputError:
    """Return the error for a locus that no search can have found."""
    return InputError(
        "the index is invalid (a read has more edits at a locus than the search found): build it "
        "again"
    )


def joined_alignments(parts: list[LocusAlignments]) -> LocusAlignments:
    """Join the alignments of several lists of loci."""
    if len(parts) == 1:
        return parts[0]
    offsets, before = [np.zeros(1, np.int64)], 0
    for one in parts:
        offsets.append(one.offsets[1:] + before)
        before += one.cigar.size
    types = LocusAlignments(np.int64, np.uint32, np.int64, np.int64, np.int32, np.int32)
    columns = [
        np.concatenate([np.empty(0, dtype), *(one[number] for one in parts)])
        for number, dtype in enumerate(types)
    ]
    return LocusAlignments(np.concatenate(offsets), *columns[1:])


def align_loci(
    genome: np.ndarray,
    blocks: np.ndarray,
    offsets: np.ndarray,
    loci: FoundLoci,
    gaps: np.ndarray,
) -> LocusAlignments:
    """Align every read at each of its loci with the fewest edits, with the parameters of `align`.

    Parameters
    ----------
    gaps : ndarray, shape=(n_reads,), dtype=int64
        The maximum number of gap letters of a locus, per read.

    Raises
    ------
    InputError
        For a locus that no search can have found.
    """
    n = len(loci.reads)
    # Each gap letter needs its own operation and one before it, plus one at the end.
    most = int((2 * loci.distances + 1).sum(dtype=np.int64))
    cigar_offsets, cigar = np.zeros(n + 1, np.int64), np.empty(most, np.uint32)
    used = _align(genome, blocks, reads_at(offsets, loci), gaps[loci.reads], cigar_offsets, cigar)
    if used < 0:
        raise no_alignment()
    return LocusAlignments(
        cigar_offsets, cigar[:used].copy(), loci.starts, loci.ends, loci.distances, -loci.distances
    )


@compiled
def _align(genome, blocks, reads, gaps, cigar_offsets, cigar):
    """Write all operations; return how many, or -1 if a locus has no alignment with its edits."""
    begins, lengths, starts, ends, distances = reads
    genome, blocks, cigar = uncounted((genome, blocks, cigar))
    reach = np.empty(1024, np.int64)
    used = np.int64(0)
    for i in range(begins.size):
        length, size, edits = lengths[i], ends[i] - starts[i], np.int64(distances[i])
        if length == size and mismatches(genome, starts[i], blocks, begins[i], length) == edits:
            cigar[used] = np.uint32(length) << np.uint32(4) | np.uint32(MATCH)
            used += 1
        else:
            most = min(gaps[i], edits)
            room = (most + 1) * (edits + 1) * (2 * most + 3)
            if reach.size < room:
                reach = np.empty(room, np.int64)
            compared = Compared(starts[i], size, begins[i], length)
            letters = _reach_end(genome, blocks, compared, edits, most, reach)
            if letters < 0:
                return np.int64(-1)
            used += _trace(genome, blocks, compared, edits, most, letters, reach, cigar[used:])
        cigar_offsets[i + 1] = used
    return used


@inner(nogil=True, forceinline=True)
def _row_of(edits, most, letters, s):
    """Return the offset of diagonal 0 in the rows with `letters` gap letters and `s` edits."""
    return (letters * (edits + 1) + s) * (2 * most + 3) + most + 1


@inner(nogil=True)
def _reach_end(genome, blocks, compared, edits, most, reach):
    """Fill the furthest rows until one covers the whole read and ends at the end of its stretch.

    Returns
    -------
    letters : int
        The minimum number of gap letters of such an alignment; -1 if there is none.
    """
    start, size, begin, length = compared
    for letters in range(most + 1):
        reach[_row_of(edits, most, letters, 0) - most - 1 :][: (edits + 1) * (2 * most + 3)] = (
            NOWHERE
        )
        for s in range(letters, edits + 1):
            now = _row_of(edits, most, letters, s)
            before, fewer = now - (2 * most + 3), _row_of(edits, most, letters - 1, s - 1)
            for k in range(-letters, letters + 1, 2):
                last = min(length, size - k)
                row = np.int64(0)
                if s:
                    row = furthest(
                        reach[before + k] if s > letters else NOWHERE,
                        reach[fewer + k - 1] if letters else NOWHERE,
                        reach[fewer + k + 1] if letters else NOWHERE,
                        last,
                    )
                if row >= 0:
                    row += agreeing(genome, start + row + k, blocks, begin + row, last - row, RIGHT)
                reach[now + k] = row
        k = size - length
        if abs(k) <= letters and reach[_row_of(edits, most, letters, edits) + k] == length:
            return letters
    return -1


@inner(nogil=True)
def _trace(genome, blocks, compared, all_edits, most, letters, reach, cigar):
    """Trace back from the last base, write the operations in forward order, and return how many."""
    start, size, begin, length = compared
    row, k, edits = length, size - length, all_edits
    used = 0
    while row > 0 or row + k > 0:
        operation, n = np.uint32(MATCH), np.int64(0)
        if row > 0 and row + k > 0:
            n = agreeing(genome, start + row + k, blocks, begin + row, min(row, row + k), LEFT)
        if n == 0:
            n = np.int64(1)
            edits_before = edits - 1
            if not (
                row > 0
                and row + k > 0
                and edits_before >= letters
                and reach[_row_of(all_edits, most, letters, edits_before) + k] >= row - 1
            ):
                letters -= 1
                is_deleted = (
                    row + k > 0
                    and abs(k - 1) <= letters
                    and reach[_row_of(all_edits, most, letters, edits_before) + k - 1] >= row
                )
                operation = np.uint32(DELETION if is_deleted else INSERTION)
            edits = edits_before
        if operation != np.uint32(DELETION):
            row -= n
        if operation == np.uint32(DELETION):
            k -= 1
        elif operation == np.uint32(INSERTION):
            k += 1
        if used and cigar[used - 1] & np.uint32(15) == operation:
            cigar[used - 1] += np.uint32(n) << np.uint32(4)
        else:
            cigar[used] = np.uint32(n) << np.uint32(4) | operation
            used += 1
    for i in range(used // 2):
        cigar[i], cigar[used - 1 - i] = cigar[used - 1 - i], cigar[i]
    return used


# Alignments by score. Stretches and scores follow the rules of `bwarp.alignment.pairs`:
#
#     semiglobal   the whole read; bases at the ends of the stretch may be left over
#     local        the part of the read that scores most (Smith-Waterman); ends may be clipped
#
# If the scores favour inserting a whole read over aligning it, the whole stretch is aligned as
# well.
#
# Loci where every alignment with a gap scores less need no alignment. In a stretch as long as the
# read, a gap also costs one match, because at least one base of the read is inserted. A local
# alignment may lose as little on a nearby diagonal, so it is skipped only where all bases agree.


#: Bases of reads that are aligned at a time; the stretches of their loci are copied out of the
#: genome.
_BASES_AT_ONCE = 1 << 23


def align_by_score(
    genome: np.ndarray,
    both: np.ndarray,
    blocks: np.ndarray,
    offsets: np.ndarray,
    loci: FoundLoci,
    extension: Extension,
) -> LocusAlignments:
    """Find the best-scoring alignment at every locus, with the parameters of `align`."""
    reads = reads_at(offsets, loci)
    differing = np.empty(len(loci.reads), np.int32)
    waiting = _without_gaps(genome, blocks, reads, most_mismatches(extension), differing)

    def align_pairs(rows: np.ndarray, mode: Mode) -> Alignments:
        sizes = (reads.ends - reads.starts)[rows].astype(np.int32)
        stretches = Sequences(*copy_bases(genome, reads.starts[rows], sizes), sizes)
        lengths = reads.lengths[rows].astype(np.int32)
        pairs = PairBatch(Sequences(both, reads.begins[rows], lengths), stretches)
        return pair_alignments(pairs, extension.scoring, mode)

    return with_gaps(reads, extension, waiting, differing, align_pairs, _BASES_AT_ONCE)


def with_gaps(
    reads: ReadsAtLoci,
    extension: Extension,
    waiting: np.ndarray,
    differing: np.ndarray,
    align_pairs: Callable[[np.ndarray, Mode], Alignments],
    bases_at_once: int,
) -> LocusAlignments:
    """Join alignments without gaps with those of the loci where gaps may score more.

    Parameters
    ----------
    waiting : ndarray, dtype=int64
        The loci to align.
    differing : ndarray, shape=(n,), dtype=int32
        The mismatches of each of the others, which are all of its edits.
    align_pairs : function of loci and mode
        Aligns the reads at these loci.
    bases_at_once : int
        Bases of reads that are aligned at a time, except for a single read.
    """
    n = len(reads.begins)
    match, mismatch = extension.scoring.match_mismatch
    lengths = reads.lengths.astype(np.int32)
    starts, ends, distances = reads.starts.copy(), reads.ends.copy(), differing.copy()
    scores = match * lengths + (mismatch - match) * differing
    read_starts, read_ends = np.zeros(n, np.int32), lengths.copy()
    operations = np.zeros((2, n), np.int64)
    parts, n_operations = [np.empty(0, np.uint32)], 0

    def align(rows: np.ndarray, mode: Mode) -> np.ndarray:
        """Align reads at the given loci; return the loci where no base is aligned."""
        nonlocal n_operations
        found = align_pairs(rows, mode)
        starts[rows] = reads.starts[rows] + found.reference_starts
        ends[rows] = reads.starts[rows] + found.reference_ends
        read_starts[rows], read_ends[rows] = found.query_starts, found.query_ends
        distances[rows], scores[rows] = found.edit_distances, found.scores
        operations[0, rows] = n_operations + found.cigar_offsets[:-1]
        operations[1, rows] = n_operations + found.cigar_offsets[1:]
        parts.append(found.cigar)
        n_operations += found.cigar.size
        return rows[found.reference_starts == found.reference_ends]

    bases = np.concatenate([[0], np.cumsum(reads.lengths[waiting])])
    for first, last in bounded_ranges(bases, bases_at_once):
        unaligned = align(waiting[first:last], LOCAL if extension.local else FITTING)
        if unaligned.size:
            align(unaligned, GLOBAL)
    cigar_offsets = np.zeros(n + 1, np.int64)
    cigar = np.empty(3 * n + n_operations, np.uint32)
    used = _join(
        lengths, read_starts, read_ends, *operations, np.concatenate(parts), cigar_offsets, cigar
    )
    return LocusAlignments(cigar_offsets, cigar[:used].copy(), starts, ends, distances, scores)


def most_mismatches(extension: Extension) -> int:
    """Return the maximum number of mismatches with which a read scores more than with any gap."""
    if extension.local:
        return 0
    scoring = extension.scoring
    match, mismatch = scoring.match_mismatch
    return (match + scoring.gap_open + scoring.gap_extend - 1) // (match - mismatch)


@compiled
def _without_gaps(genome, blocks, reads, most, differing):
    """Count the mismatches of loci that need no alignment; return the others."""
    begins, lengths, starts, ends, edits = reads
    genome, blocks = uncounted((genome, blocks))
    others = np.empty(begins.size, np.int64)
    n_others = 0
    for i in range(begins.size):
        length = np.int64(lengths[i])
        differing[i] = most + 1
        if ends[i] - starts[i] == length and edits[i] <= most:
            differing[i] = mismatches(genome, starts[i], blocks, begins[i], length)
        if differing[i] > most:
            others[n_others] = i
            n_others += 1
    return others[:n_others]


@compiled
def _join(lengths, read_starts, read_ends, begins, ends, operations, offsets, cigar):
    """Write CIGARs with clipped ends and = and X joined to M; return their operation counts."""
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
