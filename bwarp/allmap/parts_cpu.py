"""Cut reads into parts on both strands and find the SA intervals of the parts.

An item is a read on a strand: item 2 i is read i, item 2 i + 1 its reverse complement. Parts are
numbered from the end of an item to its start, the order in which they are searched. Parts are
searched exactly (`search_exact_parts`), exactly with cuts chosen for rarity (`cut_rarer`), or with
mismatches (`search_mismatch_parts`); `search_parts` chooses the fastest for each read.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import comb
from typing import NamedTuple

import numpy as np

from bwarp.allmap.options import LocusOptions, parts_needed
from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import rows_of_intervals
from bwarp.index.rank import block_start, extend_left
from bwarp.index.store import require_reverse
from bwarp.options.finding import LONGEST_KMER, MOST_MISMATCHES, SHORTEST_KMER
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.simd import prefetch
from bwarp.runtime.uncounted import uncounted
from bwarp.seeding.kmers import kmer_words
from bwarp.seeding.search_schemes_cpu import choose_schemes, expected_nodes, search_schemes


class Items(NamedTuple):
    """Reads on strands, and the limits of the search for each.

    Attributes
    ----------
    begins : ndarray, shape=(n,), dtype=int64
        Where each begins among the reads and their reverse complements.
    lengths, edits, gaps : ndarray, shape=(n,), dtype=int64
        The bases of each; the maximum edits of a locus, and the maximum gap letters among them.
    mismatches : ndarray, shape=(n,), dtype=int64
        The maximum mismatches with which the parts are searched.
    """

    begins: np.ndarray
    lengths: np.ndarray
    edits: np.ndarray
    gaps: np.ndarray
    mismatches: np.ndarray


class Parts(NamedTuple):
    """Parts of items and the SA intervals of parts.

    Attributes
    ----------
    offsets : ndarray, shape=(n_items + 1,), dtype=int64
        The parts of item i are in offsets[i] to offsets[i + 1].
    starts, ends : ndarray, shape=(n_parts,), dtype=int32
        Within the item.
    interval_offsets : ndarray, shape=(n_parts + 1,), dtype=int64
        The intervals of each part.
    first_rows, n_rows : ndarray, shape=(n_intervals,), dtype=uint32
    """

    offsets: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    interval_offsets: np.ndarray
    first_rows: np.ndarray
    n_rows: np.ndarray


class PartHits(NamedTuple):
    """The parts and items to which an array of hits (SA rows or positions) belongs, in order.

    Attributes
    ----------
    part_offsets : ndarray, shape=(n_items + 1,), dtype=int64
        The parts of each item.
    starts, ends : ndarray, shape=(n_parts,), dtype=int32
        Within the item.
    offsets : ndarray, shape=(n_parts + 1,), dtype=int64
        The hits of each part.
    """

    part_offsets: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    offsets: np.ndarray


def items_of(
    offsets: np.ndarray,
    reads: np.ndarray,
    edits: np.ndarray,
    gaps: np.ndarray,
    mismatches: np.ndarray,
) -> Items:
    """Return both items of each read; reads start at `offsets`, followed by all reverse
    complements.
    """
    begins = np.repeat(offsets[reads], 2)
    begins[1::2] += offsets[-1]
    lengths = offsets[reads + 1] - offsets[reads]
    return Items(begins, *(np.repeat(column, 2) for column in (lengths, edits, gaps, mismatches)))


def some_items(items: Items, which) -> Items:
    """Select items by number or slice."""
    return Items(*(column[which] for column in items))


def hits_of(parts: Parts, first: int, last: int) -> tuple[PartHits, np.ndarray]:
    """Return the SA rows (uint32) of the items from `first` to `last`, and the part of each."""
    first_part, last_part = parts.offsets[first], parts.offsets[last]
    before, after = parts.interval_offsets[first_part], parts.interval_offsets[last_part]
    rows, offsets = rows_of_intervals(parts.first_rows[before:after], parts.n_rows[before:after])
    hits = PartHits(
        parts.offsets[first : last + 1] - first_part,
        parts.starts[first_part:last_part],
        parts.ends[first_part:last_part],
        offsets[parts.interval_offsets[first_part : last_part + 1] - before],
    )
    return hits, rows


def kept_hits(hits: PartHits, positions: np.ndarray, kept: np.ndarray):
    """Select the hits of a mask, and the parts to which they belong."""
    offsets = np.empty(hits.offsets.size, np.int64)
    left = np.empty(positions.size, np.uint32)
    n_left = _move_kept(hits.offsets, positions, kept, offsets, left)
    return hits._replace(offsets=offsets), left[:n_left].copy()


@compiled
def _move_kept(hit_offsets, positions, kept, offsets, left):
    """Move the positions of kept hits to `left`, and return their number."""
    n = np.int64(0)
    for part in range(offsets.size - 1):
        offsets[part] = n
        for hit in range(hit_offsets[part], hit_offsets[part + 1]):
            left[n] = positions[hit]
            # Without a branch, which would be unpredictable.
            n += np.int64(kept[hit])
    offsets[offsets.size - 1] = n
    return n


def no_parts() -> Parts:
    """Return the parts of no items."""
    none = np.zeros(1, np.int64)
    return Parts(none, *np.empty((2, 0), np.int32), none, *np.empty((2, 0), np.uint32))


def merge_parts(some: list[np.ndarray], found: list[Parts]) -> Parts:
    """Merge the parts of groups of items, in the order of items.

    Parameters
    ----------
    some : list of ndarray, dtype=int64
        The items of each of `found`; together, all items.
    """
    order = np.argsort(np.concatenate(some), kind="stable")
    parts, offsets = _in_order(order, [part.offsets for part in found])
    intervals, interval_offsets = _in_order(parts, [part.interval_offsets for part in found])
    columns = [
        np.concatenate([getattr(part, name) for part in found])
        for name in ("starts", "ends", "first_rows", "n_rows")
    ]
    starts, ends, first_rows, n_rows = columns
    return Parts(
        offsets, starts[parts], ends[parts], interval_offsets, first_rows[intervals],
        n_rows[intervals],
    )  # fmt: skip


def _in_order(order: np.ndarray, all_offsets: list[np.ndarray]):
    """Return where members of groups from several lists are after the groups are put in order."""
    sizes = np.concatenate([np.diff(offsets) for offsets in all_offsets])
    begins = np.cumsum(sizes) - sizes
    offsets = item_parts(sizes[order])
    members = np.arange(offsets[-1]) + np.repeat(begins[order] - offsets[:-1], sizes[order])
    return members, offsets


def item_parts(n_parts: np.ndarray) -> np.ndarray:
    """Return the offsets of the parts of items from the number of parts of each."""
    return np.concatenate([[0], np.cumsum(n_parts, dtype=np.int64)])


# Interleaved backward searches: how one begins, and one step of it.
#
# A search is an interval of SA rows and a position in the reads. Before its first step it is
# instead an entry of the prefix table, which is prefetched and read at the next turn; such a search
# is marked by an end before its start.


#: Searches that are interleaved so that their cache misses overlap.
TOGETHER = 64

_inlined = inner(nogil=True, forceinline=True)


@_inlined
def begin_search(table, table_k, both, at, room, all_rows):
    """Begin a search of up to `room` bases before `at`: from the table if there are enough bases
    and none is ambiguous.
    """
    if room >= table_k > 0:
        kmer, worst = np.uint64(0), np.uint8(0)
        for i in range(at - table_k, at):
            worst = max(worst, both[i])
            kmer = kmer << np.uint64(2) | np.uint64(both[i] & 3)
        if worst < 4:
            prefetch(table, np.int64(kmer << np.uint64(1)))
            return kmer + np.uint64(1), np.uint64(0)
    return np.uint64(0), np.uint64(all_rows)


@_inlined
def step_left(bwt, table, table_k, both, at, low, high):
    """Return the position and interval after the next step; empty at an ambiguous base."""
    words, separator_rows, groups, row_starts, _ = bwt
    if low > high:
        entry = low - np.uint64(1) << np.uint64(1)
        low = np.uint64(table[entry])
        return at - table_k, low, low + np.uint64(table[entry + np.uint64(1)])
    code = both[at - 1]
    if code > 3:
        return at - 1, low, low
    low, high = extend_left(words, separator_rows, groups, row_starts, np.uint64(code), low, high)
    return at - 1, low, high


@_inlined
def prefetch_rows(words, groups, low, high):
    """Prefetch what the next step of a search reads."""
    prefetch(words, np.int64(block_start(groups, low)))
    prefetch(words, np.int64(block_start(groups, high)))


# Exact parts: each read is cut while it is searched, so that parts are short but rare.
#
# A read with at most e edits, cut anywhere into e + 1 parts, has a part without edits (the rule in
# `options`). The cuts are free, and may differ between strands. So a part is searched backwards
# from its last base and ends when few or no rows are left, at the latest when it reaches its share
# of the bases left for the remaining parts:
#
#     read   ....................|.........x|..............|..........|
#            part 3, its share    part 2     part 1          part 0
#                                 empty      its share       one row left
#            not used
#
# Bases that a rare part leaves over go to the following parts, which become longer and rarer.


#: A part ends at this number of rows: checking them costs less than searching on.
_FEW_ROWS = 1


def search_exact_parts(
    index: FMIndex, both: np.ndarray, items: Items, n_parts: np.ndarray
) -> Parts:
    """Cut and search items, each into its number of parts."""
    offsets = item_parts(n_parts)
    total = int(offsets[-1])
    parts = Parts(
        offsets, *np.empty((2, total), np.int32), np.arange(total + 1),
        *np.empty((2, total), np.uint32),
    )  # fmt: skip
    table = index.prefix_table.reshape(-1)
    _search(index.forward.arrays, table, index.prefix_length, both, items, parts)
    return parts


@compiled
def _search(bwt, table, table_k, both, items, parts):
    bwt, table, both = uncounted((bwt, table, both))
    words, _, groups, row_starts, _ = bwt
    begins, lengths, _, _, _ = uncounted(items)
    part_offsets, part_starts, part_ends, _, first_rows, n_rows = uncounted(parts)
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
            at[j], low[j], high[j] = step_left(bwt, table, table_k, both, at[j], low[j], high[j])
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


# Parts searched with mismatches, by search schemes: fewer and longer parts, for few gaps.


def can_search(length: int, n_parts: int) -> bool:
    """Return whether the parts of a read are long enough for search schemes."""
    return length // n_parts >= SHORTEST_KMER


def search_mismatch_parts(
    index: FMIndex, both: np.ndarray, items: Items, n_parts: np.ndarray, mismatches: int
) -> Parts:
    """Search parts of equal length, using at most the first 64 bases of each.

    The intervals of a part are in the order of their rows.

    Parameters
    ----------
    items : Items
        Item 2 i + 1 is the reverse complement of item 2 i.
    n_parts : ndarray, shape=(n_items,), dtype=int64

    An ambiguous base is searched as A, which adds no mismatches to a hit.
    """
    offsets, starts, ends = cut_evenly(items.lengths, n_parts)
    found = []
    for k, some in forward_parts(offsets, starts, ends):
        kmers = np.zeros((some.size, kmer_words(k)), np.uint64)
        item = np.searchsorted(offsets, some, side="right") - 1
        _pack(both, items.begins[item] + starts[some], k, kmers)
        intervals = search_schemes(index, kmers, k, mismatches)
        # The same part of the reverse complement is numbered from the other end.
        part, between = some[intervals.kmers], offsets[item + 1][intervals.kmers]
        numbers = np.where(intervals.strands == 0, part, 2 * between - 1 - part)
        found.append((numbers, intervals.first_rows, intervals.n_rows))
    numbers, first_rows, n_rows = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(numbers << 32 | first_rows)
    counts = np.bincount(numbers, minlength=offsets[-1])
    return Parts(offsets, starts, ends, item_parts(counts), first_rows[order], n_rows[order])


def cut_evenly(
    lengths: np.ndarray, n_parts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut items into parts of equal length: return offsets, starts and ends as in `Parts`."""
    offsets = item_parts(n_parts)
    starts, ends = np.empty((2, offsets[-1]), np.int32)
    _cut(lengths, offsets, starts, ends)
    return offsets, starts, ends


def forward_parts(
    offsets: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield each length of parts, with the numbers of its parts of forward items, dtype int64.

    Search schemes search both strands of a part at once, so these suffice.
    """
    is_forward = np.repeat(np.arange(len(offsets) - 1) % 2 == 0, np.diff(offsets))
    forward = np.flatnonzero(is_forward)
    lengths = (ends - starts)[forward]
    for k in np.flatnonzero(np.bincount(lengths)).tolist():
        yield k, forward[lengths == k]


@compiled
def _cut(lengths, offsets, starts, ends):
    for item in range(lengths.size):
        n = offsets[item + 1] - offsets[item]
        length = lengths[item]
        for i in range(n):
            # In the forward read; its reverse complement is cut at the same bases.
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


# Rarest parts of reads from repeats: count all cuts on a grid and choose the best.
#
# If the parts of a read have many rows, a search from every fourth base records its number of rows
# as it grows:
#
#     read        ACGT ACGT ACGT ACGT ACGT ACGT
#     ends at 24            <--- <--- <--- <---   rows 9000   800   120     3
#     ends at 20       <--- <--- <--- <---        rows 7000   900    80
#     ...
#
# Non-overlapping parts are then chosen whose rows have the smallest sum. The search costs a few
# microseconds per read, and saves as much for every hundred rows.


#: Bases between two candidate cuts.
GRID = 4

#: The maximum number of grid steps of a part.
LONGEST = 16

#: The minimum number of rows of an item for which counting pays off.
MANY_ROWS = 32

#: Items counted at a time.
_ITEMS = 256

NOT_COUNTED = 0xFFFFFFFF
MANY = 1 << 40


def cut_rarer(index: FMIndex, both: np.ndarray, items: Items, parts: Parts) -> None:
    """Replace the parts of items from repeats by rarer ones, in place.

    Parameters
    ----------
    parts : Parts
        From `search_exact_parts`, with one interval each.
    """
    rows = np.add.reduceat(parts.n_rows.astype(np.int64), parts.offsets[:-1])
    repeated = np.flatnonzero(rows > MANY_ROWS)
    for first in range(0, repeated.size, _ITEMS):
        some = repeated[first : first + _ITEMS]
        offsets = item_parts(items.lengths[some] // GRID)
        low, n_rows = np.full((2, int(offsets[-1]) * LONGEST), NOT_COUNTED, np.uint32)
        _count(
            index.forward.arrays, index.prefix_table.reshape(-1), index.prefix_length, both,
            some_items(items, some), offsets, low, n_rows,
        )  # fmt: skip
        _choose(some, items.lengths, offsets, low, n_rows, parts)


@compiled
def _count(bwt, table, table_k, both, items, offsets, lows, rows):
    """Search from every grid end of every item, `TOGETHER` at a time."""
    bwt, table, both, lows, rows = uncounted((bwt, table, both, lows, rows))
    words, _, groups, row_starts, _ = bwt
    begins, lengths, _, _, _ = uncounted(items)
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
            at[j], low[j], high[j] = step_left(bwt, table, table_k, both, at[j], low[j], high[j])
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
def _choose(items, lengths, offsets, lows, rows, parts):
    """Choose the parts of each item with the fewest rows in total, if fewer than before."""
    part_offsets, part_starts, part_ends, _, first_rows, n_rows = parts
    most_ends = 0
    most_parts = 0
    for i in range(items.size):
        most_ends = max(most_ends, offsets[i + 1] - offsets[i])
        most_parts = max(most_parts, part_offsets[items[i] + 1] - part_offsets[items[i]])
    # best[p, x]: rows of the best p parts within x grid steps of the end, and where they come from.
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
                # Either no part begins at x, or a part of `size` steps does.
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


# Search parts of all reads: exact ones (made rarer in repeats), or ones with mismatches, whichever
# is faster for the read.


#: Microseconds of a CPU core, measured on human chr20 with parts of 10 to 50 bases: per part, by
#: mismatches; per node of its search in random text; and per hit, located and verified. A GPU uses
#: the same, so that the counts of a search do not depend on the engine.
_PART_COST = (0.3, 4.0, 10.0, 30.0, 110.0)
_NODE_COST = 0.05
_HIT_COST = 0.155


def best_mismatches(length: int, edits: int, gaps: int, text_length: int) -> int:
    """Return the mismatches per part with which the search of random text is fastest."""
    if gaps == edits:
        return 0
    best, least = 0, np.inf
    for mismatches in range(min(MOST_MISMATCHES, edits) + 1):
        parts = parts_needed(edits, gaps, mismatches)
        k = min(length // parts, LONGEST_KMER)
        variants = sum(comb(k, i) * 3**i for i in range(mismatches + 1))
        cost = _PART_COST[mismatches] + text_length * variants / 4.0**k * _HIT_COST
        if parts * cost >= least or (mismatches and not can_search(length, parts)):
            continue
        if mismatches:
            # Choosing the schemes takes longer than all the rest.
            schemes = choose_schemes(k, mismatches, text_length)
            cost += _NODE_COST * sum(expected_nodes(search, text_length) for search in schemes)
        if parts * cost < least:
            best, least = mismatches, parts * cost
    return best


def seed_mismatches(
    index: FMIndex,
    lengths: np.ndarray,
    edits: np.ndarray,
    gaps: np.ndarray,
    options: LocusOptions,
) -> np.ndarray:
    """Return the maximum mismatches with which the parts of each read are searched, dtype int64."""
    mismatches = np.zeros(len(lengths), np.int64)
    if options.mismatches == 0 or (options.mismatches is None and not index.has_reverse):
        return mismatches
    if options.mismatches is None and np.array_equal(gaps, edits):
        return mismatches  # no need to examine every kind of read
    kinds, kind_of = np.unique(np.column_stack([lengths, edits, gaps]), axis=0, return_inverse=True)
    for number, (length, e, g) in enumerate(kinds.tolist()):
        m = options.mismatches
        if m is None:
            m = best_mismatches(length, e, g, index.forward.n_rows)
        m = min(m, e)
        # Parts too short for search schemes are searched without mismatches.
        if m and can_search(length, parts_needed(e, g, m)):
            mismatches[kind_of.reshape(-1) == number] = m
    if mismatches.any():
        require_reverse(index, "a search of parts with mismatches")
    return mismatches


def search_parts(index: FMIndex, both: np.ndarray, items: Items) -> Parts:
    """Cut items into as many parts as needed to miss nothing, and search them.

    Parameters
    ----------
    both : ndarray, dtype=uint8
        The reads, followed by their reverse complements.
    items : Items
        Both items of each read, adjacent.
    """
    return search_by_mismatches(items, partial(_search_group, index, both))


def search_by_mismatches(items: Items, search: Callable) -> Parts:
    """Call ``search(items, n_parts, mismatches)`` for the items searched with each number of
    mismatches, and merge their parts.
    """
    if not items.begins.size:
        return no_parts()
    n_parts = parts_needed(items.edits, items.gaps, items.mismatches)
    some, found = [], []
    for mismatches in np.unique(items.mismatches).tolist():
        chosen = np.flatnonzero(items.mismatches == mismatches)
        some.append(chosen)
        found.append(search(some_items(items, chosen), n_parts[chosen], mismatches))
    return found[0] if len(found) == 1 else merge_parts(some, found)


def _search_group(
    index: FMIndex, both: np.ndarray, items: Items, n_parts: np.ndarray, mismatches: int
) -> Parts:
    """Search items with the same number of mismatches."""
    if mismatches:
        return search_mismatch_parts(index, both, items, n_parts, mismatches)
    parts = search_exact_parts(index, both, items, n_parts)
    cut_rarer(index, both, items, parts)
    return parts
