"""From reads to scored places on the card: both rounds of seeds, and mates where they should be.

What a chunk needs stays on the card between the steps: its reads, its places, and for all chunks
the index and the genome. The host sees places once, when they are final.
"""

from dataclasses import dataclass, replace

import numpy as np
from numba import cuda, int64
from numba.cuda import types

from bwarp.index.device_index_cuda import DeviceIndex, make_device_index
from bwarp.index.fm_index import FMIndex
from bwarp.index.memory_plan import MemoryNeeds
from bwarp.mapping.extension.extension_cuda import (
    DeviceGenome,
    extend,
    genome_bytes,
    genome_on_gpu,
)
from bwarp.mapping.extension.scored_hits_cuda import FIELDS, DeviceScoredHits, merge
from bwarp.mapping.pairing.insert_size import InsertSize
from bwarp.mapping.pairing.mate_rescue_cuda import rescue_candidates
from bwarp.mapping.parameters import MappingParameters, SeedRound, good_scores
from bwarp.mapping.reads.device_reads_cuda import DeviceReads, both_strands, marked_reads
from bwarp.mapping.seeds.candidates_cpu import Candidates
from bwarp.mapping.seeds.candidates_cuda import find_candidates

__all__ = [
    "KERNEL_SIGNATURES",
    "READS_A_CHUNK",
    "DeviceData",
    "ScoredReads",
    "add_mates",
    "score_reads",
    "prepare",
]

#: Threads a block.
BLOCK = 128

#: Reads that are brought to the card at once: enough to fill it, and as few as small cards take.
READS_A_CHUNK = 1 << 18
FEWEST_READS = 1 << 13

#: About what a read takes on the card with its seeds, hits and places; more in poor genomes.
BYTES_A_READ = 8192


@dataclass(frozen=True)
class DeviceData:
    """What mapping keeps on the card for all chunks; `index.plan.elements` reads fit beside it."""

    index: DeviceIndex
    genome: DeviceGenome


@dataclass(frozen=True)
class ScoredReads:
    """A chunk's reads and their places, on the card.

    Attributes
    ----------
    reads : DeviceReads
    hits : DeviceScoredHits
    unlocated : device array, shape=(n_reads,), dtype=int32
        What a place not looked at can score at most.
    searched : ndarray, shape=(3,), dtype=int64
        Seeds, hits located and candidates of all rounds; on the host.
    """

    reads: DeviceReads
    hits: DeviceScoredHits
    unlocated: object
    searched: np.ndarray


def prepare(index: FMIndex, threads: int = 1) -> DeviceData:
    """Bring an index and its genome to the card; to be kept over all chunks."""
    needs = MemoryNeeds(
        with_reverse=False,
        with_suffixes="yes",
        bytes_an_element=BYTES_A_READ,
        fewest=FEWEST_READS,
        most=READS_A_CHUNK,
        beside=genome_bytes(index.reference),
    )
    device = make_device_index(index, needs, with_lists=False)
    return DeviceData(device, genome_on_gpu(index.reference, threads))


def score_reads(
    device: DeviceData, codes: np.ndarray, offsets: np.ndarray, parameters: MappingParameters
) -> ScoredReads:
    """Scored places of reads, in the rounds that `bwarp.mapping.pipeline` describes."""
    reads = both_strands(codes, offsets)
    n_reads = reads.n_reads
    searched = np.zeros(3, np.int64)

    def search(wanted, n_wanted: int, seeds: SeedRound) -> tuple[Candidates, DeviceScoredHits]:
        nonlocal searched
        found = find_candidates(device.index, reads, wanted, n_wanted, seeds, parameters)
        searched += found.searched
        return found, extend(device.genome, reads, found, parameters)

    blocks = -(-n_reads // BLOCK)
    everyone = cuda.to_device(np.arange(n_reads, dtype=np.int32))
    found, hits = search(everyone, n_reads, parameters.first)
    unlocated = found.unlocated
    is_unresolved = cuda.to_device(np.ones(n_reads, np.uint8))
    no_one = cuda.to_device(np.zeros(n_reads, np.uint8))
    margin = parameters.resolved_margin
    mark_unresolved[blocks, BLOCK](
        hits.offsets, hits.scored, found.score_bounds, margin, is_unresolved
    )
    wanted, n_wanted = marked_reads(is_unresolved)
    if n_wanted:
        found, more = search(wanted, n_wanted, parameters.second)
        hits = merge(hits, more, is_unresolved)
        take_unlocated[blocks, BLOCK](is_unresolved, found.unlocated, False, unlocated)
        mark_unresolved[blocks, BLOCK](
            hits.offsets, hits.scored, found.score_bounds, margin, is_unresolved
        )
    marks = cuda.device_array(n_reads, np.uint8)
    good = cuda.to_device(good_scores(reads.longest, parameters))
    for seeds in (parameters.long, parameters.more_hits, parameters.short):
        if seeds is parameters.long:
            mark_unlocated[blocks, BLOCK](is_unresolved, unlocated, marks)
        elif seeds is parameters.more_hits:
            loss = parameters.match - parameters.mismatch
            mark_rivalled[blocks, BLOCK](hits.offsets, hits.scored, unlocated, loss, marks)
        else:
            mark_poor[blocks, BLOCK](reads.offsets, hits.offsets, hits.scored, good, marks)
        wanted, n_wanted = marked_reads(marks)
        if n_wanted:
            found, more = search(wanted, n_wanted, seeds)
            hits = merge(hits, more, no_one)
            # What was seen in neither round scores no more than the lower of both bounds.
            take_unlocated[blocks, BLOCK](marks, found.unlocated, True, unlocated)
    return ScoredReads(reads, hits, unlocated, searched)


def add_mates(
    device: DeviceData, scored: ScoredReads, insert: InsertSize, parameters: MappingParameters
) -> DeviceScoredHits:
    """The places, and those that the mates of pairs tell of."""
    if not insert.highest:
        return scored.hits
    candidates = rescue_candidates(device.genome, scored.reads, scored.hits, insert, parameters)
    # A mate that lies where it should is believed with fewer bases.
    low = replace(parameters, least_score=parameters.least_mate_score)
    more = extend(device.genome, scored.reads, candidates, low)
    no_one = cuda.to_device(np.zeros(scored.reads.n_reads, np.uint8))
    return merge(scored.hits, more, no_one)


@cuda.jit(device=True)
def best_score(hit_offsets, scored, read):
    """The score of a read's best place, 0 where it has none."""
    first = int64(hit_offsets[read])
    if first < int64(hit_offsets[read + 1]):
        return scored[FIELDS * first]
    return int64(0)


@cuda.jit(cache=True)
def mark_unresolved(hit_offsets, scored, score_bounds, margin, is_unresolved):
    """Clear the marks of reads whose best place is clearly above any other. One thread a read."""
    read = cuda.grid(1)
    if read < is_unresolved.size and is_unresolved[read]:
        best = best_score(hit_offsets, scored, read)
        is_unresolved[read] = 1 if best < score_bounds[read] + margin else 0


@cuda.jit(cache=True)
def mark_unlocated(is_unresolved, unlocated, marks):
    """Mark open reads with hits left out. One thread a read."""
    read = cuda.grid(1)
    if read < marks.size:
        marks[read] = 1 if is_unresolved[read] and unlocated[read] > 0 else 0


@cuda.jit(cache=True)
def mark_rivalled(hit_offsets, scored, unlocated, loss, marks):
    """Mark reads of which a place not looked at may score as well, or `loss` less, as the best.

    One thread a read.
    """
    read = cuda.grid(1)
    if read < marks.size:
        best = best_score(hit_offsets, scored, read)
        marks[read] = 1 if unlocated[read] > 0 and best <= unlocated[read] + loss else 0


@cuda.jit(cache=True)
def mark_poor(offsets, hit_offsets, scored, good, marks):
    """Mark reads whose best score is below what is good for their length. One thread a read."""
    read = cuda.grid(1)
    if read < marks.size:
        length = offsets[read + 1] - offsets[read]
        marks[read] = 1 if best_score(hit_offsets, scored, read) < good[length] else 0


@cuda.jit(cache=True)
def take_unlocated(marks, found, is_lower, unlocated):
    """What was found of marked reads, or the lower of it and what was known. One thread a read."""
    read = cuda.grid(1)
    if read < marks.size and marks[read]:
        unlocated[read] = min(unlocated[read], found[read]) if is_lower else found[read]


_LONGS, _NUMBERS = types.int64[::1], types.uint32[::1]
_SIGNED, _BYTES = types.int32[::1], types.uint8[::1]

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    mark_unresolved: (_NUMBERS, _LONGS, _SIGNED, types.int64, _BYTES),
    mark_unlocated: (_BYTES, _SIGNED, _BYTES),
    mark_rivalled: (_NUMBERS, _LONGS, _SIGNED, types.int64, _BYTES),
    mark_poor: (_LONGS, _NUMBERS, _LONGS, _LONGS, _BYTES),
    take_unlocated: (_BYTES, _SIGNED, types.boolean, _SIGNED),
}
