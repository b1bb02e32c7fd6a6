"""Find hits of k-mers in the chunks of a reference, on the CPU or on GPUs, and join them.

Chunks (`bwarp.index.chunks`) overlap by one base less than the longest k-mer, so each hit is
entirely in the chunk where it starts, and may be found once more, in the overlap of the chunk
before:

    genome     |------ chunk 1 ------|------ chunk 2 ------|
    searched   |----------------------==|                        == is the overlap of chunk 1
    hits           a ---          b ---   c ---
                                       d --                      found in both, counted in chunk 2

The limit of hits applies to the hits of all chunks together. A k-mer has at most two hits per base
of an overlap, so one that exceeds the limit by more than these in a single chunk is over it. Such
k-mers are only counted there, and their hits in the overlap, which has a small index of its own,
are subtracted. The hits of all other k-mers are located and counted in every chunk.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np

from bwarp.index.build import build_index
from bwarp.index.chunks import Chunk, PreparedChunk, PreparedChunks, stretch
from bwarp.index.description import OVERLAP
from bwarp.index.fm_index import FMIndex
from bwarp.index.parameters import IndexParameters
from bwarp.options.finding import SEEDS
from bwarp.reference import Reference
from bwarp.runtime.chunks import on_all
from bwarp.seeding.find import count_seeds, finder_of_passes, passes, with_hits
from bwarp.seeding.hits import FoundSeeds, SeedHits, SeedOptions, merge_hits, over_limit, taken
from bwarp.seeding.kmers import KmerBatch, taken_kmers

#: Hits of a k-mer that start in an overlap, on both strands.
_MOST_IN_OVERLAP = 2 * OVERLAP

#: A short text needs no sampling, and a table of k-mers no longer than the shortest query.
_OVERLAP_PARAMETERS = IndexParameters(occ_rate=64, sa_rate=1, prefix_length=4)


@dataclass(frozen=True)
class SeedChunk:
    """The indexes of a chunk, ready for searches.

    Attributes
    ----------
    index : FMIndex
        Of the chunk with its overlap.
    overlap : FMIndex or None
        Of the overlap alone, on the host; None if it has no bases.
    """

    index: FMIndex
    overlap: FMIndex | None

    @property
    def plan(self) -> str:
        """Describe the use of GPU memory."""
        return str(self.index.plan)


def prepare_seed_chunk(
    reference: Reference,
    options: SeedOptions,
    backend: str,
    index: FMIndex,
    chunk: Chunk,
    share: float,
) -> SeedChunk:
    """Prepare a chunk of a reference; see `bwarp.index.chunks.prepare_chunks`."""
    overlap = stretch(reference, chunk.stop, chunk.end)
    indexed = None
    if overlap.n_segments:
        indexed = build_index(
            overlap, _OVERLAP_PARAMETERS, "cpu", with_reverse=options.mismatches > 0
        )
    if backend == "cuda":
        from bwarp.seeding.find_cuda import prepare as put_on_gpu

        index = put_on_gpu(index, options, share)
    return SeedChunk(index, indexed)


def find_in_chunks(
    index: PreparedChunks, kmers: KmerBatch, options: SeedOptions, backend: str, threads: int = 1
) -> Iterator[FoundSeeds]:
    """Do what `bwarp.seeding.find.find_in_passes` does, in all chunks, on all GPUs."""
    most = options.max_hits + _MOST_IN_OVERLAP
    limited = options.max_hits and SEEDS["max_hits"].allows(most)
    in_chunk = replace(options, max_hits=most if limited else 0)
    edges = passes(index.longest_text, kmers.lengths, options.mismatches, backend)
    find_pass = finder_of_passes(backend)

    def find(chunks: list[PreparedChunk], kmers: KmerBatch) -> Iterator[FoundSeeds | SeedHits]:
        for start, stop in edges:
            found = []
            for prepared in chunks:
                ready = prepared.ready()
                own = find_pass(ready.index, kmers, start, stop, in_chunk, threads)
                if own.over_kmers.size:
                    over = taken_kmers(kmers, own.over_kmers)
                    twice = _in_overlap(ready.overlap, over, options, threads)
                    own = replace(own, over_counts=own.over_counts - twice)
                hits = map(partial(_starting_in, prepared.chunk), own.hits)
                found.append(replace(own, hits=hits))
            of_gpu = _together(found)
            yield replace(of_gpu, hits=iter(()))
            yield from of_gpu.hits

    of_gpus = [with_hits(results) for results in on_all(find, index.on_each, kmers)]
    for (start, stop), found in zip(edges, zip(*of_gpus, strict=True), strict=True):
        yield from _within_limit(_together(list(found)), start, stop, options)


def count_in_chunks(
    index: PreparedChunks, kmers: KmerBatch, options: SeedOptions, backend: str, threads: int = 1
) -> np.ndarray:
    """Do what `bwarp.seeding.find.count_seeds` does, in all chunks, on all GPUs."""

    def count(chunks: list[PreparedChunk], kmers: KmerBatch) -> Iterator[np.ndarray]:
        for prepared in chunks:
            ready = prepared.ready()
            counts = count_seeds(ready.index, kmers, options, backend, threads)
            yield counts - _in_overlap(ready.overlap, kmers, options, threads)

    counts = np.zeros(kmers.count, np.int64)
    for of_chunk in chain.from_iterable(on_all(count, index.on_each, kmers)):
        counts += of_chunk
    return counts


def _in_overlap(
    overlap: FMIndex | None, kmers: KmerBatch, options: SeedOptions, threads: int
) -> np.ndarray:
    """Count the hits of k-mers in the overlap of a chunk."""
    if overlap is None:
        return np.zeros(kmers.count, np.int64)
    return count_seeds(overlap, kmers, SeedOptions(options.mismatches), "cpu", threads)


def _starting_in(chunk: Chunk, hits: SeedHits) -> SeedHits:
    """Return the hits that start in a chunk, in genome positions."""
    own = taken(hits, hits.positions < chunk.stop - chunk.start)
    return replace(own, positions=own.positions + np.uint32(chunk.start))


def _together(found: list[FoundSeeds]) -> FoundSeeds:
    """Join the results of a pass in several chunks, in their order.

    A k-mer over the limit in one chunk may still have hits listed in another.
    """
    if len(found) == 1:
        return found[0]
    kmers, rows = np.unique(
        np.concatenate([part.over_kmers for part in found]), return_inverse=True
    )
    counts = np.zeros(kmers.size, np.int64)
    np.add.at(counts, rows, np.concatenate([part.over_counts for part in found]))
    return FoundSeeds(kmers, counts, merge_hits([part.hits for part in found]))


def _within_limit(
    found: FoundSeeds, start: int, stop: int, options: SeedOptions
) -> Iterator[FoundSeeds]:
    """Apply the limit to the hits of all chunks together; yield k-mers in order, part by part."""
    counts = np.zeros(stop - start, np.int64)
    counts[found.over_kmers - start] = found.over_counts
    done = start
    for hits in found.hits:
        if not hits.count:
            continue
        last = int(hits.kmers[-1]) + 1
        here = counts[done - start : last - start]
        here += np.bincount(hits.kmers - done, minlength=last - done)
        over, over_counts = over_limit(here, options)
        if over.size:
            hits = taken(hits, here[hits.kmers - done] <= options.max_hits)
        listed = iter([hits] if hits.count else [])
        yield FoundSeeds((done + over).astype(np.uint32), over_counts, listed)
        done = last
    over, over_counts = over_limit(counts[done - start :], options)
    if over.size:
        yield FoundSeeds((done + over).astype(np.uint32), over_counts, iter(()))
