"""Map chunks of reads to alignments: the stages of mapping in order.

reads -> seeds -> candidates -> scored hits -.-> further seeding rounds if not resolved
                                             '-> insert size (once) -> mates -> primary -> CIGARs
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.mapping.extension_cpu import Genome, both_strands, extend
from bwarp.mapping.final_alignments import MappedReads, across_long_gaps, align_hits
from bwarp.mapping.first_pairs import find_and_finish, first_chunks, pairs_left
from bwarp.mapping.insert_size import (
    InsertSize,
    given_insert_size,
    insert_size_of_parts,
    unambiguous_insert_sizes,
)
from bwarp.mapping.mate_rescue_cpu import rescue_candidates
from bwarp.mapping.parameters import MappingParameters, of_ends
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
from bwarp.mapping.scored_hits_cpu import ScoredHits, hits_at, merge
from bwarp.mapping.secondary_hits import recorded_of, secondary_of, supplementary_of, with_alt_hits
from bwarp.mapping.seeding_rounds_cpu import score_reads
from bwarp.mapping.seeds_cpu import Candidates, find_candidates
from bwarp.mapping.split_reads import with_split_reads
from bwarp.mapping.tandem_repeats import lower_tandem_repeats
from bwarp.reads.read_chunks import ReadChunk
from bwarp.records.alignment_records import (
    AlignmentRecords,
    ReadAlignments,
    SecondaryHits,
    SecondaryRecords,
    Supplementary,
)
from bwarp.records.output_options import RecordForm
from bwarp.records.record_layout import alignment_records
from bwarp.records.record_text import with_mismatches
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


def chunk_records(
    genome: Genome, done: MappedChunk, soft_clip: bool = False, eqx: bool = False
) -> AlignmentRecords:
    """Return the records of a chunk.

    Parameters
    ----------
    soft_clip : bool
        Soft-clip supplementary and secondary records, too.
    eqx : bool
        Write = and X in CIGARs instead of M.
    """
    alignments = ReadAlignments(
        done.mapped, done.primary, done.supplementary, done.secondary, done.better_scores,
        done.recorded,
    )  # fmt: skip
    records = alignment_records(genome.contig_starts, done.chunk, alignments, soft_clip)
    if eqx:
        return with_mismatches(records, genome, done.chunk.offsets, done.both)
    return records


class EncodedChunk(NamedTuple):
    """The records of some reads, and their statistics.

    Attributes
    ----------
    records : object
        In the form that the writer of the file accepts.
    counts : dict
        See statistics.py.
    reads : ndarray, shape=(n_records,), dtype=int64
        The number of each record's read in its chunk; empty if not requested.
    """

    records: object
    counts: dict
    reads: np.ndarray


class Encoder(NamedTuple):
    """The last stage of mapping, which runs in the thread that mapped a chunk.

    Attributes
    ----------
    encode : function of MappedChunk
        Returns an `EncodedChunk`.
    form : RecordForm
        The form in which a GPU writes the records itself.
    """

    encode: Callable[[MappedChunk], EncodedChunk]
    form: RecordForm


@dataclass(frozen=True)
class CpuMapEngine:
    """Maps chunks on the CPU, as `bwarp.mapping.engine.MapEngine` says."""

    index: FMIndex
    genome: Genome
    parameters: MappingParameters
    threads: int = 1
    sort_bytes: ClassVar[int] = 0

    def map(self, chunks: Iterator[ReadChunk], encoder: Encoder | None = None) -> Iterator:
        """Map every chunk, in order, with several chunks in threads."""
        insert = given_insert_size(self.parameters)
        finish = partial(self.finish, encoder=encoder)
        return find_and_finish(chunks, self.find, finish, self.threads, insert, self.estimate)

    def find(self, chunk: ReadChunk) -> ScoredChunk:
        """Find and score the hits of a chunk."""
        parameters = of_ends(self.parameters, chunk.ends)
        reads = np.arange(chunk.n_reads)
        found = find_candidates(
            self.index, chunk.codes, chunk.offsets, reads, parameters.first, parameters
        )
        return score_chunk(self.index, self.genome, chunk, found, parameters)

    def estimate(self, first: Iterable[ScoredChunk]) -> InsertSize:
        """Estimate the insert size of the run from its first chunks."""
        return estimate_insert_size(first, self.genome, self.parameters)

    def first_insert_size(self, chunks: Iterator[ReadChunk]) -> InsertSize:
        """Return the insert size that `map` would estimate, for chunks mapped elsewhere."""
        return self.estimate(in_order(self.find, first_chunks(chunks), self.threads))

    def finish(
        self, scored: ScoredChunk, insert: InsertSize, encoder: Encoder | None
    ) -> MappedChunk | EncodedChunk:
        """Add the hits of rescued mates, select primary hits, align, and encode."""
        scored = add_mates(self.genome, scored, insert, self.parameters)
        mapped = finish_chunk(self.index, self.genome, scored, insert, self.parameters)
        return mapped if encoder is None else encoder.encode(mapped)


def estimate_insert_size(
    first: Iterable[ScoredChunk], genome: Genome, parameters: MappingParameters
) -> InsertSize:
    """Estimate the insert size of a run from its first chunks."""
    insert_sizes = [
        unambiguous_insert_sizes(
            scored.hits,
            np.diff(scored.chunk.offsets),
            genome.contig_starts,
            pairs_left(scored.chunk),
        )
        for scored in first
        if scored.chunk.ends == 2
    ]
    return insert_size_of_parts(insert_sizes, parameters.orientation)


def score_chunk(
    index: FMIndex,
    genome: Genome,
    chunk: ReadChunk,
    found: Candidates,
    parameters: MappingParameters,
) -> ScoredChunk:
    """Return the scored hits of a chunk's reads: of the candidates `found` in the first seeding
    round, and of further rounds.
    """
    both = both_strands(chunk.codes, chunk.offsets)
    scored = score_reads(index, genome, both, chunk.codes, chunk.offsets, found, parameters)
    return ScoredChunk(chunk, both, *scored)


def add_mates(
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
    hits, unlocated, spans = with_split_reads(
        index, genome, both, chunk.codes, offsets, scored.hits, scored.unlocated, parameters
    )
    competing = hits
    if parameters.alt:
        hits = with_assembly_hits(index, genome, both, chunk.codes, offsets, hits, parameters)
        on_alt = on_alt_contigs(hits, genome.contig_starts, parameters.alt)
        rows = assembly_rows(hits, on_alt, parameters.least_score)
        competing = hits_at(hits, rows)
        unlocated = unlocated_on_assembly(hits, on_alt, unlocated)
    if chunk.ends == 1:
        primary = select_single(competing, lengths, unlocated, parameters, tie_seeds(chunk), spans)
    else:
        primary = select_paired(
            competing, lengths, unlocated, insert, parameters, tie_seeds(chunk),
            genome.contig_starts, spans,
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
