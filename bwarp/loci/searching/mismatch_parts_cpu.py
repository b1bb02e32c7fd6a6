"""Parts of reads searched with mismatches, by search schemes: fewer and longer ones, where gaps are
few (`seeding_rule`)."""

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.loci.searching.parts import Items, Parts, item_parts
from bwarp.runtime.compiled_code import compiled
from bwarp.seeding.algorithms.search_schemes_cpu import search_schemes
from bwarp.seeding.kmers import LONGEST_KMER, SHORTEST_KMER, kmer_words

__all__ = ["can_search", "search_mismatch_parts"]


def can_search(length: int, n_parts: int) -> bool:
    """Whether the parts of a read are long enough for search schemes."""
    return length // n_parts >= SHORTEST_KMER


def search_mismatch_parts(
    index: FMIndex, both: np.ndarray, items: Items, n_parts: np.ndarray, mismatches: int
) -> Parts:
    """Search parts of equal length, of which at most the first 64 bases.

    Parameters
    ----------
    items : Items
        Item 2 i + 1 is the reverse complement of item 2 i.
    n_parts : ndarray, shape=(n_items,), dtype=int64

    An ambiguous base is searched as A: what is found has as few mismatches, or fewer.
    """
    offsets = item_parts(n_parts)
    starts, ends = np.empty((2, offsets[-1]), np.int32)
    _cut(items.lengths, offsets, starts, ends)
    # Schemes search both strands of a part at once: those of forward items are enough.
    forward = np.flatnonzero(np.repeat(np.arange(len(n_parts)), n_parts) % 2 == 0)
    item_of = np.repeat(np.arange(len(n_parts)), n_parts)
    lengths = (ends - starts)[forward]
    found = []
    for k in np.unique(lengths):
        some = forward[lengths == k]
        kmers = np.zeros((some.size, kmer_words(int(k))), np.uint64)
        _pack(both, items.begins[item_of[some]] + starts[some], int(k), kmers)
        intervals = search_schemes(index, kmers, int(k), mismatches)
        part = some[intervals.kmers]
        # The same stretch of the reverse complement has the number counted from the other end.
        item = item_of[part]
        turned = offsets[item + 1] + (offsets[item + 1] - 1 - part)
        numbers = np.where(intervals.strands == 0, part, turned)
        found.append((numbers, intervals.first_rows, intervals.n_rows))
    numbers, first_rows, n_rows = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(numbers, kind="stable")
    counts = np.bincount(numbers, minlength=offsets[-1])
    return Parts(offsets, starts, ends, item_parts(counts), first_rows[order], n_rows[order])


@compiled
def _cut(lengths, offsets, starts, ends):
    for item in range(lengths.size):
        n = offsets[item + 1] - offsets[item]
        length = lengths[item]
        for i in range(n):
            # Of the forward read; its reverse complement is cut at the same bases.
            number = n - 1 - i if item % 2 == 0 else i
            start, end = length * number // n, length * (number + 1) // n
            end = min(end, start + LONGEST_KMER)
            part = offsets[item] + i
            starts[part] = start if item % 2 == 0 else length - end
            ends[part] = end if item % 2 == 0 else length - start


@compiled
def _pack(both, begins, k, kmers):
    for i in range(begins.size):
        for b in range(k):
            code = np.uint64(both[begins[i] + b])
            code = code if code < 4 else np.uint64(0)
            kmers[i, b >> 5] |= code << np.uint64(62 - 2 * (b & 31))
