"""Reads aligned with gaps at listed hits on the GPU, as final_alignments does it.

Reads and windows are copied side by side there, each between two sentinels that stand for clipped
ends. What is found comes to the host.
"""

from typing import NamedTuple

import numpy as np

from bwarp.alignment.matrix.device_batch_cuda import DeviceBatch, with_host_lengths
from bwarp.alignment.pairwise.pairs_cuda import batch_alignments
from bwarp.alignment.scoring import FITTING, LOCAL
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32
from bwarp.gpu.device_arrays import columns
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import WARP
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

__all__ = ["ChosenHits", "align_with_gaps"]

#: Rows have theirs already.
_NO_STRANDS = np.empty(0, np.uint8)


class ChosenHits(NamedTuple):
    """The hit of every row, -1 for none, and its read."""

    hit: int32[::1]
    read: int32[::1]


class RowWindows(NamedTuple):
    """Listed rows, where their windows begin, and how long both sides are with sentinels."""

    rows: int32[::1]
    window_starts: int64[::1]
    query_lengths: int32[::1]
    window_lengths: int32[::1]


class PairCopies(NamedTuple):
    """Where reads and windows are copied to, and where each begins there."""

    queries: uint8[::1]
    windows: uint8[::1]
    query_firsts: int64[::1]
    window_firsts: int64[::1]


def align_with_gaps(
    genome: DeviceGenome,
    reads: DeviceReads,
    hits: DeviceScoredHits,
    chosen: ChosenHits,
    listed,
    n_listed: int,
    parameters: MappingParameters,
    threads: int = 1,
) -> tuple[MappedReads, np.ndarray]:
    """The alignments of listed rows on the host, without strands, and the diagonal on which each
    ends.

    Parameters
    ----------
    listed : device array, shape=(n + 1,), dtype=uint32
        How many rows before each are listed.
    """
    whole = parameters.mode == END_TO_END
    n_sentinels = 0 if whole else 1
    rows = columns(RowWindows, n_listed, device_array)
    cut_windows(genome, reads, hits, chosen, listed, parameters.largest_gap, n_sentinels, rows)
    lengths = [rows.query_lengths, rows.window_lengths]
    starts_on_host, *host_lengths = to_host([rows.window_starts, *lengths])
    ends = [np.cumsum(part, dtype=np.int64) for part in host_lengths]
    starts = to_gpu([end - part for end, part in zip(ends, host_lengths, strict=True)])
    codes = [device_array(int(end[-1]), np.uint8) for end in ends]
    copies = PairCopies(*codes, *starts)
    copy_pairs(genome, reads, hits, chosen, rows, n_sentinels, copies)
    batch = DeviceBatch(
        *(
            with_host_lengths(*side)
            for side in zip(codes, starts, lengths, host_lengths, strict=True)
        )
    )
    scoring = scoring_of(parameters) if whole else scoring_with_sentinels(parameters)
    found = batch_alignments(batch, scoring, FITTING if whole else LOCAL, threads)
    return in_genome(found, _NO_STRANDS, starts_on_host, host_lengths[0], parameters)


@kernel(over="chosen.hit")
def cut_windows(
    genome: DeviceGenome, reads: DeviceReads, hits: DeviceScoredHits, chosen: ChosenHits,
    listed: uint32[::1], largest_gap: int, n_sentinels: int, to: RowWindows,
):  # fmt: skip
    """List rows to align, their windows, and how long both sides are with sentinels. One thread a
    row."""
    contig_starts, scored = genome.contig_starts, hits.scored
    row = cuda.grid(1)
    if row >= chosen.hit.size or listed[row] == listed[row + 1]:
        return
    slot = listed[row]
    at, read = FIELDS * int64(chosen.hit[row]), chosen.read[row]
    length = reads.offsets[read + 1] - reads.offsets[read]
    contig = contig_at(contig_starts, scored[at + WINDOW_START])
    start, end = window_of(
        scored[at + WINDOW_START], scored[at + WINDOW_END], contig_starts[contig],
        contig_starts[contig + 1], length, largest_gap,
    )  # fmt: skip
    to.rows[slot], to.window_starts[slot] = row, start
    to.query_lengths[slot] = length + 2 * n_sentinels
    to.window_lengths[slot] = end - start + 2 * n_sentinels


@kernel(over="rows.rows", per=WARP)
def copy_pairs(
    genome: DeviceGenome, reads: DeviceReads, hits: DeviceScoredHits, chosen: ChosenHits,
    rows: RowWindows, n_sentinels: int, to: PairCopies,
):  # fmt: skip
    """Copy reads on strands, and windows, between sentinels. One warp a row, a lane every 32nd
    base; its threads read one block of the genome or two at a time."""
    slot = cuda.grid(1) // WARP
    if slot >= rows.rows.size:
        return
    lane = int64(cuda.laneid)
    row = rows.rows[slot]
    first = reads.offsets[chosen.read[row]]
    if hits.strands[int64(chosen.hit[row])]:
        first += reads.n_bases
    length = int64(rows.query_lengths[slot])
    for i in range(lane, length, WARP):
        code = uint8(READ_SENTINEL)
        if n_sentinels <= i < length - n_sentinels:
            code = reads.both[first + i - n_sentinels]
        to.queries[to.query_firsts[slot] + i] = code
    length = int64(rows.window_lengths[slot])
    for i in range(lane, length, WARP):
        code = uint8(WINDOW_SENTINEL)
        if n_sentinels <= i < length - n_sentinels:
            code = base_at(genome.blocks, rows.window_starts[slot] + i - n_sentinels)
        to.windows[to.window_firsts[slot] + i] = code
