"""Search in rounds: if only loci near the best are wanted, allow few edits first.

Most reads have a locus with at most one edit and need no further round. The others are searched
again, from the start, with all allowed edits.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bwarp.allmap.options import FoundLoci, LocusOptions
from bwarp.options.mapping import ALL
from bwarp.runtime.compiled_code import compiled

#: The distance of a read without a locus.
_FAR = 1 << 30


class FoundRound(NamedTuple):
    """The result of a round.

    Attributes
    ----------
    reads, edits : ndarray, shape=(n,), dtype=int64
        The reads searched, and the edits allowed for each.
    rows : ndarray, shape=(n_loci, 4), dtype=int64
        Item, start, end and distance of loci; items 2 i and 2 i + 1 are the strands of read i.
    """

    reads: np.ndarray
    edits: np.ndarray
    rows: np.ndarray


def search_rounds(find: Callable, lengths: np.ndarray, options: LocusOptions) -> FoundLoci:
    """Find the loci of all reads, given their lengths.

    Parameters
    ----------
    find : function of two ndarrays
        Returns ``FoundRound.rows`` for reads and the edits allowed in each.
    """
    found = []
    reads, edits = following_round(lengths, options)
    while reads.size:
        found.append(FoundRound(reads, edits, find(reads, edits)))
        reads, edits = following_round(lengths, options, found[-1])
    return joined_rounds(found, len(lengths), options.strata)


def following_round(
    lengths: np.ndarray, options: LocusOptions, before: FoundRound | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the reads to search in the first round, or in the one after `before`, and the edits
    allowed in each.
    """
    edits = options.edits_of(lengths)
    if before is None:
        # Every part needs a base.
        reads = np.flatnonzero(lengths > edits)
        allowed = edits[reads]
        if options.strata != ALL:
            allowed = np.minimum(allowed, options.strata + 1)
        return reads, allowed
    # Done if every locus near the best is known, or no more edits are allowed.
    best = _best(before.rows, len(lengths))[before.reads]
    done = before.edits == edits[before.reads]
    if options.strata != ALL:
        done |= best + options.strata <= before.edits
    reads = before.reads[~done]
    return reads, edits[reads]


def loci_to_write(
    found: FoundRound, lengths: np.ndarray, options: LocusOptions, max_places: int
) -> np.ndarray:
    """Return which loci of a round are written, unless reads are reported as pairs.

    These are the loci near the best of reads that no later round searches, and that have at most
    `max_places` such loci (0: no limit).

    Parameters
    ----------
    found : FoundRound
        All loci of each read that has any.
    lengths : ndarray, shape=(n_reads,), dtype=int64

    Returns
    -------
    written : ndarray, shape=(n_loci,), dtype=bool
    """
    reads = found.rows[:, 0] >> 1
    is_done = np.ones(len(lengths), bool)
    is_done[following_round(lengths, options, found)[0]] = False
    written = is_done[reads]
    if options.strata != ALL:
        written &= found.rows[:, 3] <= _best(found.rows, len(lengths))[reads] + options.strata
    if max_places:
        written &= np.bincount(reads[written], minlength=len(lengths))[reads] <= max_places
    return written


def last_rounds(found: list[FoundRound], n_reads: int) -> np.ndarray:
    """Return the number of the last round that searched each read, dtype int64; 0 for none."""
    last = np.zeros(n_reads, np.int64)
    for number, one in enumerate(found):
        last[one.reads] = number
    return last


def loci_of_rows(rows: np.ndarray, searched: np.ndarray) -> FoundLoci:
    """Return rows of item, start, end and distance as loci."""
    items, starts, ends, distances = (column.copy() for column in rows.T)
    strands = (items & 1).astype(np.uint8)
    return FoundLoci(items >> 1, strands, starts, ends, distances.astype(np.int32), searched)


def joined_rounds(found: list[FoundRound], n_reads: int, strata: int) -> FoundLoci:
    """Join the loci of all reads: from the last round of each, those near its best."""
    searched = np.full(n_reads, -1, np.int32)
    last = last_rounds(found, n_reads)
    for one in found:
        searched[one.reads] = one.edits
    if len(found) == 1:
        rows = found[0].rows
    else:
        kept = [_of_round(one.rows, last, number) for number, one in enumerate(found)]
        rows = np.concatenate(kept) if kept else np.empty((0, 4), np.int64)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
    most = np.full(n_reads, _FAR, np.int64) if strata == ALL else _best(rows, n_reads) + strata
    n_kept = _count(rows, most)
    reads, starts, ends = np.empty((3, n_kept), np.int64)
    strands, distances = np.empty(n_kept, np.uint8), np.empty(n_kept, np.int32)
    _part(rows, most, reads, strands, starts, ends, distances)
    return FoundLoci(reads, strands, starts, ends, distances, searched)


def _best(rows: np.ndarray, n_reads: int) -> np.ndarray:
    """Return the distance of the best locus of each read; a large number if there is none."""
    best = np.full(n_reads, _FAR, np.int64)
    _lower(rows, best)
    return best


# Repeats have many loci: one pass each, in parallel with other threads.


@compiled
def _lower(rows, best):
    for i in range(len(rows)):
        read = rows[i, 0] >> 1
        best[read] = min(best[read], rows[i, 3])


@compiled
def _of_round(rows, last, number):
    """Return the rows of reads whose last round has this number."""
    kept = np.empty_like(rows)
    n = 0
    for i in range(len(rows)):
        if last[rows[i, 0] >> 1] == number:
            kept[n] = rows[i]
            n += 1
    return kept[:n]


@compiled
def _count(rows, most):
    """Count the rows with no more edits than allowed for their read."""
    n = 0
    for i in range(len(rows)):
        n += rows[i, 3] <= most[rows[i, 0] >> 1]
    return n


@compiled
def _part(rows, most, reads, strands, starts, ends, distances):
    """Copy the columns of these rows."""
    n = 0
    for i in range(len(rows)):
        item, start, end, distance = rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3]
        if distance <= most[item >> 1]:
            reads[n], strands[n] = item >> 1, item & 1
            starts[n], ends[n], distances[n] = start, end, distance
            n += 1
