"""Which locus of a read is its primary one, and how sure that is.

The primary locus is one with fewest edits; of several, one drawn by the read's number. The mapping
quality is the chance that the read comes from there, each edit more counted as a thousand times
less likely. Beside all loci found, one more is taken to be there with an edit more than was
searched:

    p = 1 / (sum over loci of 10^(-3 (distance - least)) + 10^(-3 (searched + 1 - least)))

Of a template with proper pairs it is a pair with fewest edits that is primary, of several that
whose insert size is nearest the mean; pairs are weighed by edits and insert size. A locus is as
sure as all pairs together that it is in. Ends that are no pair count like one with two edits more
than their best loci.
"""

from typing import NamedTuple

import numpy as np

from bwarp.loci.options import FoundLoci
from bwarp.loci.pairs_cpu import LocusPairs

__all__ = ["LocusRanks", "rank_loci"]

#: Mapping qualities end here, as those of bwa mem.
_HIGHEST = 60

#: Edits that ends which are no pair count for.
_APART = 2

_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class LocusRanks(NamedTuple):
    """How the loci of a read stand to each other.

    Attributes
    ----------
    order : ndarray, shape=(n_loci,), dtype=int64
        Loci read by read, of each by distance, then as they lie in the genome; or by the number of
        their pairs.
    first_loci : ndarray, shape=(n_reads + 1,), dtype=int64
        Where those of a read begin in `order`.
    primary : ndarray, shape=(n_reads,), dtype=int64
        The locus in `order` that is a read's primary one; -1 for a read without a locus.
    best, others : ndarray, shape=(n_reads,), dtype=int64
        Loci with fewest edits, and the others (X0 and X1); or pairs.
    mapping_qualities : ndarray, shape=(n_reads,), dtype=uint8
        Of the primary loci.
    """

    order: np.ndarray
    first_loci: np.ndarray
    primary: np.ndarray
    best: np.ndarray
    others: np.ndarray
    mapping_qualities: np.ndarray


def rank_loci(loci: FoundLoci, first_read: int, pairs: LocusPairs | None = None) -> LocusRanks:
    """The ranks of all loci; `first_read` is the number of the first read within the run."""
    n_reads = len(loci.searched)
    edits, far, by = loci.distances.astype(np.int64), np.zeros(len(loci.reads)), loci.distances
    paired = np.zeros(n_reads, bool)
    if pairs is not None:
        edits += np.where(pairs.numbers > 0, np.append(loci.distances, 0)[pairs.mates], 0)
        far, by = pairs.far, np.where(pairs.numbers > 0, pairs.numbers, loci.distances)
        paired[loci.reads[pairs.numbers > 0]] = True
    order = np.lexsort((loci.strands, loci.starts, by, loci.reads))
    reads, edits, far = loci.reads[order], edits[order], far[order]
    first_loci = np.searchsorted(reads, np.arange(n_reads + 1))
    aligned = np.flatnonzero(np.diff(first_loci))
    least, nearest = np.zeros(n_reads, np.int64), np.zeros(n_reads)
    least[aligned], nearest[aligned] = edits[first_loci[aligned]], far[first_loci[aligned]]
    more = edits - least[reads]
    best = np.bincount(reads[more == 0], minlength=n_reads)
    equal = np.bincount(reads[(more == 0) & (far == nearest[reads])], minlength=n_reads)
    # Both ends of a pair draw the same.
    numbers = np.arange(first_read, first_read + n_reads, dtype=np.uint64)
    drawn = _hash(numbers - (paired & (np.arange(n_reads) % 2 == 1)).astype(np.uint64))
    chosen = first_loci[:-1] + (drawn % np.maximum(equal, 1).astype(np.uint64)).astype(np.int64)
    primary = np.full(n_reads, -1, np.int64)
    primary[aligned] = chosen[aligned]
    weights = 10.0 ** (-3 * more) * np.exp((nearest[reads] ** 2 - far**2) / 2)
    # Of no loci at all, whole numbers.
    total = np.bincount(reads, weights, minlength=n_reads).astype(np.float64)
    total += _not_searched(loci, order, primary, paired, least, pairs)
    # A locus may be in several pairs.
    locus = np.append(order, 0)[primary]
    same = (loci.starts[order] == np.append(loci.starts, 0)[locus][reads]) & (
        loci.strands[order] == np.append(loci.strands, 0)[locus][reads]
    )
    right = np.bincount(reads, weights * same, minlength=n_reads).astype(np.float64)
    wrong = 1 - right / np.maximum(total, 1.0)
    qualities = np.full(n_reads, _HIGHEST, np.float64)
    some = wrong > 10 ** (-_HIGHEST / 10)
    qualities[some] = np.rint(-10 * np.log10(wrong[some]))
    qualities[np.setdiff1d(np.arange(n_reads), aligned)] = 0
    return LocusRanks(
        order, first_loci, primary, best, np.diff(first_loci) - best,
        np.minimum(qualities, _HIGHEST).astype(np.uint8),
    )  # fmt: skip


def _not_searched(loci, order, primary, paired, least, pairs) -> np.ndarray:
    """The weight of loci that were not searched for, of each read; and of ends that are no pair."""
    missing = 10.0 ** (-3.0 * (loci.searched + 1 - least))
    if pairs is None or not paired.any():
        return missing
    locus = order[primary[paired]]
    of_end = 10.0 ** (-3.0 * (loci.searched[paired] + 1 - loci.distances[locus]))
    alone = pairs.least.reshape(-1, 2).sum(1).repeat(2)[paired] + _APART
    missing[paired] = of_end.reshape(-1, 2).sum(1).repeat(2)
    missing[paired] += 10.0 ** (-3.0 * (alone - least[paired]))
    return missing


def _hash(numbers: np.ndarray) -> np.ndarray:
    """Numbers that look random, each always the same (the finalizer of splitmix64)."""
    for factor, shift in zip(_MIX, (30, 27), strict=True):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * factor
    return numbers ^ (numbers >> np.uint64(31))
