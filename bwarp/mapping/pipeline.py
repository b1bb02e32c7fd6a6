"""Map chunks of reads to alignments: the stages of mapping in order.

reads -> seeds -> candidates -> scored hits -.-> further seeding rounds if not resolved
                                             '-> insert size (once) -> mates -> primary -> CIGARs
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.mapping.alt_records import with_alt_hits
from bwarp.mapping.extension_cpu import Genome, both_strands, extend
from bwarp.mapping.final_alignments import MappedReads, across_long_gaps, align_hits
from bwarp.mapping.insert_size import (
    FIRST_PAIRS,
    InsertSize,
    given_insert_size,
    insert_size_of,
    unambiguous_insert_sizes,
)
from bwarp.mapping.mate_rescue_cpu import rescue_candidates
from bwarp.mapping.parameters import MappingParameters, good_scores, of_ends
from bwarp.mapping.primary_hits_cpu import (
    PrimarySelection,
    alt_hits,
    assembly_rows,
    five_prime_first,
    on_alt_contigs,
    seeds_of_templates,
    select_single,
    unlocated_on_assembly,
)
from bwarp.mapping.primary_pairs_cpu import select_paired
from bwarp.mapping.scored_hits_cpu import ScoredHits, best_scores, hits_at, merge, without
from bwarp.mapping.secondary_hits import (
    recorded_of,
    secondary_of,
    supplementary_of,
)
from bwarp.mapping.seeding_rounds import SECOND, needs_round, rounds_of, take_bounds
from bwarp.mapping.seeds_cpu import Candidates, find_candidates
from bwarp.mapping.split_reads import with_split_reads
from bwarp.mapping.tandem_repeats import lower_tandem_repeats
from bwarp.reads.read_chunks import ReadChunk
from bwarp.records.alignment_records import SecondaryHits, SecondaryRecords, Supplementary
from bwarp.runtime.chunks import in_order


@dataclass(frozen=True)
class ScoredChunk:
    """A chunk of reads with scored hits, before the selection of primary hits.

    Attributes
    ----------
    chunk : ReadChunk
    both : ndarray, shape=(2 * n_bases,), dtype=uint8
        The reads, then their reverse complements.
    hits : ScoredHits
    unlocated : ndarray, shape=(n_reads,), dtype=int32
        The likely score of a hit if some hits are not located, else 0.
    searched : ndarray, shape=(3,), dtype=int64
        Numbers of seeds searched, hits of them located, and candidates from these, in all rounds.
    """

    chunk: ReadChunk
    both: np.ndarray
    hits: ScoredHits
    unlocated: np.ndarray
    searched: np.ndarray


@dataclass(frozen=True)
class MappedChunk:
    """The alignments of the reads of a chunk.

    Attributes
    ----------
    chunk, both, hits, searched
        As in `ScoredChunk`; `hits` includes rescued mates.
    mapped : MappedReads
    primary : PrimarySelection
    insert : InsertSize
        The insert size of the run; unknown for single reads.
    supplementary : Supplementary
    secondary : SecondaryHits or None
    recorded : SecondaryRecords or None
        Secondary hits are listed in other records, or get records.
    better_scores : ndarray, shape=(n_reads,), dtype=int64, or None
        Scores of hits on ALT contigs that exceed those of the primary hits (`AltHits`).
    """

    chunk: ReadChunk
    both: np.ndarray
    hits: ScoredHits
    searched: np.ndarray
    mapped: MappedReads
    primary: PrimarySelection
    insert: InsertSize
    supplementary: Supplementary
    secondary: SecondaryHits | None
    recorded: SecondaryRecords | None = None
    better_scores: np.ndarray | None = None


UnscoredChunk = tuple[ReadChunk, Callable[[], ScoredChunk]]


def itself(mapped: MappedChunk) -> MappedChunk:
    """Return a mapped chunk unchanged."""
    return mapped


def map_chunks(
    index: FMIndex,
    genome: Genome,
    chunks: Iterator[ReadChunk],
    parameters: MappingParameters,
    threads: int = 1,
    then: Callable = itself,
) -> Iterator:
    """Map chunks in threads and in order; yield the result of ``then(mapped)`` for each."""
    unscored = ((chunk, partial(_score, index, genome, chunk, parameters)) for chunk in chunks)
    return finish_chunks(index, genome, unscored, parameters, threads, then)


def _score(
    index: FMIndex, genome: Genome, chunk: ReadChunk, parameters: MappingParameters
) -> ScoredChunk:
    parameters = of_ends(parameters, chunk.ends)
    reads = np.arange(chunk.n_reads)
    found = find_candidates(index, chunk.codes, chunk.offsets, reads, parameters.first, parameters)
    return score_chunk(index, genome, chunk, found, parameters)


def finish_chunks(
    index: FMIndex,
    genome: Genome,
    unscored: Iterator[UnscoredChunk],
    parameters: MappingParameters,
    threads: int = 1,
    then: Callable = itself,
) -> Iterator:
    """Score and map chunks in threads and in order.

    The insert size of pairs is given, or estimated from the first `FIRST_PAIRS`; further pairs wait
    for the estimate.

    Parameters
    ----------
    unscored : iterator of (ReadChunk, function)
        Chunks, and functions that return them with their hits.
    then : function of MappedChunk
        Called in the thread that mapped a chunk; its result is yielded instead.
    """
    insert = given_insert_size(parameters)

    def finish(scored: ScoredChunk):
        scored = _add_mates(genome, scored, insert, parameters)
        return then(finish_chunk(index, genome, scored, insert, parameters))

    first, scored = deque(), iter(())
    if insert is None:
        unscored_first = list(first_chunks(unscored, lambda one: one[0]))
        # While the last of the first chunks are scored, other threads score further chunks, which
        # are finished as soon as the estimate is known.
        more = islice(unscored, max(0, threads - len(unscored_first)))
        scored = in_order(lambda one: one[1](), chain(unscored_first, more), threads)
        first.extend(islice(scored, len(unscored_first)))
        insert = estimate_insert_size(first, genome, parameters)
    # Do not keep scored chunks longer than the others.
    begun = chain((first.popleft() for _ in range(len(first))), scored)
    begun = (partial(finish, one) for one in begun)
    others = (partial(lambda one: finish(one[1]()), one) for one in unscored)
    yield from in_order(lambda mapped: mapped(), chain(begun, others), threads)


def first_chunks(
    items: Iterator, chunk_of: Callable[..., ReadChunk] = lambda chunk: chunk
) -> Iterator:
    """Yield the items with the chunks of the first `FIRST_PAIRS` pairs, or one of single reads.

    Further items may be taken from `items` afterwards.
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


def first_insert_size(
    index: FMIndex,
    genome: Genome,
    chunks: Iterator[ReadChunk],
    parameters: MappingParameters,
    threads: int = 1,
) -> InsertSize:
    """Return the insert size that `map_chunks` would estimate, for chunks mapped elsewhere."""

    def score(chunk: ReadChunk) -> ScoredChunk:
        return _score(index, genome, chunk, parameters)

    scored = in_order(score, first_chunks(chunks), threads)
    return estimate_insert_size(scored, genome, parameters)


def score_chunk(
    index: FMIndex,
    genome: Genome,
    chunk: ReadChunk,
    found: Candidates,
    parameters: MappingParameters,
) -> ScoredChunk:
    """Return the scored hits of a chunk's reads: of the candidates `found` in the first seeding
    round, and of further rounds (seeding_rounds.py).
    """
    both = both_strands(chunk.codes, chunk.offsets)
    lengths = np.diff(chunk.offsets)
    good = good_scores(int(lengths.max(initial=0)), parameters)[lengths]
    hits = extend(genome, both, chunk.offsets, found, parameters)
    searched, bounds, unlocated = found.searched, found.score_bounds.copy(), found.unlocated.copy()
    for number, seeds in rounds_of(parameters):
        needed = needs_round(
            number, lengths, best_scores(hits), bounds, unlocated, good, parameters.resolved_margin,
            parameters.match - parameters.mismatch,
        )  # fmt: skip
        reads = np.flatnonzero(needed)
        if not reads.size:
            continue
        found = find_candidates(index, chunk.codes, chunk.offsets, reads, seeds, parameters)
        more = extend(genome, both, chunk.offsets, found, parameters)
        searched = searched + found.searched
        if number == SECOND:
            hits = without(hits, needed)
        take_bounds(
            number, reads, lengths, found.score_bounds, found.unlocated, parameters.match, bounds,
            unlocated,
        )  # fmt: skip
        hits = merge(hits, more)
    return ScoredChunk(chunk, both, hits, unlocated, searched)


def _add_mates(
    genome: Genome, scored: ScoredChunk, insert: InsertSize, parameters: MappingParameters
) -> ScoredChunk:
    """Return the chunk with the hits of rescued mates."""
    if not insert.highest or scored.chunk.ends == 1:
        return scored
    both, offsets = scored.both, scored.chunk.offsets
    candidates = rescue_candidates(genome, both, offsets, scored.hits, insert, parameters)
    more = extend(genome, both, offsets, candidates, of_ends(parameters, scored.chunk.ends))
    return replace(scored, hits=merge(scored.hits, more))


def finish_chunk(
    index: FMIndex,
    genome: Genome,
    scored: ScoredChunk,
    insert: InsertSize,
    parameters: MappingParameters,
) -> MappedChunk:
    """Select the primary hits of a chunk's reads, and align the reads at them."""
    chunk, both = scored.chunk, scored.both
    offsets, lengths = chunk.offsets, np.diff(chunk.offsets)
    hits = with_split_reads(index, genome, both, chunk.codes, offsets, scored.hits, parameters)
    competing, unlocated = hits, scored.unlocated
    if parameters.alt:
        hits = with_assembly_hits(index, genome, both, chunk.codes, offsets, hits, parameters)
        on_alt = on_alt_contigs(hits, genome.contig_starts, parameters.alt)
        rows = assembly_rows(hits, on_alt, parameters.least_score)
        competing = hits_at(hits, rows)
        unlocated = unlocated_on_assembly(hits, on_alt, unlocated)
    if chunk.ends == 1:
        primary = select_single(competing, lengths, unlocated, parameters, tie_seeds(chunk))
    else:
        primary = select_paired(
            competing, lengths, unlocated, insert, parameters, tie_seeds(chunk),
            genome.contig_starts,
        )  # fmt: skip
        lower_tandem_repeats(genome, both, offsets, competing, primary, parameters)
    if parameters.hic:
        primary = five_prime_first(competing, lengths, primary, parameters)
    mapped = align_hits(genome, both, offsets, competing, primary.hits, parameters)
    mapped = across_long_gaps(genome, both, offsets, mapped, parameters)
    supplementary = supplementary_of(genome, both, offsets, competing, mapped, primary, parameters)
    secondary = recorded = None
    if parameters.secondary_records:
        recorded = recorded_of(genome, both, offsets, competing, primary, supplementary, parameters)
    if not parameters.alt:
        if recorded is None:
            secondary = secondary_of(genome, both, offsets, hits, primary, parameters)
        return MappedChunk(
            chunk, both, hits, scored.searched, mapped, primary, insert, supplementary, secondary,
            recorded,
        )  # fmt: skip
    of_all = np.where(primary.hits >= 0, np.append(rows, -1)[primary.hits], -1)
    primary = primary._replace(hits=of_all)
    has_alt = np.bincount(hits.reads[on_alt], minlength=chunk.n_reads) > 0
    without_alt = primary._replace(hits=np.where(has_alt, -1, primary.hits))
    secondary = secondary_of(genome, both, offsets, hits, without_alt, parameters)
    found = alt_hits(hits, on_alt, lengths, primary.hits, parameters)
    supplementary, secondary = with_alt_hits(
        genome, both, offsets, hits, found, supplementary, secondary, parameters
    )
    return MappedChunk(
        chunk, both, hits, scored.searched, mapped, primary, insert, supplementary,
        # As in bwa mem -a, no other hit on an ALT contig is written.
        secondary if recorded is None else None, recorded, found.better_scores,
    )  # fmt: skip


def with_assembly_hits(
    index: FMIndex,
    genome: Genome,
    both: np.ndarray,
    codes: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    parameters: MappingParameters,
) -> ScoredHits:
    """Add hits on the primary assembly for reads with hits only on ALT contigs.

    The seeding rounds resolve a read on any contig; on the primary assembly it may have a mismatch
    in every seed. This runs on the host for both engines, because few reads take part.
    """
    on_alt = on_alt_contigs(hits, genome.contig_starts, parameters.alt)
    reads = np.setdiff1d(
        hits.reads[on_alt], hits.reads[~on_alt & (hits.scores >= parameters.least_score)]
    )
    if not reads.size:
        return hits
    found = find_candidates(
        index, codes, offsets, reads.astype(np.int64), parameters.assembly, parameters
    )
    return merge(hits, extend(genome, both, offsets, found, parameters))


def tie_seeds(chunk: ReadChunk) -> np.ndarray:
    """Return a number per read to break ties: of its template, independent of chunks."""
    templates = chunk.templates
    if templates is None:
        templates = np.arange(chunk.n_templates) + chunk.first_template
    return np.repeat(seeds_of_templates(templates.astype(np.uint64)), chunk.ends)
