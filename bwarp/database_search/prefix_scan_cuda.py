"""Compute local scores row by row with a prefix maximum: the kernel of Chang and Chen, affine gaps.

One block aligns the query with one target. Each thread holds one column of a *slice* of the target,
and all cells of a row are computed at once. The serial dependency of a row is the gap along it, a
maximum over all cells to the left:

    H'(i,j) = max(0, H(i-1,j-1) + score, I(i,j))            all columns at once
    D(i,j)  = max over k < j of  H'(i,k) - open - (j - k) * extend
            = (prefix maximum of  H'(i,k) + k * extend)  - open - j * extend
    H(i,j)  = max(H'(i,j), D(i,j))

The prefix maximum takes five shuffles within a warp and one exchange of warp maxima in shared
memory. A target longer than the block takes several slices from left to right; the last column of
each and its prefix maxima are passed through global memory, two words per row.

This is an alternative to search_cuda, which is faster because it needs no barrier and no scan.
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
#: Words of shared memory for two alternating rows: one per warp, and one more.
TURN = MOST_WARPS + 1
BOTH_TURNS = 2 * TURN


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
    warp_best = cuda.shared.array(BOTH_TURNS, int32)
    corners = cuda.shared.array(BOTH_TURNS, int32)
    for word in range(cuda.threadIdx.x, MATRIX_WORDS, cuda.blockDim.x):
        table[word] = matrix[word]
    cuda.syncthreads()

    target = cuda.blockIdx.x
    start, stop = offsets[target], offsets[target + 1]
    lane, warp = int32(cuda.laneid), int32(cuda.threadIdx.x // 32)
    warps = int32(cuda.blockDim.x // 32)
    edge_start = 2 * target * query.size
    best = int32(0)
    for first in range(start, stop, cuda.blockDim.x):
        column = first + cuda.threadIdx.x
        is_inside = column < stop
        code = int32(codes[column]) if is_inside else int32(0)
        slope = int32(cuda.threadIdx.x * gap_extend)
        H, insertion = int32(0), int32(MINUS_INFINITY)
        # H of the previous row at the last column of the warp (slice) to the left.
        if lane == 31:
            corners[warp + 1] = int32(0)
        if cuda.threadIdx.x == 0:
            corners[0] = int32(0)
        cuda.syncthreads()
        for row in range(query.size):
            turn = int32(row & 1)
            # H of the previous row in the column to the left.
            diagonal = int32(cuda.shfl_up_sync(ALL, H, 1))
            if lane == 0:
                diagonal = corners[turn * TURN + warp]
            score = table[int32(query[row]) * MATRIX_STRIDE + code]
            insertion = int32(max(insertion, H - gap_open) - gap_extend)
            H = int32(max(int32(diagonal + score), max(insertion, int32(0))))
            if not is_inside:
                H = int32(MINUS_INFINITY)
            # Inclusive prefix maximum over the warp.
            prefix = int32(H + slope)
            distance = int32(1)
            while distance < 32:
                left = int32(cuda.shfl_up_sync(ALL, prefix, distance))
                if lane >= distance:
                    prefix = int32(max(prefix, left))
                distance = int32(distance * 2)
            if lane == 31:
                warp_best[turn * TURN + warp] = prefix
            before = int32(cuda.shfl_up_sync(ALL, prefix, 1))
            if lane == 0:
                before = int32(MINUS_INFINITY)
            cuda.syncthreads()
            carried = int32(MINUS_INFINITY)
            if first > start:
                carried = edge[edge_start + 2 * row + 1]
            for w in range(warp):
                carried = int32(max(carried, warp_best[turn * TURN + w]))
            before = int32(max(before, carried))
            if is_inside:
                H = int32(max(H, before - gap_open - slope))
                best = int32(max(best, H))
            # What the next row needs from this one: corners of the warps and of the slice.
            if lane == 31:
                corners[(1 - turn) * TURN + warp + 1] = H
            if cuda.threadIdx.x == 0:
                corner = int32(0)
                if first > start:
                    corner = edge[edge_start + 2 * row]
                corners[(1 - turn) * TURN] = corner
            cuda.syncthreads()
            if cuda.threadIdx.x == cuda.blockDim.x - 1:
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
