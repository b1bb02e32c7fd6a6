"""Counts of what became of plain reads, made on the GPU, as statistics.py has them."""

import numpy as np
from numba import cuda, int64
from numba.cuda import types

from bwarp.alignment.pairs import DELETION, MATCH
from bwarp.gpu.device_arrays import zeros
from bwarp.gpu.kernel_loading import compiled_kernel
from bwarp.gpu.launch import launch
from bwarp.mapping.extension.extension_cuda import DeviceGenome
from bwarp.mapping.extension.scored_hits_cpu import FIELDS, GAPLESS
from bwarp.mapping.extension.scored_hits_cuda import DeviceScoredHits
from bwarp.mapping.output.alignment_counts import depth_step
from bwarp.mapping.output.final_alignments_cuda import DeviceAlignments
from bwarp.mapping.output.record_text_cuda import reference_span
from bwarp.mapping.output.statistics import (
    INSERT_BIN,
    INSERT_BINS,
    STAGES,
    empty_statistics,
    size_counts,
)
from bwarp.mapping.pairing.insert_size import InsertSize
from bwarp.mapping.pairing.primary_hits_cuda import DevicePrimary

__all__ = ["KERNEL_SIGNATURES", "count_plain", "counts_of_plain"]

#: Where each sum stands among those of `count_reads`.
_SUMS = 9
(
    _MAPPED, _BOTH_MAPPED, _PROPER, _CONFIDENT, _ALIGNED, _INSERTED, _EDITS, _HITS, _GAPPED,
) = range(_SUMS)  # fmt: skip


def count_plain(
    genome: DeviceGenome,
    hits: DeviceScoredHits,
    alignments: DeviceAlignments,
    primary: DevicePrimary,
    edits,
    marks,
    ends: int,
) -> np.ndarray:
    """What `counts_of_plain` is made of, counted on the GPU; dtype=int64.

    Parameters
    ----------
    marks : device array, shape=(n_reads,), dtype=uint8
        1 for the reads that are not counted.
    """
    edges = _edges(genome.n_bases)
    there = zeros(edges[-1], np.int64)
    count_reads[launch(marks.size)](
        hits.offsets, hits.scored, *alignments, primary.qualities, primary.proper, edits, marks,
        ends, depth_step(genome.n_bases), *edges[1:4], there,
    )  # fmt: skip
    return there.copy_to_host()


def counts_of_plain(
    counted: np.ndarray,
    n_bases: int,
    offsets: np.ndarray,
    marks: np.ndarray,
    insert: InsertSize,
    ends: int,
    searched: np.ndarray,
) -> dict:
    """The counts of the reads that are not marked; `searched` (as of `ScoredChunk`) is of all.

    Parameters
    ----------
    counted : ndarray, dtype=int64
        As of `count_plain`.
    n_bases : int
        Of the genome.
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    marks : ndarray, shape=(n_reads,), dtype=uint8
    """
    sums, qualities, sizes, depths = np.split(counted, _edges(n_bases)[1:-1])
    is_plain = marks == 0
    n_reads = int(np.count_nonzero(is_plain))
    n_mapped = int(sums[_MAPPED])
    stages = (
        n_reads, *searched, sums[_HITS], sums[_GAPPED], n_mapped, sums[_CONFIDENT],
    )  # fmt: skip
    counts = empty_statistics() | {
        "reads": n_reads,
        "bases": int(np.diff(offsets)[is_plain].sum()),
        "mapped": n_mapped,
        "unmapped": n_reads - n_mapped,
        "paired": n_reads if ends == 2 else 0,
        "both_mapped": int(sums[_BOTH_MAPPED]),
        "properly_paired": int(sums[_PROPER]),
        "mapping_qualities": qualities.tolist(),
        "stages": dict(zip(STAGES, map(int, stages), strict=True)),
        "aligned_bases": int(sums[_ALIGNED]),
        "inserted_bases": int(sums[_INSERTED]),
        "edits": int(sums[_EDITS]),
        "reference_bases": n_bases,
        "depths": depths,
        "insert_size": size_counts(insert),
    }
    if ends == 2:
        counts["insert_sizes"] = sizes.tolist()
    return counts


def _edges(n_bases: int) -> list[int]:
    """Where the sums, the reads of every quality, the pairs of every size and the depths begin in
    one array to bring back, and where it ends."""
    n_depths = -(-n_bases // depth_step(n_bases))
    parts = _SUMS, len(empty_statistics()["mapping_qualities"]), INSERT_BINS, n_depths
    return np.cumsum([0, *parts]).tolist()


@cuda.jit(device=True)
def _stop_of(positions, offsets, cigar, row):
    """Where an alignment ends on the reference."""
    span = reference_span(cigar, int64(offsets[row]), int64(offsets[row + 1]))
    return positions[row] + span


@compiled_kernel
def count_reads(
    hit_offsets, scored, positions, _strands, _read_starts, _read_ends, _scores, cigar_offsets,
    cigar, qualities, proper, edits, marks, ends, step, qualities_at, sizes_at, depths_at, counts,
):  # fmt: skip
    """Add what became of each read to the counts. One thread a read, an atomic addition a count."""
    read = int64(cuda.grid(1))
    if read >= marks.size or marks[read]:
        return
    first, last = int64(hit_offsets[read]), int64(hit_offsets[read + 1])
    gapped = int64(0)
    for hit in range(first, last):
        gapped += 1 if scored[FIELDS * hit + GAPLESS] == 0 else 0
    cuda.atomic.add(counts, _HITS, last - first)
    cuda.atomic.add(counts, _GAPPED, gapped)
    position = positions[read]
    if position < 0:
        return
    quality = int64(qualities[read])
    cuda.atomic.add(counts, _MAPPED, int64(1))
    cuda.atomic.add(counts, qualities_at + quality, int64(1))
    if quality >= 30:
        cuda.atomic.add(counts, _CONFIDENT, int64(1))
    if ends == 2:
        mate = read ^ 1
        if positions[mate] >= 0:
            cuda.atomic.add(counts, _BOTH_MAPPED, int64(1))
        if proper[read]:
            cuda.atomic.add(counts, _PROPER, int64(1))
            if mate > read:
                low = min(position, positions[mate])
                high = max(
                    _stop_of(positions, cigar_offsets, cigar, read),
                    _stop_of(positions, cigar_offsets, cigar, mate),
                )
                size = min((high - low) // INSERT_BIN, int64(INSERT_BINS - 1))
                cuda.atomic.add(counts, sizes_at + size, int64(1))
    aligned, inserted = int64(0), int64(0)
    for i in range(int64(cigar_offsets[read]), int64(cigar_offsets[read + 1])):
        length, operation = int64(cigar[i]) >> 4, int64(cigar[i]) & 15
        if operation == MATCH:
            aligned += length
            site = (position + step - 1) // step
            while site * step < position + length:
                cuda.atomic.add(counts, depths_at + site, int64(1))
                site += 1
            position += length
        elif operation == DELETION:
            position += length
        else:
            inserted += length
    cuda.atomic.add(counts, _ALIGNED, aligned)
    cuda.atomic.add(counts, _INSERTED, inserted)
    cuda.atomic.add(counts, _EDITS, int64(edits[read]))


_INTEGER, _LONGS, _NUMBERS = types.int64, types.int64[::1], types.uint32[::1]
_SIGNED, _BYTES = types.int32[::1], types.uint8[::1]

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    count_reads: (
        _NUMBERS, _LONGS, _LONGS, _BYTES, _SIGNED, _SIGNED, _SIGNED, _NUMBERS, _NUMBERS, _BYTES,
        _BYTES, _SIGNED, _BYTES, _INTEGER, _INTEGER, _INTEGER, _INTEGER, _INTEGER, _LONGS,
    ),
}  # fmt: skip
