"""Traceback kernels: alignments of one diagonal, and the runs of all alignments.

A warp cuts an alignment of one diagonal into runs, 32 columns at a time, or traces any other
alignment back along the directions from int32_kernel_cuda. Kernels run twice, first to count runs,
and again to write CIGARs at offsets from the counts; or once, if the buffer is large enough for any
CIGAR.
"""

import functools
from typing import NamedTuple

from bwarp.alignment.int32_kernel_cuda import (
    CODE_BITS,
    D_OPENS,
    FROM_D,
    I_OPENS,
    STOP,
    first_column,
    strip_width,
)
from bwarp.alignment.pair_tables_cuda import (
    Cells,
    Cigars,
    Directions,
    EndArrays,
    PairArrays,
    Traced,
)
from bwarp.alignment.pairs import DELETION, EQUAL, INSERTION, MISMATCH, SOFT_CLIP
from bwarp.gpu.cuda import cuda, int32, int64, types, uint32
from bwarp.gpu.kernel import kernel

ALL = 0xFFFFFFFF

#: The outputs of a traceback, as bits: counts and starts, CIGARs.
COUNT, WRITE = 1, 2


class TraceRules(NamedTuple):
    """What a traceback depends on.

    Attributes
    ----------
    query_start, reference_start : int
        Those of the mode (both 1 if local).
    strategy : int
        1 for SOFTCLIP of GATK, 2 for IGNORE.
    ambiguous : int32
        The code of ambiguous bases.
    threads, rows : int
        Threads per group of the kernel that stored the directions, and rows per thread.
    """

    query_start: int
    reference_start: int
    strategy: int
    ambiguous: int32
    threads: int
    rows: int


@kernel
def check_diagonals(
    pairs: PairArrays, matrix: int32[::1], matrix_stride: int, parameters: types.UniTuple(int64, 6),
    ends: EndArrays, bands: int32[::1], diagonals: int32[::1],
):  # fmt: skip
    """Find single-diagonal alignments; bound how far the others stray from their diagonal.

    One warp per pair adds up the diagonal that ends in the end cell, 32 columns at a time, until
    the alignment may start. If this gives the whole score, the band is 0 and `diagonals` its
    length. Otherwise the band is the maximum number of gap columns that the score allows
    (pairs.py), at least 1.

    `parameters`: 1 in local mode; query_start and reference_start of the mode; gap_open;
    gap_extend; the maximum entry of the matrix, or 0.
    """
    pair = cuda.grid(1) // 32
    if pair >= ends.scores.size:
        return
    lane = int32(cuda.laneid)
    queries, references = pairs.queries.codes, pairs.references.codes
    i, j = int32(ends.query_ends[pair]), int32(ends.reference_ends[pair])
    score = int32(ends.scores[pair])
    length = int32(min(i, j))
    query = pairs.queries.starts[pair] + i - 1
    reference = pairs.references.starts[pair] + j - 1
    local = parameters[0] != 0
    collected, steps = int32(0), int32(length)
    for first in range(0, length, 32):
        at = int32(first + lane)
        total = int32(0)
        if at < length:
            row = int32(queries[query - at] & CODE_BITS) * matrix_stride
            total = int32(matrix[row + int32(references[reference - at] & CODE_BITS)])
        distance = int32(1)
        while distance < 32:
            below = int32(cuda.shfl_up_sync(ALL, total, distance))
            if lane >= distance:
                total = int32(total + below)
            distance = int32(distance * 2)
        if local:
            # The alignment starts at the first column that completes the score.
            is_complete = at < length and collected + total == score
            complete = cuda.ballot_sync(ALL, is_complete)
            if complete != 0:
                steps = int32(first + cuda.ffs(complete))
                collected = score
                break
        collected = int32(collected + cuda.shfl_sync(ALL, total, 31))
    if lane == 0:
        may_start = local or i == j or (parameters[1] if j < i else parameters[2]) != 0
        diagonals[pair] = steps
        if may_start and collected == score:
            bands[pair] = int32(0)
        elif parameters[4] == 0:
            bands[pair] = max(i, j)
        else:
            gaps = (int64(length) * parameters[5] - parameters[3] - score) // parameters[4]
            bands[pair] = int32(min(int64(max(i, j)), max(gaps, int64(1))))


@kernel
def trace_diagonals(
    pairs: PairArrays, order: int32[::1], cells: Cells, ambiguous: int32, purpose: int,
    traced: Traced, cigars: Cigars,
):  # fmt: skip
    """Write runs of = and X of single-diagonal alignments: one warp per pair, 32 columns per step.

    A thread whose column differs in kind from the previous one begins a run and writes the run that
    ends before it. With COUNT in `purpose` the kernel writes `traced`, with WRITE the runs.
    """
    slot = cuda.grid(1) // 32
    if slot >= order.size:
        return
    lane = int32(cuda.laneid)
    pair = order[slot]
    queries, references, runs_of_all = pairs.queries.codes, pairs.references.codes, cigars.runs
    length = int32(cells.diagonals[pair])
    first_row = int32(cells.query_ends[pair] - length)
    first_column = int32(cells.reference_ends[pair] - length)
    query = pairs.queries.starts[pair] + first_row
    reference = pairs.references.starts[pair] + first_column
    writes = (purpose & WRITE) != 0
    index = int64(cigars.offsets[pair]) if writes else int64(0)
    runs, distance, run_start = int32(0), int32(0), int32(0)
    last = int64(0)
    for first in range(0, length, 32):
        at = int32(first + lane)
        is_inside = at < length
        differs = False
        if is_inside:
            code = queries[query + at]
            differs = code != references[reference + at] or code == ambiguous
        inside = int64(cuda.ballot_sync(ALL, is_inside)) & ALL
        mismatches = int64(cuda.ballot_sync(ALL, differs)) & ALL
        before = ((mismatches << 1) | last) & ALL
        begins = (mismatches ^ before) & inside
        if first == 0:
            # The first column ends no run.
            begins &= ~int64(1)
        lower = begins & ((int64(1) << lane) - 1)
        if writes and begins & (int64(1) << lane):
            start = run_start
            if lower != 0:
                start = int32(first + 63 - cuda.clz(lower))
            ended = int32(EQUAL) if differs else int32(MISMATCH)
            runs_of_all[index + runs + cuda.popc(lower)] = uint32(((at - start) << 4) | ended)
        if begins != 0:
            run_start = int32(first + 63 - cuda.clz(begins))
        runs = int32(runs + cuda.popc(begins))
        distance = int32(distance + cuda.popc(mismatches))
        last = int64(mismatches >> 31)
        if length - first < 32:
            last = int64((mismatches >> (length - first - 1)) & 1)
    if lane == 0:
        if length > 0:
            if writes:
                ended = int32(MISMATCH) if last != 0 else int32(EQUAL)
                runs_of_all[index + runs] = uint32(((length - run_start) << 4) | ended)
            runs = int32(runs + 1)
        if purpose & COUNT:
            traced.run_counts[pair] = runs
            traced.edit_distances[pair] = distance
            traced.first_rows[pair] = first_row
            traced.first_columns[pair] = first_column


@cuda.jit(device=True)
def put_run(cigar, writes, stop, runs, length, operation):
    """Write a run before the `runs` already written before `stop`; return the new count."""
    if length <= 0:
        return runs
    if writes:
        cigar[stop - runs - 1] = uint32((length << 4) | operation)
    return int32(runs + 1)


@functools.cache
def traceback_kernel(gatk):
    """Make a kernel that follows the directions of a full_matrix_kernel. One warp per alignment.

    With `gatk`, the traceback continues until one sequence is used up, counts M, and ends as the
    overhang strategy requires; otherwise it stops where the mode may start, and distinguishes =
    from X.

    Notes
    -----
    The lanes look at the next 32 cells of the diagonal, or of the gap, at once, so that a step
    takes the latency of one read however many columns it adds:

        at H(i,j)    lane k reads the cell (i - k, j - k)      as far as H is the diagonal
        at D(i,j)    lane k reads (i, j - 1 - k)               up to the cell where D opens
        at I(i,j)    lane k reads (i - 1 - k, j)               up to the cell where I opens

    The directions of pair `order[slot]` start at `directions.starts[slot]`; they are those of the
    matrix that ends in the end cell or, if the band is negative, of the whole one. With `gatk`, a
    band of 0 has no directions: the alignment is a diagonal. With COUNT in `purpose` the kernel
    writes `traced`, with WRITE the runs: with both, `cigars.offsets` says where the runs of each
    slot end; with WRITE alone, those of a pair end where the next pair's begin.
    """

    @kernel
    def trace(
        pairs: PairArrays, order: int32[::1], cells: Cells, directions: Directions,
        rules: TraceRules, purpose: int, traced: Traced, cigars: Cigars,
    ):  # fmt: skip
        slot = cuda.grid(1) // 32
        if slot >= order.size:
            return
        pair, lane = order[slot], int32(cuda.laneid)
        i, j = int32(cells.query_ends[pair]), int32(cells.reference_ends[pair])
        band = int32(cells.bands[pair])
        queries, references, cigar = pairs.queries, pairs.references, cigars.runs
        m, n = i, j
        if band < 0:
            m, n = int32(queries.lengths[pair]), int32(references.lengths[pair])
        query, reference = queries.starts[pair], references.starts[pair]
        free_query_start = gatk or rules.query_start != 0
        free_reference_start = gatk or rules.reference_start != 0
        strategy = rules.strategy
        threads, rows = int32(rules.threads), int32(rules.rows)
        tile = int32(threads * rows)
        padding = int32((m + tile - int32(1)) // tile * tile - m)
        width = strip_width(tile, threads, n, band)
        direction_start = int64(0)
        if band != 0:
            direction_start = int64(directions.starts[slot])
        stop = int64(0)
        writes = (purpose & WRITE) != 0
        if writes:
            stop = int64(cigars.offsets[slot] if purpose & COUNT else cigars.offsets[pair + 1])
            writes = lane == 0
        run, operation, runs, distance = int32(0), int32(-1), int32(0), int32(0)
        if gatk:
            operation = int32(0)
            overhang = int32(references.lengths[pair] - j)
            if strategy == 1:
                runs = put_run(cigar, writes, stop, runs, overhang, int32(SOFT_CLIP))
            elif strategy == 2:
                run = overhang
            if band == 0:
                i -= int32(cells.diagonals[pair])
                j -= int32(cells.diagonals[pair])
                run += int32(cells.diagonals[pair])
        # The current matrix of the traceback: 0 for H, 1 for D, 2 for I.
        state = int32(0)
        while (i > 0 or j > 0) and band != 0:
            if state == 0 and (i == 0 or j == 0):
                if (i == 0 and free_reference_start) or (j == 0 and free_query_start):
                    break
                state = int32(1) if i == 0 else int32(2)
            # The cell that has the direction: this one for H, the previous one for D and I.
            row = i - lane if state == 0 else i - int32(1) - lane if state == 2 else i
            column = j - lane if state == 0 else j - int32(1) - lane if state == 1 else j
            direction = int32(0)
            if row > 0 and column > 0:
                index = int32(row - 1 + padding)
                strip = int32(index // tile)
                index = int32(index - strip * tile)
                thread = int32(index // rows)
                start = first_column(int32(strip * tile - padding), m, n, band)
                # A gap starts within the band; lanes further left have nothing to read.
                if column > start:
                    skewed = int64(strip) * width + column - 1 - start + thread
                    word = directions.words[direction_start + skewed * threads + thread]
                    direction = int32((word >> uint32(4 * (index - thread * rows))) & uint32(15))
            # On a border a gap extends to the corner; a gap may also open at the border.
            if state == 0:
                continues = row > 0 and column > 0 and direction & 3 == 0
            elif state == 1:
                continues = column > 0 and (i == 0 or direction & D_OPENS == 0)
            else:
                continues = row > 0 and (j == 0 or direction & I_OPENS == 0)
            ended = int64(cuda.ballot_sync(ALL, not continues)) & ALL
            columns = int32(32)
            if ended != 0:
                columns = int32(cuda.ffs(ended) - 1)
            if state != 0:
                length = min(columns + int32(1), int32(32))
                emitted = int32(DELETION) if (state == 1) != gatk else int32(INSERTION)
                distance += length
                if state == 1:
                    j -= length
                else:
                    i -= length
                if columns < 32:
                    state = int32(0)
                if emitted != operation:
                    runs = put_run(cigar, writes, stop, runs, run, operation)
                    run, operation = int32(0), emitted
                run += length
                continue
            mismatches = int64(0)
            if not gatk:
                differs = False
                if lane < columns:
                    code = queries.codes[query + i - 1 - lane]
                    other = references.codes[reference + j - 1 - lane]
                    differs = code != other or code == rules.ambiguous
                mismatches = int64(cuda.ballot_sync(ALL, differs)) & ALL
                distance += int32(cuda.popc(mismatches))
            at = int32(0)
            while at < columns:
                # A run of equal or of different columns.
                is_mismatch = (mismatches >> at) & 1
                rest = (mismatches ^ -is_mismatch) >> at
                length = int32(columns - at)
                if rest != 0:
                    length = min(length, int32(cuda.ffs(rest) - 1))
                emitted = int32(0) if gatk else int32(MISMATCH) if is_mismatch else int32(EQUAL)
                if emitted != operation:
                    runs = put_run(cigar, writes, stop, runs, run, operation)
                    run, operation = int32(0), emitted
                run += length
                at += length
            i -= columns
            j -= columns
            if columns < 32 and i > 0 and j > 0:
                origin = cuda.shfl_sync(ALL, direction, columns) & 3
                if origin == STOP:
                    break
                state = int32(1) if origin == FROM_D else int32(2)
        if gatk and strategy == 2:
            run += j
        runs = put_run(cigar, writes, stop, runs, run, operation)
        if gatk and strategy == 1:
            runs = put_run(cigar, writes, stop, runs, j, int32(SOFT_CLIP))
        elif gatk and strategy == 0:
            runs = put_run(cigar, writes, stop, runs, i, int32(DELETION))
            runs = put_run(cigar, writes, stop, runs, j, int32(INSERTION))
        if purpose & COUNT and lane == 0:
            traced.run_counts[pair] = runs
            traced.edit_distances[pair] = distance
            traced.first_rows[pair] = i
            traced.first_columns[pair] = j

    return trace


#: All kernels that the function makes.
MADE_KERNELS = (traceback_kernel(False), traceback_kernel(True))
