"""Edits of a stretch of a contig, and the haplotypes that carry them."""

from typing import NamedTuple

import numpy as np

from bwarp.runtime.compiled_code import compiled

#: Maximum number of bases that an edit removes, or inserts.
LONGEST_EDIT = 50


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
        A bit per haplotype; without genotypes, 0 words.
    counts : ndarray, shape=(n,), dtype=int64
        Haplotypes with the allele in the file, whether applied or not; -1 without genotypes.
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

    @property
    def count(self) -> int:
        return len(self.starts)


def joined_edits(parts: list[Edits]) -> Edits:
    """Concatenate edits; `records` must already be numbered consecutively."""
    offset, bounds = 0, []
    for part in parts:
        bounds.append(part.bounds + offset)
        offset += part.bases.size
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Edits(*columns)._replace(bounds=np.concatenate(bounds))


def taken_edits(edits: Edits, rows) -> Edits:
    """Select edits by mask, numbers or slice."""
    columns = {name: column[rows] for name, column in edits._asdict().items() if name != "bases"}
    return Edits(bases=edits.bases, **columns)


def in_order_of_edits(edits: Edits) -> Edits:
    """Sort edits, and leave each phased edit only the haplotypes to which it is applied."""
    order = np.lexsort((edits.alleles, edits.records, edits.stops, edits.starts))
    # The rows are copies.
    edits = taken_edits(edits, order)
    edits.carriers[edits.free] = 0
    _remove_overlapping(edits.starts, edits.stops, edits.carriers)
    return edits


@compiled
def overlap(start, stop, other_start, other_stop):
    """Return whether two edits cannot both be applied."""
    if start == stop and other_start == other_stop:
        return start == other_start
    return start < other_stop and other_start < stop


@compiled
def _remove_overlapping(starts, stops, carriers):
    for i in range(starts.size):
        j = i - 1
        while j >= 0 and starts[j] >= starts[i] - LONGEST_EDIT:
            if overlap(starts[i], stops[i], starts[j], stops[j]):
                for word in range(carriers.shape[1]):
                    carriers[i, word] &= ~carriers[j, word]
            j -= 1
