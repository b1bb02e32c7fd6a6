"""Align batches of pairs on a GPU: scores, ends or whole alignments, by the rules of pairs.py.

Nucleotide pairs with a match and a mismatch score that fit 16 bits go through
packed_int16_kernel_cuda, two pairs per register; all others, and pairs whose reference has
ambiguous bases, through int32_kernel_cuda. An alignment takes two passes: one for its end; then,
unless it is a single diagonal, one for directions in a band around the diagonal of its end,
followed by a traceback. Few pairs take one pass (few_pairs_cuda).
"""

import numpy as np

from bwarp.alignment import packed_int16_kernel_cuda
from bwarp.alignment.device_batch_cuda import (
    BLOCK,
    MEMORY_SHARE,
    DeviceBatch,
    blocks,
    device_batch,
    find_full,
    free_ends,
    order_by_size,
    pair_costs,
)
from bwarp.alignment.few_pairs_cuda import few_alignments, shape_of
from bwarp.alignment.packed_int16_kernel_cuda import REFUSED, Selectors, refuse, select_bases
from bwarp.alignment.pair_tables_cuda import EndArrays
from bwarp.alignment.pairs import Alignments, Ends, PairBatch, check_pairs
from bwarp.alignment.scoring import Mode, Scoring, element_type, highest_score, lowest_score
from bwarp.alignment.traceback_cuda import trace_alignments
from bwarp.gpu.available_memory import affordable
from bwarp.gpu.cuda import cuda
from bwarp.gpu.memory_pool import device_array, work_space
from bwarp.gpu.transfers import to_gpu, to_host
from bwarp.runtime.timeline import on_timeline

#: (threads, rows) of the tiles of the packed kernel, smallest first, for many pairs.
MANY_TILES = ((8, 8), (8, 13), (8, 16), (8, 19), (16, 13), (16, 16))
#: The same for few pairs: more threads per pair, as the GPU has them idle.
FEW_TILES = ((32, 2), (32, 4), (32, 5), (32, 8))
#: Groups of 8 threads that fill a large GPU once.
FEW_GROUPS = 8192
#: The packed kernel counts its selectors in 32 bits.
MOST_SELECTORS = 2**32 - 1
#: The maximum reference length whose columns packed lanes can count.
MOST_COLUMNS = 65_535


def pair_scores(pairs: PairBatch, scoring: Scoring, mode: Mode, threads: int = 1) -> np.ndarray:
    """Compute the best score of each pair.

    Returns
    -------
    scores : ndarray, shape=(count,), dtype=int32
    """
    check_pairs(pairs)
    with work_space():
        batch = device_batch(pairs, threads)
        return to_host(find_ends(batch, scoring, mode, with_ends=False)[:1], threads)[0]


def pair_ends(pairs: PairBatch, scoring: Scoring, mode: Mode, threads: int = 1) -> Ends:
    """Find the best score of each pair and where its alignment ends."""
    check_pairs(pairs)
    with work_space():
        return Ends(*to_host(find_ends(device_batch(pairs, threads), scoring, mode), threads))


def pair_alignments(pairs: PairBatch, scoring: Scoring, mode: Mode, threads: int = 1) -> Alignments:
    """Find the best alignment of each pair, with its CIGAR."""
    check_pairs(pairs)
    found = _few_alignments(pairs, scoring, mode)
    if found is not None:
        return found
    with work_space():
        return _many_alignments(device_batch(pairs, threads), scoring, mode, threads)


def batch_alignments(
    batch: DeviceBatch, scoring: Scoring, mode: Mode, threads: int = 1
) -> Alignments:
    """Find the best alignment of each pair of a batch on the GPU."""
    found = _few_alignments(batch, scoring, mode)
    return _many_alignments(batch, scoring, mode, threads) if found is None else found


def _few_alignments(batch, scoring, mode) -> Alignments | None:
    shape = shape_of(batch)
    if shape.is_few:
        element_type(scoring, mode, shape.rows, shape.columns)
    return few_alignments(batch, pair_costs(scoring, mode))


def _many_alignments(batch, scoring, mode, threads) -> Alignments:
    ends = find_ends(batch, scoring, mode)
    return trace_alignments(batch, pair_costs(scoring, mode), ends, threads)


@on_timeline("find ends on the GPU")
def find_ends(
    batch: DeviceBatch, scoring: Scoring, mode: Mode, with_ends: bool = True
) -> EndArrays:
    """Return scores and ends (the ends unset without `with_ends`)."""
    outputs = EndArrays(*(device_array(batch.count, np.int32) for _ in range(3)))
    if batch.count == 0:
        return outputs
    element_type(scoring, mode, batch.queries.longest, batch.references.longest)
    if not (_has_packed_lanes() and _looks_up_bytes(scoring)):
        find_full(batch, pair_costs(scoring, mode), outputs)
    else:
        with work_space():
            some_refused = _find_packed(batch, scoring, mode, with_ends, outputs)
        if some_refused:
            find_full(batch, pair_costs(scoring, mode), outputs, outputs.scores, REFUSED)
    return outputs


# 16 bits: two pairs per register.


def _has_packed_lanes() -> bool:
    return cuda.get_current_device().compute_capability >= (9, 0)


def _looks_up_bytes(scoring: Scoring) -> bool:
    """Return whether all scores are a match or a mismatch of four bases, and fit signed bytes."""
    if scoring.match_mismatch is None or scoring.ambiguous != 4 or len(scoring.letters) != 5:
        return False
    match, mismatch = scoring.match_mismatch
    return mismatch <= 0 and match + _shift(scoring) <= 127


def _shift(scoring: Scoring) -> int:
    return max(scoring.gap_open + scoring.gap_extend, -scoring.match_mismatch[1])


def _find_packed(batch, scoring, mode, with_ends, outputs) -> bool:
    """Run the packed kernel on all pairs; return whether some got the score REFUSED."""
    tiles = FEW_TILES if batch.count < 2 * FEW_GROUPS else MANY_TILES
    limits = [threads * height for threads, height in tiles]
    while limits[-1] < batch.queries.longest:
        # Longer queries take several of the largest tiles, grouped by length.
        limits.append(2 * limits[-1])
    order = order_by_size(batch, limits, min(batch.references.longest, MOST_COLUMNS + 1), True)
    [refused] = to_gpu([np.zeros(1, np.int32)])
    for number, begin, end, columns in order.classes():
        rows = min(limits[number], batch.queries.longest)
        shift = _shift(scoring)
        bias = shift + 1 - lowest_score(scoring, mode, rows, columns)
        most = bias + highest_score(scoring, rows, columns) + scoring.match_mismatch[0] + shift
        if most > 32767 or columns > MOST_COLUMNS:
            slots = order.part(begin, end)
            refuse[blocks(slots.size), BLOCK](slots, outputs.scores, refused)
            continue
        tile, many_tiles = tiles[min(number, len(tiles) - 1)], number >= len(tiles)
        _launch_packed(
            batch,
            scoring,
            mode,
            with_ends,
            (tile, many_tiles, columns, bias),
            (order, begin, end),
            refused,
            outputs,
        )
    return bool(to_host([refused])[0][0])


def _launch_packed(batch, scoring, mode, with_ends, shape, members, refused, outputs):
    """Run the packed kernel on pairs of one class, as many at a time as memory allows."""
    (threads, height), many_tiles, columns, bias = shape
    order, begin, end = members
    match, mismatch = scoring.match_mismatch
    shift, extend = _shift(scoring), -scoring.gap_extend
    padding = mismatch if mode.local else 0 if mode.reference_start else extend
    parameters = (
        match + shift,
        mismatch + shift,
        padding + shift,
        shift,
        extend - scoring.gap_open,
        extend,
        bias,
        *map(int, free_ends(mode)),
    )
    gap_is_shift = shift == scoring.gap_open + scoring.gap_extend
    kernel = packed_int16_kernel_cuda.packed_kernel(
        threads, height, mode.local, with_ends, many_tiles, gap_is_shift
    )
    stride = columns + 2 * threads
    edge_stride = 2 * columns if many_tiles else 0
    groups = min((end - begin) // 2, MOST_SELECTORS // stride)
    bytes_a_group = 4 * (stride + edge_stride)
    groups = max(1, affordable(bytes_a_group * groups, MEMORY_SHARE) // bytes_a_group)
    with work_space():
        selectors = Selectors(device_array(groups * stride, np.int32), stride)
        edge = device_array(max(1, groups * edge_stride), np.int32)
        for first in range(begin, end, 2 * groups):
            slots = order.part(first, min(first + 2 * groups, end))
            select_bases[blocks(slots.size // 2, 32), BLOCK](
                batch.references.arrays, slots, selectors, threads, outputs.scores, refused
            )
            kernel[blocks(slots.size // 2, threads), BLOCK](
                batch.arrays,
                selectors,
                slots,
                parameters,
                np.int32(1),
                edge,
                edge_stride,
                outputs,
            )
