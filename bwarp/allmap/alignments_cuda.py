"""Align reads at their loci on a GPU; alignments equal those of alignments_cpu.

    every locus        differing bases on its diagonal; most need nothing else     one thread each
    others, by edits   furthest-reaching rows, then a traceback                    one thread each
    others, by score   their bases are copied on the GPU; then the kernels of `bwarp.alignment`

Reads and genome are in the blocks of `bwarp.reads.base_bits_cuda`.
"""

from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np

from bwarp.alignment.device_batch_cuda import DeviceBatch, DeviceSequences, with_host_lengths
from bwarp.alignment.pair_ends_cuda import batch_alignments
from bwarp.alignment.pairs import DELETION, INSERTION, MATCH, Alignments
from bwarp.alignment.scoring import Mode
from bwarp.allmap.alignments_cpu import (
    LocusAlignments,
    ReadsAtLoci,
    most_mismatches,
    no_alignment,
    reads_at,
    with_gaps,
)
from bwarp.allmap.edits_cuda import Compared, agreeing, count_mismatches, furthest
from bwarp.allmap.options import Extension, FoundLoci, LocusOptions
from bwarp.allmap.verify_cpu import LEFT, NOWHERE, RIGHT
from bwarp.gpu.cuda import cuda, int32, int64, uint32
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.memory_pool import work_space
from bwarp.gpu.transfers import to_gpu
from bwarp.reads.base_bits_cuda import copy_bases
from bwarp.runtime.compiled_code import compiled

#: `count_differing` for a locus whose length differs from that of its read.
_NOT_AS_LONG = (1 << 31) - 1

#: Memory for furthest-reaching rows, and the maximum number of threads that share it.
_ROW_BYTES = 256 << 20
_MOST_THREADS = 1 << 16

#: Bases of reads that are aligned by score at a time.
_BASES_AT_ONCE = 1 << 26


class LocusArrays(NamedTuple):
    """Loci, and where their reads begin in the blocks of both strands."""

    begins: int64[::1]
    lengths: int32[::1]
    starts: int64[::1]
    sizes: int32[::1]


class Limits(NamedTuple):
    """The edits of loci that are not on one diagonal, and their maximum gap letters."""

    edits: int32[::1]
    gaps: int32[::1]


class Runs(NamedTuple):
    """The number of operations of each alignment (0: there is none), and its operations; those of
    alignment i begin at ``i * width``.
    """

    counts: int32[::1]
    operations: uint32[::1]
    width: int


def align(
    genome,
    blocks,
    offsets: np.ndarray,
    loci: FoundLoci,
    limits: LocusOptions,
    extension: Extension | None,
    turn: AbstractContextManager,
) -> LocusAlignments:
    """Do what `bwarp.allmap.alignments_cpu.align` does.

    Parameters
    ----------
    genome, blocks : device array, dtype=uint32
        Blocks of the genome; blocks of the reads, followed by their reverse complements.
    turn : context manager
        Entered while the GPU works, not while the host prepares loci or joins alignments.
    """
    reads = reads_at(offsets, loci)
    differing = np.empty(0, np.int32)
    if reads.begins.size:
        columns = _columns_of(reads)
        with turn:
            on_gpu = cuda.device_array(reads.begins.size, np.int32)
            count_differing(genome, blocks, _on_gpu(columns), on_gpu)
            differing = on_gpu.copy_to_host()
    if extension is None:
        gaps = limits.gaps_of(limits.edits_of(np.diff(offsets)))[loci.reads]
        return _align_by_edits(genome, blocks, reads, gaps, differing, turn)
    return _align_by_score(genome, blocks, reads, extension, differing, turn)


def _columns_of(reads: ReadsAtLoci, rows: np.ndarray | slice = slice(None)) -> list[np.ndarray]:
    """Return the columns of `LocusArrays` for some loci."""
    begins, lengths, starts, ends, _ = (column[rows] for column in reads)
    sizes = (ends - starts).astype(np.int32)
    return [
        np.ascontiguousarray(begins), lengths.astype(np.int32), np.ascontiguousarray(starts), sizes
    ]  # fmt: skip


def _on_gpu(columns: list[np.ndarray]) -> LocusArrays:
    return LocusArrays(*to_gpu(columns))


def _align_by_edits(
    genome, blocks, reads: ReadsAtLoci, gaps: np.ndarray, differing: np.ndarray, turn
) -> LocusAlignments:
    others = np.flatnonzero(differing != reads.distances)
    counts, traced = np.empty(0, np.int32), np.empty((0, 1), np.uint32)
    if others.size:
        edits = reads.distances[others].astype(np.int64)
        most = np.minimum(gaps[others], edits)
        # Every gap letter may have an operation of its own and one before it; one follows the last.
        width = 2 * int(most.max()) + 1
        room = int(_rows_room(edits, most).max())
        n_threads = max(1, min(others.size, _MOST_THREADS, _ROW_BYTES // (4 * room)))
        columns = _columns_of(reads, others)
        shape = launch(n_threads)
        with turn:
            rows = cuda.device_array(shape[0] * shape[1] * room, np.int32)
            limits = Limits(*to_gpu([column.astype(np.int32) for column in (edits, most)]))
            runs = Runs(
                cuda.device_array(others.size, np.int32),
                cuda.device_array(others.size * width, np.uint32),
                width,
            )
            trace_edits[shape](genome, blocks, _on_gpu(columns), limits, rows, runs)
            counts = runs.counts.copy_to_host()
            traced = runs.operations.copy_to_host().reshape(-1, width)
        if not counts.all():
            raise no_alignment()
    n = differing.size
    cigar_offsets = np.zeros(n + 1, np.int64)
    cigar = np.empty(n - others.size + int(counts.sum()), np.uint32)
    _join_traced(reads.lengths, others, counts, traced, cigar_offsets, cigar)
    return LocusAlignments(
        cigar_offsets, cigar, reads.starts, reads.ends, reads.distances, -reads.distances
    )


@compiled
def _join_traced(lengths, others, counts, traced, offsets, cigar):
    """Write the CIGARs of all loci: M alone, except for `others`, which were traced back."""
    used, other = np.int64(0), 0
    for i in range(lengths.size):
        if other < others.size and others[other] == i:
            for at in range(counts[other]):
                cigar[used + at] = traced[other, at]
            used += counts[other]
            other += 1
        else:
            cigar[used] = np.uint32(lengths[i]) << np.uint32(4) | np.uint32(MATCH)
            used += 1
        offsets[i + 1] = used


def _rows_room(edits, gaps):
    """Return how many furthest-reaching rows `trace_edits` keeps; takes numbers or arrays."""
    return (gaps + 1) * (edits + 1) * (2 * gaps + 3)


def _align_by_score(
    genome, blocks, reads: ReadsAtLoci, extension: Extension, differing: np.ndarray, turn
) -> LocusAlignments:
    most = most_mismatches(extension)
    waiting = np.flatnonzero((differing > most) | (reads.distances > most))

    def align_pairs(rows: np.ndarray, mode: Mode) -> Alignments:
        _, lengths, _, sizes = columns = _columns_of(reads, rows)
        with turn, work_space():
            at = _on_gpu(columns)
            batch = DeviceBatch(
                _copied(blocks, at.begins, at.lengths, lengths),
                _copied(genome, at.starts, at.sizes, sizes),
            )
            return batch_alignments(batch, extension.scoring, mode)

    return with_gaps(reads, extension, waiting, differing, align_pairs, _BASES_AT_ONCE)


def _copied(blocks, starts, lengths, host_lengths: np.ndarray) -> DeviceSequences:
    codes, copied_starts, _ = copy_bases(blocks, starts, lengths)
    return with_host_lengths(codes, copied_starts, lengths, host_lengths)


@kernel(over="loci.begins")
def count_differing(
    genome: uint32[::1], reads: uint32[::1], loci: LocusArrays, differing: int32[::1]
):
    """Count the differing bases of loci that are as long as their reads.

    One thread per locus, which reads the bases of both once.
    """
    i = cuda.grid(1)
    if i < loci.begins.size:
        length = int64(loci.lengths[i])
        count = int64(_NOT_AS_LONG)
        if length == int64(loci.sizes[i]):
            count = count_mismatches(
                Compared(genome, reads), loci.starts[i], loci.begins[i], length
            )
        differing[i] = int32(count)


class Traced(NamedTuple):
    """One locus for the thread that aligns its read: its limits, and the thread's share of the
    furthest-reaching rows, every `stride`-th number from `thread` on.
    """

    rows: object
    thread: int
    stride: int
    edits: int
    most: int


@cuda.jit(device=True)
def cell_of(traced, letters, s, k):
    """Return where the row of diagonal k is, with `letters` gap letters and `s` edits."""
    cell = (letters * (traced.edits + 1) + s) * (2 * traced.most + 3) + traced.most + 1 + k
    return cell * traced.stride + traced.thread


@kernel
def trace_edits(
    genome: uint32[::1], reads: uint32[::1], loci: LocusArrays, limits: Limits, rows: int32[::1],
    runs: Runs,
):  # fmt: skip
    """Find the alignment of each locus with its edits and the fewest gap letters, by the rules of
    `bwarp.allmap.alignments_cpu`.

    Each thread takes every n-th locus. It keeps `_rows_room` numbers, which are interleaved with
    those of the other threads, and compares 32 bases at a time: about ``edits * letters ** 2 / 2``
    stretches of the read for an alignment with `letters` gap letters.
    """
    thread, stride = int64(cuda.grid(1)), int64(cuda.gridsize(1))
    bases = Compared(genome, reads)
    for i in range(thread, loci.begins.size, stride):
        traced = Traced(rows, thread, stride, int64(limits.edits[i]), int64(limits.gaps[i]))
        letters = reach_end(bases, loci, i, traced)
        count = int32(0)
        if letters >= 0:
            count = trace_back(bases, loci, i, traced, letters, runs)
        runs.counts[i] = count


@cuda.jit(device=True)
def reach_end(bases, loci, i, traced):
    """Do what `_reach_end` of alignments_cpu does."""
    start, size = loci.starts[i], int64(loci.sizes[i])
    begin, length = loci.begins[i], int64(loci.lengths[i])
    rows, edits, most = traced.rows, traced.edits, traced.most
    last_diagonal = size - length
    for letters in range(most + 1):
        for s in range(edits + 1):
            for k in range(-most - 1, most + 2):
                rows[cell_of(traced, letters, s, k)] = int32(NOWHERE)
        for s in range(letters, edits + 1):
            for k in range(-letters, letters + 1, 2):
                last = min(length, size - k)
                row = int64(0)
                if s > 0:
                    same, shorter, longer = int64(NOWHERE), int64(NOWHERE), int64(NOWHERE)
                    if s > letters:
                        same = int64(rows[cell_of(traced, letters, s - 1, k)])
                    if letters > 0:
                        shorter = int64(rows[cell_of(traced, letters - 1, s - 1, k - 1)])
                        longer = int64(rows[cell_of(traced, letters - 1, s - 1, k + 1)])
                    row = int64(furthest(same, shorter, longer, last))
                if row >= 0:
                    row += agreeing(bases, start + row + k, begin + row, last - row, RIGHT)
                rows[cell_of(traced, letters, s, k)] = int32(row)
        at_end = cell_of(traced, letters, edits, last_diagonal)
        if abs(last_diagonal) <= letters and int64(rows[at_end]) == length:
            return int64(letters)
    return int64(-1)


@cuda.jit(device=True)
def trace_back(bases, loci, i, traced, letters, runs):
    """Do what `_trace` of alignments_cpu does."""
    start, size = loci.starts[i], int64(loci.sizes[i])
    begin, length = loci.begins[i], int64(loci.lengths[i])
    rows, operations = traced.rows, runs.operations
    first = int64(i) * runs.width
    row, k, edits = length, size - length, traced.edits
    used = int64(0)
    while row > 0 or row + k > 0:
        operation, n = uint32(MATCH), int64(0)
        if row > 0 and row + k > 0:
            n = int64(agreeing(bases, start + row + k, begin + row, min(row, row + k), LEFT))
        if n == 0:
            n = int64(1)
            edits -= 1
            is_mismatch = False
            if row > 0 and row + k > 0 and edits >= letters:
                is_mismatch = int64(rows[cell_of(traced, letters, edits, k)]) >= row - 1
            if not is_mismatch:
                letters -= 1
                operation = uint32(INSERTION)
                from_left = cell_of(traced, letters, edits, k - 1)
                if row + k > 0 and abs(k - 1) <= letters and int64(rows[from_left]) >= row:
                    operation = uint32(DELETION)
        if operation == uint32(DELETION):
            k -= 1
        else:
            row -= n
            if operation == uint32(INSERTION):
                k += 1
        before = first + used - 1
        if used > 0 and operations[before] & uint32(15) == operation:
            operations[before] = uint32(operations[before] + uint32(n << 4))
        else:
            operations[before + 1] = uint32(uint32(n << 4) | operation)
            used += 1
    for at in range(used // 2):
        one, other = first + at, first + used - 1 - at
        kept = operations[one]
        operations[one] = operations[other]
        operations[other] = kept
    return int32(used)
