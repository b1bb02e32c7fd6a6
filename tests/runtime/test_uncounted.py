"""Code with uncounted arrays, or compiled without counts, does no reference counting."""

import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import stand_alone
from bwarp.runtime.uncounted import uncounted


class Two(NamedTuple):
    numbers: np.ndarray
    factor: int


@numba.njit
def taken_from(pairs, i):
    stand_alone()
    numbers, factor = pairs[0]
    while i < numbers.size and numbers[i] < 0:
        i += 1
    return numbers[i] * factor if i < numbers.size else 0


def total_of(pairs, out):
    for i in range(out.size):
        out[i] = taken_from(pairs, i)


def total_of_uncounted(pairs, out):
    pairs, out = uncounted((pairs, out))
    for i in range(out.size):
        out[i] = taken_from(pairs, i)


@pytest.mark.parametrize("writable", [True, False])
def test_arrays_are_the_same_and_stay_alive(writable):
    numbers = np.array([3, -1, 4, -1, -5, 9, -2])
    numbers.setflags(write=writable)
    pairs, out = (Two(numbers, 10), np.empty(0)), np.zeros(7, np.int64)
    before = [sys.getrefcount(array) for array in (numbers, out)]
    numba.njit(total_of_uncounted)(pairs, out)
    assert out.tolist() == [30, 40, 40, 90, 90, 90, 0]
    assert [sys.getrefcount(array) for array in (numbers, out)] == before


def test_nothing_is_counted_in_a_loop():
    arguments = (Two(np.arange(5), 2), np.empty(0)), np.zeros(5, np.int64)

    def counts(function) -> int:
        compiled = numba.njit(function)
        compiled(*arguments)
        (code,) = compiled.inspect_llvm().values()
        return code.count("call void @NRT_incref(")

    assert counts(total_of) > 0
    assert counts(total_of_uncounted) == 0


@compiled(counted=False)
def total_without_counts(pairs, out):
    for i in range(out.size):
        numbers, factor = pairs[0]
        out[i] = numbers[i] * factor


def test_a_function_without_counts_keeps_arrays_alive():
    numbers, out = np.array([3, -1, 4]), np.zeros(3, np.int64)
    before = [sys.getrefcount(array) for array in (numbers, out)]
    for _ in range(3):
        total_without_counts((Two(numbers, 10), np.empty(0)), out)
    assert out.tolist() == [30, -10, 40]
    assert [sys.getrefcount(array) for array in (numbers, out)] == before


def test_a_function_without_counts_has_none():
    function = numba.jit(**total_without_counts.targetoptions)(total_without_counts.py_func)
    function((Two(np.arange(3), 2), np.empty(0)), np.zeros(3, np.int64))
    (code,) = function.inspect_llvm().values()
    assert "NRT_" not in code


def test_a_function_without_counts_cannot_allocate():
    @compiled(counted=False)
    def allocate(n):
        return np.zeros(n).sum()

    with pytest.raises(numba.core.errors.NumbaError, match="array"):
        allocate(3)
