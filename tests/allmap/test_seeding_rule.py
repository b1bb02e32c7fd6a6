"""The number of parts: no alignment is missed, and with one part fewer, some are."""

from functools import cache
from itertools import product

import pytest

from bwarp.allmap.options import parts_needed
from bwarp.allmap.parts_cpu import best_mismatches


@cache
def escapes(parts: int, edits: int, gaps: int, mismatches: int) -> bool:
    """Return whether edits can be distributed so that all parts have gaps or many mismatches."""
    if parts == 0:
        return True
    # A part is missed because of one gap letter, or one mismatch too many.
    by_gap = gaps > 0 and escapes(parts - 1, edits - 1, gaps - 1, mismatches)
    left = edits - mismatches - 1
    return by_gap or (left >= 0 and escapes(parts - 1, left, min(gaps, left), mismatches))


@pytest.mark.parametrize(("edits", "mismatches"), product(range(9), range(5)))
def test_nothing_escapes_and_no_part_is_too_many(edits, mismatches):
    for gaps in range(edits + 1):
        parts = parts_needed(edits, gaps, mismatches)
        assert not escapes(parts, edits, gaps, mismatches)
        assert escapes(parts - 1, edits, gaps, mismatches)


def test_long_parts_are_searched_without_mismatches_and_short_ones_with():
    assert best_mismatches(100, 4, 4, 3 * 10**9) == 0
    assert best_mismatches(150, 4, 0, 64 * 10**6) == 0
    assert best_mismatches(25, 2, 0, 3 * 10**9) > 0
    # As measured by benchmarks/seed_mismatches.py.
    assert best_mismatches(20, 3, 0, 60 * 10**6) == 3
    assert best_mismatches(100, 6, 0, 60 * 10**6) == 0
    assert best_mismatches(100, 6, 2, 60 * 10**6) == 0


def test_parts_too_short_for_schemes_are_not_chosen():
    for length in range(1, 40):
        for edits in range(1, 6):
            m = best_mismatches(length, edits, 0, 10**8)
            assert m == 0 or length // parts_needed(edits, 0, m) >= 8
