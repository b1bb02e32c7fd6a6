"""From chunks of reads to alignments with a GPU: several chunks at once, in turn on the card.

    the card      chunk 4: places of reads and of their mates
    threads       chunk 5: on its way to pinned memory
                  chunks 3, 2, 1: out of it; choice, alignments      chunk 0: handed on

A chunk is mapped by one thread from start to end. The card is used by one of them at a time: two
would take more of its memory and, measured, no less time. Meanwhile others are chosen for, aligned
with gaps, encoded and written. What goes there and comes back passes through pinned memory: between
that and the card it takes a tenth of the time, and the rest of the way is gone outside of the turn.
"""

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import fields
from itertools import chain

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.mapping.extension_cpu import Genome, both_strands
from bwarp.mapping.insert_size import given_insert_size
from bwarp.mapping.mapper import (
    MappedChunk,
    PlacedChunk,
    estimate_insert_size,
    finish_chunk,
    first_chunks,
)
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.places_cpu import Places
from bwarp.mapping.places_cuda import places_on_host
from bwarp.mapping.placing_cuda import Card, Placed, add_mates, place_reads, prepare
from bwarp.mapping.read_chunks import ReadChunk
from bwarp.pinned_memory_cuda import PinnedPlaces
from bwarp.threads import in_order

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
    """Map chunks in their order; as `bwarp.mapping.mapper.map_chunks`, and with the same result.

    Parameters
    ----------
    card : Card, optional
        What `bwarp.mapping.placing_cuda.prepare` has made of the index already.
    """
    card = card or prepare(index)
    chunks = iter(chunks)
    insert = given_insert_size(parameters)
    turn = threading.Lock()
    pinned_places = PinnedPlaces(PINNED)
    in_work = min(threads, MOST_IN_WORK)

    def finish(one: tuple[ReadChunk, Placed | None]) -> MappedChunk:
        chunk, placed = one
        both = both_strands(chunk.codes, chunk.offsets)
        with pinned_places.lent() as pinned:
            if placed is None:
                (codes,) = pinned.arrays(chunk.codes.size, [np.uint8])
                codes[:] = chunk.codes
            with turn:
                placed = placed or place_reads(card, codes, chunk.offsets, parameters)
                there = placed.places
                if chunk.ends == 2:
                    there = add_mates(card, placed, insert, parameters)
                places = places_on_host(there, pinned)
                unseen, searched = placed.unseen.copy_to_host(), placed.searched
            # What the card kept of the chunk is freed.
            del placed, there
            places = _copy(places)
        on_host = PlacedChunk(chunk, both, places, unseen, searched)
        return finish_chunk(genome, on_host, insert, parameters)

    first = deque()
    if insert is None:
        on_host = []
        with pinned_places.lent() as pinned:
            for chunk in first_chunks(chunks):
                placed = place_reads(card, chunk.codes, chunk.offsets, parameters)
                places = _copy(places_on_host(placed.places, pinned))
                first.append((chunk, placed))
                nothing, unseen = np.empty(0, np.uint8), placed.unseen.copy_to_host()
                on_host.append(PlacedChunk(chunk, nothing, places, unseen, placed.searched))
        insert = estimate_insert_size(on_host, genome, parameters)
        del on_host
    # What has been placed already is not kept longer than others.
    placed_first = (first.popleft() for _ in range(len(first)))
    others = ((chunk, None) for chunk in chunks)
    yield from in_order(finish, chain(placed_first, others), in_work)


def _copy(places: Places) -> Places:
    """In memory of its own, so that the pinned one can be used again."""
    return Places(*(np.array(getattr(places, field.name)) for field in fields(places)))
