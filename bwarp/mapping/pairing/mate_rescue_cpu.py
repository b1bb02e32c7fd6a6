"""Candidates for a read where its mate says that it should be: what seeds missed or left out.

    anchor, forward          its mate in FR, reverse, begins on one of these diagonals
    |=====>                              |..........|   <=====|
    start                    start + lowest - length    start + highest - length

The diagonal with most words of eight bases in common is the candidate, if they are enough; it is
extended like any other. Every place of the anchor close to its best one is tried, so that a mate of
a repeat is seen wherever it could be.
"""

import numba
import numpy as np

from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.extension.scored_hits_cpu import ScoredHits
from bwarp.mapping.pairing.insert_size import InsertSize, mate_lies, template_ends
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.seeds.candidates_cpu import Candidates
from bwarp.runtime.threads import for_each_range

__all__ = ["rescue_candidates"]

KMER = 8

#: So many words on one diagonal make a candidate: random sequence has one or two.
LEAST_KMERS = 6


def rescue_candidates(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    insert: InsertSize,
    parameters: MappingParameters,
    threads: int = 1,
) -> Candidates:
    """At most one candidate for every good place of the mate that has no partner yet."""
    starts, ends = template_ends(hits, np.diff(offsets))
    contigs = np.searchsorted(genome.contig_starts, hits.starts, side="right") - 1

    def find(first: int, last: int) -> np.ndarray:
        most = int(hits.offsets[2 * last] - hits.offsets[2 * first])
        found = np.empty((most, 4), np.int64)
        n_found = _find_mates(
            genome.codes, genome.contig_starts, both, offsets, hits.offsets, hits.scores,
            hits.strands, starts, ends, contigs, insert.lowest, insert.highest,
            insert.orientation, parameters.rescue_margin, parameters.hopeless_margin, first, last,
            found,
        )  # fmt: skip
        return found[:n_found]

    parts = for_each_range(find, (len(offsets) - 1) // 2, threads)
    found = np.concatenate([*parts, np.empty((0, 4), np.int64)])
    found = found[np.argsort(found[:, 0], kind="stable")]
    return Candidates(
        reads=found[:, 0].astype(np.int32),
        strands=found[:, 1].astype(np.uint8),
        diagonals=found[:, 2].copy(),
        lowest=found[:, 2].copy(),
        highest=found[:, 2].copy(),
        seeds=found[:, 3].astype(np.int32),
        offsets=np.searchsorted(found[:, 0], np.arange(len(offsets))),
        score_bounds=np.zeros(len(offsets) - 1, np.int32),
        unlocated=np.zeros(len(offsets) - 1, np.int32),
    )


@numba.njit(cache=True, nogil=True)
def _find_mates(
    genome, contig_starts, both, offsets, hit_offsets, scores, strands, starts, ends, contigs,
    lowest, highest, orientation, margin, hopeless_margin, first, last, found,
):  # fmt: skip
    n_found = 0
    # heads[word] is 1 + the last place of the word in the read, before[] 1 + the one before it.
    heads = np.zeros(1 << (2 * KMER), np.int32)
    before = np.zeros(1, np.int32)
    counts = np.zeros(highest - lowest + 1, np.int32)
    for anchor in range(2 * first, 2 * last):
        mate = anchor ^ 1
        length = offsets[mate + 1] - offsets[mate]
        if hit_offsets[anchor] == hit_offsets[anchor + 1] or length < KMER:
            continue
        best = scores[hit_offsets[anchor]]
        least_of_mate = 0
        if hit_offsets[mate] < hit_offsets[mate + 1]:
            least_of_mate = scores[hit_offsets[mate]] - hopeless_margin
        listed = -1  # the strand of the mate whose words are in the table
        for hit in range(hit_offsets[anchor], hit_offsets[anchor + 1]):
            if scores[hit] < best - margin:
                break
            strand, side = mate_lies(orientation, anchor & 1, strands[hit])
            first_base = ends[hit] if strands[hit] else starts[hit]
            low = first_base + lowest if side > 0 else first_base - highest
            low -= length if strand else 0
            high = low + highest - lowest
            partner = False
            for other in range(hit_offsets[mate], hit_offsets[mate + 1]):
                # One far below the mate's best was not aligned with gaps: it may be better.
                if scores[other] < least_of_mate:
                    break
                if strands[other] == strand and low <= starts[other] <= high:
                    partner = partner or contigs[other] == contigs[hit]
            if partner:
                continue
            base = offsets[mate] + (both.size // 2 if strand else 0)
            if listed != strand:
                if listed >= 0:
                    _list_kmers(both, offsets[mate] + (0 if strand else both.size // 2), length,
                                heads, before, False)  # fmt: skip
                if before.size < length:
                    before = np.zeros(length, np.int32)
                _list_kmers(both, base, length, heads, before, True)
                listed = strand
            diagonal, count = _best_diagonal(
                genome,
                max(low, contig_starts[contigs[hit]]),
                min(high + length, contig_starts[contigs[hit] + 1]),
                low,
                heads,
                before,
                counts,
            )
            if count >= LEAST_KMERS:
                found[n_found, 0] = mate
                found[n_found, 1] = strand
                found[n_found, 2] = diagonal
                found[n_found, 3] = count
                n_found += 1
        if listed >= 0:
            base = offsets[mate] + (both.size // 2 if listed else 0)
            _list_kmers(both, base, length, heads, before, False)
    return n_found


@numba.njit(cache=True, nogil=True)
def _list_kmers(both, base, length, heads, before, enter):
    """Enter the words of a read into the table, or take them out again."""
    kmer = np.uint32(0)
    clean = 0
    for at in range(length):
        code = both[base + at]
        clean = clean + 1 if code < 4 else 0
        kmer = (kmer << np.uint32(2) | np.uint32(code & 3)) & np.uint32((1 << (2 * KMER)) - 1)
        if clean >= KMER:
            if enter:
                before[at - KMER + 1] = heads[kmer]
                heads[kmer] = at - KMER + 2
            else:
                heads[kmer] = 0


@numba.njit(cache=True, nogil=True)
def _best_diagonal(genome, start, stop, low, heads, before, counts):
    """The diagonal from `low` on with most words in common, the first of several, and how many."""
    counts[:] = 0
    kmer = np.uint32(0)
    clean = 0
    best, best_count = np.int64(-1), np.int32(0)
    for at in range(start, stop):
        code = genome[at]
        clean = clean + 1 if code < 4 else 0
        kmer = (kmer << np.uint32(2) | np.uint32(code & 3)) & np.uint32((1 << (2 * KMER)) - 1)
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
