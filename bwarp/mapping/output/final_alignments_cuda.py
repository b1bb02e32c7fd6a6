"""The final alignment of every chosen hit on the GPU, by the rules of final_alignments.

    rows            0  1  2  3  4  5  6 ...       as their hits were scored
    may have gaps      x        x                 listed: a few in a hundred
    aligned            0        1        ...      reads and windows, copied side by side

Few rows have gaps, or may have near an end. Only their alignments come to the host, as short
numbers and CIGARs, and go back as what they mean in the genome.

Reads are marked that clip more than they need: a long gap is looked for before the clipped end of
an alignment (long_gaps), and hits for what it clips (supplementary_and_secondary).
"""

from typing import NamedTuple

import numpy as np
from numba import cuda, int32, int64, uint8, uint32
from numba.cuda import types

from bwarp.alignment.pairs import MATCH
from bwarp.gpu.launch import ALL_LANES, launch
from bwarp.gpu.prefix_sum import exclusive_sum
from bwarp.gpu.transfers import to_gpu, to_host
from bwarp.gpu.workspace import cut, device_array, work_space
from bwarp.mapping.extension.extension_cuda import DeviceGenome, contig_at
from bwarp.mapping.extension.gap_search import gap_costs, least_clipped
from bwarp.mapping.extension.scored_hits_cpu import (
    END,
    FIELDS,
    GAPLESS,
    READ_END,
    READ_START,
    SCORE,
    START,
)
from bwarp.mapping.extension.scored_hits_cuda import DeviceScoredHits
from bwarp.mapping.output.end_gaps import (
    EndCosts,
    end_costs,
    loses_more_than_a_gap,
    two_gaps_may_gain,
)
from bwarp.mapping.output.end_gaps_cuda import gap_may_gain
from bwarp.mapping.output.final_alignments import NOTHING, is_another_part
from bwarp.mapping.output.gapped_alignments_cuda import align_with_gaps
from bwarp.mapping.output.supplementary_and_secondary import least_split
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.reads.device_reads_cuda import DeviceReads

__all__ = ["KERNEL_SIGNATURES", "DeviceAlignments", "align_hits", "mark_clipped"]

#: More bases than a read has.
_NEVER = 1 << 62


class DeviceAlignments(NamedTuple):
    """`MappedReads` on the GPU: an alignment a row; rows without one have position -1.

    Attributes
    ----------
    positions : device array, shape=(n,), dtype=int64
    strands : device array, shape=(n,), dtype=uint8
    read_starts, read_ends, scores : device array, shape=(n,), dtype=int32
    cigar_offsets : device array, shape=(n + 1,), dtype=uint32
    cigar : device array, dtype=uint32
        It may be longer than the last offset says.
    """

    positions: object
    strands: object
    read_starts: object
    read_ends: object
    scores: object
    cigar_offsets: object
    cigar: object


def align_hits(
    genome: DeviceGenome,
    reads: DeviceReads,
    hits: DeviceScoredHits,
    selected,
    reads_of_rows,
    parameters: MappingParameters,
    threads: int = 1,
) -> DeviceAlignments:
    """Align reads at their chosen hits; as `bwarp.mapping.output.final_alignments.align_hits`.

    Parameters
    ----------
    selected : device array, shape=(n,), dtype=int32
        The hit of every row; -1 for none.
    reads_of_rows : device array, shape=(n,), dtype=int32
        The read of every row.
    threads : int
        They bring alignments with gaps to the host.
    """
    n = selected.size
    dtypes = np.int64, np.uint8, np.int32, np.int32, np.int32
    fields = [cuda.device_array(n, dtype) for dtype in dtypes]
    cigar_offsets = cuda.device_array(n + 1, np.uint32)
    with work_space():
        listed = device_array(n + 1, np.uint32)
        n_listed = _list_rows(
            genome, reads, hits, selected, reads_of_rows, parameters, fields, listed
        )
        found, ends_on = NOTHING, np.empty(0, np.int64)
        if n_listed:
            found, ends_on = align_with_gaps(
                genome, reads, hits, selected, reads_of_rows, listed, n_listed, parameters, threads
            )
        # Some of these rows may stay as they are, and have one operation then.
        cigar = cuda.device_array(n + found.cigar.size, np.uint32)
        _take_found(
            hits, selected, listed, found, ends_on, parameters.largest_gap, fields, cigar_offsets,
            cigar, threads,
        )  # fmt: skip
    return DeviceAlignments(*fields, cigar_offsets, cigar)


def mark_clipped(
    reads: DeviceReads,
    hits: DeviceScoredHits,
    primary,
    alignments: DeviceAlignments,
    parameters: MappingParameters,
    marks,
) -> None:
    """Mark the reads that clip so much that they may get a long gap, or a supplementary record.

    Parameters
    ----------
    primary : DevicePrimary
    alignments : DeviceAlignments
        Row i is of read i.
    parameters : MappingParameters
        Those of records; not those `of_ends`.
    marks : device array, shape=(n_reads,), dtype=uint8
        1 is written for these reads; the others' stay.
    """
    long_gap = _NEVER
    if parameters.mode != END_TO_END:
        long_gap = int(least_clipped.py_func(gap_costs(parameters)))
    mark_clips[launch(reads.n_reads)](
        reads.offsets, hits.offsets, primary.hits, alignments.read_starts, alignments.read_ends,
        reads.n_reads, long_gap, least_split(parameters), marks,
    )  # fmt: skip


def _list_rows(genome, reads, hits, selected, reads_of_rows, parameters, fields, listed) -> int:
    """Rows as scored, and how many of them have gaps, or may have near an end; `listed` becomes,
    for every row, the number of those before it."""
    n, costs = selected.size, end_costs(parameters)
    unsure = device_array(n, np.int32)
    [counter] = to_gpu([np.zeros(1, np.int32)])
    put_scored[launch(n + 1)](
        selected, reads_of_rows, reads.offsets, hits.strands, hits.scored, n, *costs, *fields,
        listed, unsure, counter,
    )  # fmt: skip
    mark_gaps_near_ends[launch(n)](
        genome.blocks, genome.contig_starts, reads.blocks, reads.offsets, reads.both.size // 2,
        hits.strands, hits.scored, selected, reads_of_rows, unsure, counter, *costs, listed,
    )  # fmt: skip
    exclusive_sum(listed)
    [[n_listed]] = to_host([cut(listed, listed.dtype.itemsize * n, 1, np.uint32)])
    return int(n_listed)


def _take_found(
    hits, selected, listed, found, ends_on, largest_gap, fields, cigar_offsets, cigar, threads
):
    """Give listed rows the alignments found for them, and all rows their CIGARs."""
    n = selected.size
    columns = (
        (found.positions, np.int64), (found.read_starts, np.int32), (found.read_ends, np.int32),
        (found.scores, np.int32), (ends_on, np.int64), (found.cigar_offsets, np.uint32),
        (found.cigar, np.uint32),
    )  # fmt: skip
    *columns, offsets, operations = to_gpu(
        [np.ascontiguousarray(column, dtype) for column, dtype in columns], threads
    )
    is_taken = device_array(offsets.size, np.uint8)
    positions, _, read_starts, read_ends, scores = fields
    take_found[launch(n + 1)](
        selected, hits.scored, n, listed, *columns, offsets, largest_gap, positions, read_starts,
        read_ends, scores, is_taken, cigar_offsets,
    )  # fmt: skip
    exclusive_sum(cigar_offsets)
    write_cigars[launch(n)](
        n, listed, is_taken, offsets, operations, read_starts, read_ends, cigar_offsets, cigar
    )


@cuda.jit(cache=True)
def put_scored(
    selected, reads_of_rows, offsets, strands, scored, n, match, loss, gap_open, gap_extend, clip,
    largest_gap, run, positions, row_strands, read_starts, read_ends, scores, listed, unsure,
    counter,
):  # fmt: skip
    """Rows as their hits were scored. One thread a row, and one for the number after the last.

    Rows with gaps are marked; gapless ones that lose more than a gap costs are unsure, and listed
    in any order.
    """
    row = cuda.grid(1)
    lane = int64(cuda.laneid)
    costs = EndCosts(match, loss, gap_open, gap_extend, clip, largest_gap, run)
    hit = int64(selected[row]) if row < n else int64(-1)
    mark, is_unsure = uint32(0), False
    position, strand = int64(-1), uint8(0)
    begin, end, score = int64(0), int64(0), int64(0)
    if hit >= 0:
        read, at = reads_of_rows[row], FIELDS * hit
        position, strand, score = scored[at + START], strands[hit], scored[at + SCORE]
        begin, end = scored[at + READ_START], scored[at + READ_END]
        if scored[at + GAPLESS] == 0:
            mark = uint32(1)
        else:
            length = offsets[read + 1] - offsets[read]
            is_unsure = loses_more_than_a_gap(score, length, begin, end, costs)
    if row < n:
        positions[row], row_strands[row], scores[row] = position, strand, score
        read_starts[row], read_ends[row] = begin, end
    if row <= n:
        listed[row] = mark
    lanes = int64(cuda.ballot_sync(ALL_LANES, is_unsure)) & ALL_LANES
    slot = int32(0)
    if lane == 0 and lanes != 0:
        slot = cuda.atomic.add(counter, 0, int32(cuda.popc(lanes)))
    slot = cuda.shfl_sync(ALL_LANES, slot, 0)
    if is_unsure:
        unsure[slot + cuda.popc(lanes & ((int64(1) << lane) - 1))] = row


@cuda.jit(cache=True)
def mark_gaps_near_ends(
    blocks, contig_starts, read_blocks, offsets, n_bases, strands, scored, selected, reads_of_rows,
    unsure, counter, match, loss, gap_open, gap_extend, clip, largest_gap, run, listed,
):  # fmt: skip
    """Mark unsure rows that a gap near an end may improve. One thread a row; some sectors of the
    read and of the genome at each end, and a few steps of integers a gap that might be."""
    slot = cuda.grid(1)
    if slot >= counter[0]:
        return
    costs = EndCosts(match, loss, gap_open, gap_extend, clip, largest_gap, run)
    row = int64(unsure[slot])
    hit, read = int64(selected[row]), reads_of_rows[row]
    at = FIELDS * hit
    first, length = offsets[read], offsets[read + 1] - offsets[read]
    if strands[hit]:
        first += n_bases
    start, begin, end = scored[at + START], scored[at + READ_START], scored[at + READ_END]
    contig = contig_at(contig_starts, start)
    gains = two_gaps_may_gain(max(begin, length - end), costs)
    if not gains:
        gains = gap_may_gain(
            blocks, read_blocks, first, length, start - begin, begin, end, contig_starts[contig],
            contig_starts[contig + 1], costs,
        )  # fmt: skip
    if gains:
        listed[row] = uint32(1)


@cuda.jit(cache=True)
def take_found(
    selected, scored, n, listed, found_positions, found_starts, found_ends, found_scores, ends_on,
    found_offsets, largest_gap, positions, read_starts, read_ends, scores, is_taken, counts,
):  # fmt: skip
    """Give listed rows what was found for them, and count the operations of all rows' CIGARs. One
    thread a row, and one for the number after the last."""
    row = cuda.grid(1)
    if row > n:
        return
    count = uint32(0)
    if row < n and selected[row] >= 0:
        count = uint32(1)
        slot = listed[row]
        if slot != listed[row + 1]:
            at = FIELDS * int64(selected[row])
            begin, end = scored[at + READ_START], scored[at + READ_END]
            start, stop = int64(found_starts[slot]), int64(found_ends[slot])
            is_another = is_another_part(
                scored[at + GAPLESS] != 0, begin, end, scored[at + END] - end, start, stop,
                ends_on[slot], largest_gap,
            )  # fmt: skip
            is_taken[slot] = uint8(0) if is_another else uint8(1)
            if not is_another:
                positions[row], scores[row] = found_positions[slot], found_scores[slot]
                read_starts[row], read_ends[row] = start, stop
                count = uint32(found_offsets[slot + 1] - found_offsets[slot])
    counts[row] = count


@cuda.jit(cache=True)
def write_cigars(
    n, listed, is_taken, found_offsets, operations, read_starts, read_ends, cigar_offsets, cigar
):
    """Write all rows' CIGARs: those found, or one match. One thread a row."""
    row = cuda.grid(1)
    if row >= n:
        return
    first, last = int64(cigar_offsets[row]), int64(cigar_offsets[row + 1])
    slot = listed[row]
    if slot != listed[row + 1] and is_taken[slot]:
        source = int64(found_offsets[slot]) - first
        for at in range(first, last):
            cigar[at] = operations[source + at]
    elif first < last:
        cigar[first] = uint32((read_ends[row] - read_starts[row]) << 4 | MATCH)


@cuda.jit(cache=True)
def mark_clips(
    offsets, hit_offsets, primary_hits, read_starts, read_ends, n_reads, long_gap, split, marks
):
    """One thread a read. A supplementary record takes another hit than the primary one."""
    read = cuda.grid(1)
    if read >= n_reads or primary_hits[read] < 0:
        return
    length = offsets[read + 1] - offsets[read]
    clipped = max(int64(read_starts[read]), length - read_ends[read])
    has_others = int64(hit_offsets[read + 1]) - int64(hit_offsets[read]) > 1
    if clipped >= long_gap or (has_others and clipped >= split):
        marks[read] = 1


_INTEGER, _LONGS, _NUMBERS = types.int64, types.int64[::1], types.uint32[::1]
_SIGNED, _BYTES = types.int32[::1], types.uint8[::1]
_COSTS = (_INTEGER,) * len(EndCosts._fields)

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    put_scored: (
        _SIGNED, _SIGNED, _LONGS, _BYTES, _LONGS, _INTEGER, *_COSTS, _LONGS, _BYTES, _SIGNED,
        _SIGNED, _SIGNED, _NUMBERS, _SIGNED, _SIGNED,
    ),
    mark_gaps_near_ends: (
        _NUMBERS, _LONGS, _NUMBERS, _LONGS, _INTEGER, _BYTES, _LONGS, _SIGNED, _SIGNED, _SIGNED,
        _SIGNED, *_COSTS, _NUMBERS,
    ),
    take_found: (
        _SIGNED, _LONGS, _INTEGER, _NUMBERS, _LONGS, _SIGNED, _SIGNED, _SIGNED, _LONGS, _NUMBERS,
        _INTEGER, _LONGS, _SIGNED, _SIGNED, _SIGNED, _BYTES, _NUMBERS,
    ),
    write_cigars: (
        _INTEGER, _NUMBERS, _BYTES, _NUMBERS, _NUMBERS, _SIGNED, _SIGNED, _NUMBERS, _NUMBERS
    ),
    mark_clips: (
        _LONGS, _NUMBERS, _SIGNED, _SIGNED, _SIGNED, _INTEGER, _INTEGER, _INTEGER, _BYTES
    ),
}  # fmt: skip
