"""Reads aligned with gaps at listed hits on the GPU, as final_alignments does it.

Reads and windows are copied side by side there, each between two sentinels that stand for clipped
ends. What is found comes to the host.
"""

import numpy as np
from numba import cuda, int64, uint8
from numba.cuda import types

from bwarp.alignment.matrix.device_batch_cuda import DeviceBatch, with_host_lengths
from bwarp.alignment.pairwise.pairs_cuda import batch_alignments
from bwarp.alignment.scoring import FITTING, LOCAL
from bwarp.gpu.kernel_loading import compiled_kernel
from bwarp.gpu.launch import WARP, launch
from bwarp.gpu.transfers import to_gpu, to_host
from bwarp.gpu.workspace import device_array
from bwarp.mapping.extension.extension_cpu import scoring_of
from bwarp.mapping.extension.extension_cuda import DeviceGenome, contig_at
from bwarp.mapping.extension.scored_hits_cpu import FIELDS, WINDOW_END, WINDOW_START
from bwarp.mapping.extension.scored_hits_cuda import DeviceScoredHits
from bwarp.mapping.output.final_alignments import (
    READ_SENTINEL,
    WINDOW_SENTINEL,
    MappedReads,
    in_genome,
    scoring_with_sentinels,
    window_of,
)
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.reads.base_bits_cuda import base_at
from bwarp.mapping.reads.device_reads_cuda import DeviceReads

__all__ = ["KERNEL_SIGNATURES", "align_with_gaps"]

#: Rows have theirs already.
_NO_STRANDS = np.empty(0, np.uint8)


def align_with_gaps(
    genome: DeviceGenome,
    reads: DeviceReads,
    hits: DeviceScoredHits,
    selected,
    reads_of_rows,
    listed,
    n_listed: int,
    parameters: MappingParameters,
    threads: int = 1,
) -> tuple[MappedReads, np.ndarray]:
    """The alignments of listed rows on the host, without strands, and the diagonal on which each
    ends.

    Parameters
    ----------
    selected, reads_of_rows : device array, shape=(n,), dtype=int32
        The hit and the read of every row.
    listed : device array, shape=(n + 1,), dtype=uint32
        How many rows before each are listed.
    """
    whole = parameters.mode == END_TO_END
    n_sentinels = 0 if whole else 1
    rows = device_array(n_listed, np.int32)
    window_starts = device_array(n_listed, np.int64)
    lengths = [device_array(n_listed, np.int32) for _ in range(2)]
    cut_windows[launch(selected.size)](
        genome.contig_starts, reads.offsets, hits.scored, selected, reads_of_rows, listed,
        parameters.largest_gap, n_sentinels, rows, window_starts, *lengths,
    )  # fmt: skip
    starts_on_host, *host_lengths = to_host([window_starts, *lengths])
    ends = [np.cumsum(part, dtype=np.int64) for part in host_lengths]
    starts = to_gpu([end - part for end, part in zip(ends, host_lengths, strict=True)])
    codes = [device_array(int(end[-1]), np.uint8) for end in ends]
    copy_pairs[launch(WARP * n_listed)](
        genome.blocks, reads.both, reads.offsets, reads.both.size // 2, hits.strands, selected,
        reads_of_rows, rows, n_listed, window_starts, *lengths, *starts, n_sentinels, *codes,
    )  # fmt: skip
    batch = DeviceBatch(
        *(
            with_host_lengths(*side)
            for side in zip(codes, starts, lengths, host_lengths, strict=True)
        )
    )
    scoring = scoring_of(parameters) if whole else scoring_with_sentinels(parameters)
    found = batch_alignments(batch, scoring, FITTING if whole else LOCAL, threads)
    return in_genome(found, _NO_STRANDS, starts_on_host, host_lengths[0], parameters)


@compiled_kernel
def cut_windows(
    contig_starts, offsets, scored, selected, reads_of_rows, listed, largest_gap, n_sentinels,
    rows, window_starts, query_lengths, window_lengths,
):  # fmt: skip
    """List rows to align, their windows, and how long both sides are with sentinels. One thread a
    row."""
    row = cuda.grid(1)
    if row >= selected.size or listed[row] == listed[row + 1]:
        return
    slot = listed[row]
    at, read = FIELDS * int64(selected[row]), reads_of_rows[row]
    length = offsets[read + 1] - offsets[read]
    contig = contig_at(contig_starts, scored[at + WINDOW_START])
    start, end = window_of(
        scored[at + WINDOW_START], scored[at + WINDOW_END], contig_starts[contig],
        contig_starts[contig + 1], length, largest_gap,
    )  # fmt: skip
    rows[slot], window_starts[slot] = row, start
    query_lengths[slot] = length + 2 * n_sentinels
    window_lengths[slot] = end - start + 2 * n_sentinels


@compiled_kernel
def copy_pairs(
    blocks, both, offsets, n_bases, strands, selected, reads_of_rows, rows, n_listed,
    window_starts, query_lengths, window_lengths, query_firsts, window_firsts, n_sentinels,
    queries, windows,
):  # fmt: skip
    """Copy reads on strands, and windows, between sentinels. One warp a row, a lane every 32nd
    base; its threads read one block of the genome or two at a time."""
    slot = cuda.grid(1) // WARP
    if slot >= n_listed:
        return
    lane = int64(cuda.laneid)
    row = rows[slot]
    first = offsets[reads_of_rows[row]]
    if strands[int64(selected[row])]:
        first += n_bases
    length = int64(query_lengths[slot])
    for i in range(lane, length, WARP):
        code = uint8(READ_SENTINEL)
        if n_sentinels <= i < length - n_sentinels:
            code = both[first + i - n_sentinels]
        queries[query_firsts[slot] + i] = code
    length = int64(window_lengths[slot])
    for i in range(lane, length, WARP):
        code = uint8(WINDOW_SENTINEL)
        if n_sentinels <= i < length - n_sentinels:
            code = base_at(blocks, window_starts[slot] + i - n_sentinels)
        windows[window_firsts[slot] + i] = code


_INTEGER, _LONGS, _NUMBERS = types.int64, types.int64[::1], types.uint32[::1]
_SIGNED, _BYTES = types.int32[::1], types.uint8[::1]

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    cut_windows: (
        _LONGS, _LONGS, _LONGS, _SIGNED, _SIGNED, _NUMBERS, _INTEGER, _INTEGER, _SIGNED, _LONGS,
        _SIGNED, _SIGNED,
    ),
    copy_pairs: (
        _NUMBERS, _BYTES, _LONGS, _INTEGER, _BYTES, _SIGNED, _SIGNED, _SIGNED, _INTEGER, _LONGS,
        _SIGNED, _SIGNED, _LONGS, _LONGS, _INTEGER, _BYTES, _BYTES,
    ),
}  # fmt: skip
