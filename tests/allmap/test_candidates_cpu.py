"""No bound exceeds the number of edits of an alignment."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.allmap.candidates_cpu import (
    HISTOGRAM,
    KMERS,
    Bounds,
    ItemLimits,
    blocks_of,
    bound_exceeded,
    least_kmers_spoiled,
)
from bwarp.allmap.histogram_cpu import base_sums, count_pieces, least_unmatched, piece_length

MANY = 1000
AMBIGUOUS = 4


def fewest_edits(genome, diagonal, read, gaps):
    """Return the fewest edits of an alignment with at most `gaps` gap letters that passes through
    the diagonal; one base after the other.
    """
    # Fewest edits by distance from the diagonal, gap letters so far, and whether it was reached.
    before = {(k, 0, k == 0): 0 for k in range(-gaps, gaps + 1)}
    for i in range(len(read) + 1):
        for k, g, reached in sorted(before, key=lambda state: state[1]):
            deleted = k + 1, g + 1, reached or k + 1 == 0
            if g < gaps and before[k, g, reached] + 1 < before.get(deleted, MANY):
                before[deleted] = before[k, g, reached] + 1
        if i == len(read):
            break
        after = {}
        for (k, g, reached), edits in before.items():
            base = genome[diagonal + i + k]
            differs = read[i] != base or base == AMBIGUOUS
            inserted = k - 1, g + 1, reached or k - 1 == 0
            for state, more in (((k, g, reached), differs), (inserted, 1)):
                if state[1] <= gaps:
                    after[state] = min(after.get(state, MANY), edits + more)
        before = after
    return min(edits for (_, _, reached), edits in before.items() if reached)


@st.composite
def reads_on_diagonals(draw):
    """Return a genome, a diagonal, a read that may be like the genome there, and gap letters."""
    gaps = draw(st.integers(0, 3))
    length = draw(st.integers(1, 150))
    letters = draw(st.sampled_from([[0, 1, 2, 3], [0, 3], [0, 1, 2, 3, AMBIGUOUS], [2]]))
    # Bases from a seed: hypothesis takes long to draw each.
    rng = draw(st.randoms(use_true_random=False))
    diagonal = draw(st.integers(2 * gaps, 2 * gaps + 70))
    genome = [rng.choice(letters) for _ in range(diagonal + length + 2 * gaps + 1)]
    read = list(genome[diagonal : diagonal + length])
    for _ in range(draw(st.integers(0, 12))):
        spot = rng.randrange(length)
        read[spot : spot + 1] = rng.choice([[], [rng.choice(letters)], [rng.randrange(4)] * 2])
    return genome, diagonal, (read or [0])[:length], gaps


@given(reads_on_diagonals())
@settings(max_examples=300, deadline=None)
def test_no_bound_exceeds_the_fewest_edits(case):
    genome, diagonal, read, gaps = case
    blocks, reads = (blocks_of(np.array(codes, np.uint8)) for codes in (genome, read))
    edits = fewest_edits(genome, diagonal, read, gaps)
    assert least_kmers_spoiled(blocks, diagonal, reads, 0, len(read), gaps, MANY) <= edits
    pieces = count_pieces(reads, 0, len(read), gaps, np.empty(0, np.uint64))
    given = diagonal, pieces, len(read), gaps
    assert least_unmatched(blocks, base_sums(blocks), *given, MANY) <= edits


@given(reads_on_diagonals())
@settings(max_examples=100, deadline=None)
def test_base_counts_of_pieces_and_their_windows(case):
    genome, diagonal, read, gaps = case
    blocks, reads = (blocks_of(np.array(codes, np.uint8)) for codes in (genome, read))
    expected, n = 0, -(-len(read) // piece_length(gaps))
    for piece in range(n):
        a, b = len(read) * piece // n, len(read) * (piece + 1) // n
        window = genome[diagonal + a - gaps : diagonal + b + gaps]
        common = sum(min(read[a:b].count(base), window.count(base)) for base in range(4))
        expected += b - a - common
    pieces = count_pieces(reads, 0, len(read), gaps, np.empty(0, np.uint64))
    given = diagonal, pieces, len(read), gaps
    assert least_unmatched(blocks, base_sums(blocks), *given, MANY) == expected


def test_counts_of_a_long_genome_of_one_base():
    """Sums exceed what each count has bits for; differences are right all the same."""
    genome = np.zeros(100_000, np.uint8)
    genome[50_000:] = 3
    blocks = blocks_of(genome)
    sums = base_sums(blocks)
    read = blocks_of(np.zeros(190, np.uint8))
    for gaps in (0, 7, 31):
        pieces = count_pieces(read, 0, 190, gaps, np.empty(0, np.uint64))
        for diagonal, unmatched in ((40_000, 0), (49_900, 90 - gaps), (60_000, 190)):
            found = least_unmatched(blocks, sums, diagonal, pieces, 190, gaps, MANY)
            assert found == unmatched


BATCH = 50_000


@numba.njit
def _mutated(genome, length, most_edits, most_gaps, rng, reads, seeds, n_seeds):
    """Return reads with at most this many edits, and the diagonals of unedited bases."""
    for i in range(len(reads)):
        edits, gaps = rng.integers(0, most_edits + 1), most_gaps
        start = rng.integers(100, genome.size - 2 * length - 200)
        at, n, seen = start, 0, 0
        while n < length:
            if edits and rng.random() < 2.5 * most_edits / length:
                edits -= 1
                kind = rng.integers(0, 3) if gaps else 0
                if kind == 0:
                    reads[i, n] = (genome[at] + rng.integers(1, 4)) & 3
                    at += 1
                    n += 1
                elif kind == 1:
                    reads[i, n] = rng.integers(0, 4)
                    gaps -= 1
                    n += 1
                else:
                    at += 1
                    gaps -= 1
                continue
            reads[i, n] = genome[at]
            if seen == 0 or seeds[i, seen - 1] != at - n:
                seeds[i, seen] = at - n
                seen += 1
            at += 1
            n += 1
        n_seeds[i] = seen


@numba.njit
def _dropped(genome, reads, bounds, seeds, n_seeds, limits, shift):
    """Count the reads that a bound excludes on a diagonal on which they align."""
    dropped = 0
    _, length, edits, gaps = limits
    for i in range(len(seeds)):
        item = ItemLimits(i * length, length, edits, gaps)
        pieces = count_pieces(reads, i * length, length, gaps, np.empty(16, np.uint64))
        for k in range(n_seeds[i]):
            if bound_exceeded(bounds, genome, seeds[i, k] + shift, reads, item, pieces):
                dropped += 1
                break
    return dropped


@pytest.mark.parametrize("name", ["histogram", "kmers"])
def test_none_of_a_million_windows_with_edits_is_dropped(name):
    rng = np.random.default_rng(5)
    genome = rng.integers(0, 4, 1_000_000).astype(np.uint8)
    genome[: 1 << 18] = np.resize(genome[:700], 1 << 18)  # tandem repeats
    genome[1 << 19 : (1 << 19) + 5000] = 0
    blocks = blocks_of(genome)
    bounds = Bounds.of(name, blocks)
    elsewhere = 0
    for batch in range(20):
        length = (36, 76, 100, 150, 64)[batch % 5]
        edits = (2, 3, 4, 8)[batch % 4]
        gaps = (edits, 1, 0)[batch % 3]
        reads = np.empty((BATCH, length), np.uint8)
        seeds, n_seeds = np.empty((BATCH, edits + 1), np.int64), np.empty(BATCH, np.int64)
        _mutated(genome, length, edits, gaps, rng, reads, seeds, n_seeds)
        limits = ItemLimits(0, length, edits, gaps)
        given = (blocks, blocks_of(reads.reshape(-1)), bounds, seeds, n_seeds, limits)
        assert _dropped(*given, 0) == 0
        elsewhere += _dropped(*given, 57)
    assert elsewhere > 20 * BATCH // 2


def test_both_bounds_drop_in_order():
    """4-mers come first; a transposition of far bases spares the histogram."""
    rng = np.random.default_rng(1)
    genome = rng.integers(0, 4, 400).astype(np.uint8)
    blocks = blocks_of(genome)
    shuffled, replaced = genome[200:216].copy(), np.full(16, 3, np.uint8)
    rng.shuffle(shuffled)
    genome_of_a = blocks_of(np.zeros(400, np.uint8))
    item = ItemLimits(0, 16, 3, 0)
    for codes, text, by in (
        (shuffled, blocks, {"histogram": 0, "kmers": KMERS, "both": KMERS}),
        (replaced, genome_of_a, {"histogram": HISTOGRAM, "kmers": KMERS, "both": KMERS}),
        (np.zeros(16, np.uint8), genome_of_a, {"histogram": 0, "kmers": 0, "both": 0}),
    ):
        reads = blocks_of(codes)
        pieces = count_pieces(reads, 0, 16, 0, np.empty(1, np.uint64))
        for name, expected in by.items():
            bounds = Bounds.of(name, text)
            assert bound_exceeded(bounds, text, 200, reads, item, pieces) == expected
