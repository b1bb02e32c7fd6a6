"""From reads to scored hits on the GPU: the seeding rounds, and rescued mates.

The reads and hits of a chunk stay on the GPU between the steps, and the index and genome stay for
all chunks. Hits are copied to the host once, when they are final.
"""

from dataclasses import dataclass

import numpy as np

from bwarp.gpu.cuda import cuda, int64, uint8
from bwarp.gpu.device_arrays import zeros
from bwarp.gpu.kernel import kernel
from bwarp.index.device_index_cuda import DeviceIndex, make_device_index
from bwarp.index.fm_index import FMIndex
from bwarp.index.memory_plan import MemoryNeeds
from bwarp.mapping.candidates_cuda import ScoreBounds, find_candidates
from bwarp.mapping.extension_cuda import (
    DeviceGenome,
    extend,
    genome_bytes,
    genome_on_gpu,
)
from bwarp.mapping.insert_size import InsertSize
from bwarp.mapping.mate_rescue_cuda import rescue_candidates
from bwarp.mapping.parameters import MappingParameters, good_scores, of_ends
from bwarp.mapping.scored_hits_cpu import FIELDS, SCORE
from bwarp.mapping.scored_hits_cuda import DeviceScoredHits, merge
from bwarp.mapping.seeding_rounds import SECOND, bounds_after, needs_round, rounds_of
from bwarp.reads.device_reads_cuda import DeviceReads, both_strands, marked_reads
from bwarp.runtime.timeline import on_timeline

#: Reads that are scored at once: enough that kernel launches take a small part of the time, and
#: enough to keep up with the host; few enough for small GPUs.
MOST_READS = 1 << 20
ENOUGH_READS = 1 << 19
FEWEST_READS = 1 << 13

#: Memory for storing and sorting records is worth more than a full suffix array: with a sampled
#: one, mapping takes hardly longer, but records that the host has to sort take twice as long.
SPARE_BYTES = 8 << 30

#: GPU memory per read, for its seeds and hits, and for results of other groups that wait. In a
#: genome with 9 hits per read they take less than half of it; if they take more, reads are mapped
#: in smaller parts.
BYTES_A_READ = 6144


@dataclass(frozen=True)
class DeviceData:
    """Data on the GPU for all chunks; `index.plan.elements` reads fit into the remaining memory."""

    index: DeviceIndex
    genome: DeviceGenome


@dataclass(frozen=True)
class ScoredReads:
    """A chunk's reads and their hits, on the GPU.

    Attributes
    ----------
    reads : DeviceReads
    hits : DeviceScoredHits
    unlocated : device array, shape=(n_reads,), dtype=int32
        The likely score of an unlocated hit; 0 if there is none.
    searched : ndarray, shape=(3,), dtype=int64
        Seeds, hits located and candidates of all rounds; on the host.
    """

    reads: DeviceReads
    hits: DeviceScoredHits
    unlocated: object
    searched: np.ndarray


@on_timeline("bring the index to the GPU")
def prepare(index: FMIndex, threads: int = 1) -> DeviceData:
    """Copy an index and its genome to the GPU, for all chunks."""
    needs = MemoryNeeds(
        with_reverse=False,
        with_suffixes="yes",
        bytes_an_element=BYTES_A_READ,
        fewest=FEWEST_READS,
        enough=ENOUGH_READS,
        most=MOST_READS,
        beside=genome_bytes(index.reference),
        spare=SPARE_BYTES,
    )
    device = make_device_index(index, needs, with_lists=False, threads=threads)
    return DeviceData(device, genome_on_gpu(index.reference, threads))


@on_timeline("find and score hits on the GPU")
def score_reads(
    device: DeviceData, codes: np.ndarray, offsets: np.ndarray, parameters: MappingParameters
) -> ScoredReads:
    """Return scored hits of reads, the same as `seeding_rounds_cpu.score_reads`."""
    reads = both_strands(codes, offsets)
    n_reads = reads.n_reads
    found = find_candidates(
        device.index, reads, reads.numbers, n_reads, parameters.first, parameters
    )
    hits = extend(device.genome, reads, found.candidates, parameters)
    searched, bounds = found.searched, found.bounds
    no_one = zeros(n_reads, np.uint8)
    marks = cuda.device_array(n_reads, np.uint8)
    good = cuda.to_device(good_scores(reads.longest, parameters))
    for number, seeds in rounds_of(parameters):
        mark_reads(
            number, reads, hits, bounds, good, parameters.resolved_margin,
            parameters.match - parameters.mismatch, marks,
        )  # fmt: skip
        wanted, n_wanted = marked_reads(marks)
        if n_wanted:
            found = find_candidates(device.index, reads, wanted, n_wanted, seeds, parameters)
            more = extend(device.genome, reads, found.candidates, parameters)
            searched = searched + found.searched
            hits = merge(hits, more, marks if number == SECOND else no_one)
            take_bounds(number, marks, reads, found.bounds, parameters.match, bounds)
    return ScoredReads(reads, hits, bounds.unlocated, searched)


@on_timeline("find mates on the GPU")
def add_mates(
    device: DeviceData, scored: ScoredReads, insert: InsertSize, parameters: MappingParameters
) -> DeviceScoredHits:
    """Return the hits, including those of rescued mates."""
    if not insert.highest:
        return scored.hits
    candidates = rescue_candidates(device.genome, scored.reads, scored.hits, insert, parameters)
    more = extend(device.genome, scored.reads, candidates, of_ends(parameters, ends=2))
    no_one = zeros(scored.reads.n_reads, np.uint8)
    return merge(scored.hits, more, no_one)


@kernel(over="marks")
def mark_reads(
    number: int, reads: DeviceReads, hits: DeviceScoredHits, bounds: ScoreBounds, good: int64[::1],
    margin: int, loss: int, marks: uint8[::1],
):  # fmt: skip
    """Mark the reads that are searched in a round. One thread per read."""
    read = cuda.grid(1)
    if read >= marks.size:
        return
    first, best = int64(hits.offsets[read]), int64(0)
    if first < int64(hits.offsets[read + 1]):
        best = hits.scored[FIELDS * first + SCORE]
    length = reads.offsets[read + 1] - reads.offsets[read]
    is_needed = needs_round(
        number,
        length,
        best,
        bounds.score_bounds[read],
        bounds.unlocated[read],
        good[length],
        margin,
        loss,
    )
    marks[read] = 1 if is_needed else 0


@kernel(over="marks")
def take_bounds(
    number: int, marks: uint8[::1], reads: DeviceReads, found: ScoreBounds, match: int,
    bounds: ScoreBounds,
):  # fmt: skip
    """Write the bounds of the reads that took part in a round. One thread per read."""
    read = cuda.grid(1)
    if read < marks.size and marks[read]:
        length = reads.offsets[read + 1] - reads.offsets[read]
        bounds.score_bounds[read], bounds.unlocated[read] = bounds_after(
            number, length, match, int64(found.score_bounds[read]), int64(found.unlocated[read]),
            int64(bounds.score_bounds[read]), int64(bounds.unlocated[read]),
        )  # fmt: skip
