"""Edits of a stretch of a contig, and the haplotypes that carry them."""

from typing import NamedTuple

import numpy as np

from bwarp.runtime.compiled_code import compiled

#: Maximum number of bases that an edit removes, or inserts.
LONGEST_EDIT = 50

#: Maximum number of edits that are combined in a window.
MOST_EDITS = 128


class Edits(NamedTuple):
    """Edits in order; see `bwarp.variants`.

    Attributes
    ----------
    starts, stops : ndarray, shape=(n,), dtype=int64
        In positions of the genome.
    bases : ndarray, dtype=uint8
        Codes of the alternative bases of all edits.
    bounds : ndarray, shape=(n, 2), dtype=int64
        The bases of each edit.
    records, alleles : ndarray, shape=(n,), dtype=int64
        The line in `texts`, and the number of the ALT allele in it, from 1 on.
    free : ndarray, shape=(n,), dtype=bool
    carriers : ndarray, shape=(n, n_words), dtype=uint64
        A bit per haplotype. Without genotypes, there is one bit for any haplotype. Those of free
        edits are the haplotypes of unphased genotypes, in any order per sample.
    counts : ndarray, shape=(n,), dtype=int64
        Haplotypes with the allele in the file, whether applied or not; -1 without genotypes.
    ploidies : ndarray, shape=(n,), dtype=int64
        The row of `present` that holds at each edit.
    present : ndarray, shape=(k, n_words), dtype=uint64
        The haplotypes that exist: samples with one allele have no second one.
    """

    starts: np.ndarray
    stops: np.ndarray
    bases: np.ndarray
    bounds: np.ndarray
    records: np.ndarray
    alleles: np.ndarray
    free: np.ndarray
    carriers: np.ndarray
    counts: np.ndarray
    ploidies: np.ndarray
    present: np.ndarray

    @property
    def count(self) -> int:
        return len(self.starts)

    def present_at(self, positions: np.ndarray) -> np.ndarray:
        """Return the haplotypes that exist at positions: those of the last edit before, or at it.

        The edits must be in order, and not empty.
        """
        before = np.searchsorted(self.starts, positions, side="right") - 1
        return self.present[self.ploidies[np.maximum(before, 0)]]


def joined_edits(parts: list[Edits]) -> Edits:
    """Concatenate edits; `records` must already be numbered consecutively."""
    bounds: list[np.ndarray] = []
    ploidies: list[np.ndarray] = []
    n_bases = n_present = 0
    for part in parts:
        bounds.append(part.bounds + n_bases)
        ploidies.append(part.ploidies + n_present)
        n_bases, n_present = n_bases + part.bases.size, n_present + len(part.present)
    joined = Edits(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    present, rows = np.unique(joined.present, axis=0, return_inverse=True)
    return joined._replace(
        bounds=np.concatenate(bounds),
        ploidies=rows.reshape(-1)[np.concatenate(ploidies)],
        present=present,
    )


def taken_edits(edits: Edits, rows) -> Edits:
    """Select edits by mask, numbers or slice."""
    bases, bounds = taken_pieces(edits.bases, edits.bounds[rows])
    kept = {"bases": bases, "bounds": bounds, "present": edits.present}
    columns = {name: column[rows] for name, column in edits._asdict().items() if name not in kept}
    return Edits(**columns, **kept)


def taken_pieces(array: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pieces of an array one after another, and their new bounds."""
    sizes = bounds[:, 1] - bounds[:, 0]
    ends = np.cumsum(sizes)
    offsets = np.arange(sizes.sum()) + np.repeat(bounds[:, 0] - (ends - sizes), sizes)
    return array[offsets], np.column_stack([ends - sizes, ends])


def in_order_of_edits(edits: Edits) -> tuple[Edits, Edits]:
    """Sort edits, and leave each phased edit only the haplotypes to which it is applied.

    An edit that is also on an earlier line is joined with that of the line. It makes no difference
    if some of the edits have been through this function.

    Returns
    -------
    edits : Edits
    repeated : Edits
        Those that were joined with others.
    """
    order = np.lexsort((edits.alleles, edits.records, edits.stops, edits.starts))
    # The rows are copies.
    edits = taken_edits(edits, order)
    joined_with = np.arange(edits.count)
    _join_equal(edits, joined_with)
    is_repeated = joined_with != np.arange(edits.count)
    for row in np.unique(joined_with[is_repeated]):
        if edits.counts[row] >= 0:
            edits.counts[row] = np.bitwise_count(edits.carriers[row]).sum()
    edits, repeated = taken_edits(edits, ~is_repeated), taken_edits(edits, is_repeated)
    _remove_overlapping(edits.starts, edits.stops, edits.free, edits.carriers)
    return edits, repeated


@compiled
def _join_equal(edits, joined_with):
    """Give carriers of each edit to the first equal one; note the number of that."""
    starts, stops, bounds = edits.starts, edits.stops, edits.bounds
    for i in range(starts.size):
        j = i - 1
        while j >= 0 and starts[j] == starts[i] and stops[j] == stops[i]:
            size = bounds[i, 1] - bounds[i, 0]
            differing = np.int64(bounds[j, 1] - bounds[j, 0] != size)
            for k in range(0 if differing else size):
                differing += edits.bases[bounds[i, 0] + k] != edits.bases[bounds[j, 0] + k]
            if joined_with[j] == j and differing == 0:
                joined_with[i] = j
                edits.free[j] = edits.free[j] or edits.free[i]
                edits.counts[j] = max(edits.counts[i], edits.counts[j])
                for word in range(edits.carriers.shape[1]):
                    edits.carriers[j, word] |= edits.carriers[i, word]
                break
            j -= 1


@compiled
def overlap(start, stop, other_start, other_stop):
    """Return whether two edits cannot both be applied."""
    if start == stop and other_start == other_stop:
        return start == other_start
    return start < other_stop and other_start < stop


@compiled
def _remove_overlapping(starts, stops, free, carriers):
    for i in range(starts.size):
        j = i - 1
        while j >= 0 and starts[j] >= starts[i] - LONGEST_EDIT:
            both_phased = not free[i] and not free[j]
            if both_phased and overlap(starts[i], stops[i], starts[j], stops[j]):
                for word in range(carriers.shape[1]):
                    carriers[i, word] &= ~carriers[j, word]
            j -= 1
