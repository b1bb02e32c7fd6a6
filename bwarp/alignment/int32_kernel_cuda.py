"""Align pairs in 32 bits: any matrix, mode and length, with directions for a traceback.

A group of 2 to 32 threads, or a block of several warps, aligns one pair. Thread l holds 8 rows of
the query in registers, 4 in a block, and moves along the reference one column behind thread l - 1,
as in packed_int16_kernel_cuda. The query is at the bottom of its *strips*, each as many rows as all
threads hold; the rows above it repeat the upper border, and the last row of a strip is passed to
the next through global memory.

A *band* skips cells: in strip s, whose first row is row `above + 1`, only columns within `band`
diagonals of the corner (m, n) are computed; other cells count as minus infinity. If all optimal
paths into the corner are within the band, their cells have the same values and directions as
without a band (see pairs.py).

    columns of strip s:   max(0, above + n - m - band)  to  min(n, above + rows + n - m + band)

Directions take four bits per cell, one word for the rows of a thread, ordered by anti-diagonals so
that the threads of a group write adjacent words:

    directions[start + (strip * width + column - first column of the strip + l) * threads + l]

    bits 0-1  H is the diagonal (0), D (1), I (2), or 0 and local (3)
    bit 2     D of the next column opens here        bit 3     I of the next row opens here
"""

import functools
from typing import NamedTuple

from bwarp.alignment.pair_tables_cuda import Directions, EndArrays, PairArrays
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.ptx import opaque

#: Rows per thread of a group, and of a block: fewer, because a step takes longer the more they are.
ROWS, BLOCK_ROWS = 8, 4
#: The bits of a residue that are its code.
CODE_BITS = 31
#: The matrix in shared memory: rows of 36 words, which spread over the banks.
MATRIX_STRIDE = 36
#: The row of the matrix for the padding above a query.
PADDING_ROW = 32
MATRIX_WORDS = MATRIX_STRIDE * (PADDING_ROW + 1)

FROM_D, FROM_I, STOP = 1, 2, 3
D_OPENS, I_OPENS = 4, 8

#: As the number of threads of a group: all threads of the block.
WHOLE_BLOCK = 0
#: The maximum warps of such a block.
MOST_WARPS = 16
#: The words that they exchange: H and the insertion, for two steps in turn. Then their ends.
SEAM_WORDS, END_WORDS = 4 * MOST_WARPS, 2 * MOST_WARPS
#: The end of an alignment that is not found yet.
NO_END = -1

MINUS_INFINITY = -(2**30)
ALL = 0xFFFFFFFF
POSITION_BITS = 17
POSITION_MASK = (1 << POSITION_BITS) - 1


class MatrixCosts(NamedTuple):
    """Scores and free ends of the 32-bit kernel.

    Attributes
    ----------
    matrix : device array, shape=(MATRIX_WORDS,), dtype=int32
    first, extend : int
        Scores of the first and of further positions of a gap, negative or 0.
    tie : int
        1 if a tie between opening and extending a gap opens one, else 0.
    query_start, query_end, reference_start, reference_end : int
        1 for free ends, else 0.
    zero : int
        0; see `full_matrix_kernel`.
    """

    matrix: int32[::1]
    first: int
    extend: int
    tie: int
    query_start: int
    query_end: int
    reference_start: int
    reference_end: int
    zero: int = 0


@cuda.jit(device=True)
def end_number(score, first, second):
    """Return a number that is greater for a better score, then a smaller `first`, then `second` (17
    bits).
    """
    return (
        (int64(score) << (2 * POSITION_BITS))
        | (int64(POSITION_MASK - first) << POSITION_BITS)
        | int64(POSITION_MASK - second)
    )


@cuda.jit(device=True)
def first_column(above, query_length, reference_length, band):
    """Return the first column (from 0) of a strip; `above` is the row above its first."""
    if band < 0:
        return int32(0)
    return int32(max(0, above + reference_length - query_length - band))


@cuda.jit(device=True)
def strip_width(rows, threads, reference_length, band):
    """Return the maximum words of directions that one thread of a strip writes."""
    columns = reference_length
    if band >= 0:
        columns = min(reference_length, rows + 2 * band)
    return int32(columns + threads - 1)


@cuda.jit(device=True)
def upper_border(column, is_free, first, extend):
    """Return H(0, column)."""
    if is_free or column == 0:
        return int32(0)
    return int32(first + (column - 1) * extend)


@functools.cache
def full_matrix_kernel(threads, local, gatk, with_directions):
    """Make a kernel whose groups have `threads` threads: 2, 4, 8, 16, 32 or `WHOLE_BLOCK`.

    Parameters
    ----------
    threads : int
        With `WHOLE_BLOCK`, a block of 1 to `MOST_WARPS` warps aligns one pair, and finds its end
        and the directions of all cells in one pass: the fastest for pairs that leave a GPU idle.
        Each step takes a barrier, at which the last thread of a warp passes its results to the
        first of the next through shared memory.
    local : bool
        Whether alignments may start and end anywhere.
    gatk : bool
        Whether the end cell follows GATK's rule (gatk_cpu.py), with GATK's reference as query and
        its alternate as reference; otherwise the rule of pairs.py.
    with_directions : bool
        Whether to store directions; if not, all cells are computed, and `bands` and `directions`
        are not used. Except with `WHOLE_BLOCK`, a kernel that stores directions writes no scores
        and ends.

    Notes
    -----
    `order` has the pair of each group. `bands`: diagonals on either side, -1 for all cells. The
    kernel reads each reference residue once per strip, and writes half a byte per cell of
    directions; a whole one with `WHOLE_BLOCK`. With `WHOLE_BLOCK` and `gatk`, an end that is not
    `NO_END` is known, and is kept.
    """
    is_block = threads == WHOLE_BLOCK
    rows = BLOCK_ROWS if is_block else ROWS
    finds_ends = is_block or not with_directions

    @kernel(max_registers=128)
    def align_full(
        pairs: PairArrays, order: int32[::1], bands: int32[::1], costs: MatrixCosts,
        edge: int32[::1], edge_stride: int, directions: Directions, ends: EndArrays,
    ):  # fmt: skip
        queries, references = pairs.queries, pairs.references
        table = cuda.shared.array(MATRIX_WORDS, int32)
        for word in range(cuda.threadIdx.x, MATRIX_WORDS, cuda.blockDim.x):
            table[word] = costs.matrix[word]
        cuda.syncthreads()

        if is_block:
            in_group, group = int32(cuda.blockDim.x), int64(cuda.blockIdx.x)
            lane = int32(cuda.threadIdx.x)
            # Of the last lane of each warp, for two steps in turn: H and the insertion.
            seams = cuda.shared.array(SEAM_WORDS, int32)
        else:
            in_group, group = int32(threads), cuda.grid(1) // threads
            lane = int32(cuda.laneid) & int32(threads - 1)
        tile = int32(in_group * rows)
        is_used = group < order.size
        group = min(group, order.size - 1)
        pair = order[group]
        m, n = int32(queries.lengths[pair]), int32(references.lengths[pair])
        if not is_used:
            # A surplus group takes part without columns.
            n = int32(0)
        band = int32(-1) if finds_ends else int32(bands[pair])
        query, reference = queries.starts[pair], references.starts[pair]
        first, extend, tie = int32(costs.first), int32(costs.extend), int32(costs.tie)
        free_query_start, free_query_end = costs.query_start != 0, costs.query_end != 0
        free_reference_start = costs.reference_start != 0
        free_reference_end = costs.reference_end != 0
        # 0, but opaque to the compiler: for a maximum with a constant 0, ptxas 13.0 reuses the
        # hardware flag of which operand won in the comparisons below, which is wrong if the
        # operands are equal.
        floor = int32(costs.zero)
        corner = int32(0) if free_reference_start else int32(first - extend)

        strips = int32((m + tile - int32(1)) // tile)
        padding = int32(strips * tile - m)
        width = strip_width(tile, in_group, n, band)
        edge_start = uint64(group) * uint64(edge_stride)
        direction_start = int64(0)
        if with_directions:
            direction_start = int64(directions.starts[group])
        # All threads of a warp take the same steps and strips.
        steps, all_strips = width, strips
        distance = 16
        while distance >= in_group:
            steps = max(steps, cuda.shfl_xor_sync(ALL, steps, distance))
            all_strips = max(all_strips, cuda.shfl_xor_sync(ALL, all_strips, distance))
            distance >>= 1
        steps, all_strips = int32(steps), int32(all_strips)

        table_rows = cuda.local.array(rows, int32)
        H = cuda.local.array(rows, int32)
        D = cuda.local.array(rows, int32)
        # In local mode: the empty alignment, until a cell is better.
        best, best_column, best_row = int32(0), int32(0), int32(0)
        end, column_end = int64(-(2**63)), int64(-(2**63))
        last_columns = int32(0)

        for strip in range(all_strips):
            # Row `above + 1` is the first of the strip; rows up to 0 are padding.
            above = int32(strip * tile - padding)
            top = int32(above + lane * int32(rows))
            start = first_column(above, m, n, band)
            stop = n
            if band >= 0:
                stop = int32(min(n, above + tile + n - m + band))
            if strip >= strips:
                stop = start
            border = upper_border(start, free_reference_start, first, extend)
            for r in range(-1, rows):
                # H to the left of the first column.
                row = top + r + 1
                value = int32(MINUS_INFINITY)
                if row <= 0:
                    value = border
                    if row < 0 and start == 0:
                        value = corner
                elif start == 0:
                    value = int32(0) if free_query_start else int32(first + (row - 1) * extend)
                if r < 0:
                    diagonal = value
                else:
                    H[r] = value
                    D[r] = int32(value + first)
                    table_rows[r] = int32(PADDING_ROW * MATRIX_STRIDE)
                    if row > 0 and strip < strips:
                        code = int32(queries.codes[query + row - 1]) & int32(CODE_BITS)
                        table_rows[r] = int32(code * int32(MATRIX_STRIDE))
            if strip > 0 and lane == 0 and start > 0:
                # The corner above the first column is in the previous strip.
                diagonal = int32(MINUS_INFINITY)
                if start - 1 < last_columns:
                    diagonal = edge[edge_start + uint64(2 * (start - 1))]
            is_last = strip == strips - 1 and lane == in_group - 1
            insertion = int32(MINUS_INFINITY)
            column = int32(start - lane)
            following = uint8(0)
            if start <= column and column < stop:
                following = references.codes[reference + column]
            # From the previous strip, one step before use.
            upper, upper_insertion = int32(MINUS_INFINITY), int32(MINUS_INFINITY)
            if strip > 0 and lane == 0 and start < min(stop, last_columns):
                upper = edge[edge_start + uint64(2 * start)]
                upper_insertion = edge[edge_start + uint64(2 * start + 1)]

            for step in range(steps):
                if is_block:
                    seam = uint32(2 * (lane // 32) + (step & 1) * (2 * MOST_WARPS))
                    if lane & 31 == 31:
                        seams[seam], seams[uint32(seam + 1)] = H[rows - 1], insertion
                    cuda.syncthreads()
                next_diagonal = cuda.shfl_up_sync(ALL, H[rows - 1], 1)
                insertion = int32(cuda.shfl_up_sync(ALL, insertion, 1))
                if is_block and lane & 31 == 0 and lane > 0:
                    next_diagonal = seams[uint32(seam - 2)]
                    insertion = seams[uint32(seam - 1)]
                # Opaque, or the compiler duplicates the loop and each warp runs both copies.
                lane_now = opaque(lane)
                if lane_now == 0 and column < stop:
                    if strip == 0:
                        next_diagonal = upper_border(
                            column + 1, free_reference_start, first, extend
                        )
                        insertion = int32(next_diagonal + first)
                    else:
                        next_diagonal, insertion = upper, upper_insertion
                        upper = int32(MINUS_INFINITY)
                        upper_insertion = int32(MINUS_INFINITY)
                        if column + 1 < min(stop, last_columns):
                            upper = edge[edge_start + uint64(2 * column + 2)]
                            upper_insertion = edge[edge_start + uint64(2 * column + 3)]
                if start <= column and column < stop:
                    code = int32(following) & int32(CODE_BITS)
                    word = uint32(0)
                    sum_here = int32(diagonal + table[uint32(table_rows[0] + code)])
                    for r in range(rows):
                        here = int32(max(sum_here, max(insertion, D[r])))
                        if with_directions:
                            direction = int32(FROM_I)
                            if here == D[r]:
                                direction = int32(FROM_D)
                            if here == sum_here:
                                direction = int32(0)
                            if local and here <= floor:
                                direction = int32(STOP)
                        if local:
                            here = int32(max(here, floor))
                        if r < rows - 1:
                            score = table[uint32(table_rows[r + 1] + code)]
                            sum_here = int32(H[r] + score)
                        H[r] = int32(here)
                        opened = int32(here + first)
                        longer_D, longer_I = int32(D[r] + extend), int32(insertion + extend)
                        if with_directions:
                            if int32(opened + tie) > longer_D:
                                direction = int32(direction | int32(D_OPENS))
                            if int32(opened + tie) > longer_I:
                                direction = int32(direction | int32(I_OPENS))
                            word = uint32(word | uint32(direction << (4 * r)))
                        D[r] = int32(max(opened, longer_D))
                        insertion = int32(max(opened, longer_I))
                        if local and finds_ends and here > best:
                            best = int32(here)
                            best_column = int32(column + 1)
                            best_row = int32(top + r + 1)
                    if with_directions and is_used:
                        at = direction_start
                        at += int64(strip * width + column - start + lane) * in_group
                        directions.words[at + lane] = word
                    if lane_now == in_group - 1:
                        if strip < strips - 1:
                            edge[edge_start + uint64(2 * column)] = H[rows - 1]
                            edge[edge_start + uint64(2 * column + 1)] = insertion
                        elif not local and free_reference_end:
                            if gatk:
                                apart = abs(m - (column + 1))
                                end = max(end, end_number(H[rows - 1], apart, column + 1))
                            else:
                                end = max(end, end_number(H[rows - 1], column + 1, m))
                    diagonal = next_diagonal
                column = int32(column + 1)
                # One step before use.
                if start <= column and column < stop:
                    following = references.codes[reference + column]

            # The registers hold the last column.
            last_columns = stop
            if local:
                end = max(end, end_number(best, best_column, best_row))
            elif strip < strips and is_used:
                if is_last and not (free_reference_end or free_query_end):
                    end = end_number(H[rows - 1], n, m)
                if free_query_end:
                    for r in range(rows):
                        row = top + r + 1
                        if gatk and row > 0:
                            # On ties, the last row.
                            column_end = max(column_end, end_number(H[r], m - row, 0))
                        elif not gatk and row > 0:
                            end = max(end, end_number(H[r], n, row))
            if is_block:
                cuda.syncthreads()
            else:
                cuda.syncwarp()

        distance = min(in_group, int32(32)) >> 1
        while distance > 0:
            end = max(end, cuda.shfl_xor_sync(ALL, end, distance))
            if gatk:
                column_end = max(column_end, cuda.shfl_xor_sync(ALL, column_end, distance))
            distance >>= 1
        is_wanted = finds_ends and is_used
        if is_block:
            # The best ends of the warps.
            found = cuda.shared.array(END_WORDS, int64)
            if lane & 31 == 0:
                found[lane // 32], found[MOST_WARPS + lane // 32] = end, column_end
            cuda.syncthreads()
            for warp in range(in_group // 32):
                end = max(end, found[warp])
                column_end = max(column_end, found[MOST_WARPS + warp])
            if gatk:
                is_wanted = ends.query_ends[pair] == NO_END
        if lane == 0 and is_wanted:
            score = int32(end >> (2 * POSITION_BITS))
            position_1 = int32(POSITION_MASK - ((end >> POSITION_BITS) & POSITION_MASK))
            position_2 = int32(POSITION_MASK - (end & POSITION_MASK))
            if gatk and (free_query_end or free_reference_end):
                # position_1 of the last row is the distance |m - j| to improve on; then the first
                # j.
                row = int32(m - POSITION_MASK + ((column_end >> POSITION_BITS) & POSITION_MASK))
                column_score = int32(column_end >> (2 * POSITION_BITS))
                from_last_row = free_reference_end and (
                    score > column_score or (score == column_score and position_1 < abs(row - n))
                )
                position_1 = position_2 if from_last_row else n
                position_2 = m if from_last_row else row
                score = max(score, column_score)
            ends.scores[pair] = score
            ends.reference_ends[pair] = position_1
            ends.query_ends[pair] = position_2

    return align_full


#: Some of the kernels in use.
MADE_KERNELS = (
    full_matrix_kernel(2, False, False, True),
    full_matrix_kernel(4, True, False, True),
    full_matrix_kernel(16, False, True, False),
    full_matrix_kernel(32, True, False, False),
    full_matrix_kernel(WHOLE_BLOCK, False, False, True),
    full_matrix_kernel(WHOLE_BLOCK, True, False, True),
    full_matrix_kernel(WHOLE_BLOCK, False, True, True),
)
