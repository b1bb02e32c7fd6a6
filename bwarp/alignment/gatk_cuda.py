"""Align pairs by the rules of GATK on a GPU, with GATK's reference along the rows, as in gatk_cpu.

Exact occurrences are found first, one warp per pair; then the ends of the others in 32 bits by
GATK's rule; then the tracebacks as for any mode, with gaps that extend on ties.
"""

from functools import partial

import numpy as np

from bwarp.alignment.device_batch_cuda import (
    BLOCK,
    Costs,
    DeviceBatch,
    blocks,
    device_batch,
    find_full,
)
from bwarp.alignment.few_pairs_cuda import few_alignments
from bwarp.alignment.gatk_cpu import (
    OVERHANGS,
    GatkAlignments,
    GatkParameters,
    check_overhang,
)
from bwarp.alignment.int32_kernel_cuda import NO_END
from bwarp.alignment.pair_tables_cuda import EndArrays, PairArrays
from bwarp.alignment.pairs import PairBatch, check_pairs
from bwarp.alignment.traceback_cuda import trace_alignments
from bwarp.gpu.cuda import cuda, int32
from bwarp.gpu.device_arrays import columns
from bwarp.gpu.kernel import kernel
from bwarp.gpu.memory_pool import device_array, work_space

ALL = 0xFFFFFFFF
MOST_CODES = 32


def gatk_alignments(
    pairs: PairBatch, parameters: GatkParameters, overhang: str, threads: int = 1
) -> GatkAlignments:
    """Do what `gatk_cpu.gatk_alignments` does, on a GPU."""
    check_pairs(pairs)
    check_overhang(overhang)
    costs = gatk_costs(parameters, overhang)
    find_exact = partial(_find_exact, parameters, overhang)
    traced = few_alignments(_by_rows(pairs), costs, find_exact)
    if traced is None:
        with work_space():
            batch = gatk_batch(pairs, threads)
            outputs = exact_occurrences(batch, parameters, overhang)
            if batch.count:
                find_full(batch, costs, outputs, outputs.query_ends, NO_END)
            traced = trace_alignments(batch, costs, outputs, threads)
    offsets = traced.query_starts
    if overhang == "ignore":
        offsets -= traced.reference_starts
    elif overhang != "softclip":
        offsets[:] = 0
    return GatkAlignments(traced.scores, offsets, traced.cigar_offsets, traced.cigar)


def exact_occurrences(batch: DeviceBatch, parameters: GatkParameters, overhang: str) -> EndArrays:
    """Return scores and ends; the ends are NO_END if the alternate does not occur, or the overhang
    strategy does not use occurrences.
    """
    outputs = columns(EndArrays, batch.count, device_array)
    if batch.count:
        shape = blocks(batch.count, 32), BLOCK
        _find_exact(parameters, overhang, shape, batch.arrays, outputs)
    return outputs


def _find_exact(parameters, overhang, shape, arrays: PairArrays, ends: EndArrays) -> None:
    is_searched = overhang in ("softclip", "ignore")
    find_last_occurrences[shape](arrays, parameters.match, is_searched, ends)


def gatk_batch(pairs: PairBatch, threads: int) -> DeviceBatch:
    """Copy GATK's references as queries, and its alternates as references, to the GPU."""
    return device_batch(_by_rows(pairs), threads)


def _by_rows(pairs: PairBatch) -> PairBatch:
    """Return GATK's references as queries, which are along the rows, and alternates as references.

    Bases stay bytes: their low five bits, which kernels use as codes, are all different.
    """
    return PairBatch(pairs.references, pairs.queries)


def gatk_costs(parameters: GatkParameters, overhang: str) -> Costs:
    """Return GATK's scores and ends for the 32-bit kernels."""
    matrix = np.full((MOST_CODES, MOST_CODES), parameters.mismatch, np.int32)
    np.fill_diagonal(matrix, parameters.match)
    is_clipped = overhang in ("softclip", "ignore")
    free = (is_clipped, overhang != "indel", is_clipped, is_clipped)
    strategy = {"softclip": 1, "ignore": 2}.get(overhang, 0)
    assert overhang in OVERHANGS
    return Costs(matrix, parameters.gap_open, parameters.gap_extend, False, free, overhang=strategy)


@kernel
def find_last_occurrences(pairs: PairArrays, match: int, searched: bool, ends: EndArrays):
    """Find the right-most exact occurrence of each alternate in its reference, if there is one.

    GATK's references are the queries of `pairs`, and its alternates the references.

    One warp per pair compares 32 neighbouring positions at once, from the right, each up to the
    first difference. Without an occurrence, or if not `searched` for, the ends are NO_END.
    """
    pair = cuda.grid(1) // 32
    references, alternates = pairs.queries, pairs.references
    if pair >= references.lengths.size:
        return
    n, m = int32(references.lengths[pair]), int32(alternates.lengths[pair])
    reference, alternate = references.starts[pair], alternates.starts[pair]
    lane = int32(cuda.laneid)
    last = int32(n - m) if searched else int32(-1)
    while last >= 0:
        position = last - lane
        same = int32(0)
        if position >= 0:
            while (
                same < m
                and references.codes[reference + position + same]
                == alternates.codes[alternate + same]
            ):
                same += int32(1)
        found = cuda.ballot_sync(ALL, position >= 0 and same == m)
        if found != 0:
            if found & (1 << lane) and not found & ((1 << lane) - 1):
                ends.scores[pair] = int32(m * match)
                ends.query_ends[pair] = int32(position + m)
                ends.reference_ends[pair] = m
            return
        last -= int32(32)
    if lane == 0:
        ends.scores[pair] = int32(0)
        ends.query_ends[pair] = int32(NO_END)
        ends.reference_ends[pair] = int32(NO_END)
