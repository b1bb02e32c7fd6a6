"""Find the seeds of sequences as they stream by: cut k-mers, search in passes, keep their order.

A pass holds as many k-mers as will have an expected number of intervals at once, whatever k and the
mismatches are. K-mers of several lengths are searched length by length, and their hits merged:

    k-mers of a pass    AC..  AC...  GT..  TT...  CA..       numbers 0 1 2 3 4
    length 20           0            2            4          one search, hits in order
    length 21                 1            3                 another
    merged              0     1      2     3      4
"""

from collections.abc import Callable, Iterator
from math import comb

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.io.fastx import SequenceBatch
from bwarp.seeding.hits import FoundSeeds, SeedHits, SeedOptions, check_options
from bwarp.seeding.kmers import (
    LONGEST_KMER,
    KmerBatch,
    cut_kmers,
    kmer_words,
    whole_queries,
)

__all__ = ["count_seeds", "find_in_passes", "kmer_batches", "merge_hits", "passes", "prepare"]

#: Windows cut at a time, so that a chromosome as a query takes no more memory than short ones.
WINDOWS_AT_ONCE = 1 << 20

#: Intervals that a pass is expected to have at most. A GPU's engine plans its own memory; there
#: this only bounds what lies in the computer's.
_INTERVALS_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 25}

#: Intervals more, for every mismatch, that repeats give a k-mer.
_REPEATED = 4


def kmer_batches(
    sequences: SequenceBatch, k: int | None = None, step: int = 1
) -> Iterator[KmerBatch]:
    """The k-mers of some sequences in batches of bounded size, in order.

    Parameters
    ----------
    sequences : SequenceBatch
    k : int or None
        Length of the k-mers to cut; None takes every sequence whole.
    step : int
        Bases between the starts of two k-mers.

    Yields
    ------
    batch : KmerBatch
        Queries are numbered within `sequences`, starts within their query.
    """
    if k is None:
        yield whole_queries(sequences)
        return
    offsets = sequences.offsets
    n_windows = np.maximum((np.diff(offsets) - k) // step + 1, 1)
    ends = np.cumsum(n_windows)
    total = int(ends[-1]) if ends.size else 0
    for start in range(0, total, WINDOWS_AT_ONCE):
        stop = min(start + WINDOWS_AT_ONCE, total)
        first, last = np.searchsorted(ends, [start, stop - 1], side="right")
        # Windows of the first query that came before, and of the last one up to here.
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
        kmers = cut_kmers(piece, k, step)
        kmers.starts[kmers.queries == 0] += done * step
        kmers.skipped[kmers.skipped[:, 0] == 0, 1] += done * step
        kmers.queries[:] += first
        kmers.skipped[:, 0] += first
        yield kmers


def prepare(index: FMIndex, options: SeedOptions, backend: str) -> FMIndex:
    """An index made ready for searches: with ``"cuda"`` it is put on the GPU, once for all of them.

    What comes back serves in place of the index in this module's functions; with ``"cuda"`` its
    `plan`, as a string, says how the GPU's memory is used.
    """
    check_options(options, backend)
    if backend == "cuda":
        from bwarp.seeding.find_cuda import prepare as put_on_gpu

        return put_on_gpu(index, options)
    return index


def find_in_passes(
    index: FMIndex, kmers: KmerBatch, options: SeedOptions, backend: str, threads: int = 1
) -> Iterator[FoundSeeds]:
    """All hits of a batch of k-mers of any lengths, in the order of the k-mers.

    Parameters
    ----------
    index : FMIndex
        Or what `prepare` made of it.
    kmers : KmerBatch
    options : SeedOptions
    backend : str
        ``"cpu"`` or ``"cuda"``: the hits are the same.

    Yields
    ------
    found : FoundSeeds
        Of one pass; k-mers are numbered within `kmers`. Its hits are to be taken before the next.
    """
    find_seeds = _engine(backend)
    index = prepare(index, options, backend)
    n_rows = (index.index if backend == "cuda" else index).forward.n_rows
    for start, stop in passes(n_rows, kmers.lengths, options.mismatches, backend):
        yield _find_pass(find_seeds, index, kmers, start, stop, options, threads)


def count_seeds(
    index: FMIndex, kmers: KmerBatch, options: SeedOptions, backend: str, threads: int = 1
) -> np.ndarray:
    """How many hits every k-mer has, whatever the limit; shape=(kmers.count,), dtype=int64."""
    # All but single hits are "over" a limit of one, and so are counted without being located.
    options = SeedOptions(options.mismatches, 1, options.algorithm, options.locate)
    counts = np.zeros(kmers.count, np.int64)
    for found in find_in_passes(index, kmers, options, backend, threads):
        counts[found.over_kmers] = found.over_counts
        for hits in found.hits:
            counts[hits.kmers] = 1
    return counts


def passes(
    text_length: int, lengths: np.ndarray, mismatches: int, backend: str
) -> list[tuple[int, int]]:
    """First and last + 1 k-mer of every pass, for k-mers of these lengths."""
    expected = np.array(
        [_expected_intervals(text_length, k, mismatches) for k in range(LONGEST_KMER + 1)]
    )
    before = np.cumsum(expected[lengths]) // _INTERVALS_AT_ONCE[backend]
    edges = np.flatnonzero(np.diff(before, prepend=-1, append=np.inf))
    return [(int(a), int(b)) for a, b in zip(edges, edges[1:], strict=False)]


def _expected_intervals(text_length: int, k: int, mismatches: int) -> float:
    """About how many intervals a k-mer has on both strands."""
    variants = sum(comb(k, m) * 3**m for m in range(mismatches + 1))
    by_chance = text_length * variants / 4.0**k
    return 1 + 2 * min(variants, by_chance + 1 + _REPEATED * mismatches)


def _engine(backend: str) -> Callable:
    if backend == "cuda":
        from bwarp.seeding.find_cuda import find_seeds
    else:
        from bwarp.seeding.find_cpu import find_seeds
    return find_seeds


def _find_pass(find_seeds, index, kmers, start, stop, options, threads) -> FoundSeeds:
    lengths = kmers.lengths[start:stop]
    found = []
    for k in np.unique(lengths):
        numbers = start + np.flatnonzero(lengths == k)
        words = np.ascontiguousarray(kmers.words[numbers, : kmer_words(k)])
        found.append(_renumbered(find_seeds(index, words, int(k), options, threads), numbers))
    if len(found) == 1:
        return found[0]
    over_kmers = np.concatenate([part.over_kmers for part in found])
    order = np.argsort(over_kmers)
    return FoundSeeds(
        over_kmers=over_kmers[order],
        over_counts=np.concatenate([part.over_counts for part in found])[order],
        hits=merge_hits([part.hits for part in found]),
    )


def _renumbered(found: FoundSeeds, numbers: np.ndarray) -> FoundSeeds:
    """The same with k-mer i called numbers[i]."""
    numbers = numbers.astype(np.uint32)
    hits = (
        SeedHits(numbers[part.kmers], part.strands, part.positions, part.mismatches)
        for part in found.hits
    )
    return FoundSeeds(numbers[found.over_kmers], found.over_counts, hits)


def merge_hits(streams: list[Iterator[SeedHits]]) -> Iterator[SeedHits]:
    """The hits of searches of different k-mers, each in order, as one stream in order.

    Holds one part of every stream at a time.
    """
    streams = list(streams)
    heads = [_next_part(stream) for stream in streams]
    while any(head is not None for head in heads):
        # Nothing of the k-mers up to this one can be in a part still to come.
        last = min(int(head.kmers[-1]) for head in heads if head is not None)
        ready = []
        for i, head in enumerate(heads):
            if head is None:
                continue
            cut = int(np.searchsorted(head.kmers, last, side="right"))
            ready.append(_slice(head, 0, cut))
            heads[i] = _slice(head, cut, head.count)
            if cut == head.count:
                heads[i] = _next_part(streams[i])
        order = np.argsort(np.concatenate([part.kmers for part in ready]), kind="stable")
        yield SeedHits(
            *(
                np.concatenate([getattr(part, name) for part in ready])[order]
                for name in ("kmers", "strands", "positions", "mismatches")
            )
        )


def _next_part(stream: Iterator[SeedHits]) -> SeedHits | None:
    return next((part for part in stream if part.count), None)


def _slice(hits: SeedHits, start: int, stop: int) -> SeedHits:
    part = slice(start, stop)
    return SeedHits(
        hits.kmers[part], hits.strands[part], hits.positions[part], hits.mismatches[part]
    )
