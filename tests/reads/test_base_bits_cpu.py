"""Blocks of bits against plain codes."""

import numba
import numpy as np
import pytest

from bwarp.mapping.extension_cpu import genome_of
from bwarp.reads.base_bits_cpu import (
    SLACK,
    base_at,
    blocks_of_packed,
    copy_bases,
    differing,
    prefetch_bases,
    put_bases,
)
from bwarp.reference import ambiguous_stretches, make_reference
from tests.helpers.oracles.mapping_oracle import codes_in, genome_with


@numba.njit
def compared(blocks, ats, codes, firsts, counts, out):
    for i in range(ats.size):
        out[i] = differing(blocks, ats[i], codes, firsts[i], counts[i])


@numba.njit
def every_base(blocks, out):
    for i in range(out.size):
        prefetch_bases(blocks, 100 * i - out.size)
        out[i] = base_at(blocks, i)


@numba.njit
def put(blocks, start, stop, at, out):
    return put_bases(out, at, blocks, start, stop)


def bases(rng, n, ambiguous=0.0):
    share = (1 - ambiguous) / 4
    return rng.choice(5, n, p=[share] * 4 + [ambiguous]).astype(np.uint8)


def hostile():
    """Return genomes by name: lengths and ambiguous bases at the borders of blocks."""
    rng = np.random.default_rng(1)
    yield "one base", bases(rng, 1)
    yield "one ambiguous base", np.full(1, 4, np.uint8)
    for n in (31, 32, 33, 63, 64, 65, 127, 128, 129, 192, 500):
        yield f"{n} bases", bases(rng, n)
        yield f"{n} ambiguous bases", np.full(n, 4, np.uint8)
        yield f"{n} bases, some ambiguous", bases(rng, n, 0.1)
        last = bases(rng, n)
        last[-1] = 4
        yield f"{n} bases, the last ambiguous", last
    for start, stop in ((0, 64), (63, 65), (64, 128), (1, 64), (64, 65), (63, 64), (10, 400)):
        stretch = bases(rng, 512)
        stretch[start:stop] = 4
        yield f"ambiguous from {start} to {stop}", stretch
    two = bases(rng, 256)
    two[[70, 71, 127, 128, 130]] = 4
    yield "several stretches in a block", two


CASES = dict(hostile())


@pytest.mark.parametrize("name", CASES)
def test_blocks_hold_the_bases_and_ambiguous_ones_after_them(name):
    codes = CASES[name]
    n = codes.size
    reference = make_reference(("c",), [0, n], codes)
    blocks = blocks_of_packed(reference.packed, n, ambiguous_stretches(reference))
    assert blocks.dtype == np.uint64
    planes = np.unpackbits(blocks.reshape(-1, 3).view(np.uint8), axis=1, bitorder="little")
    low, high, ambiguous = planes.reshape(-1, 3, 64).transpose(1, 0, 2).reshape(3, -1)
    assert (low + 2 * high + 4 * ambiguous)[:n].tolist() == codes.tolist()
    assert (low + 2 * high + 4 * ambiguous)[n:].tolist() == [4] * (low.size - n)
    assert low.size - n > 64
    out = np.zeros(n, np.uint8)
    every_base(blocks, out)
    assert out.tolist() == codes.tolist()


def test_no_bases():
    blocks = blocks_of_packed(np.zeros(1, np.uint64), 0, np.empty((0, 2), np.int64))
    assert blocks.reshape(-1, 3).tolist() == [[0, 0, 2**64 - 1]] * 2
    none = np.empty(0, np.int64), np.empty(0, np.int32)
    codes, starts = copy_bases(blocks, *none)
    assert (codes.size, starts.size) == (SLACK, 0)


def test_bits_where_stretches_lie_are_cleared():
    packed = np.full(4, 2**64 - 1, np.uint64)
    blocks = blocks_of_packed(packed, 100, np.array([[3, 70]]))
    assert codes_in_blocks(blocks, 100) == [3] * 3 + [4] * 67 + [3] * 30


def codes_in_blocks(blocks, n):
    out = np.zeros(n, np.uint8)
    every_base(blocks, out)
    return out.tolist()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads):
    rng = np.random.default_rng(2)
    codes = bases(rng, 300_001, 0.001)
    reference = make_reference(("a", "b"), [0, 1234, codes.size], codes)
    genome = genome_of(reference, threads)
    assert np.array_equal(codes_in(genome), codes)
    assert genome.contig_starts is reference.contig_starts


def test_a_genome_in_a_file_stays_readable(tmp_path):
    codes = bases(np.random.default_rng(3), 10_000)
    reference = make_reference(("a",), [0, codes.size], codes)
    np.save(tmp_path / "genome.npy", reference.packed)
    packed = np.load(tmp_path / "genome.npy", mmap_mode="r")
    mapped = type(reference)(**vars(reference) | {"packed": packed})
    for _ in range(2):
        assert np.array_equal(codes_in(genome_of(mapped)), codes)
    assert np.array_equal(packed, reference.packed)


@pytest.mark.parametrize("ambiguous", [0.0, 0.05, 1.0])
def test_differing_at_every_shift(ambiguous):
    rng = np.random.default_rng(4)
    codes = bases(rng, 400, ambiguous)
    blocks = genome_with(codes, [0, codes.size]).blocks
    reads = codes.copy()
    changed = rng.random(reads.size) < 0.3
    reads[changed] = bases(rng, int(changed.sum()), 0.2)
    # Ambiguous bases at all positions in two blocks, including the last bases of a read.
    at, first = (grid.ravel() for grid in np.meshgrid(np.arange(129), np.arange(300, 400, 7)))
    at, first = np.append(at, np.arange(336, 400)), np.append(first, np.arange(336, 400))
    counts = np.minimum(rng.integers(1, 65, at.size), np.minimum(400 - at, 400 - first))
    counts[::3] = np.minimum(64, np.minimum(400 - at, 400 - first))[::3]
    out = np.zeros(at.size, np.uint64)
    compared(blocks, at, reads, first, counts, out)
    for bits, here, there, n in zip(out.tolist(), at, first, counts, strict=True):
        one, two = codes[here : here + n], reads[there : there + n]
        expected = (one != two) | (one > 3)
        assert bits == sum(1 << i for i in np.flatnonzero(expected).tolist())


def test_equal_bases_do_not_differ():
    codes = bases(np.random.default_rng(5), 1000)
    blocks = genome_with(codes, [0, codes.size]).blocks
    at = np.arange(codes.size - 64)
    out = np.ones(at.size, np.uint64)
    compared(blocks, at, codes, at, np.full(at.size, 64), out)
    assert not out.any()


@pytest.mark.parametrize("name", CASES)
def test_copied_windows(name):
    codes = CASES[name]
    rng = np.random.default_rng(6)
    blocks = genome_with(codes, [0, codes.size]).blocks
    starts = rng.integers(0, codes.size, 50)
    lengths = np.minimum(rng.integers(1, 300, 50), codes.size - starts).astype(np.int32)
    starts[0], lengths[0] = 0, codes.size
    starts[1], lengths[1] = codes.size - 1, 1
    lengths[2] = 0
    copied, places = copy_bases(blocks, starts, lengths)
    assert copied.dtype == np.uint8
    for start, place, n in zip(starts, places, lengths, strict=True):
        assert copied[place : place + n].tolist() == codes[start : start + n].tolist()


def test_put_bases_touches_no_more_than_it_says():
    codes = bases(np.random.default_rng(7), 300, 0.1)
    blocks = genome_with(codes, [0, codes.size]).blocks
    for start, stop in ((0, 0), (0, 1), (63, 64), (5, 69), (5, 70), (0, 300), (299, 300), (9, 3)):
        n = max(stop - start, 0)
        out = np.full(10 + n + SLACK + 5, 9, np.uint8)
        assert put(blocks, start, stop, 10, out) == 10 + n
        assert out[:10].tolist() == [9] * 10
        assert out[10 : 10 + n].tolist() == codes[start:stop].tolist()
        assert out[10 + n + SLACK :].tolist() == [9] * 5
