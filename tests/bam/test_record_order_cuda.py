"""Sorted records on the GPU against NumPy: copies of any part of the stream, bounds, loci."""

import numpy as np
import pytest

from bwarp.bam.index import record_loci

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.bam import record_order_cuda
from bwarp.bam.record_order_cuda import BYTES_TO_SORT, SortedRecords, bounds_of
from bwarp.gpu import launch
from bwarp.gpu import sums_and_sorts as prefix_sum
from bwarp.gpu.cuda import cuda
from bwarp.gpu.memory_pool import cut
from tests.helpers.cases.small_bam_records import header_of, joined, random_record, record
from tests.helpers.gpu.pretended_device import device, pretend_gpu


@pytest.fixture
def pretended(monkeypatch):
    pretend_gpu(monkeypatch, [launch])
    monkeypatch.setattr(prefix_sum, "_THREADS", 32)
    monkeypatch.setattr(record_order_cuda, "_PIECE", 128)


def random_records(count: int, longest: int = 20_000):
    """Return records of all lengths, at odd addresses, with or without a CIGAR."""
    rng = np.random.default_rng(count)
    header = header_of({"one": 2_000_000, "two": 300})
    records = [random_record(rng, number, header) for number in range(count)]
    records[count // 2] = record("r", 0, 5, 0, [(9, kind) for kind in range(9)], b"x" * longest), 10
    return joined(records)


def sorted_on_gpu(records, order) -> SortedRecords:
    data = np.append(records.data, np.zeros(-records.data.size % 4, np.uint8))
    data = cuda.to_device(data)
    return SortedRecords(
        data,
        cut(data, 0, data.size // 4, np.uint32),
        cuda.to_device(records.starts),
        cuda.to_device(order),
        records.count,
    )


def in_order(records, order) -> np.ndarray:
    starts = records.starts
    parts = [records.data[starts[row] : starts[row + 1]] for row in order]
    return np.concatenate(parts)


def assert_windows(records, order, step: int) -> None:
    found = sorted_on_gpu(records, order)
    expected = in_order(records, order)
    bounds = np.cumsum(np.append(0, np.diff(records.starts)[order]))
    rows, begins = found.rows_of_windows(step)
    edges = np.arange(0, records.data.size + step, step)[: rows.size]
    assert rows.tolist() == np.searchsorted(bounds[:-1], edges).tolist()
    assert np.array_equal(begins, bounds[rows])
    room = -(-step // 4) * 4
    out = cuda.to_device(np.zeros(room, np.uint8))
    words = cut(out, 0, room // 4, np.uint32)
    for window, first in enumerate(edges[:-1].tolist()):
        stop = min(first + step, expected.size)
        own = (max(int(rows[window]) - 1, 0), int(rows[window + 1]))
        found.copy(own, first, stop, out, words)
        assert np.array_equal(out[: stop - first].copy_to_host(), expected[first:stop])
        own = (int(rows[window]), int(rows[window + 1]))
        assert np.array_equal(found.bounds(own).copy_to_host(), bounds[own[0] : own[1] + 1])


def assert_loci(records, order) -> None:
    found = sorted_on_gpu(records, order)
    n = order.size - 3
    loci = [cuda.device_array(n, dtype) for dtype in (np.int32, np.int64, np.int64, np.uint8)]
    found.loci((1, 1 + n), loci, 0)
    expected = record_loci(records.data, records.starts[order[1 : 1 + n]])
    names = ("contigs", "firsts", "stops", "mapped")
    for array, name in zip(loci, names, strict=True):
        assert np.array_equal(array.copy_to_host(), getattr(expected, name))
    found.loci((4, 4), loci, 0)


def shuffled(count: int) -> np.ndarray:
    return np.random.default_rng(count).permutation(count).astype(np.uint32)


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("step", [1, 2, 37, 128, 1000, 4099, 1 << 20])
def test_copies_of_windows(step):
    count = {1: 2, 2: 3}.get(step, 60)
    records = random_records(count, longest=5000 if count == 60 else 1)
    assert_windows(records, shuffled(count), step)


@pytest.mark.usefixtures("pretended")
def test_loci():
    assert_loci(random_records(300), shuffled(300))


# NumPy warns about an overflow, where a register wraps around to 0.
@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.usefixtures("pretended")
def test_streams_of_more_than_32_bits():
    lengths = np.random.default_rng(1).integers(1 << 29, 1 << 31, 50)
    bounds = bounds_of(device(np.append(lengths, 0).astype(np.uint32)), cuda.device_array)
    assert np.array_equal(bounds.copy_to_host(), np.append(0, np.cumsum(lengths)))


@pytest.mark.usefixtures("pretended")
def test_arrays_can_be_passed_in():
    """They take the planned memory, besides `starts`, `order` and the spare array of the sort."""
    made = []

    def make(size, dtype):
        made.append(cuda.device_array(size, dtype))
        return made[-1]

    # Records of seven bytes, three of them after the size.
    data = np.tile([3, 0, 0, 0, 1, 1, 1], 9).astype(np.uint8)
    starts, order = np.arange(0, 70, 7), shuffled(9)
    found = SortedRecords(device(data), device([0]), device(starts), device(order), 9, make)
    assert found.n_bytes == 63
    assert found.bounds((0, 9)).tolist() == starts.tolist()
    n_bytes = sum(array.dtype.itemsize for array in made)
    assert {array.size for array in made} == {10}
    assert n_bytes == BYTES_TO_SORT - 8 - 4 - 4


@pytest.mark.gpu
def test_on_a_gpu():
    records, order = random_records(5000, longest=300_000), shuffled(5000)
    for step in (37_003, 1 << 16, 1 << 24):
        assert_windows(records, order, step)
    assert_loci(records, order)
