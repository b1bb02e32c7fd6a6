"""Exact parts of reads: each read is cut while it is searched, so that parts are short but rare.

A read with at most e edits, cut anywhere into e + 1 parts, has a part without one (`seeding_rule`).
Where it is cut is free, and may differ from strand to strand. So a part is searched backwards from
its last base and ends as soon as few rows are left, or none; at the latest with its share of what
the parts still to come have to divide:

    read   ....................|.........x|..............|..........|
           part 3, its share    part 2     part 1          part 0
                                empty      its share       one row left
           not used

What a rare part leaves over goes to those after it, which get longer, and so rarer.
"""

import numba
import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.rank_cpu import block_start, extend_left
from bwarp.loci.parts import Items, Parts, item_parts
from bwarp.runtime.simd import prefetch
from bwarp.runtime.uncounted import uncounted

__all__ = ["search_exact_parts"]

#: Searches that take their steps in turn, so that their cache misses overlap.
_TOGETHER = 64

#: A part ends when it has so many rows: to look at them costs less than to search on.
_FEW_ROWS = 1


def search_exact_parts(
    index: FMIndex, both: np.ndarray, items: Items, n_parts: np.ndarray
) -> Parts:
    """Cut and search items (`bwarp.loci.parts`), into so many parts each."""
    offsets = item_parts(n_parts)
    total = int(offsets[-1])
    starts, ends = np.empty((2, total), np.int32)
    first_rows, n_rows = np.empty((2, total), np.uint32)
    table_k = index.prefix_length
    _search(
        index.forward.arrays, index.prefix_table.reshape(-1), table_k, both, items.begins,
        items.lengths, offsets, starts, ends, first_rows, n_rows,
    )  # fmt: skip
    return Parts(offsets, starts, ends, np.arange(total + 1), first_rows, n_rows)


@numba.njit(cache=True, nogil=True)
def _search(
    bwt, table, table_k, both, begins, lengths, part_offsets, part_starts, part_ends, first_rows,
    n_rows,
):  # fmt: skip
    bwt, table, both = uncounted((bwt, table, both))
    words, separator_rows, groups, row_starts, _ = bwt
    begins, lengths, part_offsets = uncounted((begins, lengths, part_offsets))
    part_starts, part_ends = uncounted((part_starts, part_ends))
    first_rows, n_rows = uncounted((first_rows, n_rows))
    item = np.empty(_TOGETHER, np.int64)
    low = np.empty(_TOGETHER, np.uint64)
    high = np.empty(_TOGETHER, np.uint64)
    at = np.empty(_TOGETHER, np.int64)
    limit = np.empty(_TOGETHER, np.int64)
    end = np.empty(_TOGETHER, np.int64)
    part = np.empty(_TOGETHER, np.int64)
    n_active = 0
    following = 0
    n_items = begins.size
    active = np.empty(_TOGETHER, np.int64)
    n_free = _TOGETHER
    free = np.arange(_TOGETHER)
    while True:
        while n_free > 0 and following < n_items:
            n_free -= 1
            j = free[n_free]
            item[j] = following
            at[j] = begins[following] + lengths[following]
            end[j] = at[j]
            part[j] = part_offsets[following]
            following += 1
            active[n_active] = j
            n_active += 1
            # Not begun: the range is taken from the table, or from the whole, when first visited.
            low[j], high[j] = _begin(
                table, table_k, both, begins[item[j]], at[j],
                part_offsets[item[j] + 1] - part[j], row_starts[4], limit, j,
            )  # fmt: skip
        if n_active == 0:
            return
        still = 0
        for i in range(n_active):
            j = active[i]
            if low[j] > high[j]:  # an entry of the table
                entry = low[j] - np.uint64(1) << np.uint64(1)
                low[j] = table[entry]
                high[j] = low[j] + np.uint64(table[entry + np.uint64(1)])
                at[j] -= table_k
            else:
                at[j] -= 1
                code = both[at[j]]
                if code > 3:
                    high[j] = low[j]
                else:
                    low[j], high[j] = extend_left(
                        words, separator_rows, groups, row_starts, np.uint64(code), low[j], high[j]
                    )
            rows = high[j] - low[j]
            if rows <= _FEW_ROWS or at[j] == limit[j]:
                begin = begins[item[j]]
                part_starts[part[j]] = at[j] - begin
                part_ends[part[j]] = end[j] - begin
                end[j] = at[j]
                first_rows[part[j]] = low[j]
                n_rows[part[j]] = rows
                part[j] += 1
                left = part_offsets[item[j] + 1] - part[j]
                if left == 0:
                    free[n_free] = j
                    n_free += 1
                    continue
                low[j], high[j] = _begin(
                    table, table_k, both, begin, at[j], left, row_starts[4], limit, j
                )
            else:
                prefetch(words, np.int64(block_start(groups, low[j])))
                prefetch(words, np.int64(block_start(groups, high[j])))
            active[still] = j
            still += 1
        n_active = still


@numba.njit(nogil=True, inline="always")
def _begin(table, table_k, both, begin, at, left, all_rows, limit, j):
    share = (at - begin) // left
    limit[j] = at - share
    if share >= table_k > 0:
        kmer, worst = np.uint64(0), np.uint8(0)
        for i in range(at - table_k, at):
            worst = max(worst, both[i])
            kmer = kmer << np.uint64(2) | np.uint64(both[i] & 3)
        if worst < 4:
            prefetch(table, np.int64(kmer << np.uint64(1)))
            # Known from an interval by its end before its start.
            return kmer + np.uint64(1), np.uint64(0)
    return np.uint64(0), np.uint64(all_rows)
