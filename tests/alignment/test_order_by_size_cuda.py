"""The order of pairs found by the emulated GPU, against sorting in NumPy."""

import numpy as np
import pytest

from bwarp.alignment import traceback_cuda
from bwarp.alignment.device_batch_cuda import (
    NO_BIN,
    DeviceBatch,
    largest_in_bin,
    order_by_bins,
    order_by_size,
    size_bin,
    size_bins,
    with_host_lengths,
)
from tests.helpers.gpu.emulated_alignment import pretend


def batch_of(rows, columns):
    from bwarp.gpu.cuda import cuda

    queries, references = (
        with_host_lengths(None, None, cuda.to_device(side.astype(np.int32)), side)
        for side in (rows, columns)
    )
    return DeviceBatch(queries, references)


def test_bins_of_sizes():
    sizes = [*range(5000), *(2**power + step for power in range(12, 31) for step in (-1, 0, 1))]
    bins = [size_bin(size) for size in sizes]
    for size, number in zip(sizes, bins, strict=True):
        assert size <= largest_in_bin(number) <= max(size, size * 33 // 32)
        assert size_bin(largest_in_bin(number)) == number
        assert size_bin(largest_in_bin(number) + 1) == number + 1
    assert bins[:64] == list(range(64))
    assert size_bins(np.array(sizes[1:])).tolist() == bins[1:]


@pytest.mark.parametrize("few_pairs", [0, 200])
def test_pairs_of_two_share_their_reference_length(monkeypatch, few_pairs):
    pretend(monkeypatch, few_pairs)
    rng = np.random.default_rng(24)
    rows, columns = rng.integers(1, 50, 101), rng.integers(1, 9, 101)
    order = order_by_size(batch_of(rows, columns), (10, 20, 50), 8, True)
    slots, seen = order.slots, []
    for number, begin, end, longest in order.classes():
        part = slots[begin:end]
        assert (np.searchsorted((10, 20, 50), rows[part]) == number).all()
        assert (columns[part[::2]] == columns[part[1::2]]).all()
        assert columns[part].max() == longest
        seen += part.tolist()
    assert sorted(set(seen)) == list(range(101))
    # Only the unpaired item of each length in a class appears twice.
    kinds = np.searchsorted((10, 20, 50), rows) * 9 + columns
    assert len(seen) - 101 == (np.bincount(kinds) % 2).sum()


@pytest.mark.parametrize("few_pairs", [0, 200])
def test_equal_pairs_and_marked_pairs(monkeypatch, few_pairs):
    pretend(monkeypatch, few_pairs)
    same = order_by_size(batch_of(np.full(70, 7), np.full(70, 90)), (9,), 90, True)
    assert sorted(same.slots[:70].tolist()) == list(range(70))
    assert list(same.classes()) == [(0, 0, 70, 90)]
    odd = order_by_size(batch_of(np.full(7, 12), np.full(7, 90)), (9, 12), 99, True)
    assert sorted(odd.slots[:8].tolist()) in ([0, *range(7)], [*range(7), 6])
    assert list(odd.classes()) == [(1, 0, 8, 90)]
    from bwarp.gpu.cuda import cuda

    rng = np.random.default_rng(25)
    rows, columns, marks = rng.integers(1, 40, 70), rng.integers(1, 900, 70), rng.integers(0, 2, 70)
    marks = cuda.to_device(marks.astype(np.int32))
    order = order_by_size(batch_of(rows, columns), (20, 40), 500, False, marks, 1)
    slots = order.slots[: order.starts[-1]]
    assert sorted(slots.tolist()) == np.flatnonzero(marks == 1).tolist()
    bins = [size_bin(min(column, 500)) for column in columns[slots].tolist()]
    sizes = list(zip((rows[slots] > 20).tolist(), bins, strict=True))
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("even", [False, True])
def test_no_pair_has_a_bin(monkeypatch, even):
    pretend(monkeypatch)
    from bwarp.gpu.cuda import cuda

    bins = cuda.to_device(np.full(40, NO_BIN, np.uint32))
    order = order_by_bins(bins, 40, 2, 3, even)
    assert order.starts.tolist() == [0] * 7
    assert list(order.classes()) == []


def test_portions_hold_what_fits(monkeypatch):
    share = traceback_cuda.MEMORY_SHARE
    monkeypatch.setattr(
        traceback_cuda, "affordable", lambda wanted, _: min(wanted, int(share * 4 * 20_000))
    )
    rng = np.random.default_rng(26)
    counts = rng.integers(0, 9, 60) * (rng.random(60) < 0.7)
    starts = np.append(0, np.cumsum(counts))
    words = np.append(0, rng.integers(1, 12_000, 59))
    words_of_slot = np.repeat(words, counts)
    at = starts[1]
    for begin, end, most in traceback_cuda._portions(starts, words):
        assert begin == at
        assert end > begin
        assert most == words_of_slot[begin:end].sum()
        assert most <= 8000 or end == begin + 1
        at = end
    assert at == starts[-1]
