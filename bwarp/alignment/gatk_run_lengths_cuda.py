"""Align by the rules of GATK with the two stages of Ren et al.: run lengths, then jumps.

Stage 1, one block per pair (Ren, Ahmed, Bertels and Al-Ars): thread j holds a column (a base of the
alternate) and takes one row per step, so that the cells of an anti-diagonal are computed at once.
For every cell it stores two 16-bit numbers, short2 in the paper:

    x > 0   a deletion of x reference bases ends here        y   bases in a row on the diagonal
    x < 0   an insertion of -x alternate bases ends here         up to this one (where x = 0)

ordered by anti-diagonals, so that the threads of a warp write adjacent words:

    cells[start + (i - 1 + j - 1) * columns + j - 1] = y << 16 | x

An alternate longer than the block takes several passes, each over as many columns as the block has
threads; the last thread of a pass hands its results to the first of the next through vectors in
global memory. One block wide enough for the alternate is the first solution of the paper, a narrow
block with passes the second; `block_threads` chooses.

Stage 2, one thread per pair, jumps back over whole runs, including runs of matches.

This module is an alternative to gatk_cuda. It stores four bytes for every cell; gatk_cuda stores
half a byte per cell, and only within a band.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.alignment.device_batch_cuda import BLOCK, MEMORY_SHARE, DeviceBatch, blocks
from bwarp.alignment.follow_directions_cuda import put_run
from bwarp.alignment.gatk_cpu import GatkAlignments, GatkParameters, check_overhang
from bwarp.alignment.gatk_cuda import exact_occurrences, gatk_batch, gatk_costs
from bwarp.alignment.int32_kernel_cuda import MINUS_INFINITY, NO_END, end_number
from bwarp.alignment.pair_tables_cuda import EndArrays, PairArrays
from bwarp.alignment.pairs import DELETION, INSERTION, SOFT_CLIP, PairBatch, check_pairs
from bwarp.errors import InputError
from bwarp.gpu.available_memory import affordable
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32
from bwarp.gpu.kernel import kernel
from bwarp.gpu.memory_pool import device_array, work_space
from bwarp.gpu.transfers import to_gpu, to_host
from bwarp.runtime.threads import bounded_ranges

#: Threads of the widest block, and of the block that takes passes.
WIDEST_BLOCK, PASS_BLOCK = 576, 128
#: With at least this many pairs the GPU is full, and narrow blocks with passes waste fewer threads.
MANY_PAIRS = 1000
#: Run lengths are 16-bit numbers.
LONGEST = 32_767
LOWEST_END = -(2**63)


class RunRules(NamedTuple):
    """Scores, negative for gaps, and which ends are free."""

    match: int32
    mismatch: int32
    gap_open: int32
    gap_extend: int32
    free_start: bool
    free_column_end: bool
    free_row_end: bool


class RunCells(NamedTuple):
    """The two numbers of each cell, and where the cells of each slot start."""

    words: uint32[::1]
    starts: int64[::1]


class Jumps(NamedTuple):
    """The number of runs and the start of each alignment, and the runs of each slot."""

    run_counts: int32[::1]
    starts: int32[::1]
    cigar_offsets: int64[::1]
    cigar: uint32[::1]


def block_threads(pairs: int, longest: int) -> int:
    """Return the threads per block: one per base of the longest alternate, or fewer with passes."""
    whole = -(-longest // 32) * 32
    if whole <= PASS_BLOCK or (pairs < MANY_PAIRS and whole <= WIDEST_BLOCK):
        return whole
    return PASS_BLOCK


def gatk_alignments(
    pairs: PairBatch, parameters: GatkParameters, overhang: str, threads: int = 1
) -> GatkAlignments:
    """Do what `gatk_cuda.gatk_alignments` does, by run lengths and jumps."""
    check_pairs(pairs)
    check_overhang(overhang)
    longest = max(int(side.lengths.max(initial=0)) for side in (pairs.queries, pairs.references))
    if longest > LONGEST:
        raise InputError(
            f"a sequence has {longest:,} bases, but --algorithm run-lengths allows at most "
            f"{LONGEST:,}: use --algorithm band"
        )
    with work_space():
        return _aligned(gatk_batch(pairs, threads), parameters, overhang)


def _aligned(batch: DeviceBatch, parameters: GatkParameters, overhang: str) -> GatkAlignments:
    costs = gatk_costs(parameters, overhang)
    outputs = exact_occurrences(batch, parameters, overhang)
    ids = np.flatnonzero(to_host([outputs.query_ends])[0] == NO_END)
    rows, columns = batch.queries.host_lengths, batch.references.host_lengths
    # If no cell was recorded, the alternate occurs exactly.
    cells_of = np.zeros(batch.count, np.int64)
    cells_of[ids] = (rows[ids].astype(np.int64) + columns[ids] - 1) * columns[ids]
    scores = (parameters.match, parameters.mismatch, parameters.gap_open, parameters.gap_extend)
    rules = RunRules(*map(np.int32, scores), costs.free[0], costs.free[1], costs.free[3])
    run_counts, offsets_found = (device_array(batch.count, np.int32) for _ in range(2))
    counts, pieces = np.zeros(batch.count, np.int64), []
    cells_before = np.append(0, np.cumsum(cells_of))
    most_cells = affordable(4 * int(cells_before[-1]), MEMORY_SHARE) // 4
    for first, last in bounded_ranges(cells_before, most_cells):
        edges = cells_before[first : last + 1] - cells_before[first]
        edge_stride = 4 * int(rows[first:last].max())
        block = block_threads(last - first, int(columns[first:last].max()))
        with work_space():
            starts, slots = to_gpu([edges, np.arange(first, last, dtype=np.int32)])
            cells = RunCells(device_array(int(edges[-1]) + 1, np.uint32), starts)
            edge = device_array((last - first) * edge_stride, np.int32)
            record_runs[last - first, block](
                batch.arrays, slots, rules, cells, edge, edge_stride, outputs
            )
            jump = partial(
                jump_back[blocks(last - first), BLOCK],
                batch.references.lengths, slots, outputs, cells, costs.overhang,
            )  # fmt: skip
            # First the numbers of runs, which say where each CIGAR begins.
            jump(True, Jumps(run_counts, offsets_found, starts, cells.words))
            counts[first:last] = to_host([run_counts])[0][first:last]
            offsets = np.append(0, np.cumsum(counts[first:last]))
            cigar = device_array(int(offsets[-1]), np.uint32)
            jump(False, Jumps(run_counts, offsets_found, to_gpu([offsets])[0], cigar))
            pieces += to_host([cigar])
    cigar_offsets = np.append(0, np.cumsum(counts)).astype(np.int64)
    cigar = np.concatenate([*pieces, np.empty(0, np.uint32)])
    return GatkAlignments(*to_host([outputs.scores, offsets_found]), cigar_offsets, cigar)


@kernel
def record_runs(
    pairs: PairArrays, order: int32[::1], rules: RunRules, cells: RunCells, edge: int32[::1],
    edge_stride: int, ends: EndArrays,
):  # fmt: skip
    """Stage 1; see above. `edge` holds four words per row and pair for the next pass.

    Reads each reference base once per pass and thread, and writes four bytes per cell.
    """
    # What the right neighbour needs from this thread, for two steps in alternation.
    shared_H = cuda.shared.array((2, 1024), int32)
    shared_gap = cuda.shared.array((2, 1024), int32)
    shared_runs = cuda.shared.array((2, 1024), int32)
    best = cuda.shared.array(2, int64)
    slot = cuda.blockIdx.x
    pair = order[slot]
    starts = cells.starts
    if starts[slot] == starts[slot + 1]:
        return
    references, alternates = pairs.queries, pairs.references
    n, m = int32(references.lengths[pair]), int32(alternates.lengths[pair])
    reference, alternate = references.starts[pair], alternates.starts[pair]
    gap_open, gap_extend = rules.gap_open, rules.gap_extend
    thread, width = int32(cuda.threadIdx.x), int32(cuda.blockDim.x)
    own_edge = slot * edge_stride
    if thread < 2:
        best[thread] = int64(LOWEST_END)
    cuda.syncthreads()
    for first in range(0, m, width):
        column = int32(first + thread)
        is_inside = column < m
        base = uint8(255)
        if is_inside:
            base = alternates.codes[alternate + column]
        # The upper border: H(0, column + 1) and, for the diagonal, H(0, column).
        H, diagonal_H = int32(0), int32(0)
        if not rules.free_start:
            H = int32(gap_open + column * gap_extend)
            if column > 0:
                diagonal_H = int32(gap_open + (column - 1) * gap_extend)
        deletion, deletion_run = int32(MINUS_INFINITY), int32(0)
        diagonal_run = int32(0)
        for step in range(n + width - 1):
            row = int32(step - thread)
            turn = step & 1
            runs = int32(0)
            right, right_run = int32(MINUS_INFINITY), int32(0)
            if is_inside and row >= 0 and row < n:
                # The cell to the left: H, the best insertion into it, and both its runs.
                if thread > 0:
                    left_H = shared_H[1 - turn, thread - 1]
                    left_gap = shared_gap[1 - turn, thread - 1]
                    left_runs = shared_runs[1 - turn, thread - 1]
                elif first > 0:
                    left_H = edge[own_edge + 4 * row]
                    left_gap = edge[own_edge + 4 * row + 1]
                    left_runs = edge[own_edge + 4 * row + 2]
                else:
                    left_H = int32(0)
                    if not rules.free_start:
                        left_H = int32(gap_open + row * gap_extend)
                    left_gap, left_runs = int32(MINUS_INFINITY), int32(0)
                diagonal = int32(diagonal_H + rules.mismatch)
                if references.codes[reference + row] == base:
                    diagonal = int32(diagonal_H + rules.match)
                deletion = int32(deletion + gap_extend)
                deletion_run = int32(deletion_run + 1)
                if H + gap_open > deletion:
                    deletion, deletion_run = int32(H + gap_open), int32(1)
                right = int32(left_gap + gap_extend)
                right_run = int32((left_runs & 0xFFFF) + 1)
                if left_H + gap_open > right:
                    right, right_run = int32(left_H + gap_open), int32(1)
                match_run = int32(0)
                if diagonal >= deletion and diagonal >= right:
                    H = diagonal
                    match_run = int32(diagonal_run + 1)
                    x = int32(0)
                elif right >= deletion:
                    H = right
                    x = int32(-right_run)
                else:
                    H = deletion
                    x = deletion_run
                index = starts[slot] + int64(row + column) * m + column
                cells.words[index] = uint32((match_run << 16) | (x & 0xFFFF))
                diagonal_H = left_H
                diagonal_run = int32((left_runs >> 16) & 0xFFFF)
                runs = int32((match_run << 16) | right_run)
                if thread == width - 1:
                    edge[own_edge + 4 * row] = H
                    edge[own_edge + 4 * row + 1] = right
                    edge[own_edge + 4 * row + 2] = runs
                if column == m - 1 and rules.free_column_end:
                    cuda.atomic.max(best, 0, end_number(H, n - 1 - row, 0))
                if row == n - 1 and rules.free_row_end:
                    apart = int32(abs(n - 1 - column))
                    cuda.atomic.max(best, 1, end_number(H, apart, column))
                if row == n - 1 and column == m - 1 and not rules.free_column_end:
                    cuda.atomic.max(best, 0, end_number(H, 0, 0))
            shared_H[turn, thread] = H
            shared_gap[turn, thread] = right
            shared_runs[turn, thread] = runs
            cuda.syncthreads()
    if thread == 0:
        # The best of the last column, the lowest on ties; that of the last row if better or nearer.
        score = int32(best[0] >> 34)
        end = int32(n - 0x1FFFF + ((best[0] >> 17) & 0x1FFFF))
        ends.scores[pair], ends.query_ends[pair], ends.reference_ends[pair] = score, end, m
        if rules.free_row_end:
            row_score = int32(best[1] >> 34)
            apart = int32(0x1FFFF - ((best[1] >> 17) & 0x1FFFF))
            if row_score > score or (row_score == score and apart < abs(end - m)):
                ends.scores[pair], ends.query_ends[pair] = row_score, n
                ends.reference_ends[pair] = int32(0x1FFFF - (best[1] & 0x1FFFF)) + 1


@kernel
def jump_back(
    alternate_lengths: int32[::1], order: int32[::1], ends: EndArrays, cells: RunCells,
    overhang: int, is_counting: bool, jumps: Jumps,
):  # fmt: skip
    """Stage 2: one thread per pair jumps from run to run, first to count them, then to write them.

    `overhang`: 0 for INDEL and LEADING_INDEL, 1 for SOFTCLIP, 2 for IGNORE. One read per run.
    """
    slot = cuda.grid(1)
    if slot >= order.size:
        return
    pair = order[slot]
    m = int32(alternate_lengths[pair])
    p, q = int32(ends.query_ends[pair]), int32(ends.reference_ends[pair])
    starts, cigar = cells.starts, jumps.cigar
    stop = int64(0)
    if not is_counting:
        stop = jumps.cigar_offsets[slot + 1]
    runs, run, operation = int32(0), int32(0), int32(0)
    if overhang == 1:
        runs = put_run(cigar, not is_counting, stop, runs, m - q, int32(SOFT_CLIP))
    elif overhang == 2:
        run = int32(m - q)
    if starts[slot] == starts[slot + 1]:
        run, p, q = int32(run + m), int32(p - m), int32(0)
    while p > 0 and q > 0:
        cell = int32(cells.words[starts[slot] + int64(p - 1 + q - 1) * m + q - 1])
        x = int32((cell & 0xFFFF) - ((cell & 0x8000) << 1))
        if x > 0:
            now, length = int32(DELETION), x
            p = int32(p - x)
        elif x < 0:
            now, length = int32(INSERTION), int32(-x)
            q = int32(q + x)
        else:
            now, length = int32(0), int32((cell >> 16) & 0xFFFF)
            p, q = int32(p - length), int32(q - length)
        if now != operation:
            runs = put_run(cigar, not is_counting, stop, runs, run, operation)
            run, operation = int32(0), now
        run = int32(run + length)
    if overhang == 2:
        run = int32(run + q)
    runs = put_run(cigar, not is_counting, stop, runs, run, operation)
    if overhang == 1:
        runs = put_run(cigar, not is_counting, stop, runs, q, int32(SOFT_CLIP))
    elif overhang == 0:
        runs = put_run(cigar, not is_counting, stop, runs, p, int32(DELETION))
        runs = put_run(cigar, not is_counting, stop, runs, q, int32(INSERTION))
    if is_counting:
        jumps.run_counts[pair] = runs
        jumps.starts[pair] = int32(0) if overhang == 0 else p if overhang == 1 else p - q
