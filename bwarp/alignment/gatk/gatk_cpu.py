"""GATK's alignments on the CPU, one lane a pair: the recipe of gatk_rules.py in the kernels of
cells_cpu.

GATK's reference takes the rows here and its alternate the columns. Its insertions then run along
a row and are D of cells_cpu, its deletions I, and its order (diagonal, insertion, deletion) is the
kernels' own. The run lengths that GATK keeps beside every cell are what a traceback along the
direction bits finds, when gaps that could open or extend at the same score extend.

1. Where the strategy allows it, the right-most exact occurrence is the answer.
2. One pass over the cells keeps the last row and the last column, and GATK's rule picks the end.
3. The diagonal into the end is added up; where it explains the whole score it is the alignment.
4. The other pairs are filled again with direction bits, and traced back.
"""

from functools import partial

import numpy as np

from bwarp.alignment.gatk.gatk_rules import (
    OVERHANGS,
    GatkAlignments,
    GatkParameters,
    check_overhang,
)
from bwarp.alignment.matrix.batches_cpu import Rules, numba_side
from bwarp.alignment.matrix.scores_and_ends_cpu import find_ends
from bwarp.alignment.matrix.substitution_scores_cpu import MatchMismatch, Tables
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
from bwarp.alignment.traceback.cigars_cpu import push
from bwarp.alignment.traceback.traceback_cpu import trace_alignments
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range

__all__ = ["gatk_alignments"]

#: Bytes that fill up lanes; no base is one of them, and they differ.
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
        number_of, alternates.lengths, alignments.query_starts, alignments.reference_starts,
        alignments.reference_ends, alignments.cigar_offsets, alignments.cigar, strategy, offsets,
        cigar_offsets, cigars,
    )  # fmt: skip
    return GatkAlignments(scores, offsets, cigar_offsets, cigars[:used])


def _rules(parameters: GatkParameters, strategy: int) -> Rules:
    """GATK's scores for bytes; the matrix of the scoring stands for equal and different ones."""
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
    """Where each alternate last occurs in its reference; -1 stays where it does not."""
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
def _gatk_cigars(
    number_of,
    lengths,
    row_starts,
    column_starts,
    column_ends,
    offsets_in,
    cigar_in,
    overhang,
    offsets,
    cigar_offsets,
    cigar,
):
    """Turn rows and columns into GATK's M, I, D and S, and set offsets; returns the runs written.

    `number_of` is each pair's number among those that were aligned, -1 for exact occurrences.
    """
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
