"""Search references too large for the GPU, or for memory, in chunks, as Drozd et al. propose.

Chunks overlap by one base less than the minimum match length, so that the first `min_length` bases
of each match are entirely in the chunk where the match begins:

    genome     |----- chunk 0 -----|----- chunk 1 -----|----- chunk 2 -----|
    searched   |--------------------==|
                                   |--------------------==|
    matches         a |---|     b |-------|        c |----------------------|

Only the chunk where a match begins reports it: b is reported by chunk 0, where it ends at the cut
and is extended in the genome. Chunk 1 sees b beginning at its cut, preceded by bases of b, and
drops it. Results do not depend on the cuts: no match is lost or found twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bwarp.index.build import build_index
from bwarp.index.parameters import choose_parameters
from bwarp.mems.find import find_matches
from bwarp.mems.kmer_table_cpu import build_kmer_table, table_matches
from bwarp.mems.packed_extension import equal_after, genome_text, most_after, segment_of
from bwarp.mems.query_text import Matches, QueryText, join_matches, sorted_matches, take_matches
from bwarp.mems.unique_cpu import least_dominated, unique_in_query, unique_in_reference
from bwarp.reference import Reference, codes_between, make_reference
from bwarp.runtime.compiled_code import compiled
from bwarp.sequence import AMBIGUOUS, kmer_at


@dataclass(frozen=True)
class Chunk:
    """A stretch of a genome, from `start` to `stop`, plus the overlap after it.

    Attributes
    ----------
    start, stop : int
        Genome positions.
    reference : Reference
        From `start` to beyond `stop`; contigs are cut as well.
    """

    start: int
    stop: int
    reference: Reference


def cut_reference(
    reference: Reference, chunk_bases: int, min_length: int, threads: int = 1
) -> Iterator[Chunk]:
    """Cut a genome into chunks of `chunk_bases`, leaving out those without A, C, G or T."""
    for start in range(0, reference.n_bases, chunk_bases):
        stop = min(start + chunk_bases, reference.n_bases)
        end = min(stop + min_length - 1, reference.n_bases)
        codes = codes_between(reference, start, end)
        if np.any(codes < AMBIGUOUS):
            starts = np.clip(reference.contig_starts, start, end) - start
            md5 = ("",) * len(reference.names)
            yield Chunk(start, stop, make_reference(reference.names, starts, codes, md5, threads))


def find_in_chunks(
    reference: Reference,
    text: QueryText,
    chunk_bases: int,
    min_length: int,
    kind: str,
    backend: str,
    threads: int = 1,
) -> Iterator[Matches]:
    """Find matches like `bwarp.mems.find.find_matches`, with an index of one chunk at a time.

    For the unique kinds, only matches that may be unique are kept from each chunk.

    Yields
    ------
    matches : Matches
        All, in the same order.
    """
    kept = []
    for chunk in cut_reference(reference, chunk_bases, min_length, threads):
        matches = join_matches(list(_all_matches(chunk, text, min_length, backend, threads)))
        matches = _own_matches(reference, chunk, text, matches)
        kept.append(matches if kind == "maxmatch" else least_dominated(matches))
    matches = sorted_matches(join_matches(kept))
    if kind != "maxmatch":
        matches = unique_in_reference(matches)
    yield unique_in_query(matches) if kind == "mum" else matches


def _all_matches(
    chunk: Chunk, text: QueryText, min_length: int, backend: str, threads: int
) -> Iterator[Matches]:
    if backend == "cuda":
        from bwarp.mems.maximal_cuda import prepare

        parameters = choose_parameters(chunk.reference.text_length)
        index = build_index(chunk.reference, parameters, backend, threads)
        index = prepare(index, with_reverse=False)
        return find_matches(index, text, min_length, "maxmatch", backend, threads)
    table = build_kmer_table(chunk.reference, min_length, threads)
    return table_matches(table, text, min_length, threads)


def _own_matches(reference: Reference, chunk: Chunk, text: QueryText, matches: Matches) -> Matches:
    """Return the matches that begin in a chunk, extended, in genome positions."""
    whole = matches._replace(
        reference_starts=matches.reference_starts + np.uint32(chunk.start),
        lengths=matches.lengths.copy(),
    )
    order = np.argsort(text.run_starts, kind="stable")
    own = np.empty(matches.n, np.bool_)
    _judge(
        genome_text(reference), text, text.run_starts[order], text.run_stops[order],
        (chunk.start, chunk.stop, chunk.start + chunk.reference.n_bases), whole, own,
    )  # fmt: skip
    return take_matches(whole, own)


@compiled
def _judge(genome, text, run_starts, run_stops, edges, matches, own):
    """Mark the chunk's own matches; extend those that end at the end of the chunk."""
    chunk_start, chunk_stop, chunk_end = edges
    for i in range(own.size):
        start, length = np.int64(matches.reference_starts[i]), np.int64(matches.lengths[i])
        own[i] = start < chunk_stop
        if start > chunk_start and start + length < chunk_end:
            continue
        position = np.int64(matches.query_starts[i]) + text.text_starts[matches.queries[i]]
        run = np.searchsorted(run_starts, position, side="right") - 1
        segment = np.int64(segment_of(genome.segment_genome, np.uint64(start)))
        segment_start = np.int64(genome.segment_genome[segment])
        text_start, text_stop = genome.segment_text[segment], genome.segment_text[segment + 1]
        if start == chunk_start and start > segment_start and position > run_starts[run]:
            before = kmer_at(text.words, np.uint64(position - 1), 1)
            own[i] &= before != kmer_at(genome.packed, np.uint64(start - 1), 1)
        if start + length == chunk_end:
            end, base = np.uint64(position + length), np.uint64(start + length)
            hit_end = np.uint64(text_start + start - segment_start + length)
            limit = most_after(end, np.uint64(run_stops[run]), hit_end, np.uint64(text_stop))
            matches.lengths[i] += np.uint32(
                equal_after(text.words, end, genome.packed, base, limit)
            )
