"""CIGARs with = and X, and reads outside of regions, on the GPU: `--eqx` and `--regions`."""

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint8
from bwarp.gpu.device_arrays import zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.sums_and_sorts import add_up
from bwarp.mapping.extension_cuda import DeviceGenome
from bwarp.mapping.final_alignments_cuda import DeviceAlignments
from bwarp.reads.device_reads_cuda import DeviceReads
from bwarp.records.bam_records_cuda import array_on_gpu, reference_span, split_matches
from bwarp.records.record_rules import AlignedRead


def with_mismatches(
    genome: DeviceGenome, reads: DeviceReads, alignments: DeviceAlignments, reads_of_rows
) -> DeviceAlignments:
    """Return alignments with = and X in their CIGARs instead of M.

    Parameters
    ----------
    reads_of_rows : device array, shape=(n,), dtype=int32
        The read of each alignment.
    """
    offsets = zeros(alignments.positions.size + 1, np.uint32)
    split = alignments._replace(cigar_offsets=offsets, cigar=array_on_gpu(np.empty(0, np.uint32)))
    count_operations(genome, reads, alignments, reads_of_rows, split)
    split = split._replace(cigar=cuda.device_array(max(1, add_up(offsets)), np.uint32))
    write_operations(genome, reads, alignments, reads_of_rows, split)
    return split


@cuda.jit(device=True)
def _aligned(genome, reads, alignments, row, read):
    base = reads.offsets[read] + alignments.read_starts[row]
    if alignments.strands[row]:
        base += reads.offsets[reads.offsets.size - 1]
    return AlignedRead(
        genome.blocks, alignments.positions[row], reads.blocks, base, alignments.cigar,
        int64(alignments.cigar_offsets[row]), int64(alignments.cigar_offsets[row + 1]),
    )  # fmt: skip


@kernel(over="alignments.positions")
def count_operations(
    genome: DeviceGenome, reads: DeviceReads, alignments: DeviceAlignments,
    reads_of_rows: int32[::1], split: DeviceAlignments,
):  # fmt: skip
    """Count the operations of each CIGAR with = and X. One thread per row, which reads the bases
    and the genome under them."""
    row = int64(cuda.grid(1))
    if row < alignments.positions.size:
        aligned = _aligned(genome, reads, alignments, row, int64(reads_of_rows[row]))
        split.cigar_offsets[row] = split_matches(split.cigar, int64(0), aligned)


@kernel(over="alignments.positions")
def write_operations(
    genome: DeviceGenome, reads: DeviceReads, alignments: DeviceAlignments,
    reads_of_rows: int32[::1], split: DeviceAlignments,
):  # fmt: skip
    """Write each CIGAR with = and X at its offset. One thread per row."""
    row = int64(cuda.grid(1))
    if row < alignments.positions.size:
        aligned = _aligned(genome, reads, alignments, row, int64(reads_of_rows[row]))
        split_matches(split.cigar, int64(split.cigar_offsets[row]), aligned)


def marks_outside(alignments: DeviceAlignments, ends: int, regions: np.ndarray, marks):
    """Return marks (device array, uint8) with 1 also for reads that overlap no region, if their
    mates do not either.

    Parameters
    ----------
    alignments : DeviceAlignments
        Row i is of read i.
    ends : int
        Reads per template.
    regions : ndarray, shape=(n, 2), dtype=int64
        Result of `bwarp.records.output_options.joined_regions`.
    marks : device array, shape=(n_reads,), dtype=uint8
    """
    found = cuda.device_array(marks.size, np.uint8)
    starts, stops = (array_on_gpu(np.ascontiguousarray(column)) for column in regions.T)
    mark_outside(alignments, ends, starts, stops, marks, found)
    return found


@cuda.jit(device=True)
def _overlaps(alignments, read, starts, stops):
    """Return whether the alignment of a read overlaps a region, found by bisection."""
    position = alignments.positions[read]
    if position < 0:
        return False
    low, high = int64(0), int64(stops.size)
    while low < high:
        middle = (low + high) >> 1
        if stops[middle] <= position:
            low = middle + 1
        else:
            high = middle
    if low == stops.size:
        return False
    first, last = int64(alignments.cigar_offsets[read]), int64(alignments.cigar_offsets[read + 1])
    return starts[low] < position + reference_span(alignments.cigar, first, last)


@kernel(over="marks")
def mark_outside(
    alignments: DeviceAlignments, ends: int, starts: int64[::1], stops: int64[::1],
    marks: uint8[::1], found: uint8[::1],
):  # fmt: skip
    """Mark reads outside of all regions, and those that are marked. One thread per read."""
    read = int64(cuda.grid(1))
    if read >= marks.size:
        return
    is_inside = _overlaps(alignments, read, starts, stops)
    if ends == 2 and not is_inside:
        is_inside = _overlaps(alignments, read ^ 1, starts, stops)
    found[read] = 0 if is_inside and not marks[read] else 1
