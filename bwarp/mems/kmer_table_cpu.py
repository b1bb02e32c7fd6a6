"""Find all maximal matches on the CPU with a table of the reference's k-mers, built on the fly.

For a single comparison of genomes this is faster than an FM-index: two passes over the reference
sort its positions by their k-mers.

    starts    k-mer 0   k-mer 1 ...        positions[starts[m]:starts[m + 1]] lists k-mer m
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from bwarp.mems.kmer_sampling import choose_kmer_length, sample_counts, sample_slice
from bwarp.mems.maximal_cpu import kmer_groups, take_groups, verify
from bwarp.mems.query_text import Matches, QueryText
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import prefetch
from bwarp.runtime.threads import bounded_ranges, for_each_range, run_together
from bwarp.runtime.timeline import on_timeline
from bwarp.sequence import kmer_at

#: A table of more k-mers does not pay off; each takes 4 bytes.
_LONGEST_KMER = 14

_SAMPLES = 1 << 20
_HITS = 1 << 22
_READ_AHEAD = 16
_u64 = np.uint64


@dataclass(frozen=True)
class KmerTable:
    """The positions of every k-mer of a reference.

    Attributes
    ----------
    reference : Reference
    k : int
    starts : ndarray, shape=(4**k + 1,), dtype=uint32
    positions : ndarray, shape=(n,), dtype=uint32
        Positions in the text of the reference, in order for each k-mer.
    """

    reference: Reference
    k: int
    starts: np.ndarray = field(repr=False)
    positions: np.ndarray = field(repr=False)


def build_kmer_table(reference: Reference, min_length: int, threads: int = 1) -> KmerTable:
    """Build the table that finds matches of at least `min_length` bases in a reference.

    A counting sort: each thread counts the k-mers of a part of the reference; sums over all counts
    give each thread the slots of its positions, so that these stay in order.
    """
    k = min(choose_kmer_length(reference.text_length, min_length, spare=-1), _LONGEST_KMER)
    lengths = np.diff(reference.segment_text) - 1
    positions = np.empty(int(np.maximum(lengths - k + 1, 0).sum()), np.uint32)
    arrays = reference.packed, reference.segment_genome, reference.segment_text, k
    # The counts of all threads together take only a few bytes per base.
    n_parts = max(1, min(threads, 2 * positions.size // 4**k))
    edges = [reference.text_length * part // n_parts for part in range(n_parts + 1)]
    counts = np.zeros((n_parts, 4**k), np.uint32)

    def each_part(function, *more) -> None:
        def work(part):
            return lambda: function(*arrays, edges[part], edges[part + 1], counts[part], *more)

        run_together([work(part) for part in range(n_parts)], threads)

    each_part(_count_kmers)
    starts = np.empty(4**k + 1, np.uint32)
    _sum_up(counts, starts)
    each_part(_list_kmers, positions)
    return KmerTable(reference, k, starts, positions)


@on_timeline("find matches")
def table_matches(
    table: KmerTable, text: QueryText, min_length: int, threads: int = 1
) -> Iterator[Matches]:
    """Find all maximal matches of at least `min_length` bases.

    Yields
    ------
    matches : Matches
        Blocks of matches; all blocks together are in order.
    """
    step = min_length - table.k + 1
    counts = sample_counts(text, min_length, table.k)
    for start in range(0, int(counts[-1]), _SAMPLES):
        samples = sample_slice(text, counts, step, start, min(start + _SAMPLES, int(counts[-1])))
        starts, stops = _look_up(table, text.words, samples.positions, threads)
        groups = kmer_groups(samples, table.k, step, starts, stops)
        hits = np.append(0, np.cumsum(stops - starts, dtype=np.int64))
        # Verification allocates space for as many matches as there are hits.
        for first, last in bounded_ranges(hits, _HITS):
            part = take_groups(groups, slice(first, last))
            yield verify(
                table.reference, text, min_length, part, part.starts, part.stops, table.positions,
                threads,
            )  # fmt: skip


@compiled
def _count_kmers(packed, segment_genome, segment_text, k, start, stop, counts):
    """Count the k-mers at text positions from `start` to `stop`."""
    segment = np.searchsorted(segment_text, start, side="right") - 1
    while segment < segment_genome.size and segment_text[segment] < stop:
        first = max(start, segment_text[segment])
        last = min(stop, segment_text[segment + 1] - k)
        base = _u64(segment_genome[segment]) + _u64(first - segment_text[segment])
        for i in range(last - first):
            ahead = base + _u64(min(i + _READ_AHEAD, last - first - 1))
            prefetch(counts, np.int64(kmer_at(packed, ahead, k)))
            counts[kmer_at(packed, base + _u64(i), k)] += np.uint32(1)
        segment += 1


@compiled
def _sum_up(counts, starts):
    """Compute where every k-mer begins, and replace the counts of each part by the starts of the
    part.
    """
    n = np.uint32(0)
    for kmer in range(counts.shape[1]):
        starts[kmer] = n
        for part in range(counts.shape[0]):
            count = counts[part, kmer]
            counts[part, kmer] = n
            n += count
    starts[counts.shape[1]] = n


@compiled
def _list_kmers(packed, segment_genome, segment_text, k, start, stop, counts, positions):
    """Store the text positions from `start` to `stop` under their k-mers."""
    segment = np.searchsorted(segment_text, start, side="right") - 1
    while segment < segment_genome.size and segment_text[segment] < stop:
        first = max(start, segment_text[segment])
        last = min(stop, segment_text[segment + 1] - k)
        base = _u64(segment_genome[segment]) + _u64(first - segment_text[segment])
        for i in range(last - first):
            # Prefetch the count first, and, once it has arrived, the entry to which it leads.
            farther = base + _u64(min(i + 2 * _READ_AHEAD, last - first - 1))
            prefetch(counts, np.int64(kmer_at(packed, farther, k)))
            ahead = base + _u64(min(i + _READ_AHEAD, last - first - 1))
            prefetch(positions, np.int64(counts[kmer_at(packed, ahead, k)]))
            kmer = kmer_at(packed, base + _u64(i), k)
            positions[counts[kmer]] = first + i
            counts[kmer] += np.uint32(1)
        segment += 1


def _look_up(table, words, positions, threads):
    starts = np.empty(positions.size, np.uint32)
    stops = np.empty(positions.size, np.uint32)
    for_each_range(
        lambda start, stop: _look_up_range(
            words, positions[start:stop], table.k, table.starts, starts[start:stop],
            stops[start:stop],
        ),
        positions.size,
        threads,
    )  # fmt: skip
    return starts, stops


@compiled
def _look_up_range(words, positions, k, table, starts, stops):
    for i in range(positions.size):
        ahead = min(i + _READ_AHEAD, positions.size - 1)
        prefetch(table, np.int64(kmer_at(words, positions[ahead], k)))
        kmer = kmer_at(words, positions[i], k)
        starts[i] = table[kmer]
        stops[i] = table[kmer + _u64(1)]
