"""Compute local scores row by row with a prefix maximum: the kernel of Chang and Chen, affine gaps.

One block aligns the query with one target. Each thread holds one column of a *slice* of the target,
and all cells of a row are computed at once. The serial dependency of a row is the gap along it, a
maximum over all cells to the left:

    H'(i,j) = max(0, H(i-1,j-1) + score, I(i,j))            all columns at once
    D(i,j)  = max over k < j of  H'(i,k) - open - (j - k) * extend
            = (prefix maximum of  H'(i,k) + k * extend)  - open - j * extend
    H(i,j)  = max(H'(i,j), D(i,j))

The prefix maximum takes five shuffles within a warp and one exchange through shared memory. What a
row needs from the warps to the left, and what the next row needs from the column to the left of a
warp, follows from three words per warp, so that a row takes one barrier: rows use two tables in
turn. A target longer than the block takes several slices from left to right; the last column of
each and its prefix maxima are passed through global memory, two words per row.

This is an alternative to search_cuda, which needs no barrier and no scan.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from bwarp.alignment.device_batch_cuda import MEMORY_SHARE, free_bytes, pair_costs
from bwarp.alignment.int32_kernel_cuda import MATRIX_STRIDE, MATRIX_WORDS, MINUS_INFINITY
from bwarp.alignment.scoring import LOCAL, Scoring
from bwarp.database_search.database import Database, check_search
from bwarp.gpu.cuda import cuda, int32, int64, uint8
from bwarp.gpu.kernel import kernel

ALL = 0xFFFFFFFF
MOST_WARPS = 16
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
    block = 32 * min(MOST_WARPS, max(1, -(-int(lengths.max(initial=1)) // 32)))
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
    best = int32(0)
    for first in range(start, stop, cuda.blockDim.x):
        column = first + cuda.threadIdx.x
        is_inside = column < stop
        is_last_slice = first + cuda.blockDim.x >= stop
        code = int32(codes[column]) if is_inside else int32(0)
        slope = int32(cuda.threadIdx.x * gap_extend)
        H, insertion = int32(0), int32(MINUS_INFINITY)
        # H of the previous row in the column to the left of the warp, for its first lane.
        corner = int32(0)
        score = table[int32(query[0]) * MATRIX_STRIDE + code]
        for row in range(query.size):
            turn = int32(row & 1) * MOST_WARPS
            diagonal = int32(cuda.shfl_up_sync(ALL, H, 1))
            if lane == 0:
                diagonal = corner
            insertion = int32(max(insertion, H - gap_open) - gap_extend)
            H = int32(max(int32(diagonal + score), max(insertion, int32(0))))
            if not is_inside:
                H = int32(MINUS_INFINITY)
            # Loads that take long, before the scan and the barrier.
            if row + 1 < query.size:
                score = table[int32(query[row + 1]) * MATRIX_STRIDE + code]
            slice_H, carried = int32(0), int32(MINUS_INFINITY)
            if first > start:
                slice_H = edge[edge_start + 2 * row]
                carried = edge[edge_start + 2 * row + 1]
            # Inclusive prefix maximum over the warp.
            prefix = int32(H + slope)
            distance = int32(1)
            while distance < 32:
                left = int32(cuda.shfl_up_sync(ALL, prefix, distance))
                if lane >= distance:
                    prefix = int32(max(prefix, left))
                distance = int32(distance * 2)
            before = int32(cuda.shfl_up_sync(ALL, prefix, 1))
            if lane == 0:
                before = int32(MINUS_INFINITY)
            if lane == 31:
                warp_best[turn + warp] = prefix
                last_H[turn + warp] = H
                last_before[turn + warp] = before
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
                corner = int32(max(last_H[neighbour], gap - (slope - gap_extend)))
                carried = int32(max(carried, warp_best[neighbour]))
            if is_inside:
                H = int32(max(H, max(before, carried) - gap_open - slope))
                best = int32(max(best, H))
            if not is_last_slice and cuda.threadIdx.x == cuda.blockDim.x - 1:
                # Count columns from the start of the next slice.
                edge[edge_start + 2 * row] = H
                whole = int32(max(prefix, carried) - int32(cuda.blockDim.x) * gap_extend)
                edge[edge_start + 2 * row + 1] = whole
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
