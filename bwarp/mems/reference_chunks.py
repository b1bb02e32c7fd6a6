"""Search the chunks of a reference one by one, or on several GPUs, and join their matches.

Chunks (`bwarp.index.chunks`) overlap, so that the first bases of each match are entirely in the
chunk where the match begins:

    genome     |----- chunk 1 -----|----- chunk 2 -----|----- chunk 3 -----|
    searched   |--------------------==|
                                   |--------------------==|
    matches         a |---|     b |-------|        c |----------------------|

Only the chunk where a match begins reports it: b is reported by chunk 1, where it ends at the cut
and is extended in the genome. Chunk 2 sees b beginning at its cut, preceded by bases of b, and
drops it. Results do not depend on the cuts: no match is lost or found twice.

Chunks without an index overlap by one base less than the minimum match length. Those of a stored
index may overlap by less; then matches as long as the overlap allows are searched, and those that
are too short when extended are dropped.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from bwarp.index.build import build_index
from bwarp.index.chunks import Chunk, PreparedChunk, PreparedChunks, chunks_of, stretch
from bwarp.index.description import OVERLAP
from bwarp.index.fm_index import FMIndex
from bwarp.index.parameters import choose_parameters
from bwarp.mems.kmer_table_cpu import build_kmer_table, table_matches
from bwarp.mems.packed_extension import equal_after, genome_text, most_after, segment_of
from bwarp.mems.query_text import Matches, QueryText, join_matches, merge_matches, take_matches
from bwarp.mems.unique_cpu import least_dominated, unique_in_query, unique_in_reference
from bwarp.reference import Reference
from bwarp.runtime.chunks import on_all
from bwarp.runtime.compiled_code import compiled
from bwarp.sequence import kmer_at


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

    Yields
    ------
    matches : Matches
        All, in the same order.
    """

    def each() -> Iterator[Matches]:
        for chunk in chunks_of(reference, chunk_bases, min_length - 1):
            bases = stretch(reference, chunk.start, chunk.end, threads)
            found = _matches_in(bases, text, min_length, backend, threads)
            yield _own_matches(reference, chunk, text, min_length, join_matches(list(found)))

    yield _joined(each(), kind)


def find_in_prepared_chunks(
    index: PreparedChunks,
    text: QueryText,
    min_length: int,
    kind: str,
    backend: str,
    threads: int = 1,
) -> Iterator[Matches]:
    """Find matches like `bwarp.mems.find.find_matches`, in all chunks of an index, on all GPUs."""
    shortest = min(min_length, OVERLAP + 1)

    def each(chunks: list[PreparedChunk], text: QueryText) -> Iterator[Matches]:
        for prepared in chunks:
            found = _indexed_matches(prepared.ready(), text, shortest, backend, threads)
            found = join_matches(list(found))
            yield _of_kind(
                _own_matches(index.reference, prepared.chunk, text, min_length, found), kind
            )

    yield _joined(chain.from_iterable(on_all(each, index.on_each, text)), kind)


def _of_kind(matches: Matches, kind: str) -> Matches:
    """Return the matches of a chunk that may be of a kind."""
    return matches if kind == "maxmatch" else least_dominated(matches)


def _joined(parts: Iterable[Matches], kind: str) -> Matches:
    """Return the matches of a kind from those of all chunks, which are in order."""
    matches = merge_matches([_of_kind(part, kind) for part in parts])
    if kind != "maxmatch":
        matches = unique_in_reference(matches)
    return unique_in_query(matches) if kind == "mum" else matches


def _matches_in(
    reference: Reference, text: QueryText, min_length: int, backend: str, threads: int
) -> Iterator[Matches]:
    """Find all maximal matches in a chunk without an index."""
    if backend == "cuda":
        from bwarp.mems.maximal_cuda import prepare

        index = build_index(reference, choose_parameters(reference.text_length), backend, threads)
        index = prepare(index, with_reverse=False)
        return _indexed_matches(index, text, min_length, backend, threads)
    return table_matches(
        build_kmer_table(reference, min_length, threads), text, min_length, threads
    )


def _indexed_matches(
    index: FMIndex, text: QueryText, min_length: int, backend: str, threads: int
) -> Iterator[Matches]:
    """Find all maximal matches in a chunk with an index."""
    if backend == "cuda":
        from bwarp.mems.maximal_cuda import maximal_matches
    else:
        from bwarp.mems.maximal_cpu import maximal_matches
    return maximal_matches(index, text, min_length, threads)


def _own_matches(
    reference: Reference, chunk: Chunk, text: QueryText, min_length: int, matches: Matches
) -> Matches:
    """Return the matches that begin in a chunk, extended, in genome positions."""
    whole = matches._replace(
        reference_starts=matches.reference_starts + np.uint32(chunk.start),
        lengths=matches.lengths.copy(),
    )
    order = np.argsort(text.run_starts, kind="stable")
    own = np.empty(matches.n, np.bool_)
    _judge(
        genome_text(reference), text, text.run_starts[order], text.run_stops[order],
        (chunk.start, chunk.stop, chunk.end), min_length, whole, own,
    )  # fmt: skip
    return take_matches(whole, own)


@compiled
def _judge(genome, text, run_starts, run_stops, edges, min_length, matches, own):
    """Mark the chunk's own matches; extend those that end at the end of the chunk."""
    chunk_start, chunk_stop, chunk_end = edges
    for i in range(own.size):
        start, length = np.int64(matches.reference_starts[i]), np.int64(matches.lengths[i])
        own[i] = start < chunk_stop
        if start > chunk_start and start + length < chunk_end:
            own[i] &= length >= min_length
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
        own[i] &= matches.lengths[i] >= min_length
