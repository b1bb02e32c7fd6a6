"""Which locus of a read is its primary one, and how sure that is.

The primary locus is one with fewest edits; of several, one drawn by the read's number. The mapping
quality is the chance that the read comes from there, each edit more counted as a thousand times
less likely. Beside all loci found, one more is taken to be there with an edit more than was
searched:

    p = 1 / (sum over loci of 10^(-3 (distance - least)) + 10^(-3 (searched + 1 - least)))
"""

from typing import NamedTuple

import numpy as np

from bwarp.loci.options import FoundLoci

__all__ = ["LocusRanks", "rank_loci"]

#: Mapping qualities end here, as those of bwa mem.
_HIGHEST = 60

_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class LocusRanks(NamedTuple):
    """How the loci of a read stand to each other.

    Attributes
    ----------
    order : ndarray, shape=(n_loci,), dtype=int64
        Loci read by read, of each by distance, then as they lie in the genome.
    first_loci : ndarray, shape=(n_reads + 1,), dtype=int64
        Where those of a read begin in `order`.
    primary : ndarray, shape=(n_reads,), dtype=int64
        The locus in `order` that is a read's primary one; -1 for a read without a locus.
    best, others : ndarray, shape=(n_reads,), dtype=int64
        Loci with fewest edits, and the others (X0 and X1).
    mapping_qualities : ndarray, shape=(n_reads,), dtype=uint8
        Of the primary loci.
    """

    order: np.ndarray
    first_loci: np.ndarray
    primary: np.ndarray
    best: np.ndarray
    others: np.ndarray
    mapping_qualities: np.ndarray


def rank_loci(loci: FoundLoci, first_read: int) -> LocusRanks:
    """The ranks of all loci; `first_read` is the number of the first read within the run."""
    n_reads = len(loci.searched)
    order = np.lexsort((loci.strands, loci.starts, loci.distances, loci.reads))
    reads, distances = loci.reads[order], loci.distances[order].astype(np.int64)
    first_loci = np.searchsorted(reads, np.arange(n_reads + 1))
    aligned = np.flatnonzero(np.diff(first_loci))
    least = np.zeros(n_reads, np.int64)
    least[aligned] = distances[first_loci[aligned]]
    more = distances - least[reads]
    best = np.bincount(reads[more == 0], minlength=n_reads)
    primary = np.full(n_reads, -1, np.int64)
    drawn = _hash(np.arange(first_read, first_read + n_reads, dtype=np.uint64))
    chosen = first_loci[:-1] + (drawn % np.maximum(best, 1).astype(np.uint64)).astype(np.int64)
    primary[aligned] = chosen[aligned]
    # Of no loci at all, whole numbers.
    weights = np.bincount(reads, 10.0 ** (-3 * more), minlength=n_reads).astype(np.float64)
    weights += 10.0 ** (-3.0 * (loci.searched + 1 - least))
    wrong = 1 - 1 / np.maximum(weights, 1.0)
    qualities = np.full(n_reads, _HIGHEST, np.float64)
    some = wrong > 10 ** (-_HIGHEST / 10)
    qualities[some] = np.rint(-10 * np.log10(wrong[some]))
    qualities[np.setdiff1d(np.arange(n_reads), aligned)] = 0
    return LocusRanks(
        order, first_loci, primary, best, np.diff(first_loci) - best,
        np.minimum(qualities, _HIGHEST).astype(np.uint8),
    )  # fmt: skip


def _hash(numbers: np.ndarray) -> np.ndarray:
    """Numbers that look random, each always the same (the finalizer of splitmix64)."""
    for factor, shift in zip(_MIX, (30, 27), strict=True):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * factor
    return numbers ^ (numbers >> np.uint64(31))
