"""Find candidates for a read near its mate that seeds missed or omitted.

    anchor, forward          in FR, its mate is reverse and starts on one of these diagonals
    |=====>                              |..........|   <=====|
    start                    start + lowest - length    start + highest - length

The diagonal with most 8-mers in common is the candidate, if there are enough; it is extended like
any other. Every hit of the anchor close to its best one is tried, so that a mate in a repeat is
found at each possible locus.
"""

from typing import NamedTuple

import numpy as np

from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.insert_size import InsertSize, five_prime, mate_window
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.mapping.seeds_cpu import Candidates, candidates_of
from bwarp.reads.base_bits_cpu import SLACK, put_bases
from bwarp.reference import interval_at
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.timeline import on_timeline

#: Length of a k-mer.
KMER = 8

#: Minimum number of k-mers on the diagonal of a candidate; random sequence has one or two.
LEAST_KMERS = 6


@on_timeline("search for mates")
def rescue_candidates(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    insert: InsertSize,
    parameters: MappingParameters,
) -> Candidates:
    """Find at most one candidate for every good hit of the mate that has no partner yet."""
    found = np.empty((len(hits.reads), 6), np.int64)
    longest, n_diagonals = int(np.diff(offsets).max(initial=0)), insert.highest - insert.lowest + 1
    space = _Space(
        np.zeros(1 << (2 * KMER), np.int32), np.zeros(longest, np.int32),
        np.zeros(n_diagonals, np.int32), np.empty(n_diagonals + longest + SLACK, np.uint8), found,
    )  # fmt: skip
    n_found = _find_mates(
        genome, both, offsets, hits, insert, parameters.rescue_margin, parameters.hopeless_margin,
        space,
    )  # fmt: skip
    found = found[:n_found]
    found = found[np.argsort(found[:, 0], kind="stable")]
    nothing = np.zeros(len(offsets) - 1, np.int32)
    return candidates_of(found, nothing, nothing, np.zeros(2, np.int64))


class _Space(NamedTuple):
    """Space to search for mates, and the candidates found.

    ``heads[kmer]`` is 1 + the last position of the k-mer in the read, ``before`` 1 + the one before
    it; `counts` is per diagonal.
    """

    heads: np.ndarray
    before: np.ndarray
    counts: np.ndarray
    window: np.ndarray
    found: np.ndarray


@compiled(counted=False)
def _find_mates(genome, both, offsets, hits, insert, margin, hopeless_margin, space):
    contig_starts, lowest, highest = genome.contig_starts, insert.lowest, insert.highest
    heads, before, counts, window, found = space
    n_found = 0
    for anchor in range(offsets.size - 1):
        mate = anchor ^ 1
        length = offsets[mate + 1] - offsets[mate]
        first, last = hits.offsets[anchor], hits.offsets[anchor + 1]
        if first == last or length < KMER:
            continue
        best = hits.scores[first]
        least_of_mate = 0
        if hits.offsets[mate] < hits.offsets[mate + 1]:
            least_of_mate = hits.scores[hits.offsets[mate]] - hopeless_margin
        listed = -1  # strand of the mate with k-mers in the table
        for hit in range(first, last):
            if hits.scores[hit] < best - margin:
                break
            first_base = five_prime(
                hits.strands[hit], hits.starts[hit], hits.ends[hit], hits.read_starts[hit],
                hits.read_ends[hit], offsets[anchor + 1] - offsets[anchor],
            )  # fmt: skip
            strand, low = mate_window(
                insert.orientation, anchor & 1, hits.strands[hit], first_base, lowest, highest,
                length,
            )  # fmt: skip
            high = low + highest - lowest
            contig = interval_at(contig_starts, hits.starts[hit])
            contig_start, contig_end = contig_starts[contig], contig_starts[contig + 1]
            partner = False
            for other in range(hits.offsets[mate], hits.offsets[mate + 1]):
                # A hit far below the mate's best was not aligned with gaps and may be better.
                if hits.scores[other] < least_of_mate:
                    break
                start = hits.starts[other] - hits.read_starts[other]
                if hits.strands[other] == strand and low <= start <= high:
                    partner = partner or contig_start <= hits.starts[other] < contig_end
            if partner:
                continue
            if listed != strand:
                for turn in (listed, strand):
                    if turn >= 0:
                        base = offsets[mate] + (both.size // 2 if turn else 0)
                        _list_kmers(both, base, length, heads, before, turn == strand)
                listed = strand
            start, stop = max(low, contig_start), min(high + length, contig_end)
            n = put_bases(window, 0, genome.blocks, start, stop)
            diagonal, count = _best_diagonal(window, n, low - start, heads, before, counts)
            diagonal += start
            if count >= LEAST_KMERS:
                found[n_found, 0], found[n_found, 1], found[n_found, 5] = mate, strand, count
                found[n_found, 2] = found[n_found, 3] = found[n_found, 4] = diagonal
                n_found += 1
        if listed >= 0:
            base = offsets[mate] + (both.size // 2 if listed else 0)
            _list_kmers(both, base, length, heads, before, False)
    return n_found


@compiled(forceinline=True)
def _next_kmer(kmer, clean, code):
    """Return the k-mer that ends with this base, and its number of unambiguous bases in a row."""
    kmer = (kmer << np.uint32(2) | np.uint32(code & 3)) & np.uint32((1 << (2 * KMER)) - 1)
    return kmer, clean + 1 if code < 4 else 0


@compiled
def _list_kmers(both, base, length, heads, before, enter):
    """Enter the k-mers of a read into the table, or remove them."""
    kmer, clean = np.uint32(0), 0
    for at in range(length):
        kmer, clean = _next_kmer(kmer, clean, both[base + at])
        if clean >= KMER:
            if enter:
                before[at - KMER + 1] = heads[kmer]
                heads[kmer] = at - KMER + 2
            else:
                heads[kmer] = 0


@compiled
def _best_diagonal(window, n, low, heads, before, counts):
    """Return the diagonal of n, from `low` on, with most k-mers in common, the first of equals, and
    the number of k-mers."""
    for i in range(counts.size):
        counts[i] = 0
    kmer, clean = np.uint32(0), 0
    best, best_count = np.int64(-1), np.int32(0)
    for at in range(n):
        kmer, clean = _next_kmer(kmer, clean, window[at])
        if clean < KMER:
            continue
        item = heads[kmer]
        while item > 0:
            diagonal = at - KMER + 1 - (item - 1) - low
            if 0 <= diagonal < counts.size:
                counts[diagonal] += 1
                count = counts[diagonal]
                if count > best_count or (count == best_count and diagonal < best):
                    best, best_count = diagonal, count
            item = before[item - 1]
    return low + best, best_count
