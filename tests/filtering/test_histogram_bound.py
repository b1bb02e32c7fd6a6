"""The pieces of the bound: packed counts, excess, and how sharp and how safe the bound is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.filtering import filter_cpu
from bwarp.filtering.candidates import Candidates
from bwarp.filtering.histogram_bound import complement_counts, count_packed, excess, population
from bwarp.sequence import pack, reverse_complement
from tests.helpers.oracles.filter_oracle import edits_within


def test_set_bits_are_counted():
    rng = np.random.default_rng(1)
    for word in [0, 1, 2**64 - 1, *rng.integers(0, 2**64, 50, np.uint64, endpoint=False)]:
        assert population(np.uint64(word)) == int(word).bit_count()


def test_packed_bases_are_counted_wherever_they_stand():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 4, 400).astype(np.uint8)
    words = pack(codes)
    for start, stop in [(0, 0), (5, 5), (9, 3), (0, 400), *np.sort(rng.integers(0, 401, (200, 2)))]:
        counts = int(count_packed(words, int(start), int(stop)))
        found = [counts >> 16 * base & 0xFFFF for base in range(4)]
        assert found == [np.count_nonzero(codes[start:stop] == x) for x in range(4)]


def test_excess_and_complement():
    def packed(a, c, g, t):
        return np.uint64(a | c << 16 | g << 32 | t << 48)

    assert excess(packed(5, 0, 9, 2), packed(3, 7, 9, 1)) == 3
    assert complement_counts(packed(1, 2, 3, 4)) == packed(4, 3, 2, 1)


def bound(read, window, max_edits, kmer_length, strand=0):
    """The bound of one read in one window, both lists of codes."""
    read, window = np.array(read, np.uint8), np.array(window, np.uint8)
    candidates = Candidates(
        np.zeros(1, np.int64),
        np.array([strand], np.uint8),
        np.zeros(1, np.int64),
        np.array([window.size]),
        np.array([max_edits], np.int32),
    )
    starts = np.array([0, read.size])
    return filter_cpu.filter_candidates(
        pack(read), starts, pack(window), candidates, kmer_length, 1
    )


BASES = st.lists(st.integers(0, 4), max_size=14)


@settings(max_examples=400, deadline=None)
@given(read=BASES, window=BASES, kmer_length=st.integers(0, 5), slack=st.integers(0, 3))
def test_the_bound_is_never_above_the_edit_distance(read, window, kmer_length, slack):
    edits = edits_within(read, window)
    # Allowed as many as there are, or more: kept, with a bound no higher than the truth.
    found = bound(read, window, edits + slack, kmer_length)
    assert found.kept[0]
    assert found.edits[0] <= edits
    turned = reverse_complement(np.array(read, np.uint8))
    other = bound(turned, window, edits + slack, kmer_length, strand=1)
    assert other.kept[0]
    assert other.edits[0] <= edits
    # Ambiguous bases count as A of the strand that was sequenced, so the two may differ then.
    assert 4 in read or other.edits[0] == found.edits[0]


@pytest.mark.parametrize("kind", ["mismatch", "insertion", "deletion"])
def test_one_edit_changes_the_distance_by_two_at_most(kind):
    rng = np.random.default_rng(3)
    for _ in range(300):
        read = rng.integers(0, 4, 12).tolist()
        other = read.copy()
        at, base = int(rng.integers(0, 12)), int(rng.integers(0, 4))
        if kind == "mismatch":
            other[at] = base
        elif kind == "insertion":
            other.insert(at, base)
        else:
            del other[at]
        distance = sum(abs(read.count(x) - other.count(x)) for x in range(4))
        assert distance <= (2 if kind == "mismatch" else 1)


def test_parts_see_what_the_whole_read_does_not():
    # The same bases in all, but the halves are swapped.
    window = [0] * 40 + [1] * 40
    read = [1] * 40 + [0] * 40
    found = bound(read, window, 10, 0)
    assert found.edits[0] == 2 * 30
    assert not found.kept[0]
    assert (found.seen, found.dropped_by_bases, found.dropped_by_kmers) == (1, 1, 0)


def test_kmers_see_what_bases_do_not():
    window = [0, 1, 2, 3] * 20
    read = [3, 2, 1, 0] * 20
    assert bound(read, window, 2, 0).kept[0]
    found = bound(read, window, 2, 4)
    assert not found.kept[0]
    assert (found.dropped_by_bases, found.dropped_by_kmers) == (0, 1)
