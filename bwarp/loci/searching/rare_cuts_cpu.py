"""The rarest parts of reads from repeats: all cuts on a grid are counted, the best are chosen.

Where a read's parts have many rows, wherever its shares end, a search begins at every fourth base
and notes its rows as it grows:

    read        ACGT ACGT ACGT ACGT ACGT ACGT
    ends at 24            <--- <--- <--- <---   rows 9000   800   120     3
    ends at 20       <--- <--- <--- <---        rows 7000   900    80
    ...

Then that many parts, side by side but not over each other, are chosen whose rows are the fewest in
sum. Searching costs some microseconds a read, and spares as much for every hundred rows.
"""

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.loci.searching.backward_steps_cpu import TOGETHER, begin_search, prefetch_rows, step_left
from bwarp.loci.searching.parts import Items, Parts, item_parts
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

__all__ = ["cut_rarer"]

#: Bases between two cuts that are tried.
GRID = 4

#: Grid steps that a part has at most.
LONGEST = 16

#: Rows of an item from which on it is worth to count.
MANY_ROWS = 32

#: Items that are counted at a time.
_ITEMS = 256

NOT_COUNTED = 0xFFFFFFFF
MANY = 1 << 40


def cut_rarer(index: FMIndex, both: np.ndarray, items: Items, parts: Parts) -> None:
    """Replace the parts of items from repeats by rarer ones, where they lie.

    Parameters
    ----------
    parts : Parts
        As `search_exact_parts` makes them: each is one interval.
    """
    rows = np.add.reduceat(parts.n_rows.astype(np.int64), parts.offsets[:-1])
    repeated = np.flatnonzero(rows > MANY_ROWS)
    for first in range(0, repeated.size, _ITEMS):
        some = repeated[first : first + _ITEMS]
        offsets = item_parts(items.lengths[some] // GRID)
        low, n_rows = np.full((2, int(offsets[-1]) * LONGEST), NOT_COUNTED, np.uint32)
        _count(
            index.forward.arrays, index.prefix_table.reshape(-1), index.prefix_length, both,
            items.begins[some], items.lengths[some], offsets, low, n_rows,
        )  # fmt: skip
        _choose(
            some, items.lengths, offsets, low, n_rows, parts.offsets, parts.starts, parts.ends,
            parts.first_rows, parts.n_rows,
        )  # fmt: skip


@compiled
def _count(bwt, table, table_k, both, begins, lengths, offsets, lows, rows):
    """Search from every grid end of every item, `TOGETHER` at a time."""
    bwt, table, both, lows, rows = uncounted((bwt, table, both, lows, rows))
    words, separator_rows, groups, row_starts, _ = bwt
    low = np.empty(TOGETHER, np.uint64)
    high = np.empty(TOGETHER, np.uint64)
    at = np.empty(TOGETHER, np.int64)
    begin = np.empty(TOGETHER, np.int64)
    end = np.empty(TOGETHER, np.int64)
    out = np.empty(TOGETHER, np.int64)
    active = np.empty(TOGETHER, np.int64)
    free = np.arange(TOGETHER)
    n_active, n_free = 0, TOGETHER
    item = following = 0
    n_tasks = offsets[offsets.size - 1]
    while True:
        while n_free and following < n_tasks:
            while following >= offsets[item + 1]:
                item += 1
            stop = lengths[item] - GRID * (following - offsets[item])
            n_free -= 1
            j = free[n_free]
            begin[j], end[j] = begins[item], begins[item] + stop
            at[j] = end[j]
            out[j] = following * LONGEST
            low[j], high[j] = begin_search(table, table_k, both, at[j], stop, row_starts[4])
            following += 1
            active[n_active] = j
            n_active += 1
        if n_active == 0:
            return
        still = 0
        for i in range(n_active):
            j = active[i]
            at[j], low[j], high[j] = step_left(
                words, separator_rows, groups, row_starts, table, table_k, both, at[j], low[j],
                high[j],
            )  # fmt: skip
            size = end[j] - at[j]
            n_rows = high[j] - low[j]
            whole_step = size % GRID == 0
            last = n_rows == 0 or (
                whole_step and (n_rows == 1 or at[j] - GRID < begin[j] or size == GRID * LONGEST)
            )
            if whole_step or last:
                k = (size + GRID - 1) // GRID - 1
                lows[out[j] + k] = low[j]
                rows[out[j] + k] = n_rows
            if last:
                free[n_free] = j
                n_free += 1
                continue
            prefetch_rows(words, groups, low[j], high[j])
            active[still] = j
            still += 1
        n_active = still


@compiled
def _choose(
    items, lengths, offsets, lows, rows, part_offsets, part_starts, part_ends, first_rows, n_rows
):
    """The parts of each item whose rows are the fewest in sum, if they are fewer than now."""
    most_ends = 0
    most_parts = 0
    for i in range(items.size):
        most_ends = max(most_ends, offsets[i + 1] - offsets[i])
        most_parts = max(most_parts, part_offsets[items[i] + 1] - part_offsets[items[i]])
    # best[p, x]: rows of the best p parts right of x grid steps from the end; and where it is from.
    best = np.empty((most_parts + 1, most_ends + 2), np.int64)
    come = np.empty((most_parts + 1, most_ends + 2), np.int64)
    for i in range(items.size):
        item = items[i]
        first, n_ends = offsets[i], offsets[i + 1] - offsets[i]
        begin = part_offsets[item]
        n_parts = part_offsets[item + 1] - begin
        total = np.int64(0)
        for part in range(begin, begin + n_parts):
            total += n_rows[part]
        for x in range(n_ends + 1):
            best[0, x] = 0
        for p in range(1, n_parts + 1):
            best[p, 0] = MANY
            for x in range(1, n_ends + 1):
                # Either no part begins at x, or one of `size` steps.
                best[p, x] = best[p, x - 1]
                come[p, x] = 0
                for size in range(1, min(LONGEST, x) + 1):
                    cost = best[p - 1, x - size] + np.int64(
                        rows[(first + x - size) * LONGEST + size - 1]
                    )
                    if cost < best[p, x]:
                        best[p, x] = cost
                        come[p, x] = size
        if best[n_parts, n_ends] >= total:
            continue
        x = n_ends
        p = n_parts
        while p > 0:
            while come[p, x] == 0:
                x -= 1
            size = come[p, x]
            at = (first + x - size) * LONGEST + size - 1
            part = begin + p - 1
            end = lengths[item] - GRID * (x - size)
            part_ends[part] = end
            part_starts[part] = end - GRID * size
            first_rows[part], n_rows[part] = lows[at], rows[at]
            x -= size
            p -= 1
