"""BAM records of mapped reads: the bytes that samtools makes of our SAM records."""

import numpy as np

from bwarp.io.bam.records import Records
from bwarp.io.bam.sort_order import sort_keys
from bwarp.io.names import Names
from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.output.alignment_records import REVERSE, AlignmentRecords
from bwarp.mapping.output.comment_tags import ReadTags
from bwarp.mapping.output.record_writer import written_records
from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.runtime.compiled_code import compiled

__all__ = ["bam_records", "quality_sums"]

#: Lower qualities do not count when the best of duplicates is chosen, as in samtools.
_LEAST_QUALITY = 15


def quality_sums(chunk: ReadChunk) -> np.ndarray:
    """The sum of every read's qualities of 15 and more, by which duplicates are chosen, int64."""
    if chunk.qualities is None:
        # samtools takes missing qualities for 255.
        return 255 * np.diff(chunk.offsets)
    sums = np.empty(chunk.n_reads, np.int64)
    _sum_qualities(chunk.qualities, chunk.offsets, sums)
    return sums


@compiled
def _sum_qualities(qualities, offsets, sums):
    for read in range(sums.size):
        total = np.int64(0)
        for i in range(np.uint64(offsets[read]), np.uint64(offsets[read + 1])):
            quality = np.int64(qualities[i]) - 33
            total += quality if quality >= _LEAST_QUALITY else 0
        sums[read] = total


def bam_records(
    genome: Genome,
    contigs: Names,
    chunk: ReadChunk,
    both: np.ndarray,
    records: AlignmentRecords,
    read_group: bytes,
    quality_sums: np.ndarray,
    tags: ReadTags,
    threads: int = 1,
) -> list[Records]:
    """The records in order, in parts that lie one after another.

    If `quality_sums` of the reads are given, their mates' primary records hold them (ms).
    """
    # The header has no contigs without bases.
    numbers = np.cumsum(np.diff(genome.contig_starts) > 0) - 1
    keys = sort_keys(records.positions, records.flags & REVERSE != 0)
    parts = written_records(
        genome, contigs, chunk, both, records, read_group, quality_sums,
        (tags.binary, tags.binary_offsets), numbers, True, threads,
    )  # fmt: skip
    edges = np.cumsum([0] + [starts.size - 1 for _, starts in parts])
    return [
        Records(*part, keys[first:last])
        for part, first, last in zip(parts, edges, edges[1:], strict=False)
    ]
