"""Numbers and bytes written into arrays, against Python's own formatting."""

import numba
import numpy as np
import pytest

from bwarp.io.names import MOST_DIGITS, put_bytes, put_field, put_number


@numba.njit
def _fields(numbers, width, out):
    at = 0
    for number in numbers:
        at = put_field(out, at, number, 9, width)
    return at


@numba.njit
def _ends(numbers, out):
    at = 0
    for number in numbers:
        at = put_bytes(out, put_number(out, at, number), out, 0, 1)
    return at


EDGES = [10**power + more for power in range(19) for more in (-1, 0, 1)]


@pytest.mark.parametrize("width", [1, 8])
def test_numbers_are_those_of_python(width):
    numbers = np.array([0, *EDGES, 2**63 - 1])
    out = np.empty((MOST_DIGITS + 1) * numbers.size, np.uint8)
    used = _fields(numbers, width, out)
    text = "".join(f"{number:>{width}}\t" for number in numbers.tolist())
    assert out[:used].tobytes().decode() == text


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.uint32, np.uint64])
def test_numbers_of_any_type(dtype):
    limits = np.iinfo(dtype)
    least = max(limits.min, -(2**63) + 1)
    numbers = np.array([7, least, least + 1, 0, min(limits.max, 2**63 - 1)], dtype)
    out = np.empty((MOST_DIGITS + 1) * numbers.size, np.uint8)
    used = _ends(numbers, out)
    assert out[:used].tobytes().decode() == "".join(f"{number}7" for number in numbers.tolist())
