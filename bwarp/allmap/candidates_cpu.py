"""Decide which hits of parts may have a locus, by lower bounds of their edits.

The functions take hits and the bases of reads and genome as bits, and return the bound that drops
each hit. There are two bounds: by 4-mers, here, and by base counts (`histogram_cpu`).
"""

from typing import NamedTuple

import numpy as np

from bwarp.allmap.histogram_cpu import base_sums, count_pieces, least_unmatched
from bwarp.index.locate_cpu import check_hit
from bwarp.reads.base_bits_cpu import bits_at, bits_of_codes
from bwarp.reference import interval_at
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.simd import population_count, prefetch
from bwarp.runtime.uncounted import uncounted

# The bound by 4-mers counts the 4-mers of a read that occur on no diagonal within reach.
#
# The 4-mers of the read do not overlap, so one edit spoils at most one of them. An unspoiled 4-mer
# occurs in the genome on a diagonal no farther from the seed's than the number of gap bases. An
# alignment therefore has at least as many edits as there are 4-mers missing from these diagonals.
#
#     read      ACGT|TTGA|GATT|...     4-mers
#     k = -1      .    .    .
#     k =  0   occurs  .  occurs
#     k =  1      .    .    .          the second one has an edit
#
# 4-mers drop more of the hits in Alu repeats and the like than 8-mers do: there are twice as many,
# at no extra cost. Chance matches, one in 256 per diagonal, matter less. Comparing base composition
# takes longer and drops fewer hits, because similar repeats have similar composition.


_BLOCK, _WORDS = 64, 3

_FIRST_BASES = 0x1111111111111111

#: The number of hits by which the genome is prefetched ahead.
AHEAD = 8

_inlined = inner(nogil=True, forceinline=True)


@_inlined
def _window(blocks, at, plane):
    """Return 64 bits of a plane from a position on, and the next 64."""
    first = np.uint64(3) * (np.uint64(at) >> np.uint64(6)) + np.uint64(plane)
    shift = np.uint64(at) & np.uint64(63)
    a, b, c = blocks[first], blocks[first + np.uint64(3)], blocks[first + np.uint64(6)]
    back = np.uint64(63) - shift
    return a >> shift | (b << np.uint64(1)) << back, b >> shift | (c << np.uint64(1)) << back


#: Bounds, as numbers and as bits of `Bounds.which`.
HISTOGRAM, KMERS = 1, 2

#: The counter of the hits that each bound drops.
DROPPED = {HISTOGRAM: "dropped_by_histogram", KMERS: "dropped_by_kmers"}

#: The sum of the bounds of each filter. `auto` saves most (docs/allmap-algorithm.md).
BOUNDS = {
    "off": 0, "histogram": HISTOGRAM, "kmers": KMERS, "both": HISTOGRAM | KMERS, "auto": KMERS,
}  # fmt: skip


class Bounds(NamedTuple):
    """The bounds that drop hits.

    Attributes
    ----------
    which : int
        The sum of their numbers: HISTOGRAM, KMERS.
    sums : ndarray, dtype=uint32
        Base sums of the genome (`bwarp.allmap.histogram_cpu`); empty without HISTOGRAM.
    """

    which: int
    sums: np.ndarray

    @classmethod
    def of(cls, name: str, genome: np.ndarray) -> "Bounds":
        """Return the bounds of a filter such as "kmers", for the blocks of a genome."""
        which = BOUNDS[name]
        return cls(which, base_sums(genome) if which & HISTOGRAM else np.empty(0, np.uint32))


class ItemLimits(NamedTuple):
    """A read on a strand, as the bounds use it: where its bases begin, how many there are, and the
    maximum edits and gap letters.
    """

    first: int
    length: int
    edits: int
    gaps: int


@inner(nogil=True, inline="always")
def bound_exceeded(bounds, genome, diagonal, reads, item, pieces):
    """Return the first bound by which an item has more edits than allowed in every alignment with a
    seed on this diagonal: HISTOGRAM or KMERS; 0 if none.

    Near the ends of the genome, where windows would extend beyond its blocks, the bounds do not
    apply.

    Parameters
    ----------
    item : ItemLimits
    pieces : ndarray, dtype=uint64
        Result of `count_pieces` for this item; not used without HISTOGRAM.
    """
    first, length, edits, gaps = item
    last = _BLOCK * (genome.size // _WORDS - 4) - length - gaps
    if diagonal < gaps or diagonal > last:
        return 0
    if bounds.which & KMERS and (
        least_kmers_spoiled(genome, diagonal, reads, first, length, gaps, edits) > edits
    ):
        return KMERS
    if bounds.which & HISTOGRAM and (
        least_unmatched(genome, bounds.sums, diagonal, pieces, length, gaps, edits) > edits
    ):
        return HISTOGRAM
    return 0


@compiled
def least_kmers_spoiled(genome, diagonal, reads, first, length, gaps, most):
    """Count the 4-mers that occur on no diagonal within `gaps` of this one; at most 31 gaps.

    Counting stops above `most`.
    """
    spoiled = np.int64(0)
    for at in range(0, length - 3, 64):
        low, _ = _window(reads, first + at, 0)
        high, _ = _window(reads, first + at, 1)
        ambiguous, _ = _window(reads, first + at, 2)
        window = diagonal + at - gaps
        low_a, low_b = _window(genome, window, 0)
        high_a, high_b = _window(genome, window, 1)
        kmers = ~np.uint64(0)
        for k in range(2 * gaps + 1):
            shift = np.uint64(k)
            back = np.uint64(63 - k)
            x = low ^ (low_a >> shift | (low_b << np.uint64(1)) << back)
            x |= high ^ (high_a >> shift | (high_b << np.uint64(1)) << back)
            x |= ambiguous
            x |= x >> np.uint64(2)
            x |= x >> np.uint64(1)
            kmers &= x
        kmers &= np.uint64(_FIRST_BASES)
        n = (length - at) >> 2
        if n < 16:
            kmers &= (np.uint64(1) << np.uint64(4 * n)) - np.uint64(1)
        spoiled += np.int64(population_count(kmers))
        if spoiled > most:
            break
    return spoiled


# A hit as one number, so that sorting numbers sorts hits:
#
#     bits  63 ... 39        38 ... 5               4 ... 0
#           segment          diagonal + _BIAS       part
SEGMENT_AT, DIAGONAL_AT = 39, 5
_BIAS = 1 << 20


@_inlined
def diagonal_of(key):
    """Return the diagonal of a hit in the genome."""
    mask = np.uint64((1 << (SEGMENT_AT - DIAGONAL_AT)) - 1)
    return np.int64(key >> np.uint64(DIAGONAL_AT) & mask) - _BIAS


#: Letters of the text per entry of a table of segments.
BLOCK_LETTERS = 1 << 14


@_inlined
def segment_at(segment_text, of_blocks, position):
    """Return the segment with a position of the text.

    Hits lie anywhere in the text: comparing each with the segment of the previous one would mostly
    fail in a genome of several contigs.
    """
    segment = np.int64(of_blocks[position // BLOCK_LETTERS])
    if segment < 0:
        segment = interval_at(segment_text, position)
    return segment


@inner(nogil=True)
def list_hits(first_part, last_part, hits, positions, segments, keys):
    """Write the hits of the parts of an item as numbers to `keys`, in their order."""
    _, part_starts, part_ends, row_offsets = hits
    segment_text, segment_genome, _, of_blocks = segments
    n = 0
    for part in range(first_part, last_part):
        order = np.uint64(part - first_part)
        for hit in range(row_offsets[part], row_offsets[part + 1]):
            position = np.int64(positions[hit])
            segment = segment_at(segment_text, of_blocks, position)
            check_hit(position, part_ends[part] - part_starts[part], segment_text[segment + 1])
            at = segment_genome[segment] + position - segment_text[segment]
            keys[n] = (
                np.uint64(segment) << np.uint64(SEGMENT_AT)
                | np.uint64(at - part_starts[part] + _BIAS) << np.uint64(DIAGONAL_AT)
                | order
            )
            n += 1


def dropped_by(genome, reads, items, hits, positions, segments, bounds) -> np.ndarray:
    """Return the bound that drops each hit, HISTOGRAM or KMERS, or 0 for hits that may have a
    locus, dtype uint8; parameters as in `verify_cpu.find_loci`.
    """
    by = np.empty(positions.size, np.uint8)
    _bound(genome, reads, items, hits, positions, segments, bounds, by)
    return by


@compiled
def _bound(genome, reads, items, hits, positions, segments, bounds, by):
    genome, reads, positions, by = uncounted((genome, reads, positions, by))
    hits, segments, bounds = uncounted((hits, segments, bounds))
    part_offsets, _, _, row_offsets = hits
    begins, lengths, all_edits, all_gaps, _ = uncounted(items)
    pieces = np.empty(16, np.uint64)
    keys = np.empty(256, np.uint64)
    for item in range(begins.size):
        first_part, last_part = part_offsets[item], part_offsets[item + 1]
        first_hit = row_offsets[first_part]
        n = row_offsets[last_part] - first_hit
        if n == 0:
            continue
        if n > keys.size:
            keys = np.empty(2 * n, np.uint64)
        list_hits(first_part, last_part, hits, positions, segments, keys)
        limits = ItemLimits(begins[item], lengths[item], all_edits[item], all_gaps[item])
        if bounds.which & HISTOGRAM:
            pieces = count_pieces(reads, limits.first, limits.length, limits.gaps, pieces)
        for i in range(min(AHEAD, n)):
            prefetch_window(genome, bounds, diagonal_of(keys[i]))
        for i in range(n):
            if i + AHEAD < n:
                prefetch_window(genome, bounds, diagonal_of(keys[i + AHEAD]))
            by[first_hit + i] = bound_exceeded(
                bounds, genome, diagonal_of(keys[i]), reads, limits, pieces
            )


@inner(nogil=True, forceinline=True)
def prefetch_window(genome, bounds, diagonal):
    """Prefetch the part of the genome that is read on a diagonal."""
    block = max(diagonal, 0) >> 6
    prefetch(genome, _WORDS * block)
    prefetch(genome, _WORDS * block + 8)
    if bounds.which & HISTOGRAM:
        prefetch(bounds.sums, block)


# Reads as bits, in the block layout of the genome (`bwarp.reads.base_bits_cpu`).
#
# Verification compares each stretch of a read with the genome many times. With bases as bits, 64 of
# them are compared in a dozen steps.


def blocks_of(codes: np.ndarray) -> np.ndarray:
    """Return the blocks of codes and two ambiguous ones: shape=(3 * n_blocks,), dtype=uint64."""
    n_blocks = codes.size // 64 + 3
    blocks = np.empty(3 * n_blocks, np.uint64)
    _turn(codes, n_blocks, blocks)
    return blocks


@compiled
def _turn(codes, n_blocks, blocks):
    for block in range(n_blocks):
        n = min(np.int64(64), codes.size - 64 * block)
        low = high = np.uint64(0)
        ambiguous = ~np.uint64(0)
        if n > 0:
            inside = ~np.uint64(0) >> np.uint64(64 - n)
            low, high, ambiguous = bits_of_codes(codes, 64 * block, n)
            low, high, ambiguous = low & inside, high & inside, ambiguous | ~inside
        blocks[3 * block], blocks[3 * block + 1], blocks[3 * block + 2] = low, high, ambiguous


@_inlined
def differing(blocks, at, others, other_at):
    """Return a mask of the bases, among 64, that differ or are ambiguous; the lowest bit is the
    first.
    """
    low, high, ambiguous = bits_at(blocks, at)
    other_low, other_high, other_ambiguous = bits_at(others, other_at)
    return low ^ other_low | high ^ other_high | ambiguous | other_ambiguous


@_inlined
def mismatches(blocks, at, others, other_at, n):
    """Count the differences between n bases and n others."""
    count = np.int64(0)
    for i in range(0, n, 64):
        bits = differing(blocks, at + i, others, other_at + i)
        if n - i < 64:
            bits &= (np.uint64(1) << np.uint64(n - i)) - np.uint64(1)
        count += np.int64(population_count(bits))
    return count
