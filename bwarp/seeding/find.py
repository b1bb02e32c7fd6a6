"""Find the seeds of a stream of sequences: cut k-mers, search them in passes, keep their order.

A pass holds as many k-mers as are expected to yield a fixed number of intervals, whatever k and the
mismatches. The functions also merge the hits of degenerate queries, filter hits by PAM, and
distribute batches over several GPUs.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import comb

import numpy as np

from bwarp.index.chunks import ChunkedIndex, PreparedChunks, prepare_chunks
from bwarp.index.fm_index import FMIndex
from bwarp.index.store import require_reverse
from bwarp.io.fastx import SequenceBatch
from bwarp.io.names import Names
from bwarp.offtargets.guides import Pam
from bwarp.options.finding import LONGEST_KMER
from bwarp.reference import Reference
from bwarp.runtime.chunks import in_turns
from bwarp.seeding.hits import (
    FoundSeeds,
    SeedHits,
    SeedOptions,
    check_options,
    joined,
    over_limit,
    taken,
)
from bwarp.seeding.kmers import KmerBatch, cut_kmers, kmer_words, whole_queries

#: Windows cut at a time, so that a chromosome as a query needs no more memory than short queries.
WINDOWS_AT_ONCE = 1 << 20

#: The maximum expected number of intervals per pass. The GPU engine plans its own memory; there,
#: this only bounds host memory.
_INTERVALS_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 25}

#: The factor by which repeats increase the intervals of a k-mer, per mismatch.
_REPEATED = 4


def kmer_batches(
    sequences: SequenceBatch, k: int | None = None, step: int = 1
) -> Iterator[KmerBatch]:
    """Yield the k-mers of sequences in batches of bounded size, in order.

    Parameters
    ----------
    sequences : SequenceBatch
    k : int or None
        Length of the k-mers to cut; None takes each sequence as a whole.
    step : int
        Bases between the starts of consecutive k-mers.

    Yields
    ------
    batch : KmerBatch
        Queries are numbered within `sequences`, starts are relative to the query.
    """
    if k is None:
        yield whole_queries(sequences)
        return
    for cut in batches_to_cut(sequences, k, step):
        yield cut()


def batches_to_cut(
    sequences: SequenceBatch, k: int, step: int
) -> Iterator[Callable[[], KmerBatch]]:
    """Yield functions that cut the batches of `kmer_batches`, which threads can call."""
    offsets = sequences.offsets
    n_windows = np.maximum((np.diff(offsets) - k) // step + 1, 1)
    ends = np.cumsum(n_windows)
    total = int(ends[-1]) if ends.size else 0
    for start in range(0, total, WINDOWS_AT_ONCE):
        stop = min(start + WINDOWS_AT_ONCE, total)
        first, last = np.searchsorted(ends, [start, stop - 1], side="right")
        # Windows of the first query that came before, and of the last query up to here.
        done = start - int(ends[first] - n_windows[first])
        reached = stop - int(ends[last] - n_windows[last])
        begin = int(offsets[first]) + done * step
        end = min(int(offsets[last]) + (reached - 1) * step + k, int(offsets[last + 1]))
        piece = SequenceBatch(
            codes=sequences.codes[begin:end],
            offsets=np.clip(offsets[first : last + 2], begin, end) - begin,
            qualities=None,
            text=sequences.text,
            headers=sequences.headers[first : last + 1],
            first_record=sequences.first_record + int(first),
        )
        yield partial(_cut_piece, piece, k, step, int(first), done)


def _cut_piece(piece: SequenceBatch, k: int, step: int, first: int, done: int) -> KmerBatch:
    """Cut the k-mers of a piece: its queries from number `first`, without `done` k-mers of it."""
    kmers = cut_kmers(piece, k, step)
    kmers.starts[kmers.queries == 0] += done * step
    kmers.skipped[kmers.skipped[:, 0] == 0, 1] += done * step
    kmers.queries[:] += first
    kmers.skipped[:, 0] += first
    return kmers


def prepare(
    index: FMIndex | ChunkedIndex, options: SeedOptions, backend: str, gpus: int = 1
) -> FMIndex | PreparedChunks:
    """Prepare an index for searches; with ``"cuda"``, copy it to the GPU once for all of them.

    The result replaces the index in the functions of this module; with ``"cuda"``, its `plan`, as a
    string, describes the use of GPU memory. The chunks of an index in chunks are distributed over
    up to `gpus` GPUs.
    """
    check_options(options, backend)
    if isinstance(index, PreparedChunks):
        return index
    if options.mismatches:
        require_reverse(index, "a search with mismatches")
    if isinstance(index, ChunkedIndex):
        from bwarp.seeding.chunk_hits import prepare_seed_chunk

        prepare_one = partial(prepare_seed_chunk, index.reference, options, backend)
        return prepare_chunks(index, prepare_one, backend, gpus)
    if backend == "cuda":
        from bwarp.seeding.find_cuda import prepare as put_on_gpu

        return put_on_gpu(index, options)
    return index


def find_in_passes(
    index: FMIndex | PreparedChunks,
    kmers: KmerBatch,
    options: SeedOptions,
    backend: str,
    threads: int = 1,
) -> Iterator[FoundSeeds]:
    """Find all hits of a batch of k-mers of any lengths, in the order of the k-mers.

    Parameters
    ----------
    index : FMIndex or PreparedChunks
        An index, or the result of `prepare`.
    kmers : KmerBatch
    options : SeedOptions
    backend : str
        ``"cpu"`` or ``"cuda"``; the hits are the same.

    Yields
    ------
    found : FoundSeeds
        The result of one pass, or of a part of it; k-mers are numbered within `kmers`. Its hits
        must be consumed before the next pass.
    """
    index = prepare(index, options, backend)
    if isinstance(index, PreparedChunks):
        from bwarp.seeding.chunk_hits import find_in_chunks

        yield from find_in_chunks(index, kmers, options, backend, threads)
        return
    find_pass = finder_of_passes(backend)
    for start, stop in passes(index.forward.n_rows, kmers.lengths, options.mismatches, backend):
        yield find_pass(index, kmers, start, stop, options, threads)


def finder_of_passes(backend: str) -> Callable[..., FoundSeeds]:
    """Return the function that finds the hits of a pass with an engine."""
    if backend == "cuda":
        from bwarp.seeding.find_cuda import find_pass
    else:
        from bwarp.seeding.find_cpu import find_pass
    return find_pass


def count_seeds(
    index: FMIndex | PreparedChunks,
    kmers: KmerBatch,
    options: SeedOptions,
    backend: str,
    threads: int = 1,
) -> np.ndarray:
    """Count the hits of every k-mer, regardless of the limit; shape=(kmers.count,), dtype=int64."""
    if isinstance(index, PreparedChunks):
        from bwarp.seeding.chunk_hits import count_in_chunks

        return count_in_chunks(index, kmers, options, backend, threads)
    # All but single hits exceed a limit of one, and so are counted without being located.
    options = replace(options, max_hits=1, count_all=True)
    counts = np.zeros(kmers.count, np.int64)
    for found in find_in_passes(index, kmers, options, backend, threads):
        counts[found.over_kmers] = found.over_counts
        for hits in found.hits:
            counts[hits.kmers] = 1
    return counts


def passes(
    text_length: int, lengths: np.ndarray, mismatches: int, backend: str
) -> list[tuple[int, int]]:
    """Yield the first and last + 1 k-mer of every pass, given the lengths of k-mers."""
    expected = np.array(
        [_expected_intervals(text_length, k, mismatches) for k in range(LONGEST_KMER + 1)]
    )
    before = np.cumsum(expected[lengths]) // _INTERVALS_AT_ONCE[backend]
    edges = np.flatnonzero(np.diff(before, prepend=-1, append=np.inf))
    return [(int(a), int(b)) for a, b in itertools.pairwise(edges)]


def _expected_intervals(text_length: int, k: int, mismatches: int) -> float:
    """Estimate the number of intervals of a k-mer on both strands."""
    variants = sum(comb(k, m) * 3**m for m in range(mismatches + 1))
    by_chance = text_length * variants / 4.0**k
    return 1 + 2 * min(variants, by_chance + 1 + _REPEATED * mismatches)


def kmers_by_length(
    kmers: KmerBatch, start: int, stop: int
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield, for each length, the numbers of the k-mers from `start` to `stop`, the k-mers, and the
    length.

    They are packed in as many 64-bit words as their length requires.
    """
    lengths = kmers.lengths[start:stop]
    for k in np.unique(lengths):
        numbers = start + np.flatnonzero(lengths == k)
        yield numbers, np.ascontiguousarray(kmers.words[numbers, : kmer_words(k)]), int(k)


# Hits as sites: each site of a degenerate query once, and, with a PAM, only sites next to it.
#
# Whether a hit counts is known only after it is located, so the limit of hits is applied here.


def find_sites(
    index: FMIndex,
    kmers: KmerBatch,
    options: SeedOptions,
    backend: str,
    threads: int = 1,
    is_site: Callable[[SeedHits], np.ndarray] | None = None,
) -> Iterator[FoundSeeds]:
    """Do what `find_in_passes` does, on the same parameters but the last.

    Parameters
    ----------
    kmers : KmerBatch
        With or without `variants`.
    is_site : function, optional
        Returns a bool per hit: whether it counts.
    """
    if kmers.variants is None and is_site is None:
        yield from find_in_passes(index, kmers, options, backend, threads)
        return
    searched = kmers if kmers.variants is None else kmers.variants
    numbers = np.arange(kmers.count) if kmers.variants is None else searched.queries
    without_limit = replace(options, max_hits=0)
    found = find_in_passes(index, searched, without_limit, backend, threads)
    for hits in _by_kmer(found, numbers, is_site):
        sites = _once_each(hits)
        counts = np.bincount(sites.kmers)
        over, over_counts = over_limit(counts, options)
        listed = taken(sites, ~np.isin(sites.kmers, over))
        yield FoundSeeds(
            over.astype(np.uint32), over_counts, iter([listed] if listed.count else [])
        )


def count_sites(
    index: FMIndex,
    kmers: KmerBatch,
    options: SeedOptions,
    backend: str,
    threads: int = 1,
    is_site: Callable[[SeedHits], np.ndarray] | None = None,
) -> np.ndarray:
    """Count the sites of every k-mer regardless of the limit; shape=(kmers.count,), dtype=int64."""
    if kmers.variants is None and is_site is None:
        return count_seeds(index, kmers, options, backend, threads)
    counts = np.zeros(kmers.count, np.int64)
    without_limit = replace(options, max_hits=0)
    for found in find_sites(index, kmers, without_limit, backend, threads, is_site):
        for hits in found.hits:
            counts += np.bincount(hits.kmers, minlength=kmers.count)
    return counts


def _by_kmer(
    found: Iterator[FoundSeeds], numbers: np.ndarray, is_site: Callable | None
) -> Iterator[SeedHits]:
    """Renumber the hits that count, keeping all hits of a k-mer in one part."""
    waiting: list[SeedHits] = []
    for one in found:
        for hits in one.hits:
            hits = replace(hits, kmers=numbers[hits.kmers].astype(np.uint32))
            if is_site is not None:
                hits = taken(hits, is_site(hits))
            if hits.count == 0:
                continue
            last = hits.kmers[-1]
            begun = int(np.searchsorted(hits.kmers, last))
            if begun or (waiting and waiting[-1].kmers[-1] != last):
                yield joined([*waiting, taken(hits, slice(0, begun))])
                waiting = []
            waiting.append(taken(hits, slice(begun, None)))
    if waiting:
        yield joined(waiting)


def _once_each(hits: SeedHits) -> SeedHits:
    """Keep each site once, with its fewest mismatches; ordered by k-mer, strand and position."""
    order = np.lexsort((hits.mismatches, hits.positions, hits.strands, hits.kmers))
    hits = taken(hits, order)
    new = np.ones(hits.count, bool)
    new[1:] = (
        (np.diff(hits.kmers.astype(np.int64)) != 0)
        | (np.diff(hits.strands.astype(np.int64)) != 0)
        | (np.diff(hits.positions.astype(np.int64)) != 0)
    )
    return taken(hits, new)


def is_beside_pam(
    reference: Reference, pam: Pam, kmers: KmerBatch
) -> Callable[[SeedHits], np.ndarray]:
    """Return a function that takes hits of k-mers and returns whether each has a PAM next to it."""
    starts = reference.segment_genome.astype(np.int64)
    stops = starts + np.diff(reference.segment_text) - 1
    by_length = pam.by_length()

    def is_beside(pam: Pam, hits: SeedHits) -> np.ndarray:
        positions = hits.positions.astype(np.int64)
        lengths = kmers.lengths[hits.kmers].astype(np.int64)
        forward = hits.strands == 0
        behind = forward == (pam.side == 3)
        at = np.where(behind, positions + lengths, positions - pam.length)
        segment = np.searchsorted(stops, positions, side="right")
        inside = (at >= starts[segment]) & (at + pam.length <= stops[segment])
        # Positions outside a contig are read as well; their values do not matter.
        bases = np.clip(at[:, None] + np.arange(pam.length), 0, reference.n_bases - 1)
        shift = (62 - 2 * (bases & 31)).astype(np.uint64)
        codes = (reference.packed[bases >> 5] >> shift & np.uint64(3)).astype(np.uint8)
        fits = [
            (allowed[None] >> codes[:, None] & 1).all(axis=2).any(axis=1)
            for allowed in (pam.allowed, pam.on_other_strand())
        ]
        return inside & np.where(forward, *fits)

    return lambda hits: np.any([is_beside(one, hits) for one in by_length], axis=0)


# Hits of batches of k-mers, on one engine or several GPUs.


NamedKmers = tuple[KmerBatch, Names]


@dataclass(frozen=True)
class BatchSearch:
    """A search for batches of k-mers, with indexes prepared by `on_each_gpu`.

    Attributes
    ----------
    options : SeedOptions
    backend : str
    threads : int
    reference : Reference
    pam : Pam, optional
        Only hits next to it count.
    """

    options: SeedOptions
    backend: str
    threads: int
    reference: Reference
    pam: Pam | None = None

    def find(
        self, indexes: Sequence[FMIndex], batches: Iterable[NamedKmers]
    ) -> Iterator[tuple[NamedKmers, Iterator[FoundSeeds]]]:
        """Yield every batch, in order, with the result of `find_sites`."""
        for batch, results in in_turns(self._find, indexes, batches):
            yield batch, with_hits(results)

    def count(
        self, indexes: Sequence[FMIndex], batches: Iterable[NamedKmers]
    ) -> Iterator[tuple[NamedKmers, np.ndarray]]:
        """Yield every batch, in order, with the result of `count_sites`."""
        for batch, [counts] in in_turns(self._count, indexes, batches):
            yield batch, counts

    def _find(self, index: FMIndex, batch: NamedKmers) -> Iterator[FoundSeeds | SeedHits]:
        # On a GPU, the hits of a pass are delivered after the pass itself.
        for found in find_sites(*self._searched(index, batch)):
            yield replace(found, hits=iter(()))
            yield from found.hits

    def _count(self, index: FMIndex, batch: NamedKmers) -> Iterator[np.ndarray]:
        yield count_sites(*self._searched(index, batch))

    def _searched(self, index: FMIndex, batch: NamedKmers) -> tuple:
        kmers, _ = batch
        is_site = is_beside_pam(self.reference, self.pam, kmers) if self.pam else None
        return index, kmers, self.options, self.backend, self.threads, is_site


def with_hits(results: Iterator[FoundSeeds | SeedHits]) -> Iterator[FoundSeeds]:
    """Attach to each pass the hits that follow it; its own hits are empty."""
    following = deque([next(results, None)])
    while (found := following.popleft()) is not None:
        yield replace(found, hits=_hits_before_next(results, following))


def _hits_before_next(results: Iterator, following: deque) -> Iterator[SeedHits]:
    for one in results:
        if isinstance(one, FoundSeeds):
            following.append(one)
            return
        yield one
    following.append(None)
