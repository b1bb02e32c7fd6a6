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
from bwarp.mapping.extension.scored_hits_cpu import Places
from bwarp.mapping.pairing.insert_size import InsertSize, mate_lies, template_ends
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.seeds.candidates_cpu import Candidates
from bwarp.runtime.threads import for_each_range

__all__ = ["rescue_candidates"]

WORD = 8

#: So many words on one diagonal make a candidate: random sequence has one or two.
LEAST_WORDS = 6


def rescue_candidates(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    places: Places,
    insert: InsertSize,
    parameters: MappingParameters,
    threads: int = 1,
) -> Candidates:
    """At most one candidate for every good place of the mate that has no partner yet."""
    starts, ends = template_ends(places, np.diff(offsets))
    contigs = np.searchsorted(genome.contig_starts, places.starts, side="right") - 1

    def find(first: int, last: int) -> np.ndarray:
        most = int(places.offsets[2 * last] - places.offsets[2 * first])
        found = np.empty((most, 4), np.int64)
        n_found = _find_mates(
            genome.codes, genome.contig_starts, both, offsets, places.offsets, places.scores,
            places.strands, starts, ends, contigs, insert.lowest, insert.highest,
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
        unlisted=np.zeros(len(offsets) - 1, np.int32),
        unseen=np.zeros(len(offsets) - 1, np.int32),
    )


@numba.njit(cache=True, nogil=True)
def _find_mates(
    genome, contig_starts, both, offsets, place_offsets, scores, strands, starts, ends, contigs,
    lowest, highest, orientation, margin, hopeless_margin, first, last, found,
):  # fmt: skip
    n_found = 0
    # heads[word] is 1 + the last place of the word in the read, before[] 1 + the one before it.
    heads = np.zeros(1 << (2 * WORD), np.int32)
    before = np.zeros(1, np.int32)
    counts = np.zeros(highest - lowest + 1, np.int32)
    for anchor in range(2 * first, 2 * last):
        mate = anchor ^ 1
        length = offsets[mate + 1] - offsets[mate]
        if place_offsets[anchor] == place_offsets[anchor + 1] or length < WORD:
            continue
        best = scores[place_offsets[anchor]]
        least_of_mate = 0
        if place_offsets[mate] < place_offsets[mate + 1]:
            least_of_mate = scores[place_offsets[mate]] - hopeless_margin
        listed = -1  # the strand of the mate whose words are in the table
        for place in range(place_offsets[anchor], place_offsets[anchor + 1]):
            if scores[place] < best - margin:
                break
            strand, side = mate_lies(orientation, anchor & 1, strands[place])
            first_base = ends[place] if strands[place] else starts[place]
            low = first_base + lowest if side > 0 else first_base - highest
            low -= length if strand else 0
            high = low + highest - lowest
            partner = False
            for other in range(place_offsets[mate], place_offsets[mate + 1]):
                # One far below the mate's best was not aligned with gaps: it may be better.
                if scores[other] < least_of_mate:
                    break
                if strands[other] == strand and low <= starts[other] <= high:
                    partner = partner or contigs[other] == contigs[place]
            if partner:
                continue
            base = offsets[mate] + (both.size // 2 if strand else 0)
            if listed != strand:
                if listed >= 0:
                    _list_words(both, offsets[mate] + (0 if strand else both.size // 2), length,
                                heads, before, False)  # fmt: skip
                if before.size < length:
                    before = np.zeros(length, np.int32)
                _list_words(both, base, length, heads, before, True)
                listed = strand
            diagonal, count = _best_diagonal(
                genome,
                max(low, contig_starts[contigs[place]]),
                min(high + length, contig_starts[contigs[place] + 1]),
                low,
                heads,
                before,
                counts,
            )
            if count >= LEAST_WORDS:
                found[n_found, 0] = mate
                found[n_found, 1] = strand
                found[n_found, 2] = diagonal
                found[n_found, 3] = count
                n_found += 1
        if listed >= 0:
            base = offsets[mate] + (both.size // 2 if listed else 0)
            _list_words(both, base, length, heads, before, False)
    return n_found


@numba.njit(cache=True, nogil=True)
def _list_words(both, base, length, heads, before, enter):
    """Enter the words of a read into the table, or take them out again."""
    word = np.uint32(0)
    clean = 0
    for at in range(length):
        code = both[base + at]
        clean = clean + 1 if code < 4 else 0
        word = (word << np.uint32(2) | np.uint32(code & 3)) & np.uint32((1 << (2 * WORD)) - 1)
        if clean >= WORD:
            if enter:
                before[at - WORD + 1] = heads[word]
                heads[word] = at - WORD + 2
            else:
                heads[word] = 0


@numba.njit(cache=True, nogil=True)
def _best_diagonal(genome, start, stop, low, heads, before, counts):
    """The diagonal from `low` on with most words in common, the first of several, and how many."""
    counts[:] = 0
    word = np.uint32(0)
    clean = 0
    best, best_count = np.int64(-1), np.int32(0)
    for at in range(start, stop):
        code = genome[at]
        clean = clean + 1 if code < 4 else 0
        word = (word << np.uint32(2) | np.uint32(code & 3)) & np.uint32((1 << (2 * WORD)) - 1)
        if clean < WORD:
            continue
        item = heads[word]
        while item > 0:
            diagonal = at - WORD + 1 - (item - 1) - low
            if 0 <= diagonal < counts.size:
                counts[diagonal] += 1
                count = counts[diagonal]
                if count > best_count or (count == best_count and diagonal < best):
                    best, best_count = diagonal, count
            item = before[item - 1]
    return low + best, best_count
