"""From chunks of reads to alignments: the stages of mapping in a row.

reads -> seeds, diagonals -> scored places -.-> again, with more seeds, where not settled
                                            '-> insert size (once) -> mates -> choice -> CIGARs
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.mapping.extension.extension_cpu import Genome, both_strands, extend
from bwarp.mapping.extension.scored_hits_cpu import ScoredHits, best_scores, merge, without
from bwarp.mapping.output.alignment_records import SecondaryHits, Supplementary
from bwarp.mapping.output.final_alignments import MappedReads, align_hits
from bwarp.mapping.output.supplementary_and_secondary import secondary_of, supplementary_of
from bwarp.mapping.pairing.insert_size import (
    FIRST_PAIRS,
    InsertSize,
    given_insert_size,
    insert_size_of,
    unambiguous_insert_sizes,
)
from bwarp.mapping.pairing.mate_rescue_cpu import rescue_candidates
from bwarp.mapping.pairing.primary_and_mapq_cpu import (
    PrimarySelection,
    select_paired,
    select_single,
)
from bwarp.mapping.parameters import MappingParameters, SeedRound, good_scores
from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.mapping.seeds.candidates_cpu import Candidates, find_candidates
from bwarp.runtime.threads import in_order

__all__ = [
    "MappedChunk",
    "ScoredChunk",
    "UnscoredChunk",
    "estimate_insert_size",
    "finish_chunk",
    "finish_chunks",
    "first_chunks",
    "map_chunks",
    "mapped_chunk",
    "score_chunk",
]


@dataclass(frozen=True)
class MappedChunk:
    """What became of the reads of a chunk.

    Attributes
    ----------
    chunk : ReadChunk
    both : ndarray, shape=(2 * n_bases,), dtype=uint8
        The reads, then their reverse complements.
    mapped : MappedReads
    primary : PrimarySelection
    insert : InsertSize
        Of the whole run; nothing is known for single reads.
    supplementary : Supplementary
    secondary : SecondaryHits
    hits : ScoredHits
        All that the choice was made among.
    searched : ndarray, shape=(3,), dtype=int64
        Seeds, hits and candidates of all rounds, as `ScoredChunk` counts them.
    """

    chunk: ReadChunk
    both: np.ndarray
    mapped: MappedReads
    primary: PrimarySelection
    insert: InsertSize
    supplementary: Supplementary
    secondary: SecondaryHits
    hits: ScoredHits
    searched: np.ndarray


@dataclass(frozen=True)
class ScoredChunk:
    """A chunk whose reads have scored places, but no choice among them yet.

    Attributes
    ----------
    chunk : ReadChunk
    both : ndarray, shape=(2 * n_bases,), dtype=uint8
        The reads, then their reverse complements.
    hits : ScoredHits
    unlocated : ndarray, shape=(n_reads,), dtype=int32
        Where hits were left out, what a place not looked at is likely to score; else 0.
    searched : ndarray, shape=(3,), dtype=int64
        Seeds that were searched, hits of them that were located, and candidates that these made, in
        all rounds.
    """

    chunk: ReadChunk
    both: np.ndarray
    hits: ScoredHits
    unlocated: np.ndarray
    searched: np.ndarray


UnscoredChunk = tuple[ReadChunk, Callable[[], ScoredChunk]]


def map_chunks(
    index: FMIndex,
    genome: Genome,
    chunks: Iterator[ReadChunk],
    parameters: MappingParameters,
    threads: int = 1,
) -> Iterator[MappedChunk]:
    """Map chunks in threads, in their order."""
    unscored = ((chunk, partial(_score, index, genome, chunk, parameters)) for chunk in chunks)
    return finish_chunks(genome, unscored, parameters, threads)


def _score(
    index: FMIndex, genome: Genome, chunk: ReadChunk, parameters: MappingParameters
) -> ScoredChunk:
    reads = np.arange(chunk.n_reads)
    found = find_candidates(index, chunk.codes, chunk.offsets, reads, parameters.first, parameters)
    return score_chunk(index, genome, chunk, found, parameters)


def finish_chunks(
    genome: Genome,
    unscored: Iterator[UnscoredChunk],
    parameters: MappingParameters,
    threads: int = 1,
) -> Iterator[MappedChunk]:
    """Place and map chunks in threads, in their order.

    The insert size of pairs is given, or that of the first `FIRST_PAIRS`: the others wait for it.

    Parameters
    ----------
    unplaced : iterator of (ReadChunk, function)
        Chunks, and functions that give them with their places.
    """
    insert = given_insert_size(parameters)

    def hit(one: UnscoredChunk) -> ScoredChunk:
        return one[1]()

    def finish(scored: ScoredChunk) -> MappedChunk:
        scored = _add_mates(genome, scored, insert, parameters)
        return finish_chunk(genome, scored, insert, parameters)

    scored = deque()
    if insert is None:
        scored += in_order(hit, first_chunks(unscored, lambda one: one[0]), threads)
        insert = estimate_insert_size(scored, genome, parameters)
    # What has been placed already is not kept longer than others.
    first = (partial(finish, scored.popleft()) for _ in range(len(scored)))
    others = (partial(lambda one: finish(hit(one)), one) for one in unscored)
    yield from in_order(lambda mapped: mapped(), chain(first, others), threads)


def first_chunks(
    items: Iterator, chunk_of: Callable[..., ReadChunk] = lambda chunk: chunk
) -> Iterator:
    """What has the chunks of the first `FIRST_PAIRS` pairs; of single reads one.

    Others may be taken from `items` afterwards.
    """
    for item in items:
        yield item
        chunk = chunk_of(item)
        if chunk.ends == 1 or chunk.first_template + chunk.n_templates >= FIRST_PAIRS:
            return


def estimate_insert_size(
    waiting: Iterable[ScoredChunk], genome: Genome, parameters: MappingParameters
) -> InsertSize:
    insert_sizes = [
        unambiguous_insert_sizes(
            scored.hits,
            np.diff(scored.chunk.offsets),
            genome.contig_starts,
            FIRST_PAIRS - scored.chunk.first_template,
        )
        for scored in waiting
        if scored.chunk.ends == 2
    ]
    nothing = (np.empty(0, np.int64), np.empty(0, np.int64))
    joined = map(np.concatenate, zip(nothing, *insert_sizes, strict=True))
    return insert_size_of(*joined, parameters.orientation)


def score_chunk(
    index: FMIndex,
    genome: Genome,
    chunk: ReadChunk,
    found: Candidates,
    parameters: MappingParameters,
) -> ScoredChunk:
    """Scored places of a chunk's reads, and what a place not looked at can score at most.

    1. All reads have been searched with few seeds: `found`, the candidates of the first round. A
       read whose best place scores clearly more than any place without these seeds could is
       settled.
    2. The others begin anew with as many seeds as have room side by side.
    3. Of those that still are not settled, reads with hits left out are searched with longer
       seeds, which are rarer.
    4. Reads of which a place not looked at is likely to be as good, or as good but for one
       mismatch, as the best one get many more hits.
    5. Reads with no place that scores well, and short reads with places that may have been hidden
       from the seeds, are searched with shorter ones that overlap.
    """
    both = both_strands(chunk.codes, chunk.offsets)
    lengths = np.diff(chunk.offsets)
    good = good_scores(int(lengths.max(initial=0)), parameters)
    searched = found.searched.copy()

    def search(reads: np.ndarray, seeds: SeedRound) -> tuple[Candidates, ScoredHits]:
        nonlocal searched
        found = find_candidates(index, chunk.codes, chunk.offsets, reads, seeds, parameters)
        searched += found.searched
        return found, extend(genome, both, chunk.offsets, found, parameters)

    hits = extend(genome, both, chunk.offsets, found, parameters)
    unlocated = found.unlocated.copy()
    unresolved = best_scores(hits) < found.score_bounds + parameters.resolved_margin
    reads = np.flatnonzero(unresolved)
    if reads.size:
        found, more = search(reads, parameters.second)
        hits = merge(without(hits, unresolved), more)
        unlocated[reads] = found.unlocated[reads]
        unresolved &= best_scores(hits) < found.score_bounds + parameters.resolved_margin

    for seeds in (parameters.long, parameters.more_hits, parameters.short):
        if seeds is parameters.long:
            wanted = unresolved & (unlocated > 0)
        elif seeds is parameters.more_hits:
            rival = unlocated + parameters.match - parameters.mismatch
            wanted = (unlocated > 0) & (best_scores(hits) <= rival)
        else:
            wanted = best_scores(hits) < good[lengths]
        reads = np.flatnonzero(wanted)
        if reads.size:
            found, more = search(reads, seeds)
            hits = merge(hits, more)
            # What was seen in neither round scores no more than the lower of both bounds.
            unlocated[reads] = np.minimum(unlocated[reads], found.unlocated[reads])
    return ScoredChunk(chunk, both, hits, unlocated, searched)


def _add_mates(
    genome: Genome, scored: ScoredChunk, insert: InsertSize, parameters: MappingParameters
) -> ScoredChunk:
    """The places, and those that the mates of pairs tell of."""
    if not insert.highest or scored.chunk.ends == 1:
        return scored
    both, offsets = scored.both, scored.chunk.offsets
    candidates = rescue_candidates(genome, both, offsets, scored.hits, insert, parameters)
    # A mate that lies where it should is believed with fewer bases.
    low = replace(parameters, least_score=parameters.least_mate_score)
    more = extend(genome, both, offsets, candidates, low)
    return replace(scored, hits=merge(scored.hits, more))


def finish_chunk(
    genome: Genome, scored: ScoredChunk, insert: InsertSize, parameters: MappingParameters
) -> MappedChunk:
    """Choose among the places of a chunk's reads, and align them there."""
    chunk, hits = scored.chunk, scored.hits
    lengths, seeds = np.diff(chunk.offsets), tie_seeds(chunk)
    if chunk.ends == 1:
        primary = select_single(hits, lengths, scored.unlocated, parameters, seeds)
    else:
        primary = select_paired(
            hits, lengths, scored.unlocated, insert, parameters, seeds, genome.contig_starts
        )
    return mapped_chunk(genome, scored, primary, insert, parameters)


def mapped_chunk(
    genome: Genome,
    scored: ScoredChunk,
    primary: PrimarySelection,
    insert: InsertSize,
    parameters: MappingParameters,
    threads: int = 1,
) -> MappedChunk:
    """The alignments of a chunk whose reads have their places chosen."""
    chunk, both, hits = scored.chunk, scored.both, scored.hits
    offsets = chunk.offsets
    mapped = align_hits(genome, both, offsets, hits, primary.hits, parameters, threads=threads)
    supplementary = supplementary_of(
        genome, both, offsets, hits, mapped, primary, parameters, threads
    )
    secondary = secondary_of(genome, both, offsets, hits, primary, parameters, threads)
    return MappedChunk(
        chunk, both, mapped, primary, insert, supplementary, secondary, hits, scored.searched
    )


def tie_seeds(chunk: ReadChunk) -> np.ndarray:
    """A number a read that breaks ties: of its template, so that it does not depend on chunks."""
    templates = np.arange(chunk.n_reads, dtype=np.uint64) // np.uint64(chunk.ends)
    mixed = (templates + np.uint64(chunk.first_template + 1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))
