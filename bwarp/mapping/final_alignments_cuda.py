"""The final alignment of every selected hit on the GPU, by the rules of final_alignments.

    rows            0  1  2  3  4  5  6 ...       as their hits were scored
    may have gaps      x        x                 listed: a few per hundred
    aligned            0        1        ...      adjacent copies of reads and windows

Few rows have gaps, or may have gaps. Only their alignments are copied to the host, as
short numbers and CIGARs, and are copied back in genome coordinates.

Reads that clip more than necessary are marked: the host searches for a long gap before the clipped
end, and for hits of the clipped bases.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.alignment.device_batch_cuda import DeviceBatch, with_host_lengths
from bwarp.alignment.pair_ends_cuda import batch_alignments
from bwarp.alignment.pairs import MATCH
from bwarp.alignment.scoring import FITTING, LOCAL
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32, uint64
from bwarp.gpu.device_arrays import columns, number_at, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import WARP, launch
from bwarp.gpu.memory_pool import device_array, work_space
from bwarp.gpu.sums_and_sorts import exclusive_sum, slot_in_list
from bwarp.gpu.transfers import to_gpu, to_host
from bwarp.mapping.extension_cpu import OnDiagonal, gap_costs, least_clipped, scoring_of
from bwarp.mapping.extension_cuda import DeviceGenome, contig_at
from bwarp.mapping.final_alignments import (
    NOTHING,
    READ_SENTINEL,
    WINDOW_SENTINEL,
    EndCosts,
    MappedReads,
    end_costs,
    end_gap_functions,
    in_genome,
    is_another_part,
    loses_more_than_a_gap,
    scoring_with_sentinels,
    window_of,
)
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.primary_hits_cuda import DevicePrimary
from bwarp.mapping.scored_hits_cpu import (
    END,
    FIELDS,
    GAPLESS,
    READ_END,
    READ_START,
    SCORE,
    START,
    WINDOW_END,
    WINDOW_START,
)
from bwarp.mapping.scored_hits_cuda import DeviceScoredHits
from bwarp.mapping.secondary_hits import least_split
from bwarp.reads.base_bits_cuda import base_at, bits_at, shifted_64
from bwarp.reads.device_reads_cuda import DeviceReads

# --------------------------------------------------------------------------------------------------
# Check on the GPU whether gaps may improve a stretch of a diagonal.
#
# The rules are in `bwarp.mapping.final_alignments`. Reads are in blocks of bits, as the genome is.


@cuda.jit(device=True)
def bits_of_read(blocks, first, _n):
    return bits_at(blocks, first)


@cuda.jit(device=True)
def turned(word):
    """Return the bits of a word in reverse order."""
    return uint64(cuda.brev(word))


@cuda.jit(device=True)
def count_bits(word):
    return cuda.popc(word)


_jit = partial(cuda.jit, device=True)
_functions = end_gap_functions(_jit, _jit, bits_at, bits_of_read, shifted_64, turned, count_bits)
gap_may_gain, two_inside_may_gain = _functions.gap_may_gain, _functions.two_inside_may_gain
gaps_may_gain = _functions.gaps_may_gain


# --------------------------------------------------------------------------------------------------
# Alignment with gaps of reads at listed hits on the GPU, as in final_alignments.
#
# Reads and windows are copied to adjacent memory, each between two sentinels that represent clipped
# ends. The results are copied to the host.


#: The strands of rows are known already.
_NO_STRANDS = np.empty(0, np.uint8)


class ChosenHits(NamedTuple):
    """The hit of each row, -1 for none, and its read."""

    hit: int32[::1]
    read: int32[::1]


class RowWindows(NamedTuple):
    """Listed rows, starts of their windows, and lengths of both sides with sentinels."""

    rows: int32[::1]
    window_starts: int64[::1]
    query_lengths: int32[::1]
    window_lengths: int32[::1]


class PairCopies(NamedTuple):
    """Copies of reads and windows, and the start of each."""

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
    """Return the alignments of listed rows on the host, without strands, and the diagonals on which
    they end.

    Parameters
    ----------
    listed : device array, shape=(n + 1,), dtype=uint32
        Number of listed rows before each row.
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
    """List rows to align, their windows, and the lengths of both sides with sentinels. One thread
    per row."""
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
    """Copy reads on strands, and windows, between sentinels. One warp per row, every 32nd base per
    lane; its threads read one or two blocks of the genome at a time."""
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


#: More than the number of bases of any read.
_NEVER = 1 << 62


class DeviceAlignments(NamedTuple):
    """`MappedReads` on the GPU: one alignment per row; rows without one have position -1. `cigar`
    may be longer than the last offset."""

    positions: int64[::1]
    strands: uint8[::1]
    read_starts: int32[::1]
    read_ends: int32[::1]
    scores: int32[::1]
    cigar_offsets: uint32[::1]
    cigar: uint32[::1]


class ListedRows(NamedTuple):
    """Number of rows before each that have gaps, or may have gaps; and a list of rows
    for which this is unknown, in any order."""

    before: uint32[::1]
    unsure: int32[::1]
    n_unsure: int32[::1]


class FoundRows(NamedTuple):
    """The alignments of listed rows, and the diagonals on which they end."""

    positions: int64[::1]
    read_starts: int32[::1]
    read_ends: int32[::1]
    scores: int32[::1]
    ends_on: int64[::1]
    cigar_offsets: uint32[::1]
    cigar: uint32[::1]


def align_hits(
    genome: DeviceGenome,
    reads: DeviceReads,
    hits: DeviceScoredHits,
    selected,
    reads_of_rows,
    parameters: MappingParameters,
    threads: int = 1,
) -> DeviceAlignments:
    """Align reads at their selected hits, like `bwarp.mapping.final_alignments.align_hits`.

    Parameters
    ----------
    selected : device array, shape=(n,), dtype=int32
        The hit of each row; -1 for none.
    reads_of_rows : device array, shape=(n,), dtype=int32
        The read of each row.
    threads : int
        Number of threads that copy alignments with gaps to the host.
    """
    n, rows, costs = selected.size, ChosenHits(selected, reads_of_rows), end_costs(parameters)
    offsets = cuda.device_array(n + 1, np.uint32)
    # Operations are written last; until then the offsets stand in for them.
    aligned = columns(DeviceAlignments, n, cigar_offsets=offsets, cigar=offsets)
    with work_space():
        before = device_array(n + 1, np.uint32)
        listed = ListedRows(before, device_array(n, np.int32), zeros(1, np.int32))
        put_scored(rows, reads, hits, costs, aligned, listed)
        mark_gaps(rows, reads, genome, hits, costs, listed)
        exclusive_sum(before)
        n_listed = number_at(before, n)
        found, ends_on = NOTHING, np.empty(0, np.int64)
        if n_listed:
            found, ends_on = align_with_gaps(
                genome, reads, hits, rows, before, n_listed, parameters, threads
            )
        there = FoundRows(*to_gpu([
            np.ascontiguousarray(found.positions, np.int64),
            np.ascontiguousarray(found.read_starts, np.int32),
            np.ascontiguousarray(found.read_ends, np.int32),
            np.ascontiguousarray(found.scores, np.int32),
            np.ascontiguousarray(ends_on, np.int64),
            np.ascontiguousarray(found.cigar_offsets, np.uint32),
            np.ascontiguousarray(found.cigar, np.uint32),
        ], threads))  # fmt: skip
        is_taken = device_array(there.cigar_offsets.size, np.uint8)
        take_found(rows, hits, listed, there, parameters.largest_gap, is_taken, aligned)
        exclusive_sum(offsets)
        # Some of these rows may stay unchanged, with a single operation.
        cigar = cuda.device_array(n + found.cigar.size, np.uint32)
        aligned = aligned._replace(cigar=cigar)
        write_cigars(listed, there, is_taken, aligned)
    return aligned


def mark_clipped(
    reads: DeviceReads,
    hits: DeviceScoredHits,
    primary: DevicePrimary,
    alignments: DeviceAlignments,
    parameters: MappingParameters,
    marks,
) -> None:
    """Mark reads that clip enough bases for a long gap or a supplementary record.

    Parameters
    ----------
    alignments : DeviceAlignments
        Row i is of read i.
    parameters : MappingParameters
        The parameters of records, not those of `of_ends`.
    marks : device array, shape=(n_reads,), dtype=uint8
        Set to 1 for these reads; other marks are unchanged.
    """
    long_gap = _NEVER
    if parameters.mode != END_TO_END:
        long_gap = int(least_clipped.py_func(gap_costs(parameters)))
    split = least_split(parameters)
    mark_clips[launch(reads.n_reads)](reads, hits, primary, alignments, long_gap, split, marks)


@kernel(over="listed.before")
def put_scored(
    rows: ChosenHits, reads: DeviceReads, hits: DeviceScoredHits, costs: EndCosts,
    aligned: DeviceAlignments, listed: ListedRows,
):  # fmt: skip
    """Write rows as their hits were scored. One thread per row, and one for the final offset.

    Rows with gaps are marked; gapless rows that lose more than the cost of a gap are unsure, and
    listed in any order.
    """
    n, scored = rows.hit.size, hits.scored
    row = cuda.grid(1)
    hit = int64(rows.hit[row]) if row < n else int64(-1)
    mark, is_unsure = uint32(0), False
    position, strand = int64(-1), uint8(0)
    begin, end, score = int64(0), int64(0), int64(0)
    if hit >= 0:
        read, at = rows.read[row], FIELDS * hit
        position, strand, score = scored[at + START], hits.strands[hit], scored[at + SCORE]
        begin, end = scored[at + READ_START], scored[at + READ_END]
        if scored[at + GAPLESS] == 0:
            mark = uint32(1)
        else:
            length = reads.offsets[read + 1] - reads.offsets[read]
            is_unsure = loses_more_than_a_gap(score, length, begin, end, costs)
    if row < n:
        aligned.positions[row], aligned.strands[row], aligned.scores[row] = position, strand, score
        aligned.read_starts[row], aligned.read_ends[row] = begin, end
    if row <= n:
        listed.before[row] = mark
    slot = slot_in_list(listed.n_unsure, is_unsure)
    if is_unsure:
        listed.unsure[slot] = row


@kernel(over="rows.hit")
def mark_gaps(
    rows: ChosenHits, reads: DeviceReads, genome: DeviceGenome, hits: DeviceScoredHits,
    costs: EndCosts, listed: ListedRows,
):  # fmt: skip
    """Mark unsure rows that gaps may improve. One thread per row; some sectors of the read and the
    genome at each end and at each mismatch, and a few integer steps per possible gap."""
    contig_starts, scored = genome.contig_starts, hits.scored
    slot = cuda.grid(1)
    if slot >= listed.n_unsure[0]:
        return
    row = int64(listed.unsure[slot])
    hit, read = int64(rows.hit[row]), rows.read[row]
    at = FIELDS * hit
    first, length = reads.offsets[read], reads.offsets[read + 1] - reads.offsets[read]
    if hits.strands[hit]:
        first += reads.n_bases
    start, begin, end = scored[at + START], scored[at + READ_START], scored[at + READ_END]
    contig = contig_at(contig_starts, start)
    read_there = OnDiagonal(
        first, length, start - begin, contig_starts[contig], contig_starts[contig + 1]
    )
    score = int64(scored[at + SCORE])
    if gaps_may_gain(genome.blocks, reads.blocks, read_there, begin, end, score, costs):
        listed.before[row] = uint32(1)


@kernel(over="listed.before")
def take_found(
    rows: ChosenHits, hits: DeviceScoredHits, listed: ListedRows, found: FoundRows,
    largest_gap: int, is_taken: uint8[::1], aligned: DeviceAlignments,
):  # fmt: skip
    """Give listed rows their alignments, and count the operations of all rows' CIGARs. One thread
    per row, and one for the final offset."""
    scored = hits.scored
    row = cuda.grid(1)
    if row > rows.hit.size:
        return
    count = uint32(0)
    if row < rows.hit.size and rows.hit[row] >= 0:
        count = uint32(1)
        slot = listed.before[row]
        if slot != listed.before[row + 1]:
            at = FIELDS * int64(rows.hit[row])
            begin, end = scored[at + READ_START], scored[at + READ_END]
            start, stop = int64(found.read_starts[slot]), int64(found.read_ends[slot])
            is_another = is_another_part(
                scored[at + GAPLESS] != 0, begin, end, scored[at + END] - end, start, stop,
                found.ends_on[slot], largest_gap,
            )  # fmt: skip
            is_taken[slot] = uint8(0) if is_another else uint8(1)
            if not is_another:
                aligned.positions[row], aligned.scores[row] = (
                    found.positions[slot],
                    found.scores[slot],
                )
                aligned.read_starts[row], aligned.read_ends[row] = start, stop
                count = uint32(found.cigar_offsets[slot + 1] - found.cigar_offsets[slot])
    aligned.cigar_offsets[row] = count


@kernel(over="aligned.positions")
def write_cigars(
    listed: ListedRows, found: FoundRows, is_taken: uint8[::1], aligned: DeviceAlignments
):
    """Write the CIGARs of all rows: those found, or a single match. One thread per row."""
    row = cuda.grid(1)
    if row >= aligned.positions.size:
        return
    first, last = int64(aligned.cigar_offsets[row]), int64(aligned.cigar_offsets[row + 1])
    slot = listed.before[row]
    if slot != listed.before[row + 1] and is_taken[slot]:
        source = int64(found.cigar_offsets[slot]) - first
        for at in range(first, last):
            aligned.cigar[at] = found.cigar[source + at]
    elif first < last:
        aligned.cigar[first] = uint32(
            (aligned.read_ends[row] - aligned.read_starts[row]) << 4 | MATCH
        )


@kernel
def mark_clips(
    reads: DeviceReads, hits: DeviceScoredHits, primary: DevicePrimary, aligned: DeviceAlignments,
    long_gap: int, split: int, marks: uint8[::1],
):  # fmt: skip
    """Mark clipped reads with another hit for a supplementary record. One thread per read."""
    read = cuda.grid(1)
    if read >= reads.offsets.size - 1 or primary.hits[read] < 0:
        return
    length = reads.offsets[read + 1] - reads.offsets[read]
    clipped = max(int64(aligned.read_starts[read]), length - aligned.read_ends[read])
    has_others = int64(hits.offsets[read + 1]) - int64(hits.offsets[read]) > 1
    if clipped >= long_gap or (has_others and clipped >= split):
        marks[read] = 1
