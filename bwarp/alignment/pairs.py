"""The layout of a batch of pairs and its results, and the rule for equally good alignments.

Layout
------
Each side of a batch is one flat array of codes, with the start and length of the sequence of each
pair. Sequences may overlap or repeat: windows of a genome are (start, length) into the genome's own
array, without copying.

    codes    . . [ sequence of pair 0 ] . [ pair 2 ....[ pair 1 ].... ] . .       uint8
    starts       ^                          lengths: residues of each             int64, int32

A CIGAR is a run of uint32, ``length << 4 | operation`` as in BAM, with SAM's operation codes I 1, D
2, S 4, = 7, X 8 (M 0 in GATK mode only). The CIGARs of a batch are concatenated in `cigar`; that of
pair i is ``cigar[cigar_offsets[i] : cigar_offsets[i + 1]]``. It covers aligned residues only: free
ends follow from the starts and ends, and never appear as S.

Ties
----
All engines return the same alignment, by these rules (H, D, I as in scoring.py):

1. *The end.* Candidates are the cells where the mode may end: all cells where local, borders
   included (an empty alignment scores 0); else the corner (m, n), and, from 1 on, the cells of the
   last row (i = m) where reference_end is free and of the last column (j = n) where query_end is
   free. Only a local alignment can be empty. The best score wins, then the smallest reference end
   j, then the smallest query end i.
2. *The traceback* runs from the end, in one of three states, at first "at H":

       at H(i,j):  stop       if local and H = 0; or i = 0 and reference_start is free;
                              or j = 0 and query_start is free; or i = j = 0
                   = or X     if i, j > 0 and H(i,j) = H(i-1,j-1) + matrix[..]    -> at H(i-1,j-1)
                   into D     else if j > 0 and H(i,j) = D(i,j)                   -> at D(i,j)
                   into I     else                                               -> at I(i,j)
       at D(i,j):  emit D; if D(i,j) = H(i,j-1) - gap_open - gap_extend -> at H(i,j-1),
                   else -> at D(i,j-1)
       at I(i,j):  emit I; if I(i,j) = H(i-1,j) - gap_open - gap_extend -> at H(i-1,j),
                   else -> at I(i-1,j)

   The order is diagonal, deletion, insertion, from the right: indels are placed as far left as
   their score allows. A gap closes as soon as possible. On borders that are not free,
   H(0,j) = D(0,j) and H(i,0) = I(i,0); D(i,0) and I(0,j) are minus infinity.

Other ways of computing agree, because each direction compares values on cells of optimal paths into
the end. A band that contains *all* optimal paths into that end therefore gives the same directions,
and so does any engine that stores directions, differences or run lengths instead of scores. In
particular, if the diagonal that ends in the end cell gives the whole score S without a gap, each H
on it is exactly the sum so far (a larger one would raise the end above S), so the traceback never
leaves it: an alignment without gaps is recognised by adding up one diagonal.

A sufficient band: let the end be (i, j) with score S, and `top` the best entry of the matrix. An
alignment with g > 0 gap columns scores at most ``min(i, j) * top - gap_open - g * gap_extend``, so
no optimal path has more than ``g = (min(i, j) * top - gap_open - S) // gap_extend`` gap columns, or
deviates further than that from the diagonal of its end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError

MATCH, INSERTION, DELETION, SKIP, SOFT_CLIP, HARD_CLIP = range(6)
EQUAL, MISMATCH = 7, 8
_OPERATIONS = "MIDNSHP=X"


@dataclass(frozen=True)
class Sequences:
    """One side of a batch: one sequence per pair, as stretches of an array of codes.

    Attributes
    ----------
    codes : ndarray, dtype=uint8
    starts : ndarray, shape=(count,), dtype=int64
    lengths : ndarray, shape=(count,), dtype=int32
    """

    codes: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @property
    def count(self) -> int:
        return self.starts.size

    def sequence(self, i: int) -> np.ndarray:
        """Return the codes of sequence i as a view."""
        return self.codes[self.starts[i] : self.starts[i] + self.lengths[i]]


@dataclass(frozen=True)
class PairBatch:
    """Pair i is query i with reference i."""

    queries: Sequences
    references: Sequences

    @property
    def count(self) -> int:
        return self.queries.count


class Ends(NamedTuple):
    """Scores and ends of alignments (half-open).

    Attributes
    ----------
    scores, query_ends, reference_ends : ndarray, shape=(count,), dtype=int32
    """

    scores: np.ndarray
    query_ends: np.ndarray
    reference_ends: np.ndarray


class Alignments(NamedTuple):
    """Complete alignments of a batch.

    Attributes
    ----------
    scores : ndarray, shape=(count,), dtype=int32
    query_starts, query_ends, reference_starts, reference_ends : ndarray, dtype=int32
        0-based, half-open, within the sequences of each pair.
    edit_distances : ndarray, shape=(count,), dtype=int32
        NM of SAM: mismatches plus lengths of gaps.
    cigar_offsets : ndarray, shape=(count + 1,), dtype=int64
    cigar : ndarray, dtype=uint32
    """

    scores: np.ndarray
    query_starts: np.ndarray
    query_ends: np.ndarray
    reference_starts: np.ndarray
    reference_ends: np.ndarray
    edit_distances: np.ndarray
    cigar_offsets: np.ndarray
    cigar: np.ndarray


def sequences_of(sequences: Sequence[np.ndarray]) -> Sequences:
    """Concatenate a list of code arrays."""
    lengths = np.array([s.size for s in sequences], np.int32)
    starts = np.zeros(lengths.size, np.int64)
    np.cumsum(lengths[:-1], out=starts[1:])
    codes = np.concatenate([*sequences, np.empty(0, np.uint8)]).astype(np.uint8, copy=False)
    return Sequences(codes, starts, lengths)


def check_pairs(pairs: PairBatch) -> None:
    """Reject unequal counts and empty sequences."""
    if pairs.queries.count != pairs.references.count:
        raise InputError(
            f"{counted(pairs.queries.count, 'query')} but "
            f"{counted(pairs.references.count, 'reference')}: query i is aligned to reference i, "
            "so their numbers must be equal"
        )
    for side, sequences in (("query", pairs.queries), ("reference", pairs.references)):
        if sequences.lengths.min(initial=1) <= 0:
            empty = int(np.argmax(sequences.lengths <= 0))
            raise InputError(f"the {side} of pair {empty + 1} is empty: remove the pair")


def sums_of_cigars(values: np.ndarray, cigar_offsets: np.ndarray) -> np.ndarray:
    """Return the sum of `values`, one per run, over the runs of each CIGAR."""
    return np.diff(np.concatenate([[0], np.cumsum(values)])[cigar_offsets])


def cigar_text(cigar: np.ndarray) -> str:
    """Return a CIGAR as in SAM, ``*`` for none.

    >>> cigar_text(np.array([5 << 4 | 7, 1 << 4 | 2], np.uint32))
    '5=1D'
    """
    return "".join(f"{c >> 4}{_OPERATIONS[c & 15]}" for c in cigar.tolist()) or "*"
