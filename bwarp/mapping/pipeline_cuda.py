"""From chunks of reads to alignments with a GPU: several chunks at once, in turn on the card.

    the card      chunk 4: places of reads and of their mates
    threads       chunk 5: on its way to pinned memory
                  chunks 3, 2, 1: out of it; choice, alignments      chunk 0: handed on

A chunk is mapped by one thread from start to end. The card is used by one of them at a time: two
would take more of its memory and, measured, no less time. Meanwhile others are chosen for, aligned
with gaps, encoded and written. What goes there and comes back passes through pinned memory: between
that and the card it takes a tenth of the time, and the rest of the way is gone outside of the turn.

Where the card's memory is too small for a chunk it is placed in parts, and so are the chunks that
follow: reads do not know of one another, but for the two of a pair.
"""

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain

import numpy as np

from bwarp.errors import GpuMemoryError
from bwarp.gpu.available_memory import attempt
from bwarp.gpu.pinned_memory import PinnedBuffer, PinnedBuffers
from bwarp.index.fm_index import FMIndex
from bwarp.mapping.extension.extension_cpu import Genome, both_strands
from bwarp.mapping.extension.scored_hits_cpu import Places, joined
from bwarp.mapping.extension.scored_hits_cuda import places_on_host
from bwarp.mapping.pairing.insert_size import InsertSize, given_insert_size
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.pipeline import (
    MappedChunk,
    PlacedChunk,
    estimate_insert_size,
    finish_chunk,
    first_chunks,
)
from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.mapping.seeding_rounds_cuda import Card, Placed, add_mates, place_reads, prepare
from bwarp.runtime.threads import in_order

__all__ = ["map_chunks"]

#: Chunks in work at a time, whatever the threads: each takes memory.
MOST_IN_WORK = 12

#: Chunks with pinned memory: one on the card, one before it and one after it.
PINNED = 3


def map_chunks(
    index: FMIndex,
    genome: Genome,
    chunks: Iterator[ReadChunk],
    parameters: MappingParameters,
    threads: int = 1,
    card: Card | None = None,
) -> Iterator[MappedChunk]:
    """Map chunks in their order; as `bwarp.mapping.pipeline.map_chunks`, and with the same result.

    Parameters
    ----------
    card : Card, optional
        What `bwarp.mapping.seeding_rounds_cuda.prepare` has made of the index already.
    """
    placer = _Placer(card or prepare(index), parameters)
    chunks = iter(chunks)
    insert = given_insert_size(parameters)
    in_work = min(threads, MOST_IN_WORK)

    def finish(one: tuple[ReadChunk, list[Placed] | None]) -> MappedChunk:
        chunk, placed = one
        both = both_strands(chunk.codes, chunk.offsets)
        return finish_chunk(genome, placer.place(chunk, both, insert, placed), insert, parameters)

    first = deque()
    if insert is None:
        on_host = []
        for chunk in first_chunks(chunks):
            placed, without_mates = placer.place_first(chunk)
            first.append((chunk, placed))
            on_host.append(without_mates)
        insert = estimate_insert_size(on_host, genome, parameters)
        del on_host
    # What has been placed already is not kept longer than others.
    placed_first = (first.popleft() for _ in range(len(first)))
    others = ((chunk, None) for chunk in chunks)
    yield from in_order(finish, chain(placed_first, others), in_work)


@dataclass(frozen=True)
class _OnHost:
    """What the card has found of some reads; `places` may be views of pinned memory."""

    places: Places
    unseen: np.ndarray
    searched: np.ndarray


class _Placer:
    """Places chunks on the card, one at a time, with as many reads at once as have room there."""

    def __init__(self, card: Card, parameters: MappingParameters):
        self._card, self._parameters = card, parameters
        self._turn = threading.Lock()
        self._pinned = PinnedBuffers(PINNED)
        self._reads_at_once = card.index.plan.elements

    def place_first(self, chunk: ReadChunk) -> tuple[list[Placed], PlacedChunk]:
        """What is found of a chunk before mates can be looked for, kept on the card for `place`."""
        with self._pinned.lent() as pinned:

            def work(codes, offsets) -> tuple[Placed, _OnHost]:
                placed = place_reads(self._card, codes, offsets, self._parameters)
                return placed, _on_host(placed, placed.places, pinned, is_copied=True)

            found = self._in_parts(chunk, chunk.codes, work)
        nothing = np.empty(0, np.uint8)
        on_host = _placed_chunk(chunk, nothing, [there for _, there in found])
        return [placed for placed, _ in found], on_host

    def place(
        self,
        chunk: ReadChunk,
        both: np.ndarray,
        insert: InsertSize | None,
        placed: list[Placed] | None,
    ) -> PlacedChunk:
        """The places of a chunk's reads and of their mates.

        Parameters
        ----------
        both : ndarray, shape=(2 * n_bases,), dtype=uint8
            The reads, then their reverse complements.
        placed : list of Placed, optional
            What `place_first` has found.
        """

        def with_mates(placed: Placed, is_copied: bool) -> _OnHost:
            places = placed.places
            if chunk.ends == 2:
                places = add_mates(self._card, placed, insert, self._parameters)
            return _on_host(placed, places, pinned, is_copied)

        def work(codes, offsets) -> _OnHost:
            placed = place_reads(self._card, codes, offsets, self._parameters)
            return with_mates(placed, is_copied=len(offsets) < len(chunk.offsets))

        with self._pinned.lent() as pinned:
            codes = chunk.codes
            if placed is None and chunk.n_reads <= self._reads_at_once:
                # What is found comes back through the same memory: not for a chunk in parts.
                (codes,) = pinned.arrays(chunk.codes.size, [np.uint8])
                codes[:] = chunk.codes
            with self._turn:
                found = None
                if placed is not None:
                    found = attempt(lambda: [with_mates(part, is_copied=True) for part in placed])
                    # What the card kept of the chunk is freed.
                    placed.clear()
                if found is None:
                    found = self._in_parts(chunk, codes, work)
            return _placed_chunk(chunk, both, found)

    def _in_parts(self, chunk: ReadChunk, codes: np.ndarray, work) -> list:
        """``work(codes, offsets)`` of a chunk's reads, in as few parts as have room."""
        found, first = [], 0
        while not found or first < chunk.n_reads:
            stop = min(first + self._reads_at_once // chunk.ends * chunk.ends, chunk.n_reads)
            offsets = chunk.offsets[first : stop + 1]
            if stop - first < chunk.n_reads:
                codes = chunk.codes
            here = codes[offsets[0] : offsets[-1]]
            part = attempt(partial(work, here, offsets - offsets[0]))
            if part is None:
                if stop - first <= chunk.ends:
                    raise GpuMemoryError("placing a read takes more GPU memory than is free")
                self._reads_at_once = max(chunk.ends, (stop - first) // 2)
                continue
            found.append(part)
            first = stop
        return found


def _on_host(placed: Placed, places, pinned: PinnedBuffer, is_copied: bool) -> _OnHost:
    on_host = places_on_host(places, pinned)
    return _OnHost(
        _copy(on_host) if is_copied else on_host, placed.unseen.copy_to_host(), placed.searched
    )


def _placed_chunk(chunk: ReadChunk, both: np.ndarray, found: list[_OnHost]) -> PlacedChunk:
    """The chunk, its places in memory of their own, so that the pinned one can be used again."""
    places = joined([part.places for part in found])
    return PlacedChunk(
        chunk,
        both,
        _copy(places) if len(found) == 1 else places,
        np.concatenate([part.unseen for part in found]),
        sum(part.searched for part in found),
    )


def _copy(places: Places) -> Places:
    return Places(*(np.array(getattr(places, field.name)) for field in fields(places)))
