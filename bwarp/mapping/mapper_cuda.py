"""From chunks of reads to alignments with a GPU: several chunks at once, in turn on the card.

    a thread that reads    chunk 5 ->
    the card                          chunk 4: places of reads and of their mates
    threads                           chunks 3, 2, 1: choice, alignments      chunk 0: handed on

A chunk is mapped by one thread from start to end. The card is used by one of them at a time, so
that what a chunk takes of its memory is a number to plan by; while one chunk is there, others are
read, chosen for, aligned with gaps, encoded and written.
"""

import threading
from collections.abc import Iterator

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
from bwarp.mapping.places_cuda import DevicePlaces, places_on_host
from bwarp.mapping.placing_cuda import Placed, add_mates, place_reads, prepare
from bwarp.mapping.read_chunks import ReadChunk
from bwarp.threads import in_order, read_ahead

__all__ = ["map_chunks"]

#: Chunks in work at a time, whatever the threads: each takes memory.
MOST_IN_WORK = 12


def map_chunks(
    index: FMIndex,
    genome: Genome,
    chunks: Iterator[ReadChunk],
    parameters: MappingParameters,
    threads: int = 1,
) -> Iterator[MappedChunk]:
    """Map chunks in their order; as `bwarp.mapping.mapper.map_chunks`, and with the same result."""
    card = prepare(index, genome)
    chunks = read_ahead(iter(chunks))
    insert = given_insert_size(parameters)
    turn = threading.Lock()
    in_work = min(threads, MOST_IN_WORK)

    def place(chunk: ReadChunk) -> Placed:
        return place_reads(card, chunk.codes, chunk.offsets, parameters)

    def finish(chunk: ReadChunk, placed: Placed | None = None) -> MappedChunk:
        both = both_strands(chunk.codes, chunk.offsets)
        with turn:
            placed = placed or place(chunk)
            places = placed.places
            if chunk.ends == 2:
                places = add_mates(card, placed, insert, parameters)
            on_host = _on_host(chunk, both, placed, places)
        # What the card kept of the chunk is freed.
        del placed, places
        return finish_chunk(genome, on_host, insert, parameters)

    if insert is None:
        first = [(chunk, place(chunk)) for chunk in first_chunks(chunks)]
        nothing = np.empty(0, np.uint8)
        on_host = [_on_host(chunk, nothing, placed, placed.places) for chunk, placed in first]
        insert = estimate_insert_size(on_host, genome, parameters)
        del on_host
        yield from in_order(lambda one: finish(*one), iter(first), in_work)
        first.clear()
    yield from in_order(finish, chunks, in_work)


def _on_host(
    chunk: ReadChunk, both: np.ndarray, placed: Placed, places: DevicePlaces
) -> PlacedChunk:
    unseen = placed.unseen.copy_to_host()
    return PlacedChunk(chunk, both, places_on_host(places), unseen, placed.searched)
