"""Search schemes: the order in which bases of a k-mer are matched, and the mismatches allowed.

As there are few mismatches, some part of the k-mer has none; a search that begins with that part
has few rows left when it tries the first mismatch (Kucherov, Salikhov & Tsur 2016). The k-mer is
cut into parts; a scheme is a list of searches, each of which matches one part exactly and extends
it to the left or right, part by part:

    parts          |--- 0 ---|--- 1 ---|--- 2 ---|        2 mismatches
    search 0        exact ---> then 1 --> then 2
    search 1        then 0 <-- then 1 <--- exact
    search 2                   exact ---> then 2, then <-- 0

The mismatches per part, such as (0, 1, 1), are an error pattern. Each pattern belongs to exactly
one search, the one that meets its mismatches latest, so that all searches together find every match
once. A search abandons a node as soon as none of its own patterns continues it. This is looked up
in the table `alive` by the error code of the node: its mismatches per part, as digits of a number
in base mismatches + 1.
"""

from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import accumulate, permutations, product

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.rank import block_start, ranks
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import prefetch
from bwarp.runtime.threads import for_each_range
from bwarp.seeding.hits import Intervals, joined
from bwarp.seeding.kmers import PackedKmers, base_of_item

LEFT, RIGHT = 0, 1

# A start table of 4**10 entries is 12 MB: it fits into a cache and saves ten steps per search.
LONGEST_START = 10


@dataclass(frozen=True)
class Search:
    """One search of a scheme, step by step, for k-mers of one length.

    Attributes
    ----------
    start, start_length : int
        The bases that are matched first, exactly, with one table lookup.
    positions : ndarray, shape=(n_steps,), dtype=int64
        The base of the k-mer that each following step matches.
    directions : ndarray, shape=(n_steps,), dtype=int64
        0 if the step extends the match to the left, 1 if to the right.
    weights : ndarray, shape=(n_steps,), dtype=int64
        What a mismatch at that base adds to the error code.
    alive : ndarray, shape=(n_steps, n_codes), dtype=bool
        Whether a node with an error code can still reach one of this search's patterns after a
        step.
    mismatches : ndarray, shape=(n_codes,), dtype=uint8
        The total mismatches of an error code.
    """

    start: int
    start_length: int
    positions: np.ndarray
    directions: np.ndarray
    weights: np.ndarray
    alive: np.ndarray
    mismatches: np.ndarray


def error_patterns(n_parts: int, mismatches: int) -> list[tuple[int, ...]]:
    """Return all distributions of at most `mismatches` mismatches over the parts."""
    return [
        pattern
        for pattern in product(range(mismatches + 1), repeat=n_parts)
        if sum(pattern) <= mismatches
    ]


@lru_cache(maxsize=64)
def choose_schemes(k: int, mismatches: int, text_length: int) -> tuple[Search, ...]:
    """Return the searches for k-mers of length k with up to `mismatches` mismatches (1 to 4).

    Minimises `expected_nodes` for a text of this length over the lengths of parts: a part that is
    followed by many mismatches should be long.
    """
    n_parts = mismatches + 1
    owned = _owned_patterns(n_parts, mismatches)

    def searches_of(sizes):
        return tuple(_make_search(*owner, sizes, mismatches) for owner in owned)

    @cache
    def cost_of(sizes):
        if 0 in sizes:
            return np.inf
        return sum(expected_nodes(search, text_length) for search in searches_of(sizes))

    best = tuple(k * (part + 1) // n_parts - k * part // n_parts for part in range(n_parts))
    improved = True
    while improved:
        improved = False
        for giver, taker in permutations(range(n_parts), 2):
            moved = list(best)
            moved[giver] -= 1
            moved[taker] += 1
            if cost_of(tuple(moved)) < cost_of(best):
                best, improved = tuple(moved), True
    return searches_of(best)


def expected_nodes(search: Search, text_length: int) -> float:
    """Estimate the nodes of a search in a random text: strings tried at each depth that occur."""
    strings = np.zeros(len(search.mismatches))
    strings[0] = 1
    depth = search.start_length
    nodes = 0.0
    for weight, alive in zip(search.weights, search.alive, strict=True):
        depth += 1
        following = strings.copy()
        following[weight:] += 3 * strings[:-weight]
        strings = following * alive
        nodes += strings.sum() * min(1.0, text_length / 4.0**depth)
    return nodes


def _owned_patterns(n_parts: int, mismatches: int):
    """Yield orders of parts with the patterns that each owns, omitting orders that own none."""
    candidates = []
    for first in range(n_parts):
        to_right, to_left = list(range(first + 1, n_parts)), list(range(first - 1, -1, -1))
        for rest in (to_right + to_left, to_left + to_right):
            order = (first, *rest)
            if order not in candidates:
                candidates.append(order)
    owned: dict[tuple[int, ...], list] = {order: [] for order in candidates}
    for pattern in error_patterns(n_parts, mismatches):
        exact_first = [order for order in candidates if pattern[order[0]] == 0]
        owned[min(exact_first, key=lambda order: _profile(pattern, order))].append(pattern)
    return [(order, tuple(patterns)) for order, patterns in owned.items() if patterns]


def _profile(pattern, order) -> tuple[int, ...]:
    """Return the cumulative mismatches at the end of each part in turn; smaller means later."""
    return tuple(accumulate(pattern[part] for part in order))


def _make_search(order, patterns, sizes, mismatches) -> Search:
    starts = [0, *accumulate(sizes)]
    first = order[0]
    # Extend towards the next part, so that the matched bases stay contiguous.
    grows_right = order[1] > first
    start_length = min(sizes[first], LONGEST_START)
    start = starts[first] if grows_right else starts[first + 1] - start_length
    positions, directions, weights, alive = [], [], [], []
    for at, part in enumerate(order):
        right = grows_right if at == 0 else part > first
        bases = [
            base
            for base in range(starts[part], starts[part + 1])
            if not start <= base < start + start_length
        ]
        for number, base in enumerate(bases if right else reversed(bases), 1):
            positions.append(base)
            directions.append(RIGHT if right else LEFT)
            weights.append((mismatches + 1) ** part)
            left = min(len(bases) - number, mismatches)
            alive.append(_alive_codes(order, at, left, patterns, mismatches))
    n_codes = (mismatches + 1) ** len(sizes)
    return Search(
        start=start,
        start_length=start_length,
        positions=np.array(positions, np.int64),
        directions=np.array(directions, np.int64),
        weights=np.array(weights, np.int64),
        alive=np.array(alive, bool).reshape(-1, n_codes),
        mismatches=_digit_sums(mismatches + 1, len(sizes)),
    )


def _digit_sums(base: int, digits: int) -> np.ndarray:
    codes = np.arange(base**digits)
    return sum((codes // base**digit % base for digit in range(digits)), 0 * codes).astype(np.uint8)


@lru_cache(maxsize=4096)
def _alive_codes(order, at, bases_left, patterns, mismatches) -> np.ndarray:
    """Return the codes from which a pattern is reachable when part `at` has `bases_left` bases
    left.
    """
    weights = [(mismatches + 1) ** part for part in range(len(order))]
    alive = np.zeros((mismatches + 1) ** len(order), bool)
    part = order[at]
    for pattern in patterns:
        done = sum(pattern[p] * weights[p] for p in order[:at])
        for errors in range(max(0, pattern[part] - bases_left), pattern[part] + 1):
            alive[done + errors * weights[part]] = True
    return alive


# Inexact search on the CPU by search schemes, one step of many searches at a time.
#
# A node is a string that occurs in the text and may still become a match. All nodes of a batch of
# k-mers take the same step together: each reads two blocks of one BWT, which give the rows of all
# four longer strings, and produces up to four nodes. Memory latency is hidden, because nodes are in
# an array and blocks are prefetched.
#
# Both BWTs are kept in step (the bidirectional FM-index): a string has equally many rows in the
# forward and reverse BWT, and ranks in one give the subdivision of the other, because rows are
# sorted by what follows them: separators first, then A, C, G, T.


#: K-mers per strand searched together; their nodes should fit into the cache of a core.
_TOGETHER = 1024

#: How many nodes ahead blocks are prefetched.
_AHEAD = 12

# The columns of a node.
_ITEM, _FIRST, _FIRST_REVERSE, _ROWS, _CODE = range(5)


def search_schemes(
    index: FMIndex, kmers: np.ndarray, k: int, mismatches: int, threads: int = 1
) -> Intervals:
    """Find the rows of every string within `mismatches` of a k-mer or its reverse complement.

    Parameters
    ----------
    kmers : ndarray, shape=(n, 1 or 2), dtype=uint64
        K-mers, all of length k, packed as in `bwarp.seeding.kmers`.
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
    """Return the rows of all strings of the given lengths, made once per index.

    Returns
    -------
    tables : dict of int to ndarray, shape=(4**length, 3), dtype=uint32
        First row forward, first row reverse, number of rows; the index is the string as a number in
        base 4.
    """
    missing = lengths - index.start_tables.keys()
    table, reverse = np.array([[0, 0, index.forward.n_rows]], np.uint32), index.reverse.arrays
    for length in range(1, max(missing, default=0) + 1):
        longer = np.zeros((4**length, 3), np.uint32)
        for_each_range(partial(_grow_table, reverse, table, longer), len(table), threads)
        table = longer
        if length in missing:
            index.start_tables[length] = table
    return {length: index.start_tables[length] for length in lengths}


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
    """Return the nodes of items whose first bases, matched exactly, occur."""
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
    """Extend every node by one base in the BWT whose first row is column `grown`.

    Writes the nodes that occur and are alive to `longer`; returns their number.
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
    """Extend strings start to stop of a table by one base to the right."""
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
