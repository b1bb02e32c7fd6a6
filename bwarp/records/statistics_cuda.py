"""Count the statistics of plain reads on the GPU, as in statistics.py."""

from typing import NamedTuple

import numpy as np

from bwarp.alignment.pairs import DELETION
from bwarp.gpu.cuda import cuda, int32, int64, uint8
from bwarp.gpu.device_arrays import zeros
from bwarp.gpu.kernel import kernel
from bwarp.mapping.extension_cuda import DeviceGenome
from bwarp.mapping.final_alignments_cuda import DeviceAlignments
from bwarp.mapping.insert_size import InsertSize
from bwarp.mapping.primary_hits_cuda import DevicePrimary
from bwarp.mapping.scored_hits_cpu import FIELDS, GAPLESS
from bwarp.mapping.scored_hits_cuda import DeviceScoredHits
from bwarp.records.bam_records_cuda import reference_span
from bwarp.records.record_rules import is_match
from bwarp.records.statistics import (
    INSERT_BIN,
    INSERT_BINS,
    STAGES,
    depth_step,
    empty_statistics,
    size_counts,
)

#: Index of each sum of `count_reads`.
_SUMS = 9
(
    _MAPPED, _BOTH_MAPPED, _PROPER, _CONFIDENT, _ALIGNED, _INSERTED, _EDITS, _HITS, _GAPPED,
) = range(_SUMS)  # fmt: skip


class CountPlan(NamedTuple):
    """Start of each kind of counts, from `_edges`, and the bases from one depth to the next."""

    qualities: int
    sizes: int
    depths: int
    depth_step: int


def count_plain(
    genome: DeviceGenome,
    hits: DeviceScoredHits,
    alignments: DeviceAlignments,
    primary: DevicePrimary,
    edits,
    marks,
    ends: int,
) -> np.ndarray:
    """Count the data of `counts_of_plain` on the GPU; dtype=int64.

    Parameters
    ----------
    marks : device array, shape=(n_reads,), dtype=uint8
        1 for reads that are not counted.
    """
    edges = _edges(genome.n_bases)
    there = zeros(edges[-1], np.int64)
    plan = CountPlan(*edges[1:4], depth_step(genome.n_bases))
    count_reads(hits, alignments, primary, edits, marks, ends, plan, there)
    return there.copy_to_host()


def counts_of_plain(
    counted: np.ndarray,
    n_bases: int,
    offsets: np.ndarray,
    marks: np.ndarray,
    insert: InsertSize,
    ends: int,
    searched: np.ndarray,
    orphans: np.ndarray | None = None,
) -> dict:
    """Return the counts of unmarked reads; `searched` (of `ScoredChunk`) covers all reads.

    Parameters
    ----------
    counted : ndarray, dtype=int64
        Result of `count_plain`.
    n_bases : int
        Number of bases of the genome.
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    marks : ndarray, shape=(n_reads,), dtype=uint8
    orphans : ndarray, shape=(n_templates,), dtype=bool, optional
        Templates without a second read.
    """
    sums, qualities, sizes, depths = np.split(counted, _edges(n_bases)[1:-1])
    is_plain = marks == 0
    n_orphans = 0 if orphans is None else int(np.count_nonzero(orphans & is_plain[::2]))
    n_reads = int(np.count_nonzero(is_plain)) - n_orphans
    n_mapped = int(sums[_MAPPED])
    stages = (
        n_reads, *searched, sums[_HITS], sums[_GAPPED], n_mapped, sums[_CONFIDENT],
    )  # fmt: skip
    counts = empty_statistics() | {
        "reads": n_reads,
        "bases": int(np.diff(offsets)[is_plain].sum()),
        "mapped": n_mapped,
        "unmapped": n_reads - n_mapped,
        "paired": n_reads - n_orphans if ends == 2 else 0,
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
    """Return the offsets of sums, qualities, insert sizes and depths in one array to copy to the
    host, and its size."""
    n_depths = -(-n_bases // depth_step(n_bases))
    parts = _SUMS, len(empty_statistics()["mapping_qualities"]), INSERT_BINS, n_depths
    return np.cumsum([0, *parts]).tolist()


@cuda.jit(device=True)
def _stop_of(alignments, row):
    """Return the end of an alignment on the reference."""
    span = reference_span(
        alignments.cigar,
        int64(alignments.cigar_offsets[row]),
        int64(alignments.cigar_offsets[row + 1]),
    )
    return alignments.positions[row] + span


@kernel(over="marks")
def count_reads(
    hits: DeviceScoredHits, alignments: DeviceAlignments, primary: DevicePrimary, edits: int32[::1],
    marks: uint8[::1], ends: int, plan: CountPlan, counts: int64[::1],
):  # fmt: skip
    """Add each read to the counts. One thread per read, one atomic addition per count."""
    read = int64(cuda.grid(1))
    if read >= marks.size or marks[read]:
        return
    first, last = int64(hits.offsets[read]), int64(hits.offsets[read + 1])
    gapped = int64(0)
    for hit in range(first, last):
        gapped += 1 if hits.scored[FIELDS * hit + GAPLESS] == 0 else 0
    cuda.atomic.add(counts, _HITS, last - first)
    cuda.atomic.add(counts, _GAPPED, gapped)
    position = alignments.positions[read]
    if position < 0:
        return
    quality = int64(primary.qualities[read])
    cuda.atomic.add(counts, _MAPPED, int64(1))
    cuda.atomic.add(counts, plan.qualities + quality, int64(1))
    if quality >= 30:
        cuda.atomic.add(counts, _CONFIDENT, int64(1))
    if ends == 2:
        mate = read ^ 1
        if alignments.positions[mate] >= 0:
            cuda.atomic.add(counts, _BOTH_MAPPED, int64(1))
        if primary.proper[read]:
            cuda.atomic.add(counts, _PROPER, int64(1))
            if mate > read:
                low = min(position, alignments.positions[mate])
                high = max(
                    _stop_of(alignments, read),
                    _stop_of(alignments, mate),
                )
                size = min((high - low) // INSERT_BIN, int64(INSERT_BINS - 1))
                cuda.atomic.add(counts, plan.sizes + size, int64(1))
    aligned, inserted = int64(0), int64(0)
    for i in range(
        int64(alignments.cigar_offsets[read]), int64(alignments.cigar_offsets[read + 1])
    ):
        length, operation = int64(alignments.cigar[i]) >> 4, int64(alignments.cigar[i]) & 15
        if is_match(operation):
            aligned += length
            step = plan.depth_step
            site = (position + step - 1) // step
            while site * step < position + length:
                cuda.atomic.add(counts, plan.depths + site, int64(1))
                site += 1
            position += length
        elif operation == DELETION:
            position += length
        else:
            inserted += length
    cuda.atomic.add(counts, _ALIGNED, aligned)
    cuda.atomic.add(counts, _INSERTED, inserted)
    cuda.atomic.add(counts, _EDITS, int64(edits[read]))
