"""Compute exact local scores of queries against a database on the CPU.

A lane is a strip of consecutive database sequences, each padded to whole blocks of columns, so that
lanes are full for any lengths:

    lane 0   [ long sequence ................ ]...[ short ]...
    lane 1   [ sequence ......... ].[ sequence ........]......
    lane 2   [ ....... ]...[ ........... ]..[ ...].[ .... ]...      . padding
             |           |           |           |                  a block

A batch of strips is laid out once, and every query of a group is compared with it, block by block.
Scores that saturate in 8 bits are computed again in 16, then in 32. Sequences much longer than any
possible alignment of the query are cut into pieces that overlap by that length.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bwarp.alignment.batches_cpu import (
    ELEMENT_TYPES,
    Side,
    element_costs,
    longest_of,
    put_everywhere,
)
from bwarp.alignment.cells_cpu import (
    NEVER,
    ROWS,
    interleave,
    load_rows,
    next_rows,
    select_rows,
    store_rows,
)
from bwarp.alignment.scoring import LOCAL, MATRIX_SCORE, Scoring
from bwarp.database_search.database import Database, check_search
from bwarp.errors import UsageError
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.simd import (
    equal,
    extend,
    fill,
    fill_like,
    lane_count,
    lanes_of,
    load,
    load_like,
    lookup,
    maximum,
    select,
    stand_alone,
    store,
)
from bwarp.runtime.threads import for_each_range

# The best local scores of a query in strips of sequences: one strip per lane, 4 rows in registers.
#
#     a block     16 columns of all lanes. Their scores against each residue of the query are looked
#                 up once, and stay in the first-level cache while all rows of the query go by:
#                 a cell reads its score as the operand of its sum
#
#                            16 columns                     scores[residue, column, lane]
#     rows i .. i+3       .---------------.    left_H, left_D: read, and written for the block on
#     in registers        | H D -> H D    |    the right, where they pass from block to block
#                         '---------------'
#     row_H, row_I          in first-level cache, from these rows to the four below
#
# Each cell takes four saturating sums and five maxima, a load, and a quarter of two loads and two
# stores; a block adds two loads and two stores per row.
#
# Scores are stored relative to the minimum of the type, which is the floor of H at zero, as in
# cells_cpu.py. A sequence begins in the first column of a block, where its lane is reset; it ends
# anywhere in a block and is followed by padding with the lowest score.


#: Columns of a block: 20 residues of 16 vectors of 64 bytes are two thirds of a first-level cache.
BLOCK = 16

#: The code that pads a sequence to the end of its block, and a query to whole `ROWS`.
PADDING = 27

_LOWEST = -128


def score_table(scoring: Scoring, codes: np.ndarray) -> np.ndarray:
    """Return the matrix rows of the codes, including `PADDING`: int8[codes.size * 32]."""
    size = len(scoring.letters)
    table = np.full((codes.size, 32), _LOWEST, np.int8)
    known = codes < size
    table[known, :size] = scoring.matrix[codes[known]]
    return table.ravel()


@compiled
def look_up_scores(table, reference, at, scores):
    """Look up the scores of a block: scores[residue, column, lane] = table[residue, code of the
    lane].

    Parameters
    ----------
    table : array, dtype=int8
        From `score_table`.
    reference : array of uint8
        Interleaved codes; the block begins at `at`.
    scores : array, shape=(residues * BLOCK * lanes,)
        The output, of the type to compute in.
    """
    stand_alone()
    kind = load(scores, 0)
    lanes = lane_count(kind)
    for residue in range(table.size // 32):
        for column in range(BLOCK):
            codes = load_like(reference, at + column * lanes, kind)
            found = extend(lookup(table, residue * 32, 32, codes), kind)
            store(scores, (residue * BLOCK + column) * lanes, found)


@compiled
def fill_block(scores, row_scores, begins, at, costs, left, above, best):
    """Compute the cells of a block for all rows of the query, and update the best score of each
    lane.

    Parameters
    ----------
    scores : array
        From `look_up_scores`; its type is the type of all arrays of scores.
    row_scores : array, shape=(rows,), dtype=int64
        Where the scores of each row's residue begin in `scores`; rows are a multiple of `ROWS`.
    begins : array of uint8
        Nonzero if a lane is reset at this block: ``begins[at + lane]``.
    costs : Costs
        Of the type of `scores`.
    left : tuple of array, shape=(rows * lanes,)
        H of the column before the block and D of its first one; replaced by those of the next
        block.
    above : tuple of array, shape=(BLOCK * lanes,)
        Working memory for H and I.
    best : array, shape=(lanes,)
    """
    stand_alone()
    first, more, lowest = fill(costs.first), fill(costs.more), fill(costs.floor)
    (left_H, left_D), (row_H, row_I) = left, above
    lanes = lane_count(lowest)
    flags = load_like(begins, at, lowest)
    same = equal(flags, fill_like(np.uint8(0), lowest))
    for column in range(0, BLOCK * lanes, lanes):
        store(row_H, column, lowest)
        store(row_I, column, lowest)
    highest = select(same, load(best, 0), lowest)
    corner = lowest
    for i in range(0, row_scores.size, ROWS):
        at = i * lanes
        floor_rows = (lowest, lowest, lowest, lowest)
        h = select_rows(same, load_rows(left_H, at, lanes), floor_rows)
        d = select_rows(same, load_rows(left_D, at, lanes), floor_rows)
        s0, s1, s2, s3 = row_scores[i], row_scores[i + 1], row_scores[i + 2], row_scores[i + 3]
        diagonal, corner = corner, h[3]
        for column in range(0, BLOCK * lanes, lanes):
            found = (
                load(scores, s0 + column), load(scores, s1 + column), load(scores, s2 + column),
                load(scores, s3 + column),
            )  # fmt: skip
            next_diagonal, below = load(row_H, column), load(row_I, column)
            h, d, below = next_rows(diagonal, found, h, d, below, first, more, lowest)
            highest = maximum(maximum(maximum(maximum(highest, h[0]), h[1]), h[2]), h[3])
            diagonal = next_diagonal
            store(row_H, column, h[3])
            store(row_I, column, below)
        store_rows(left_H, at, lanes, h)
        store_rows(left_D, at, lanes, d)
    store(best, 0, highest)


#: Queries that are compared with a batch while it is in the cache.
_GROUP = 16

#: Columns of a batch, unless a sequence is longer: at most 64 kB of codes, which stay in the
#: second-level cache of a core with the rows of a query.
_COLUMNS = 1024

#: Only longer sequences are cut.
_UNCUT = 16_384


def search_scores(
    queries: Sequence[np.ndarray], database: Database, scoring: Scoring, threads: int = 1
) -> Iterator[np.ndarray]:
    """Compute the best local score of each query against each sequence of a database.

    Parameters
    ----------
    queries : sequence of ndarray, dtype=uint8
        In the alphabet of the scoring.
    database : Database
        In the same codes.

    Yields
    ------
    scores : ndarray, shape=(database.count,), dtype=int32
        For each query in turn, in the order of the arrays of the database.
    """
    largest = int(np.abs(scoring.matrix).max())
    if largest > MATRIX_SCORE:
        raise UsageError(
            f"the largest score is {largest}, but a search allows at most {MATRIX_SCORE}: scale "
            "the scores"
        )
    check_search(queries, database, scoring)
    for begin in range(0, len(queries), _GROUP):
        yield from _search_group(queries[begin : begin + _GROUP], database, scoring, threads)


def _search_group(queries, database, scoring, threads):
    longest = max(query.size for query in queries)
    owners, starts, sizes = _pieces(database.offsets, _longest_span(scoring, longest))
    scores = np.zeros((len(queries), database.count), np.int32)
    wanted = np.ones((len(queries), owners.size), bool)
    for dtype in ELEMENT_TYPES:
        if not wanted.any() or scoring.gap_open + scoring.gap_extend > np.iinfo(dtype).max:
            continue
        costs = element_costs(scoring, LOCAL, dtype, 0)
        # First, all queries are compared with all pieces; later, each with a few of its own.
        together = [np.arange(len(queries))] if wanted.all() else [[q] for q in range(len(queries))]
        for members in together:
            pieces = np.flatnonzero(wanted[members[0]])
            if pieces.size == 0:
                continue
            side = Side(read_only(database.codes), starts[pieces], sizes[pieces])
            chosen = [queries[q] for q in members]
            best = _best_of_pieces(chosen, side, scoring, costs, dtype, threads)
            for q, row in zip(members, best, strict=True):
                np.maximum.at(scores[q], owners[pieces], row)
                wanted[q, pieces] = row >= costs.highest - costs.origin
    yield from scores


def _longest_span(scoring: Scoring, query_length: int) -> int:
    """Return the maximum number of residues of a sequence that a local alignment of the query
    spans.

    Each query residue takes at most one, and deletions cost no more than matches score.
    """
    if scoring.gap_extend == 0:
        return NEVER
    most = query_length * max(int(scoring.matrix.max()), 0)
    return query_length + max(most - scoring.gap_open, 0) // scoring.gap_extend


def _pieces(offsets: np.ndarray, span: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return owner, start and size of each piece; consecutive pieces share `span` residues."""
    lengths = np.diff(offsets)
    step = max(_UNCUT, 4 * span)
    counts = np.maximum(1, -(-(lengths - span) // step))
    owners = np.repeat(np.arange(lengths.size), counts)
    number = np.arange(owners.size) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = offsets[:-1][owners] + number * step
    sizes = np.minimum(offsets[1:][owners] - starts, step + span)
    filled = sizes > 0
    return owners[filled], starts[filled], sizes[filled]


def _best_of_pieces(queries, pieces, scoring, costs, dtype, threads):
    """Return the best score of each query (row) in each piece (column), int32."""
    lanes = lanes_of(dtype)
    packing = _pack(-(-pieces.lengths // BLOCK) * BLOCK, lanes, _COLUMNS)
    padded = [np.pad(query, (0, -query.size % ROWS), constant_values=PADDING) for query in queries]
    residues, number = np.unique(np.concatenate(padded), return_inverse=True)
    profile = _Profile(
        score_table(scoring, residues),
        number * (BLOCK * lanes),
        np.cumsum([0, *(query.size for query in padded)]),
    )
    best = np.zeros((len(queries), pieces.lengths.size), np.int32)
    # Long batches first; dealing them out in turn balances the threads.
    batches = np.arange(packing.columns.size)
    n_ranges = min(4 * threads, batches.size) if threads > 1 else 1
    batches = np.concatenate([batches[turn::n_ranges] for turn in range(n_ranges)])
    for_each_range(
        lambda begin, end: _search_batches(
            batches[begin:end], packing, pieces, profile, costs, np.empty(0, dtype), best, lanes
        ),
        batches.size, threads, smallest=1,
    )  # fmt: skip
    return best


class _Profile(NamedTuple):
    """The `score_table` of queries, the offsets of the scores of rows, and the rows per query."""

    table: np.ndarray
    row_scores: np.ndarray
    query_edges: np.ndarray


class _Packing(NamedTuple):
    """Pieces in batches: batch b is ``order[batch_edges[b] : batch_edges[b + 1]]``, by their ends.

    `lane_of` and `column_of` are the location of each piece, `columns` the length of each batch.
    """

    order: np.ndarray
    lane_of: np.ndarray
    column_of: np.ndarray
    batch_edges: np.ndarray
    columns: np.ndarray


def _pack(widths, lanes, columns) -> _Packing:
    """Distribute pieces over batches and lanes, longest first, filling up with what still fits."""
    ascending = np.argsort(widths, kind="stable")
    batch_of, lane_of, column_of = (np.empty(widths.size, np.int64) for _ in range(3))
    _deal(widths[ascending], lanes, columns, ascending, batch_of, lane_of, column_of)
    ends = column_of + widths
    order = np.lexsort((ends, batch_of))
    edges = np.searchsorted(batch_of[order], np.arange(batch_of.max() + 2))
    return _Packing(order, lane_of, column_of, edges, ends[order][edges[1:] - 1])


@compiled
def _deal(sizes, lanes, columns, pieces, batch_of, lane_of, column_of):
    """Run the loop of `_pack`; sizes are ascending and belong to `pieces`."""
    # free[k] leads to the longest remaining piece among the k shortest ones
    free = np.arange(sizes.size + 1)
    batch, left = 0, sizes.size
    while left > 0:
        capacity = max(columns, sizes[_last_free(free, sizes.size) - 1])
        for lane in range(lanes):
            at = 0
            while at < capacity:
                fitting, above = 0, sizes.size
                while fitting < above:
                    middle = (fitting + above) // 2
                    if sizes[middle] <= capacity - at:
                        fitting = middle + 1
                    else:
                        above = middle
                k = _last_free(free, fitting)
                if k == 0:
                    break
                free[k] = k - 1
                piece = pieces[k - 1]
                batch_of[piece], lane_of[piece], column_of[piece] = batch, lane, at
                at += sizes[k - 1]
                left -= 1
        batch += 1


@compiled
def _last_free(free, k):
    """Follow the hints down to a free piece, shortening them on the way; 0 is none."""
    root = k
    while root > 0 and free[root] != root:
        root = free[root]
    while k > 0 and free[k] != k and k != root:
        free[k], k = root, free[k]
    return root


@compiled
def _search_batches(batches, packing, pieces, profile, costs, kind, best, lanes):
    """Run all queries over batches; `kind` gives the type of the scores."""
    order, lane_of, column_of, batch_edges, columns_of = packing
    codes, starts, sizes = pieces
    table, row_scores, query_edges = profile
    columns = longest_of(columns_of, batches)
    rows = 0
    for query in range(best.shape[0]):
        rows = max(rows, query_edges[query + 1] - query_edges[query])
    reference = np.empty(columns * lanes, np.uint8)
    strips = np.empty(columns * lanes, np.uint8)
    strip_starts = np.empty(lanes, np.int64)
    strip_sizes = np.empty(lanes, np.int32)
    begins = np.empty(columns // BLOCK * lanes, np.uint8)
    same = np.arange(256).astype(np.uint8)
    scores = np.zeros(table.size // 32 * BLOCK * lanes, kind.dtype)
    left = np.empty(rows * lanes, kind.dtype), np.empty(rows * lanes, kind.dtype)
    above = np.empty(BLOCK * lanes, kind.dtype), np.empty(BLOCK * lanes, kind.dtype)
    found = np.empty(lanes, kind.dtype)
    for batch in batches:
        columns = columns_of[batch]
        members = order[batch_edges[batch] : batch_edges[batch + 1]]
        put_everywhere(strips, columns * lanes, PADDING)
        put_everywhere(begins, columns // BLOCK * lanes, 0)
        for piece in members:
            size = sizes[piece]
            strip = strips[lane_of[piece] * columns + column_of[piece] :]
            piece_codes = codes[starts[piece] :]
            for i in range(size):
                strip[i] = piece_codes[i]
            begins[column_of[piece] // BLOCK * lanes + lane_of[piece]] = 1
        for lane in range(lanes):
            strip_starts[lane], strip_sizes[lane] = lane * columns, columns
        interleave(
            strips, strip_starts, strip_sizes, same, np.uint8(PADDING), columns, reference,
            np.int64(0),
        )  # fmt: skip
        for query in range(best.shape[0]):
            rows_of_query = row_scores[query_edges[query] : query_edges[query + 1]]
            number = 0
            for block in range(columns // BLOCK):
                look_up_scores(table, reference, block * BLOCK * lanes, scores)
                fill_block(scores, rows_of_query, begins, block * lanes, costs, left, above, found)
                while number < members.size:
                    piece = members[number]
                    if column_of[piece] + sizes[piece] > (block + 1) * BLOCK:
                        break
                    best[query, piece] = np.int64(found[lane_of[piece]]) - costs.origin
                    number += 1
