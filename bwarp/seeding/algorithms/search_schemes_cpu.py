"""Inexact search on the CPU by search schemes, one step of many searches at a time.

A node is a string that occurs in the text and may still become a match. All nodes of a batch of
k-mers take the same step together: each reads two blocks of one BWT, which gives the rows
of all four longer strings, and leaves up to four nodes behind. Nothing waits for memory, because
the nodes lie in an array and blocks are asked for ahead.

Both BWTs are kept in step (the bidirectional FM-index): a string's rows in the forward
BWT and in the reverse one are equally many, and the ranks in one tell how the other's are
divided, for rows are in the order of what follows them: separators first, then A, C, G, T.
"""

from functools import partial

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.rank_cpu import block_start, ranks
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import prefetch
from bwarp.runtime.threads import for_each_range
from bwarp.seeding.algorithms.search_schemes import RIGHT, Search, choose_schemes
from bwarp.seeding.columns import joined
from bwarp.seeding.intervals import Intervals
from bwarp.seeding.kmers import PackedKmers, base_of_item

__all__ = ["search_schemes", "start_tables"]

#: K-mers on a strand that are searched together: their nodes should stay in a core's cache.
_TOGETHER = 1024

#: How many nodes ahead blocks are asked for.
_AHEAD = 12

# The columns of a node.
_ITEM, _FIRST, _FIRST_REVERSE, _ROWS, _CODE = range(5)


def search_schemes(
    index: FMIndex, kmers: np.ndarray, k: int, mismatches: int, threads: int = 1
) -> Intervals:
    """The rows of every string within so many mismatches of a k-mer or its reverse complement.

    Parameters
    ----------
    kmers : ndarray, shape=(n, 1 or 2), dtype=uint64
        K-mers, all of length k, as `bwarp.seeding.kmers` packs them.
    mismatches : int
        From 1 to 4.
    """
    searches = choose_schemes(k, mismatches, index.forward.n_rows)
    tables = start_tables(index, {search.start_length for search in searches}, threads)
    packed = PackedKmers.of(kmers, k)

    def search_items(start: int, stop: int) -> Intervals:
        found = []
        for first in range(start, stop, _TOGETHER):
            last = min(first + _TOGETHER, stop)
            for search in searches:
                table = tables[search.start_length]
                nodes = _start_nodes(packed, table, search.start, search.start_length, first, last)
                nodes = _grow(index, packed, search, nodes)
                found.append(
                    Intervals.of_items(
                        nodes[:, _ITEM],
                        nodes[:, _FIRST],
                        nodes[:, _ROWS],
                        search.mismatches[nodes[:, _CODE]],
                    )
                )
        return joined(found)

    return joined(for_each_range(search_items, 2 * len(kmers), threads, _TOGETHER))


def start_tables(index: FMIndex, lengths: set[int], threads: int = 1) -> dict[int, np.ndarray]:
    """Rows of all strings of some lengths.

    Returns
    -------
    tables : dict of int to ndarray, shape=(4**length, 3), dtype=uint32
        First row forward, first row reverse, number of rows; the string is the index in the table
        as a number to the base 4.
    """
    table, reverse = np.array([[0, 0, index.forward.n_rows]], np.uint32), index.reverse.arrays
    tables = {}
    for length in range(1, max(lengths) + 1):
        longer = np.zeros((4**length, 3), np.uint32)
        for_each_range(partial(_grow_table, reverse, table, longer), len(table), threads)
        table = longer
        if length in lengths:
            tables[length] = table
    return tables


def _grow(index: FMIndex, kmers: PackedKmers, search: Search, nodes: np.ndarray) -> np.ndarray:
    forward, reverse = index.forward.arrays, index.reverse.arrays
    spare = np.empty((0, 5), np.uint32)
    for step in range(len(search.positions)):
        if len(spare) < 4 * len(nodes):
            spare = np.empty((4 * len(nodes), 5), np.uint32)
        right = search.directions[step] == RIGHT
        n_grown = _step(
            reverse if right else forward,
            kmers,
            search.positions[step],
            _FIRST_REVERSE if right else _FIRST,
            search.weights[step],
            search.alive[step],
            nodes,
            spare,
        )
        nodes, spare = spare[:n_grown], nodes
    return nodes


@compiled
def _start_nodes(kmers, table, start, start_length, first, last):
    """The nodes of items whose first bases, matched exactly, occur."""
    words, words_a_kmer, k = kmers
    nodes = np.empty((last - first, 5), np.uint32)
    n_nodes = 0
    for item in range(first, last):
        string = np.uint64(0)
        for position in range(start, start + start_length):
            string = string << np.uint64(2) | base_of_item(words, words_a_kmer, k, item, position)
        if table[string, 2]:
            nodes[n_nodes, _ITEM] = item
            nodes[n_nodes, _FIRST] = table[string, 0]
            nodes[n_nodes, _FIRST_REVERSE] = table[string, 1]
            nodes[n_nodes, _ROWS] = table[string, 2]
            nodes[n_nodes, _CODE] = 0
            n_nodes += 1
    return nodes[:n_nodes]


@compiled
def _step(bwt, kmers, position, grown, weight, alive, nodes, longer):
    """Grow every node by one base in the BWT whose first row is column `grown`.

    Writes the nodes that occur and are alive to `longer`; returns how many.
    """
    words, separator_rows, groups, first_rows, _ = bwt
    flat, words_a_kmer, k = kmers
    other = _FIRST + _FIRST_REVERSE - grown
    n_longer = 0
    starts = np.empty(4, np.uint64)
    counts = np.empty(4, np.uint64)
    for i in range(len(nodes)):
        ahead = i + _AHEAD
        if ahead < len(nodes):
            row = np.uint64(nodes[ahead, grown])
            prefetch(words, np.int64(block_start(groups, row)))
            row += np.uint64(nodes[ahead, _ROWS])
            prefetch(words, np.int64(block_start(groups, row)))
        code = np.int64(nodes[i, _CODE])
        wanted = base_of_item(flat, words_a_kmer, k, np.int64(nodes[i, _ITEM]), position)
        with_match = alive[code]
        with_mismatch = code + weight < alive.size and alive[code + weight]
        row = np.uint64(nodes[i, grown])
        rows = np.uint64(nodes[i, _ROWS])
        low = ranks(words, separator_rows, groups, row)
        high = ranks(words, separator_rows, groups, row + rows)
        separators = rows
        for base in range(4):
            starts[base] = np.uint64(first_rows[base]) + low[base]
            counts[base] = high[base] - low[base]
            separators -= counts[base]
        other_row = np.uint64(nodes[i, other]) + separators
        for base in range(4):
            matches = np.uint64(base) == wanted
            if counts[base] and (with_match if matches else with_mismatch):
                longer[n_longer, _ITEM] = nodes[i, _ITEM]
                longer[n_longer, grown] = starts[base]
                longer[n_longer, other] = other_row
                longer[n_longer, _ROWS] = counts[base]
                longer[n_longer, _CODE] = code if matches else code + weight
                n_longer += 1
            other_row += counts[base]
    return n_longer


@compiled
def _grow_table(bwt, table, longer, start, stop):
    """Grow strings start to stop of a table by one base to the right."""
    words, separator_rows, groups, first_rows, _ = bwt
    for string in range(start, stop):
        rows = np.uint64(table[string, 2])
        if rows == 0:
            continue
        row = np.uint64(table[string, 1])
        low = ranks(words, separator_rows, groups, row)
        high = ranks(words, separator_rows, groups, row + rows)
        other_row = np.uint64(table[string, 0]) + rows
        for base in range(4):
            other_row -= high[base] - low[base]
        for base in range(4):
            count = high[base] - low[base]
            if count:
                longer[4 * string + base, 0] = other_row
                longer[4 * string + base, 1] = np.uint64(first_rows[base]) + low[base]
                longer[4 * string + base, 2] = count
            other_row += count
