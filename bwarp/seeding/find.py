"""Find the seeds of sequences as they stream by: cut k-mers, search in passes, keep their order.

A pass holds as many k-mers as will have an expected number of intervals at once, whatever k and the
mismatches are.
"""

from collections.abc import Iterator
from math import comb

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.reverse import require_reverse
from bwarp.io.fastx import SequenceBatch
from bwarp.seeding.hits import FoundSeeds, SeedOptions, check_options
from bwarp.seeding.kmers import LONGEST_KMER, KmerBatch, cut_kmers, kmer_words, whole_queries

__all__ = [
    "count_seeds",
    "find_in_passes",
    "kmer_batches",
    "kmers_by_length",
    "passes",
    "prepare",
]

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
    if options.mismatches:
        require_reverse(index, "a search with mismatches")
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
    index = prepare(index, options, backend)
    if backend == "cuda":
        from bwarp.seeding.find_cuda import find_in_passes as find
    else:
        from bwarp.seeding.find_cpu import find_in_passes as find
    yield from find(index, kmers, options, threads)


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


def kmers_by_length(
    kmers: KmerBatch, start: int, stop: int
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """The numbers of the k-mers of each length from `start` to `stop`, these k-mers, their length.

    They are packed in as many 64-bit words as their length takes.
    """
    lengths = kmers.lengths[start:stop]
    for k in np.unique(lengths):
        numbers = start + np.flatnonzero(lengths == k)
        yield numbers, np.ascontiguousarray(kmers.words[numbers, : kmer_words(k)]), int(k)
