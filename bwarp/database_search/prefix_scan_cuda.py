"""Compute local scores row by row with a prefix maximum: the kernel of Chang and Chen, affine gaps.

One block aligns the query with one target. Each thread holds four columns of a *slice* of the
target, and all threads compute a row at once. The serial dependency of a row is the gap along it, a
maximum over all cells to the left:

    H'(i,j) = max(0, H(i-1,j-1) + score, I(i,j))            all columns at once
    D(i,j)  = max over k < j of  H'(i,k) - open - (j - k) * extend
            = (prefix maximum of  H'(i,k) + k * extend)  - open - j * extend
    H(i,j)  = max(H'(i,j), D(i,j))

The prefix maximum is computed over the columns of each thread, then by five shuffles within a warp
and one exchange through shared memory. What a row needs from the warps to the left, and what the
next row needs from the column to the left of a warp, follows from three words per warp, so that a
row takes one barrier: rows use two tables in turn. A target longer than the block takes several
slices from left to right; the last column of each and its prefix maxima are passed through global
memory, two words per row.

This is an alternative to search_cuda, which needs no barrier and no scan.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from bwarp.alignment.device_batch_cuda import MEMORY_SHARE, free_bytes, pair_costs
from bwarp.alignment.int32_kernel_cuda import MATRIX_STRIDE, MATRIX_WORDS, MINUS_INFINITY
from bwarp.alignment.scoring import LOCAL, Scoring
from bwarp.database_search.database import Database, check_search
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32
from bwarp.gpu.kernel import kernel

ALL = 0xFFFFFFFF
MOST_WARPS = 16
#: Columns per thread.
COLUMNS = 4
#: Words of shared memory for two alternating rows, one per warp.
BOTH_TURNS = 2 * MOST_WARPS


def search_scores(
    queries: Sequence[np.ndarray], database: Database, scoring: Scoring, threads: int = 1
) -> Iterator[np.ndarray]:
    """Do what `search_cuda.search_scores` does, by rows and prefix maxima."""
    check_search(queries, database, scoring)
    lengths = np.diff(database.offsets)
    codes, offsets = cuda.to_device(database.codes), cuda.to_device(database.offsets)
    matrix = pair_costs(scoring, LOCAL).device_matrix
    # A slice holds the whole target if a block is large enough.
    block = 32 * min(MOST_WARPS, -(-int(lengths.max(initial=1)) // (32 * COLUMNS)))
    most_words = int(MEMORY_SHARE * free_bytes()) // 4
    for query in queries:
        device_query = cuda.to_device(query)
        scores = np.zeros(database.count, np.int32)
        # A target takes two words per row; process as many at a time as fit in memory.
        at_once = max(1, most_words // (2 * query.size))
        for first in range(0, database.count, at_once):
            last = min(first + at_once, database.count)
            edge = cuda.device_array(2 * (last - first) * query.size, np.int32)
            found = cuda.device_array(last - first, np.int32)
            scan_rows[last - first, block](
                device_query,
                codes,
                offsets[first : last + 1],
                matrix,
                np.int32(scoring.gap_open),
                np.int32(scoring.gap_extend),
                edge,
                found,
            )
            scores[first:last] = found.copy_to_host()
        yield scores


@kernel
def scan_rows(
    query: uint8[::1], codes: uint8[::1], offsets: int64[::1], matrix: int32[::1], gap_open: int32,
    gap_extend: int32, edge: int32[::1], scores: int32[::1],
):  # fmt: skip
    """Scan rows as described at the top. One block per target; `edge` has two words per query
    residue.
    """
    table = cuda.shared.array(MATRIX_WORDS, int32)
    # Of the last lane of each warp: its prefix maximum, H', and the prefix maximum to its left.
    warp_best = cuda.shared.array(BOTH_TURNS, int32)
    last_H = cuda.shared.array(BOTH_TURNS, int32)
    last_before = cuda.shared.array(BOTH_TURNS, int32)
    for word in range(cuda.threadIdx.x, MATRIX_WORDS, cuda.blockDim.x):
        table[word] = matrix[word]
    cuda.syncthreads()

    target = cuda.blockIdx.x
    start, stop = offsets[target], offsets[target + 1]
    lane, warp = int32(cuda.laneid), int32(cuda.threadIdx.x // 32)
    warps = int32(cuda.blockDim.x // 32)
    # Both halves of a warp reduce the words of the warps to the left, which are at most 15.
    left_warp = int32(lane & 15)
    edge_start = 2 * target * query.size
    width = int32(cuda.blockDim.x * COLUMNS)
    slope = int32(cuda.threadIdx.x * COLUMNS * gap_extend)
    codes_here = cuda.local.array(COLUMNS, int32)
    scores_here = cuda.local.array(COLUMNS, int32)
    H = cuda.local.array(COLUMNS, int32)
    insertion = cuda.local.array(COLUMNS, int32)
    prefix = cuda.local.array(COLUMNS, int32)
    best = int32(0)
    for first in range(start, stop, width):
        column = first + cuda.threadIdx.x * COLUMNS
        inside = int32(min(stop - column, int64(COLUMNS)))
        is_last_slice = first + width >= stop
        for k in range(COLUMNS):
            codes_here[k] = int32(0)
            if k < inside:
                codes_here[k] = int32(codes[column + k])
            scores_here[k] = table[uint32(int32(query[0]) * MATRIX_STRIDE + codes_here[k])]
            H[k], insertion[k] = int32(0), int32(MINUS_INFINITY)
        # H of the previous row in the column to the left of the warp, for its first lane.
        corner = int32(0)
        # From the previous slice, one row before use: H, and the prefix maximum.
        next_H, next_carried = int32(0), int32(MINUS_INFINITY)
        if first > start:
            next_H, next_carried = edge[edge_start], edge[edge_start + 1]
        for row in range(query.size):
            turn = int32(row & 1) * MOST_WARPS
            diagonal = int32(cuda.shfl_up_sync(ALL, H[COLUMNS - 1], 1))
            if lane == 0:
                diagonal = corner
            # Prefix maxima over the columns of this thread, counted from its first.
            highest = int32(MINUS_INFINITY)
            for k in range(COLUMNS):
                opened = int32(H[k] - gap_open)
                insertion[k] = int32(max(insertion[k], opened) - gap_extend)
                here = int32(max(int32(diagonal + scores_here[k]), max(insertion[k], int32(0))))
                if k >= inside:
                    here = int32(MINUS_INFINITY)
                diagonal = H[k]
                H[k] = here
                highest = max(highest, int32(here + int32(k) * gap_extend))
                prefix[k] = highest
            # Loads that take long, before the scan and the barrier.
            slice_H, carried = next_H, next_carried
            if row + 1 < query.size:
                letter = int32(int32(query[row + 1]) * MATRIX_STRIDE)
                for k in range(COLUMNS):
                    scores_here[k] = table[uint32(letter + codes_here[k])]
                if first > start:
                    next_H = edge[edge_start + 2 * row + 2]
                    next_carried = edge[edge_start + 2 * row + 3]
            # Inclusive prefix maximum over the warp.
            whole = int32(highest + slope)
            distance = int32(1)
            while distance < 32:
                left = int32(cuda.shfl_up_sync(ALL, whole, distance))
                if lane >= distance:
                    whole = int32(max(whole, left))
                distance = int32(distance * 2)
            before = int32(cuda.shfl_up_sync(ALL, whole, 1))
            if lane == 0:
                before = int32(MINUS_INFINITY)
            if lane == 31:
                warp_best[turn + warp] = whole
                last_H[turn + warp] = H[COLUMNS - 1]
                last_before[turn + warp] = max(before, int32(prefix[COLUMNS - 2] + slope))
            cuda.syncthreads()
            corner = slice_H
            if warp > 0:
                # The maximum left of the neighbouring warp, then with that warp.
                if left_warp < warp - 1:
                    carried = int32(max(carried, warp_best[turn + left_warp]))
                distance = int32(8)
                while distance > 0:
                    other = int32(cuda.shfl_xor_sync(ALL, carried, distance))
                    carried = int32(max(carried, other))
                    distance = int32(distance // 2)
                neighbour = turn + warp - int32(1)
                gap = int32(max(last_before[neighbour], carried) - gap_open)
                corner = max(last_H[neighbour], int32(gap - (slope - gap_extend)))
                carried = int32(max(carried, warp_best[neighbour]))
            # The best start of a gap to the left of each column, counted from the first column.
            reaching = int32(max(before, carried) - gap_open - slope)
            for k in range(COLUMNS):
                if k < inside:
                    gap = reaching
                    if k > 0:
                        gap = max(reaching, int32(prefix[k - 1] - gap_open))
                    H[k] = max(H[k], int32(gap - int32(k) * gap_extend))
                    best = int32(max(best, H[k]))
            if not is_last_slice and cuda.threadIdx.x == cuda.blockDim.x - 1:
                # Count columns from the start of the next slice.
                edge[edge_start + 2 * row] = H[COLUMNS - 1]
                edge[edge_start + 2 * row + 1] = int32(max(whole, carried) - width * gap_extend)
        cuda.syncthreads()
    distance = int32(16)
    while distance > 0:
        best = int32(max(best, cuda.shfl_xor_sync(ALL, best, distance)))
        distance = int32(distance // 2)
    if lane == 0:
        warp_best[warp] = best
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        for w in range(1, warps):
            best = int32(max(best, warp_best[w]))
        scores[target] = best
