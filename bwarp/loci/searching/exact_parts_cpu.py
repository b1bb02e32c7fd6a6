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

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.loci.searching.backward_steps_cpu import TOGETHER, begin_search, prefetch_rows, step_left
from bwarp.loci.searching.parts import Items, Parts, item_parts
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

__all__ = ["search_exact_parts"]

#: A part ends when it has so many rows: to look at them costs less than to search on.
_FEW_ROWS = 1


def search_exact_parts(
    index: FMIndex, both: np.ndarray, items: Items, n_parts: np.ndarray
) -> Parts:
    """Cut and search items (`bwarp.loci.searching.parts`), into so many parts each."""
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


@compiled
def _search(
    bwt, table, table_k, both, begins, lengths, part_offsets, part_starts, part_ends, first_rows,
    n_rows,
):  # fmt: skip
    bwt, table, both = uncounted((bwt, table, both))
    words, separator_rows, groups, row_starts, _ = bwt
    begins, lengths, part_offsets = uncounted((begins, lengths, part_offsets))
    part_starts, part_ends = uncounted((part_starts, part_ends))
    first_rows, n_rows = uncounted((first_rows, n_rows))
    item = np.empty(TOGETHER, np.int64)
    low = np.empty(TOGETHER, np.uint64)
    high = np.empty(TOGETHER, np.uint64)
    at = np.empty(TOGETHER, np.int64)
    limit = np.empty(TOGETHER, np.int64)
    end = np.empty(TOGETHER, np.int64)
    part = np.empty(TOGETHER, np.int64)
    n_active = 0
    following = 0
    n_items = begins.size
    active = np.empty(TOGETHER, np.int64)
    n_free = TOGETHER
    free = np.arange(TOGETHER)
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
            share = lengths[item[j]] // (part_offsets[item[j] + 1] - part[j])
            limit[j] = at[j] - share
            low[j], high[j] = begin_search(table, table_k, both, at[j], share, row_starts[4])
        if n_active == 0:
            return
        still = 0
        for i in range(n_active):
            j = active[i]
            at[j], low[j], high[j] = step_left(
                words, separator_rows, groups, row_starts, table, table_k, both, at[j], low[j],
                high[j],
            )  # fmt: skip
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
                share = (at[j] - begin) // left
                limit[j] = at[j] - share
                low[j], high[j] = begin_search(table, table_k, both, at[j], share, row_starts[4])
            else:
                prefetch_rows(words, groups, low[j], high[j])
            active[still] = j
            still += 1
        n_active = still
