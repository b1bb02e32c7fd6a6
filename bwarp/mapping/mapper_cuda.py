"""From chunks of reads to alignments with a GPU: several chunks at once, in turn on the card.

    a thread that reads    chunk 5 ->
    the card                          chunk 4: places of reads and of their mates
    threads                           chunks 3, 2, 1: choice, alignments      chunk 0: handed on

A chunk is mapped by one thread from start to end. The card is used by one of them at a time, so
that what a chunk takes of its memory is a number to plan by; while one chunk is there, others are
read, chosen for, aligned with gaps, encoded and written.
"""

import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.mapping.choice_cpu import choose_paired, choose_single
from bwarp.mapping.extension_cpu import Genome, both_strands
from bwarp.mapping.insert_size import FIRST_PAIRS, InsertSize, given_insert_size
from bwarp.mapping.mapper import MappedChunk, _estimate, _Placed, mapped_chunk, tie_seeds
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.places_cuda import places_on_host
from bwarp.mapping.placing_cuda import Card, Placed, add_mates, place_reads, prepare
from bwarp.mapping.read_chunks import ReadChunk
from bwarp.threads import read_ahead

__all__ = ["map_chunks"]

#: Chunks in work at a time, whatever the threads: each takes memory.
MOST_IN_WORK = 8


def map_chunks(
    index: FMIndex,
    genome: Genome,
    chunks: Iterator[ReadChunk],
    parameters: MappingParameters,
    threads: int = 1,
) -> Iterator[MappedChunk]:
    """Map every chunk, in order; as `bwarp.mapping.mapper.map_chunks`, and with the same result."""
    card = prepare(index, genome)
    turn = threading.Lock()
    in_work = max(1, min(threads, MOST_IN_WORK))
    waiting: list[tuple[ReadChunk, Placed]] = []
    jobs = deque()
    insert = given_insert_size(parameters)
    pool = ThreadPoolExecutor(in_work)

    def submit(chunk: ReadChunk, placed: Placed | None) -> None:
        jobs.append(pool.submit(_map_chunk, card, genome, chunk, placed, insert, parameters, turn))

    try:
        for chunk in read_ahead(chunks):
            if insert is None:
                waiting.append((chunk, place_reads(card, chunk.codes, chunk.offsets, parameters)))
                n_templates = chunk.first_template + chunk.n_templates
                if chunk.ends == 2 and n_templates < FIRST_PAIRS:
                    continue
                insert = _insert_size(waiting, genome, parameters)
                for one, placed in waiting:
                    submit(one, placed)
                waiting = []
            else:
                submit(chunk, None)
            while len(jobs) > in_work or (jobs and jobs[0].done()):
                yield jobs.popleft().result()
        if waiting:
            insert = _insert_size(waiting, genome, parameters)
            for one, placed in waiting:
                submit(one, placed)
        while jobs:
            yield jobs.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _insert_size(
    waiting: list[tuple[ReadChunk, Placed]], genome: Genome, parameters: MappingParameters
) -> InsertSize:
    nothing = np.empty(0, np.uint8)
    return _estimate(
        [
            _Placed(chunk, nothing, places_on_host(placed.places), placed.unseen.copy_to_host())
            for chunk, placed in waiting
        ],
        genome,
        parameters,
    )


def _map_chunk(
    card: Card,
    genome: Genome,
    chunk: ReadChunk,
    placed: Placed | None,
    insert: InsertSize,
    parameters: MappingParameters,
    turn: threading.Lock,
) -> MappedChunk:
    """Map a chunk, which may have been placed already."""
    with turn:
        placed = placed or place_reads(card, chunk.codes, chunk.offsets, parameters)
        there = placed.places
        if chunk.ends == 2:
            there = add_mates(card, placed, insert, parameters)
        places, unseen = places_on_host(there), placed.unseen.copy_to_host()
    del placed, there
    lengths, seeds = np.diff(chunk.offsets), tie_seeds(chunk)
    if chunk.ends == 1:
        choice = choose_single(places, lengths, unseen, parameters, seeds)
    else:
        choice = choose_paired(
            places, lengths, unseen, insert, parameters, seeds, genome.contig_starts
        )
    both = both_strands(chunk.codes, chunk.offsets)
    return mapped_chunk(genome, chunk, both, places, choice, insert, parameters)
