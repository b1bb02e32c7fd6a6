"""Rounds of a search: where only loci near the best are wanted, few edits are allowed first.

Most reads have their locus with no edit or one, and are searched no further. Those that a round
leaves open are searched again, from the start, with all the edits that are allowed.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bwarp.loci.options import ALL, FoundLoci, LocusOptions

__all__ = ["FoundRound", "following_round", "joined_rounds", "search_rounds"]


class FoundRound(NamedTuple):
    """What a round has found.

    Attributes
    ----------
    reads, edits : ndarray, shape=(n,), dtype=int64
        The reads that it searched, and with how many edits each.
    rows : ndarray, shape=(n_loci, 4), dtype=int64
        Item, start, end and distance of loci; item 2 i and 2 i + 1 are the strands of read i.
    """

    reads: np.ndarray
    edits: np.ndarray
    rows: np.ndarray


def search_rounds(find: Callable, lengths: np.ndarray, options: LocusOptions) -> FoundLoci:
    """The loci of all reads of some lengths.

    Parameters
    ----------
    find : function of two ndarrays
        What ``FoundRound.rows`` is, of reads and the edits that are allowed in each.
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
    """The reads that the first round searches, or that the one after `before` does, and with how
    many edits each."""
    edits = options.edits_of(lengths)
    if before is None:
        # Every part needs a base.
        reads = np.flatnonzero(lengths > edits)
        allowed = edits[reads]
        if options.strata != ALL:
            allowed = np.minimum(allowed, options.strata + 1)
        return reads, allowed
    # Every locus near the best one is known, or there are no more edits to allow.
    best = _best(before.rows, len(lengths))[before.reads]
    done = before.edits == edits[before.reads]
    if options.strata != ALL:
        done |= best + options.strata <= before.edits
    reads = before.reads[~done]
    return reads, edits[reads]


def joined_rounds(found: list[FoundRound], n_reads: int, strata: int) -> FoundLoci:
    """The loci of all reads: those of the last round that searched each, near its best."""
    searched = np.full(n_reads, -1, np.int32)
    last = np.zeros(n_reads, np.int64)
    for number, one in enumerate(found):
        searched[one.reads] = one.edits
        last[one.reads] = number
    kept = [one.rows[last[one.rows[:, 0] >> 1] == n] for n, one in enumerate(found)]
    rows = np.concatenate(kept) if kept else np.empty((0, 4), np.int64)
    if len(kept) > 1:
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
    if strata != ALL:
        reads = rows[:, 0] >> 1
        rows = rows[rows[:, 3] <= _best(rows, n_reads)[reads] + strata]
    item, starts, ends, distances = rows.T
    return FoundLoci(
        item >> 1, (item & 1).astype(np.uint8), starts.copy(), ends.copy(),
        distances.astype(np.int32), searched,
    )  # fmt: skip


def _best(rows: np.ndarray, n_reads: int) -> np.ndarray:
    """The distance of the best locus of each read; far more than any where there is none."""
    best = np.full(n_reads, 1 << 30, np.int64)
    np.minimum.at(best, rows[:, 0] >> 1, rows[:, 3])
    return best
