"""Which reads may be split, or have a long gap, found on the GPU by the rule of split_reads.

The host handles these reads, because they are few.
"""

import numpy as np

from bwarp.gpu.cuda import cuda, int64, uint8
from bwarp.gpu.device_arrays import zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.mapping.extension_cpu import GapCosts, gap_costs, least_clipped
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.scored_hits_cpu import FIELDS, READ_END, READ_START, SCORE
from bwarp.mapping.scored_hits_cuda import DeviceScoredHits
from bwarp.mapping.split_reads import (
    MOST_HITS,
    clips_part,
    gains_by_gap,
    least_part,
    longest_clip,
)
from bwarp.reads.device_reads_cuda import DeviceReads


def mark_split_reads(reads: DeviceReads, hits: DeviceScoredHits, parameters: MappingParameters):
    """Mark with 1 (device array, uint8) the reads whose hits `with_split_reads` may change."""
    n_reads = reads.n_reads
    if parameters.mode == END_TO_END:
        return zeros(max(1, n_reads), np.uint8)
    marks = cuda.device_array(max(1, n_reads), np.uint8)
    costs = gap_costs(parameters)
    gap = int(least_clipped.py_func(costs))
    mark_reads[launch(n_reads)](reads, hits, costs, least_part(parameters), gap, marks)
    return marks


@kernel
def mark_reads(
    reads: DeviceReads, hits: DeviceScoredHits, costs: GapCosts, least: int, gap: int,
    marks: uint8[::1],
):  # fmt: skip
    """Mark the reads that may change. One thread per read.

    A thread loads the row of the best hit, or up to `MOST_HITS` rows if the read scores far less
    than it could.
    """
    scored, shortest_gap = hits.scored, costs.gap_open + costs.gap_extend
    read = cuda.grid(1)
    if read >= reads.offsets.size - 1:
        return
    first, last = int64(hits.offsets[read]), int64(hits.offsets[read + 1])
    may_change = False
    if first < last:
        length, row = reads.offsets[read + 1] - reads.offsets[read], FIELDS * first
        best = scored[row + SCORE]
        clipped = longest_clip(scored[row + READ_START], scored[row + READ_END], length)
        may_change = clips_part(clipped, least)
        if not may_change and last - first > 1 and best + costs.dearest < costs.match * length:
            for hit in range(first, min(last, first + MOST_HITS)):
                row = FIELDS * hit
                clipped = longest_clip(scored[row + READ_START], scored[row + READ_END], length)
                gains = gains_by_gap(
                    scored[row + SCORE], clipped, best, gap, shortest_gap, costs.match
                )
                may_change = may_change or gains
    marks[read] = 1 if may_change else 0
