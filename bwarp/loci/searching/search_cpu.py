"""The search for the parts of reads: exact ones, made rarer where they are repeats, or such with
mismatches, each read as it is soonest."""

from collections.abc import Callable
from functools import partial

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.reverse import require_reverse
from bwarp.loci.options import LocusOptions
from bwarp.loci.searching.exact_parts_cpu import search_exact_parts
from bwarp.loci.searching.mismatch_parts_cpu import can_search, search_mismatch_parts
from bwarp.loci.searching.parts import Items, Parts, merge_parts, no_parts, some_items
from bwarp.loci.searching.rare_cuts_cpu import cut_rarer
from bwarp.loci.searching.seeding_rule import best_mismatches, parts_needed

__all__ = ["search_by_mismatches", "search_parts", "seed_mismatches"]


def seed_mismatches(
    index: FMIndex,
    lengths: np.ndarray,
    edits: np.ndarray,
    gaps: np.ndarray,
    options: LocusOptions,
) -> np.ndarray:
    """The most mismatches with which the parts of each read are searched, dtype int64."""
    mismatches = np.zeros(len(lengths), np.int64)
    if options.mismatches == 0 or (options.mismatches is None and not index.has_reverse):
        return mismatches
    if options.mismatches is None and np.array_equal(gaps, edits):
        return mismatches  # without a look at every kind of read
    kinds, kind_of = np.unique(np.column_stack([lengths, edits, gaps]), axis=0, return_inverse=True)
    for number, (length, e, g) in enumerate(kinds.tolist()):
        m = options.mismatches
        if m is None:
            m = best_mismatches(length, e, g, index.forward.n_rows)
        m = min(m, e)
        # Parts that are too short for search schemes are searched without mismatches.
        if m and can_search(length, parts_needed(e, g, m)):
            mismatches[kind_of.reshape(-1) == number] = m
    if mismatches.any():
        require_reverse(index, "a search of parts with mismatches")
    return mismatches


def search_parts(index: FMIndex, both: np.ndarray, items: Items) -> Parts:
    """Cut items into as many parts as miss nothing, and search them.

    Parameters
    ----------
    both : ndarray, dtype=uint8
        The reads, then their reverse complements.
    items : Items
        Both items of each read, neighbours.
    """
    return search_by_mismatches(index, both, items, partial(_search_exact, index))


def search_by_mismatches(
    index: FMIndex, both: np.ndarray, items: Items, search_exact: Callable
) -> Parts:
    """As `search_parts`, with a function ``search_exact(both, items, n_parts)`` for exact parts."""
    if not items.begins.size:
        return no_parts()
    n_parts = parts_needed(items.edits, items.gaps, items.mismatches)
    some, found = [], []
    for mismatches in np.unique(items.mismatches):
        chosen = np.flatnonzero(items.mismatches == mismatches)
        of_these = some_items(items, chosen)
        if mismatches:
            parts = search_mismatch_parts(index, both, of_these, n_parts[chosen], int(mismatches))
        else:
            parts = search_exact(both, of_these, n_parts[chosen])
        some.append(chosen)
        found.append(parts)
    return found[0] if len(found) == 1 else merge_parts(some, found)


def _search_exact(index: FMIndex, both: np.ndarray, items: Items, n_parts: np.ndarray) -> Parts:
    parts = search_exact_parts(index, both, items, n_parts)
    cut_rarer(index, both, items, parts)
    return parts
