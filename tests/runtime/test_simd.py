"""All vector operations against scalar code, on this processor and on older ones."""

import os
import platform
import subprocess
import sys

import numba
import numpy as np
import pytest

from bwarp.runtime.simd import (
    VECTOR_BYTES,
    add,
    equal,
    extend,
    fill,
    fill_like,
    greater,
    lane_count,
    lanes_of,
    leading_zeros,
    load,
    load_like,
    lookup,
    mask_bits,
    mask_of,
    maximum,
    minimum,
    population_count,
    prefetch,
    reverse,
    select,
    store,
    subtract,
    transpose,
)

TYPES = (np.int8, np.uint8, np.int16, np.int32)


@numba.njit
def all_operations(a, b, out, bits):
    """Write to row k of `out` the result of operation k on the vectors at a[1] and b[0]."""
    x, y = load(a, 1), load(b, 0)
    lanes = lane_count(x)
    store(out, 0 * lanes, add(x, y))
    store(out, 1 * lanes, subtract(x, y))
    store(out, 2 * lanes, maximum(x, y))
    store(out, 3 * lanes, minimum(x, y))
    store(out, 4 * lanes, select(equal(x, y), fill(b[0]), x))
    store(out, 5 * lanes, select(greater(x, y), x, fill_like(b[1], y)))
    store(out, 6 * lanes, load_like(b, 2, x))
    store(out, 7 * lanes, reverse(x))
    greater_bits = np.uint64(mask_bits(greater(x, y)))
    store(out, 8 * lanes, select(mask_of(greater_bits, x), y, x))
    bits[0], bits[1] = mask_bits(equal(x, y)), mask_bits(greater(x, y))
    bits[2] = mask_bits(select(greater(x, y), equal(x, x), equal(x, y)))


def as_bits(truths):
    return sum(1 << lane for lane, truth in enumerate(truths) if truth)


@pytest.mark.parametrize("dtype", TYPES)
def test_operations_equal_their_definitions(dtype):
    lanes, info = lanes_of(dtype), np.iinfo(dtype)
    rng = np.random.default_rng(5)
    for round_ in range(20):
        spread = (info.min, info.max) if round_ % 2 or info.bits < 32 else (-1000, 1000)
        a, b = (rng.integers(*spread, lanes + 2, dtype=dtype, endpoint=True) for _ in range(2))
        b[:3] = a[1:4]
        if round_ == 0:
            a[1:3], b[:2] = info.min, info.max
        out, bits = np.zeros(9 * lanes, dtype), np.zeros(3, np.uint64)
        all_operations(a, b, out, bits)
        x, y = a[1 : lanes + 1].astype(np.int64), b[:lanes].astype(np.int64)
        sums, differences = x + y, x - y
        if info.bits < 32:
            sums, differences = sums.clip(info.min, info.max), differences.clip(info.min, info.max)
        expected = np.array(
            [
                sums,
                differences,
                np.maximum(x, y),
                np.minimum(x, y),
                np.where(x == y, b[0], x),
                np.where(x > y, x, b[1]),
                b[2 : lanes + 2],
                x[::-1],
                np.where(x > y, y, x),
            ]
        ).astype(dtype)
        np.testing.assert_array_equal(out.reshape(9, lanes), expected)
        assert bits.tolist() == [as_bits(x == y), as_bits(x > y), as_bits(x >= y)]


@numba.njit
def all_lookups(table, indices, out):
    v = load(indices, 0)
    lanes = lane_count(v)
    store(out, 0, lookup(table, 3, 32, minimum(v, fill(np.uint8(31)))))
    store(out, lanes, lookup(table, 5, 64, minimum(v, fill(np.uint8(63)))))
    store(out, 2 * lanes, lookup(table, 0, 128, v))


@numba.njit
def half_lookup(table, indices, wide, out):
    like = load(wide, 0)
    store(out, 0, extend(lookup(table, 0, 32, load_like(indices, 0, like)), like))


def test_lookups_find_every_entry():
    rng = np.random.default_rng(6)
    lanes = lanes_of(np.uint8)
    table = rng.integers(-128, 128, 133).astype(np.int8)
    for base in range(0, 128, 16):
        indices = ((np.arange(lanes) + base) % 128).astype(np.uint8)
        out = np.zeros(3 * lanes, np.int8)
        all_lookups(table, indices, out)
        expected = [table[3 + indices.clip(0, 31)], table[5 + indices.clip(0, 63)], table[indices]]
        np.testing.assert_array_equal(out.reshape(3, lanes), expected)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_narrow_lookups_are_extended(dtype):
    table = np.arange(-16, 16).astype(np.int8)
    wide = np.zeros(lanes_of(dtype), dtype)
    indices = (np.arange(64) * 7 % 32).astype(np.uint8)
    half_lookup(table, indices, wide, wide)
    np.testing.assert_array_equal(wide, table[indices[: wide.size]])


@numba.njit
def turn(codes, starts, out):
    transpose(codes, starts, 2, out, 5, 20)


def test_transpose_turns_a_square():
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 256, 400, dtype=np.uint8)
    starts = rng.integers(0, 380, 16)
    out = np.zeros(5 + 16 * 20, np.uint8)
    turn(codes, starts, out)
    square = out[5:].reshape(16, 20)
    np.testing.assert_array_equal(square[:, 16:], 0)
    for k in range(16):
        np.testing.assert_array_equal(square[:, k], codes[starts[k] + 2 : starts[k] + 18])


@numba.njit
def count_and_prefetch(words, out, zeros):
    for i in range(words.size):
        prefetch(words, i)
        prefetch(words, i + 10_000_000)
        out[i] = population_count(words[i])
        zeros[i] = leading_zeros(words[i])


def test_counts_of_bits_and_prefetch():
    words = np.array([0, 1, 2**64 - 1, 0x5555555555555555, 1 << 63], np.uint64)
    out, zeros = np.zeros((2, words.size), np.int64)
    count_and_prefetch(words, out, zeros)
    assert out.tolist() == [int(word).bit_count() for word in words]
    assert zeros.tolist() == [64 - int(word).bit_length() for word in words]


def test_vectors_have_the_width_of_a_register():
    assert VECTOR_BYTES in (16, 32, 64)
    assert [lanes_of(dtype) for dtype in (np.int8, np.int16, np.int32)] == [
        VECTOR_BYTES,
        VECTOR_BYTES // 2,
        VECTOR_BYTES // 4,
    ]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="features of x86 processors")
@pytest.mark.skipif("NUMBA_CPU_FEATURES" in os.environ, reason="runs within itself")
@pytest.mark.parametrize(
    "features", ["+sse2", "+sse2,+ssse3,+sse4.1,+avx,+avx2"], ids=["sse2", "avx2"]
)
def test_same_results_on_an_older_processor(features):
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__],
        env=os.environ | {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": features},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stdout[-2000:]
