"""From chunks of reads to alignments: the stages of mapping in a row.

reads -> seeds, diagonals -> scored places -.-> again, with long seeds in repeats, dense elsewhere
                                            '-> insert size (once) -> mates -> choice -> CIGARs
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.mapping.alignment_records import Alternatives, Supplementary
from bwarp.mapping.candidates_cpu import Candidates, find_candidates
from bwarp.mapping.choice_cpu import Choice, choose_paired, choose_single
from bwarp.mapping.extension_cpu import Genome, Places, both_strands, extend, merge
from bwarp.mapping.final_alignments import MappedReads, align_chosen
from bwarp.mapping.further_places import alternatives_of, supplementary_of
from bwarp.mapping.insert_size import (
    FIRST_PAIRS,
    InsertSize,
    clear_distances,
    insert_size_of,
)
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.read_chunks import ReadChunk
from bwarp.mapping.rescue_cpu import rescue_candidates

__all__ = ["MappedChunk", "map_chunks", "mapped_chunk"]


@dataclass(frozen=True)
class MappedChunk:
    """What became of the reads of a chunk.

    Attributes
    ----------
    chunk : ReadChunk
    both : ndarray, shape=(2 * n_bases,), dtype=uint8
        The reads, then their reverse complements.
    mapped : MappedReads
    choice : Choice
    insert : InsertSize
        Of the whole run; nothing is known for single reads.
    supplementary : Supplementary
    alternatives : Alternatives
    places : Places
        All that the choice was made among.
    """

    chunk: ReadChunk
    both: np.ndarray
    mapped: MappedReads
    choice: Choice
    insert: InsertSize
    supplementary: Supplementary
    alternatives: Alternatives
    places: Places


@dataclass(frozen=True)
class _Placed:
    """A chunk whose reads have scored places, but no choice among them yet."""

    chunk: ReadChunk
    both: np.ndarray
    places: Places
    unseen: np.ndarray


def map_chunks(
    index: FMIndex,
    genome: Genome,
    chunks: Iterator[ReadChunk],
    parameters: MappingParameters,
    threads: int = 1,
) -> Iterator[MappedChunk]:
    """Map every chunk; the insert size of pairs is estimated from the first `FIRST_PAIRS`."""
    insert = None
    waiting: list[_Placed] = []
    for chunk in chunks:
        waiting.append(_place(index, genome, chunk, parameters, threads))
        n_templates = chunk.first_template + chunk.n_templates
        if insert is None and chunk.ends == 2 and n_templates < FIRST_PAIRS:
            continue
        insert = insert or _estimate(waiting, genome)
        for placed in waiting:
            yield _finish(genome, placed, insert, parameters, threads)
        waiting = []
    if waiting:
        insert = _estimate(waiting, genome)
        for placed in waiting:
            yield _finish(genome, placed, insert, parameters, threads)


def _estimate(waiting: list[_Placed], genome: Genome) -> InsertSize:
    distances = [
        clear_distances(
            placed.places,
            np.diff(placed.chunk.offsets),
            genome.contig_starts,
            FIRST_PAIRS - placed.chunk.first_template,
        )
        for placed in waiting
        if placed.chunk.ends == 2
    ]
    nothing = (np.empty(0, np.int64), np.empty(0, np.int64))
    return insert_size_of(*map(np.concatenate, zip(nothing, *distances, strict=True)))


def _place(
    index: FMIndex,
    genome: Genome,
    chunk: ReadChunk,
    parameters: MappingParameters,
    threads: int,
) -> _Placed:
    """Scored places of a chunk's reads, and what a place not looked at can score at most."""
    both = both_strands(chunk.codes, chunk.offsets, threads)
    candidates = find_candidates(
        index, chunk.codes, chunk.offsets, parameters.seed_length, parameters.seed_step,
        parameters.hits_a_read, parameters, threads,
    )  # fmt: skip
    places = extend(genome, both, chunk.offsets, candidates, parameters, threads)
    unseen = candidates.unseen

    def again(reads: np.ndarray, seed_length: int, seed_step: int, hits: int) -> Places:
        codes, offsets = _reads_of(chunk, reads)
        found = find_candidates(
            index, codes, offsets, seed_length, seed_step, hits, parameters, threads
        )
        # What was seen in neither round scores no more than the lower of both bounds.
        unseen[reads] = np.minimum(unseen[reads], found.unseen)
        found = _numbered(found, reads, chunk.n_reads)
        return merge(places, extend(genome, both, chunk.offsets, found, parameters, threads))

    frequent = np.flatnonzero(unseen)
    if frequent.size:
        places = again(frequent, parameters.long_length, parameters.long_step, parameters.long_hits)
    best = np.zeros(chunk.n_reads, np.int32)
    has_place = np.diff(places.offsets) > 0
    best[has_place] = places.scores[places.offsets[:-1][has_place]]
    poor = np.flatnonzero(best < parameters.poor_score * np.diff(chunk.offsets))
    if poor.size:
        places = again(poor, parameters.dense_length, parameters.dense_step, parameters.hits_a_read)
    return _Placed(chunk, both, places, unseen)


def _reads_of(chunk: ReadChunk, reads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes and offsets of some of a chunk's reads."""
    starts, stops = chunk.offsets[reads], chunk.offsets[reads + 1]
    offsets = np.concatenate([[0], np.cumsum(stops - starts)])
    places = np.repeat(starts - offsets[:-1], stops - starts) + np.arange(offsets[-1])
    return chunk.codes[places], offsets


def _numbered(candidates: Candidates, reads: np.ndarray, n_reads: int) -> Candidates:
    """Candidates of some reads, under the numbers that these have in their chunk."""
    numbers = reads[candidates.reads]
    return replace(
        candidates,
        reads=numbers.astype(np.int32),
        offsets=np.searchsorted(numbers, np.arange(n_reads + 1)),
    )


def _finish(
    genome: Genome,
    placed: _Placed,
    insert: InsertSize,
    parameters: MappingParameters,
    threads: int,
) -> MappedChunk:
    chunk, both, places = placed.chunk, placed.both, placed.places
    seeds = tie_seeds(chunk)
    if chunk.ends == 1:
        choice = choose_single(
            places, np.diff(chunk.offsets), placed.unseen, parameters, seeds, threads
        )
    else:
        if insert.highest:
            candidates = rescue_candidates(
                genome, both, chunk.offsets, places, insert, parameters, threads
            )
            # A mate that lies where it should is believed with fewer bases.
            low = replace(parameters, least_score=parameters.least_mate_score)
            more = extend(genome, both, chunk.offsets, candidates, low, threads)
            places = merge(places, more)
        choice = choose_paired(
            places, np.diff(chunk.offsets), placed.unseen, insert, parameters, seeds,
            genome.contig_starts, threads,
        )  # fmt: skip
    return mapped_chunk(genome, chunk, both, places, choice, insert, parameters, threads)


def mapped_chunk(
    genome: Genome,
    chunk: ReadChunk,
    both: np.ndarray,
    places: Places,
    choice: Choice,
    insert: InsertSize,
    parameters: MappingParameters,
    threads: int = 1,
) -> MappedChunk:
    """The alignments of a chunk whose reads have their places chosen."""
    offsets = chunk.offsets
    mapped = align_chosen(genome, both, offsets, places, choice.places, parameters, threads=threads)
    supplementary = supplementary_of(
        genome, both, offsets, places, mapped, choice, parameters, threads
    )
    alternatives = alternatives_of(genome, both, offsets, places, choice, parameters, threads)
    return MappedChunk(chunk, both, mapped, choice, insert, supplementary, alternatives, places)


def tie_seeds(chunk: ReadChunk) -> np.ndarray:
    """A number a read that breaks ties: of its template, so that it does not depend on chunks."""
    templates = np.arange(chunk.n_reads, dtype=np.uint64) // np.uint64(chunk.ends)
    mixed = (templates + np.uint64(chunk.first_template + 1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))
