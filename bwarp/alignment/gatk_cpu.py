"""Align pairs by the rules of GATK on the CPU; parameters and results are common to both engines.

Both engines return exactly the alignments of GATK's SmithWatermanJavaAligner. Sequences are
upper-case bases as bytes (not codes): GATK compares bytes, so N matches N.

With ref of n bases along the rows and alt of m along the columns (GATK's own orientation):

    strategies SOFTCLIP and IGNORE: if alt occurs in ref, the right-most occurrence is the
      result (offset, mM), without any scoring
    borders:  H = 0; for INDEL and LEADING_INDEL H(0,j) = open + (j-1) extend, and H(i,0) alike
    a gap of length k scores open + (k-1) extend (both negative); a tie between opening and
      extending extends; H is not floored at 0, only at -100,000,000
    H(i,j):   the diagonal if it is >= both gaps; else the insertion (alt bases, left) if it is
      >= the deletion; else the deletion (ref bases, up); gaps remember their run length
    the end:  INDEL: (n, m). Otherwise the best of the last column, with the largest i on ties; and,
      except for LEADING_INDEL, then along the last row j = 1 .. m: if better, or equal with
      |n-j| < |i-j'| of the best so far (i, j')
    traceback: jumps over whole runs until ref or alt is used up; SOFTCLIP clips what is left
      of alt at either end (S), IGNORE counts it into the M run there (so that the offset may be
      negative), INDEL and LEADING_INDEL write D or I for what is left at the start
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.alignment.batches_cpu import Rules, find_ends, numba_side
from bwarp.alignment.cells_cpu import MatchMismatch, Tables
from bwarp.alignment.pairs import (
    DELETION,
    INSERTION,
    MATCH,
    SOFT_CLIP,
    PairBatch,
    Sequences,
    check_pairs,
)
from bwarp.alignment.scoring import GLOBAL, SEMIGLOBAL, Scoring
from bwarp.alignment.traceback_cpu import push, trace_alignments
from bwarp.errors import UsageError
from bwarp.options.aligning import PAIRS
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range
from bwarp.sequence import IUPAC


def _letter_table() -> np.ndarray:
    table = np.full(256, 255, np.uint8)
    for letter in IUPAC:
        table[letter] = table[letter + 32] = letter
    table.setflags(write=False)
    return table


#: uint8[256]: the upper-case letter of every IUPAC nucleotide letter, 255 for other bytes.
LETTER_OF_BYTE = _letter_table()

#: Overhang strategies by the names used in options.
OVERHANGS = PAIRS["overhang"].value.words


@dataclass(frozen=True)
class GatkParameters:
    """SWParameters of GATK: a gap of length k scores gap_open + (k - 1) * gap_extend."""

    match: int
    mismatch: int
    gap_open: int
    gap_extend: int

    def __post_init__(self):
        if self.match <= 0 or self.mismatch >= 0 or self.gap_extend >= 0:
            raise UsageError(
                f"match {self.match}, mismatch {self.mismatch}, gap-extend {self.gap_extend}: with "
                "--mode gatk the score of a match must be positive, the others negative"
            )
        if self.gap_open > self.gap_extend:
            raise UsageError(
                f"gap-open {self.gap_open} is greater than gap-extend {self.gap_extend}: with "
                "--mode gatk it is the score of the first base of a gap, and must be at most "
                "gap-extend"
            )


#: The four parameter sets of GATK, by their names in its source.
GATK_PARAMETERS = {
    "original-default": GatkParameters(3, -1, -4, -3),
    "standard-ngs": GatkParameters(25, -50, -110, -6),
    "new-sw-parameters": GatkParameters(200, -150, -260, -11),
    "alignment-to-best-haplotype": GatkParameters(10, -15, -30, -5),
}


class GatkAlignments(NamedTuple):
    """The position of each alternate in its reference, and its CIGAR of M, I, D and S.

    Attributes
    ----------
    scores : ndarray, shape=(count,), dtype=int32
        H of the end cell; for an exact occurrence, its length times match.
    offsets : ndarray, shape=(count,), dtype=int32
        0-based start in the reference; negative only with overhang "ignore".
    cigar_offsets : ndarray, shape=(count + 1,), dtype=int64
    cigar : ndarray, dtype=uint32
    """

    scores: np.ndarray
    offsets: np.ndarray
    cigar_offsets: np.ndarray
    cigar: np.ndarray


def check_overhang(overhang: str) -> None:
    """Raise an error if this is not an overhang strategy."""
    PAIRS["overhang"].check(overhang)


# Implementation, one pair per lane: the rules above with the kernels of cells_cpu.
#
# The rows are GATK's reference and the columns its alternate. GATK's insertions then run along a
# row and are D of cells_cpu, its deletions are I, and its order (diagonal, insertion, deletion) is
# the kernels' own. A traceback along the direction bits finds the run lengths that GATK stores for
# every cell, if gaps that could open or extend at the same score extend.
#
# 1. If the strategy allows it, the right-most exact occurrence is the result.
# 2. One pass over the cells keeps the last row and column; GATK's rule chooses the end.
# 3. The diagonal into the end is added up; if it gives the whole score, it is the alignment.
# 4. The other pairs are computed again with direction bits, and traced back.


#: Bytes that pad the two sides; they are not bases, and they differ.
_ROW_PADDING, _COLUMN_PADDING = 1, 2


def gatk_alignments(
    pairs: PairBatch, parameters: GatkParameters, overhang: str, threads: int = 1
) -> GatkAlignments:
    """Align each alternate (the query of a pair) to its reference as GATK does.

    Parameters
    ----------
    pairs : PairBatch
        Upper-case bases as bytes, not codes.
    parameters : GatkParameters
    overhang : str
        One of `OVERHANGS`.
    """
    check_pairs(pairs)
    check_overhang(overhang)
    count, strategy = pairs.count, OVERHANGS.index(overhang)
    alternates, references = numba_side(pairs.queries), numba_side(pairs.references)
    scores, offsets = np.zeros(count, np.int32), np.full(count, -1, np.int32)
    if overhang in ("softclip", "ignore"):
        search = partial(_last_occurrences, alternates, references, offsets)
        for_each_range(search, count, threads, smallest=1024)
    exact = offsets >= 0
    scores[exact] = alternates.lengths[exact] * parameters.match
    ids = np.flatnonzero(~exact)
    rows, columns = (
        Sequences(side.codes, side.starts[ids], side.lengths[ids])
        for side in (references, alternates)
    )
    rest, rules = PairBatch(rows, columns), _rules(parameters, strategy)
    alignments = trace_alignments(rest, rules, find_ends(rest, rules, threads), threads)
    scores[ids] = alignments.scores
    cigars = np.empty(alignments.cigar.size + 2 * ids.size + int(exact.sum()), np.uint32)
    cigar_offsets = np.zeros(count + 1, np.int64)
    number_of = np.full(count, -1, np.int64)
    number_of[ids] = np.arange(ids.size)
    used = _gatk_cigars(
        number_of, alternates.lengths, alignments, strategy, offsets, cigar_offsets, cigars
    )
    return GatkAlignments(scores, offsets, cigar_offsets, cigars[:used])


def _rules(parameters: GatkParameters, strategy: int) -> Rules:
    """Return GATK's scores for bytes; the matrix holds the scores of equal and different ones."""
    two_by_two, matrix = (
        np.full((size, size), parameters.mismatch, dtype)
        for size, dtype in ((2, np.int16), (256, np.int32))
    )
    np.fill_diagonal(two_by_two, parameters.match)
    np.fill_diagonal(matrix, parameters.match)
    gap_open, gap_extend = parameters.gap_extend - parameters.gap_open, -parameters.gap_extend
    scoring = Scoring(b"=X", np.full(256, 255, np.uint8), two_by_two, gap_open, gap_extend)
    mode = SEMIGLOBAL if OVERHANGS[strategy] in ("softclip", "ignore") else GLOBAL
    same = np.arange(256).astype(np.uint8)
    tables = Tables(same[None], np.array([_ROW_PADDING], np.uint8), same, np.uint8(_COLUMN_PADDING))

    def scheme_of(dtype):
        return MatchMismatch(dtype(parameters.match), dtype(parameters.mismatch)), tables

    return Rules(scoring, mode, matrix, scheme_of, strategy)


@compiled
def _last_occurrences(alternates, references, offsets, begin, end):
    """Find the last occurrence of each alternate in its reference; -1 is left if there is none."""
    for pair in range(begin, end):
        length = alternates.lengths[pair]
        a, r = alternates.starts[pair], references.starts[pair]
        for offset in range(references.lengths[pair] - length, -1, -1):
            k = 0
            while k < length and alternates.codes[a + k] == references.codes[r + offset + k]:
                k += 1
            if k == length:
                offsets[pair] = offset
                break


@compiled
def _gatk_cigars(number_of, lengths, found, overhang, offsets, cigar_offsets, cigar):
    """Write GATK's M, I, D and S from rows and columns, and set offsets; return the number of runs.

    `number_of` is the index of each pair among the aligned ones, -1 for exact occurrences.
    """
    _, row_starts, _, column_starts, column_ends, _, offsets_in, cigar_in = found
    used = 0
    for pair in range(number_of.size):
        runs, count = cigar[used:], np.int64(0)
        number = number_of[pair]
        if number < 0:
            count = push(runs, count, np.int64(lengths[pair]) << 4 | MATCH)
        else:
            ahead = np.int64(column_starts[number])
            behind = np.int64(lengths[pair]) - column_ends[number]
            offsets[pair] = row_starts[number]
            if overhang == 0 and ahead > 0:
                count = push(runs, count, ahead << 4 | SOFT_CLIP)
            for k in range(offsets_in[number], offsets_in[number + 1]):
                operation, length = np.int64(cigar_in[k] & 15), np.int64(cigar_in[k] >> 4)
                is_gap = operation in (INSERTION, DELETION)
                turned = INSERTION + DELETION - operation if is_gap else MATCH
                count = push(runs, count, length << 4 | turned)
            if overhang == 0 and behind > 0:
                count = push(runs, count, behind << 4 | SOFT_CLIP)
            if overhang == 3:
                if behind > 0:
                    count = push(runs, count, behind << 4 | MATCH)
                runs[0] += np.uint32(ahead << 4)
                offsets[pair] -= ahead
        used += count
        cigar_offsets[pair + 1] = used
    return used
