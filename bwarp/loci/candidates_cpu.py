"""Which hits of parts may have a locus: those that a lower bound of their edits does not drop."""

import numba
import numpy as np

from bwarp.index.locate_cpu import check_hit
from bwarp.reads.base_bits_cpu import bits_at, bits_of_codes
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import population_count
from bwarp.runtime.uncounted import uncounted

# --------------------------------------------------------------------------------------------------
# A lower bound of edits, by 4-mers of a read that stand on no diagonal within reach.
#
# The 4-mers lie side by side in the read, so an edit spoils one of them at most. One without an
# edit
# stands in the genome on a diagonal no farther from the seed's than there are gap bases. So an
# alignment has at least as many edits as there are 4-mers that stand on none of these diagonals.
#
#     read      ACGT|TTGA|GATT|...     4-mers
#     k = -1      .    .    .
#     k =  0   stands  .  stands
#     k =  1      .    .    .          the second one has an edit
#
# Of hits that Alu repeats and the like give, 4-mers drop more than 8-mers do, for there are twice
# as
# many, and take no longer. That some stand by chance, one in 256 on a diagonal, counts for less.
# To
# compare how often a letter is in parts of the read and of the genome takes longer, and drops
# fewer:
# like repeats have like letters.


_KMERS = 0x1111111111111111


@numba.njit(nogil=True, inline="always")
def _window(blocks, at, plane):
    """64 bits of a plane from a position on, and the 64 after them."""
    first = np.uint64(3) * (np.uint64(at) >> np.uint64(6)) + np.uint64(plane)
    shift = np.uint64(at) & np.uint64(63)
    a, b, c = blocks[first], blocks[first + np.uint64(3)], blocks[first + np.uint64(6)]
    back = np.uint64(63) - shift
    return a >> shift | (b << np.uint64(1)) << back, b >> shift | (c << np.uint64(1)) << back


@numba.njit(nogil=True, inline="always")
def cannot_align(genome, diagonal, reads, first, length, gaps, edits):
    """Whether a read has more edits than these wherever a seed lies on this diagonal.

    Near the ends of the genome, where windows of 4-mers would end beyond its blocks, nobody knows.
    """
    last = 64 * (genome.size // 3 - 4) - length - gaps
    return (
        gaps <= diagonal <= last
        and least_kmers_spoiled(genome, diagonal, reads, first, length, gaps, edits) > edits
    )


@compiled
def least_kmers_spoiled(genome, diagonal, reads, first, length, gaps, most):
    """How many 4-mers stand on no diagonal within `gaps` of this one; at most 31 gaps.

    Counting ends above `most`.
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
        kmers &= np.uint64(_KMERS)
        n = (length - at) >> 2
        if n < 16:
            kmers &= (np.uint64(1) << np.uint64(4 * n)) - np.uint64(1)
        spoiled += np.int64(population_count(kmers))
        if spoiled > most:
            break
    return spoiled


def may_have_loci(genome, reads, items, hits, positions, segments) -> np.ndarray:
    """Which hits may have a locus, dtype bool; the parameters are those of `loci_cpu.find_loci`."""
    kept = np.empty(positions.size, np.bool_)
    _bound(genome, reads, items, hits, positions, segments, kept)
    return kept


@compiled
def _bound(genome, reads, items, hits, positions, segments, kept):
    genome, reads, positions, kept = uncounted((genome, reads, positions, kept))
    part_offsets, part_starts, part_ends, row_offsets = uncounted(hits)
    begins, lengths, all_edits, all_gaps, _ = uncounted(items)
    segment_text, segment_genome, _ = uncounted(segments)
    segment = 0
    for item in range(begins.size):
        begin, length, e, g = begins[item], lengths[item], all_edits[item], all_gaps[item]
        for part in range(part_offsets[item], part_offsets[item + 1]):
            for hit in range(row_offsets[part], row_offsets[part + 1]):
                position = np.int64(positions[hit])
                if position < segment_text[segment] or position >= segment_text[segment + 1]:
                    segment = np.searchsorted(segment_text, position, side="right") - 1
                check_hit(position, part_ends[part] - part_starts[part], segment_text[segment + 1])
                diagonal = segment_genome[segment] + position - segment_text[segment]
                diagonal -= part_starts[part]
                kept[hit] = not cannot_align(genome, diagonal, reads, begin, length, g, e)


# --------------------------------------------------------------------------------------------------
# Reads as bits in the blocks that the genome has (`bwarp.reads.base_bits_cpu`).
#
# Every stretch of a read is compared with the genome many times while loci are verified: turned
# into bits once, 64 bases of each are compared in a dozen steps.


_inlined = numba.njit(nogil=True, forceinline=True)


def blocks_of(codes: np.ndarray) -> np.ndarray:
    """Blocks of codes, and two more of ambiguous bases: shape=(3 * n_blocks,), dtype=uint64."""
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
    """Which of 64 bases differ from 64 others, or are ambiguous: a bit each, the first lowest."""
    low, high, ambiguous = bits_at(blocks, at)
    other_low, other_high, other_ambiguous = bits_at(others, other_at)
    return low ^ other_low | high ^ other_high | ambiguous | other_ambiguous


@_inlined
def mismatches(blocks, at, others, other_at, n):
    """How many of n bases differ from n others."""
    count = np.int64(0)
    for i in range(0, n, 64):
        bits = differing(blocks, at + i, others, other_at + i)
        if n - i < 64:
            bits &= (np.uint64(1) << np.uint64(n - i)) - np.uint64(1)
        count += np.int64(population_count(bits))
    return count
