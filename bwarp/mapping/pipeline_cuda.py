"""From chunks of reads to alignments with a GPU: several chunks at once, in turn on the GPU.

    GPU           chunk 4: scored hits of reads and of their mates
    threads       chunk 5: on its way to pinned memory
                  chunks 3, 2, 1: out of it; primary hits, alignments      chunk 0: handed on

A chunk is mapped by one thread from start to end. The GPU is used by one of them at a time: two
would take more of its memory and, measured, no less time. Meanwhile the others select primary hits,
align with gaps, encode and write. Reads and hits pass through pinned memory: between that and the
GPU a copy takes a tenth of the time, and the rest of the way is outside of the turn.

Where the GPU's memory is too small for a chunk it is scored in parts, and so are the chunks that
follow: reads are independent, but for the two of a pair.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from bwarp.errors import GpuMemoryError
from bwarp.gpu.available_memory import Pieces, attempt
from bwarp.gpu.pinned_memory import PinnedBuffer, PinnedBuffers
from bwarp.index.fm_index import FMIndex
from bwarp.mapping.extension.extension_cpu import Genome, both_strands
from bwarp.mapping.extension.scored_hits_cpu import ScoredHits, joined
from bwarp.mapping.extension.scored_hits_cuda import hits_on_host
from bwarp.mapping.pairing.insert_size import InsertSize, given_insert_size
from bwarp.mapping.parameters import MappingParameters, of_ends
from bwarp.mapping.pipeline import (
    MappedChunk,
    ScoredChunk,
    estimate_insert_size,
    finish_chunk,
    first_chunks,
    itself,
)
from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.mapping.seeding_rounds_cuda import (
    DeviceData,
    ScoredReads,
    add_mates,
    prepare,
    score_reads,
)
from bwarp.runtime.threads import in_order
from bwarp.runtime.timeline import on_timeline

__all__ = ["map_chunks"]

#: Chunks in work at a time, whatever the threads: each takes memory.
MOST_IN_WORK = 12

#: Chunks that `then` is called for at a time, whatever the threads: so many keep up with a GPU.
MOST_AFTER = 4

#: Chunks with pinned memory: one on the GPU, one before it and one after it.
PINNED = 3


def map_chunks(
    index: FMIndex,
    genome: Genome,
    chunks: Iterator[ReadChunk],
    parameters: MappingParameters,
    threads: int = 1,
    device: DeviceData | None = None,
    then: Callable = itself,
) -> Iterator:
    """Map chunks in their order; as `bwarp.mapping.pipeline.map_chunks`, and with the same result.

    Parameters
    ----------
    device : DeviceData, optional
        What `bwarp.mapping.seeding_rounds_cuda.prepare` has returned for the index already.
    then : function of MappedChunk
        Called in threads of its own; what it returns is yielded instead of the chunk.
    """
    scorer = _ChunkScorer(device or prepare(index), parameters)
    chunks = iter(chunks)
    insert = given_insert_size(parameters)
    in_work = min(threads, MOST_IN_WORK)

    def finish(one: tuple[ReadChunk, list[ScoredReads] | None]) -> MappedChunk:
        chunk, scored = one
        both = both_strands(chunk.codes, chunk.offsets)
        scored = scorer.score(chunk, both, insert, scored)
        return finish_chunk(index, genome, scored, insert, parameters)

    first = deque()
    if insert is None:
        on_host = []
        for chunk in first_chunks(chunks):
            scored, without_mates = scorer.score_first(chunk)
            first.append((chunk, scored))
            on_host.append(without_mates)
        insert = estimate_insert_size(on_host, genome, parameters)
        del on_host
    # A chunk that is scored already is not kept longer than the others.
    scored_first = (first.popleft() for _ in range(len(first)))
    others = ((chunk, None) for chunk in chunks)
    mapped = in_order(finish, chain(scored_first, others), in_work)
    yield from in_order(then, mapped, min(threads, MOST_AFTER))


class _OnHost(NamedTuple):
    """What the GPU has found of some reads; `hits` may be views of pinned memory."""

    hits: ScoredHits
    unlocated: np.ndarray
    searched: np.ndarray


class _ChunkScorer:
    """Scores chunks on the GPU, one at a time, with as many reads at once as fit."""

    def __init__(self, device: DeviceData, parameters: MappingParameters):
        self._device, self._parameters = device, parameters
        self._turn = threading.Lock()
        self._pinned = PinnedBuffers(PINNED)
        refusal = GpuMemoryError("mapping a read takes more GPU memory than is free")
        self._pieces = Pieces(device.index.plan.elements, refusal)

    def score_first(self, chunk: ReadChunk) -> tuple[list[ScoredReads], ScoredChunk]:
        """The hits of a chunk before mates can be rescued, kept on the GPU for `score`."""
        parameters = of_ends(self._parameters, chunk.ends)
        with self._pinned.lent() as pinned:

            def work(codes, offsets) -> tuple[ScoredReads, _OnHost]:
                scored = score_reads(self._device, codes, offsets, parameters)
                return scored, _on_host(scored, scored.hits, pinned, is_copied=True)

            found = self._in_parts(chunk, chunk.codes, work)
        nothing = np.empty(0, np.uint8)
        on_host = _scored_chunk(chunk, nothing, [there for _, there in found])
        return [scored for scored, _ in found], on_host

    @on_timeline("wait for the GPU, and copy")
    def score(
        self,
        chunk: ReadChunk,
        both: np.ndarray,
        insert: InsertSize | None,
        scored: list[ScoredReads] | None,
    ) -> ScoredChunk:
        """The hits of a chunk's reads and of their mates.

        Parameters
        ----------
        both : ndarray, shape=(2 * n_bases,), dtype=uint8
            The reads, then their reverse complements.
        scored : list of ScoredReads, optional
            What `score_first` has found.
        """

        parameters = of_ends(self._parameters, chunk.ends)

        def with_mates(scored: ScoredReads, is_copied: bool) -> _OnHost:
            hits = scored.hits
            if chunk.ends == 2:
                hits = add_mates(self._device, scored, insert, self._parameters)
            return _on_host(scored, hits, pinned, is_copied)

        def work(codes, offsets) -> _OnHost:
            scored = score_reads(self._device, codes, offsets, parameters)
            return with_mates(scored, is_copied=len(offsets) < len(chunk.offsets))

        with self._pinned.lent() as pinned:
            codes = chunk.codes
            if scored is None and chunk.n_reads <= self._pieces.at_once:
                # What is found comes back through the same memory: not for a chunk in parts.
                (codes,) = pinned.arrays(chunk.codes.size, [np.uint8])
                codes[:] = chunk.codes
            with self._turn:
                found = None
                if scored is not None:
                    found = attempt(lambda: [with_mates(part, is_copied=True) for part in scored])
                    # What the GPU kept of the chunk is freed.
                    scored.clear()
                if found is None:
                    found = self._in_parts(chunk, codes, work)
            return _scored_chunk(chunk, both, found)

    def _in_parts(self, chunk: ReadChunk, codes: np.ndarray, work) -> list:
        """``work(codes, offsets)`` of a chunk's reads, in as few parts as fit."""

        def part(first: int, stop: int):
            offsets = chunk.offsets[first : stop + 1]
            source = codes if stop - first == chunk.n_reads else chunk.codes
            return work(source[offsets[0] : offsets[-1]], offsets - offsets[0])

        return self._pieces.each(part, chunk.n_reads, chunk.ends)


def _on_host(scored: ScoredReads, hits, pinned: PinnedBuffer, is_copied: bool) -> _OnHost:
    on_host = hits_on_host(hits, pinned)
    if is_copied:
        on_host = ScoredHits(*map(np.array, on_host))
    return _OnHost(on_host, scored.unlocated.copy_to_host(), scored.searched)


def _scored_chunk(chunk: ReadChunk, both: np.ndarray, found: list[_OnHost]) -> ScoredChunk:
    """The chunk, its hits in memory of their own, so that the pinned memory can be used again."""
    hits, unlocated, searched = zip(*found, strict=True)
    hits = joined(hits) if len(found) > 1 else ScoredHits(*map(np.array, hits[0]))
    return ScoredChunk(chunk, both, hits, np.concatenate(unlocated), sum(searched))
