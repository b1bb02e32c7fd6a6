"""Mark reads on the GPU that may get further records or another primary hit.

    ALT contigs     a hit on one
    Hi-C            another hit of other bases: the 5' part may become primary
    --all           another hit of the same bases that gets a record

The host handles these reads, because they are few.
"""

from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint8
from bwarp.gpu.kernel import kernel
from bwarp.mapping.extension_cuda import DeviceGenome, contig_at
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.primary_hits_cpu import same_bases
from bwarp.mapping.primary_hits_cuda import DevicePrimary, span_at
from bwarp.mapping.scored_hits_cpu import FIELDS, SCORE, START
from bwarp.mapping.scored_hits_cuda import DeviceScoredHits
from bwarp.mapping.secondary_hits import is_recorded
from bwarp.reads.device_reads_cuda import DeviceReads


class Wanted(NamedTuple):
    """The hits that are looked for.

    Attributes
    ----------
    alt : device array, shape=(n_contigs,), dtype=uint8
        1 for ALT contigs; all 0 if there are none.
    has_alt, parts, rivals : bool
        Whether hits on ALT contigs, of other bases, and of the same bases count.
    least : int
        Minimum score of a record.
    """

    alt: uint8[::1]
    has_alt: bool
    parts: bool
    rivals: bool
    least: int


def mark_further_records(
    genome: DeviceGenome,
    reads: DeviceReads,
    hits: DeviceScoredHits,
    primary: DevicePrimary,
    parameters: MappingParameters,
    marks,
) -> None:
    """Mark the reads with 1 (`marks`, device array, uint8); other marks are unchanged."""
    has_alt, parts, rivals = (
        bool(wanted) for wanted in (parameters.alt, parameters.hic, parameters.secondary_records)
    )
    if not (has_alt or parts or rivals):
        return
    alt = np.zeros(genome.contig_starts.size - 1, np.uint8)
    alt[list(parameters.alt)] = 1
    wanted = Wanted(cuda.to_device(alt), has_alt, parts, rivals, parameters.least_score)
    mark_reads(reads, hits, primary.hits, genome.contig_starts, wanted, marks)


@kernel(over="marks")
def mark_reads(
    reads: DeviceReads, hits: DeviceScoredHits, selected: int32[::1], contig_starts: int64[::1],
    wanted: Wanted, marks: uint8[::1],
):  # fmt: skip
    """Mark reads with a hit that is looked for. One thread per read, which stops at the first."""
    read = int64(cuda.grid(1))
    if read >= reads.offsets.size - 1 or marks[read]:
        return
    scored, chosen = hits.scored, int64(selected[read])
    length, best = reads.offsets[read + 1] - reads.offsets[read], int64(0)
    span = (int64(0), int64(0))
    if chosen >= 0:
        span, best = span_at(hits, chosen, length), scored[FIELDS * chosen + SCORE]
    for hit in range(int64(hits.offsets[read]), int64(hits.offsets[read + 1])):
        row, found = FIELDS * hit, False
        if wanted.has_alt:
            found = wanted.alt[contig_at(contig_starts, scored[row + START])] != 0
        if chosen >= 0 and hit != chosen and scored[row + SCORE] >= wanted.least:
            if same_bases(span, span_at(hits, hit, length)):
                found = found or (wanted.rivals and is_recorded(scored[row + SCORE], best))
            else:
                found = found or wanted.parts
        if found:
            marks[read] = 1
            return
