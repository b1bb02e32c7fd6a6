"""Sorting on the GPU: the file and its index have the same bytes as from the host's sorter."""

import functools
import gzip
import weakref

import numpy as np
import pysam
import pytest

import bwarp.checks.checker
from bwarp.bam.compression_engine import ON_HOST, Compression
from bwarp.bam.external_sort import RecordSorter
from bwarp.bam.header import header_bytes
from bwarp.bam.sorted_file import bam_file, indexed_bam_file
from bwarp.checks.checker import Checker
from bwarp.errors import GpuMemoryError, InputError

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.bam import bgzf_cuda as bgzf_blocks_cuda
from bwarp.bam import bgzf_cuda as checksums_cuda
from bwarp.bam import record_order_cuda, record_sort_cuda, sorted_blocks_cuda
from bwarp.bam import sorted_blocks_cuda as finished_blocks_cuda
from bwarp.bam.bgzf_cuda import BlocksOnGpu
from bwarp.bam.record_order_cuda import BYTES_TO_SORT
from bwarp.bam.record_sort_cuda import DeviceRecordSorter
from bwarp.bam.sorted_blocks_cuda import records_on_gpu
from bwarp.gpu import available_memory, launch, nvcomp
from bwarp.gpu import sums_and_sorts as prefix_sum
from bwarp.gpu.cuda import cuda
from tests.helpers.cases.small_bam_records import header_of, joined, random_record, record
from tests.helpers.gpu.emulated_cuda import never_written
from tests.helpers.gpu.pretended_device import DeviceArray, pair_sorter, pretend_gpu
from tests.helpers.gpu.pretended_nvcomp import pretend_nvcomp
from tests.helpers.oracles.checked_lists import as_lists

CONTIGS = {"one": 2_000_000, "two": 300, "three": 70_000}
HEADER = header_of(CONTIGS, "coordinate")

CudaAPIError = type("CudaAPIError", (Exception,), {})


@pytest.fixture
def pretended(monkeypatch):
    pretend_gpu(monkeypatch, [launch])
    pretend_nvcomp(monkeypatch)
    for module in (prefix_sum, bgzf_blocks_cuda, finished_blocks_cuda, checksums_cuda):
        monkeypatch.setattr(module, "_THREADS", 32)
    monkeypatch.setattr(record_order_cuda, "_PIECE", 1 << 14)
    monkeypatch.setattr(record_sort_cuda, "pair_sorter", pair_sorter)
    monkeypatch.setattr(sorted_blocks_cuda, "_SLOT", 1000)
    monkeypatch.setattr(finished_blocks_cuda.cuda, "synchronize", int, raising=False)


@functools.cache
def some_records(count: int, longest: int):
    """Return records, including one that is longer than a block or some windows."""
    rng = np.random.default_rng(count)
    records = [random_record(rng, number, HEADER) for number in range(count)]
    long = record("long", 0, 1000, 0, [(50, 0)], rng.integers(33, 127, longest, np.uint8).tobytes())
    records.insert(count // 2, (long, 2000))
    return records


def on_gpu_compression() -> Compression:
    return Compression(BlocksOnGpu(64, 1), 64, 3, on_gpu=True)


def groups_of(records, groups: int):
    return [
        joined([records[number] for number in part])
        for part in np.array_split(np.arange(len(records)), groups)
        if part.size
    ]


def write(folder, sorter, groups, compression):
    """Return the bytes of a sorted file and of its index."""
    with sorter:
        for group in groups:
            sorter.add(group)
        with indexed_bam_file(folder / "out.bam", HEADER, 2, compression) as writer:
            sorter.finish(writer)
    return (folder / "out.bam").read_bytes(), (folder / "out.bam.bai").read_bytes()


def assert_same_file(tmp_path, records, compression, most_bytes, most_blocks, groups=5):
    groups = groups_of(records, groups)
    theirs = RecordSorter(tmp_path, HEADER.contig_starts, 1 << 24, 2, compression)
    expected = write(tmp_path, theirs, groups, compression)
    ours = DeviceRecordSorter(
        tmp_path,
        HEADER.contig_starts,
        most_bytes,
        2,
        compression,
        merge_bytes=1 << 20,
        most_blocks=most_blocks,
    )
    # Every second group is still on the host.
    mixed = [records_on_gpu(g) if i % 2 else g for i, g in enumerate(groups)]
    assert write(tmp_path, ours, mixed, compression) == expected


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("most_blocks", [1, 2, 50])
def test_compressed_on_the_gpu(most_blocks, tmp_path):
    records = some_records(600, 150_000)
    assert_same_file(tmp_path, records, on_gpu_compression(), 1 << 24, most_blocks)
    assert not (tmp_path / "run0").exists()


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("most_blocks", [1, 50])
def test_compressed_by_the_host(most_blocks, tmp_path):
    assert_same_file(tmp_path, some_records(600, 150_000), ON_HOST, 1 << 24, most_blocks)


def write_counted(path, sorter, groups, compression) -> list:
    """Write a sorted file; return its bytes, and the counts of its records."""
    checker = Checker(HEADER, path.name, [(5, 100), (90, 1_999_000)], 2)
    with sorter, indexed_bam_file(path, HEADER, 2, compression, checker) as writer:
        for group in groups:
            sorter.add(group)
        sorter.finish(writer)
    return [path.read_bytes(), *as_lists(checker.finish())]


def assert_same_counts(tmp_path, count, compression, most_bytes, most_blocks):
    groups = groups_of(some_records(count, 150_000), 5)
    theirs = RecordSorter(tmp_path, HEADER.contig_starts, 1 << 24, 2, compression)
    expected = write_counted(tmp_path / "theirs.bam", theirs, groups, compression)
    ours = DeviceRecordSorter(
        tmp_path, HEADER.contig_starts, most_bytes, 2, compression, most_blocks=most_blocks
    )
    assert write_counted(tmp_path / "ours.bam", ours, groups, compression) == expected


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("where", ["host", "gpu"])
@pytest.mark.parametrize("most_blocks", [1, 5])
def test_records_are_counted(where, most_blocks, tmp_path, monkeypatch):
    """The host counts windows of records while others are compressed."""
    monkeypatch.setattr(bwarp.checks.checker, "_RECORDS_A_GROUP", 30)
    compression = ON_HOST if where == "host" else on_gpu_compression()
    assert_same_counts(tmp_path, 300, compression, 1 << 24, most_blocks)


@pytest.mark.usefixtures("pretended")
def test_counting_fails(tmp_path):
    data, key = record("a", 0, 5, 0, [(3, 0)], b"text"), 10
    damaged = data[:-1] + b"A"
    sorter = DeviceRecordSorter(
        tmp_path, HEADER.contig_starts, 1 << 20, 2, on_gpu_compression(), most_blocks=1
    )
    groups = [joined([*some_records(300, 150_000), (damaged, key)])]
    with pytest.raises(InputError, match=r"^x\.bam: a record is damaged: write the file again$"):
        write_counted(tmp_path / "x.bam", sorter, groups, on_gpu_compression())


@pytest.mark.usefixtures("pretended")
def test_counting_with_little_memory(tmp_path, monkeypatch):
    """Any allocation may fail once: the windows are smaller then."""
    groups, compression = groups_of(some_records(40, 10), 2), on_gpu_compression()

    def counted():
        sorter = DeviceRecordSorter(tmp_path, HEADER.contig_starts, 1 << 20, 2, compression)
        return write_counted(tmp_path / "x.bam", sorter, groups, compression)

    whole = FullMemory(monkeypatch)
    expected = counted()
    for number in range(whole.asked):
        memory = FullMemory(monkeypatch, number.__eq__)
        assert counted() == expected
        assert memory.refused == 1


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("where", ["host", "gpu"])
@pytest.mark.parametrize("most_bytes", [1, 100_000])
def test_runs_on_disk(where, most_bytes, tmp_path):
    compression = ON_HOST if where == "host" else on_gpu_compression()
    assert_same_file(tmp_path, some_records(400, 70_000), compression, most_bytes, 1, groups=4)
    assert (tmp_path / "run1").exists()


@pytest.mark.parametrize("most_bytes", [5000, 1 << 20])
def test_records_of_several_gpus(most_bytes, pretended, tmp_path, monkeypatch):
    pretend_gpu(monkeypatch, [launch], gpus=3)
    groups = groups_of(some_records(200, 10), 6)
    case = Case(tmp_path, on_gpu_compression(), groups)
    for number, group in enumerate(groups):
        with cuda.gpus[number % 3]:
            case.groups[number] = records_on_gpu(group)
    case.sort(most_bytes)
    assert (case.runs() > 0) == (most_bytes == 5000)


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("where", ["host", "gpu"])
@pytest.mark.parametrize("count", [0, 1])
def test_no_records_and_one(where, count, tmp_path):
    compression = ON_HOST if where == "host" else on_gpu_compression()
    assert_same_file(tmp_path, some_records(5, 10)[:count], compression, 1 << 20, 4)
    assert gzip.decompress((tmp_path / "out.bam").read_bytes()).startswith(header_bytes(HEADER))


@pytest.mark.usefixtures("pretended")
def test_less_memory_than_asked_for(tmp_path, monkeypatch):
    """The store and the windows are smaller then."""
    attempt, refused = sorted_blocks_cuda.attempt, []

    def attempt_later(work):
        if work.args[-1] > 1:
            refused.append(work)
            if len(refused) % 3:
                return None
        return attempt(work)

    monkeypatch.setattr(sorted_blocks_cuda, "attempt", attempt_later)
    assert_same_file(tmp_path, some_records(400, 70_000), on_gpu_compression(), 1 << 20, 16)
    assert len(refused) >= 4


class FullMemory:
    """Memory of the simulated GPU, and pinned memory, with allocations that fail.

    Parameters
    ----------
    refuses : function of int
        Returns whether the i-th allocation fails.
    most_bytes : int, optional
        Maximum bytes of all arrays on the GPU at a time.

    Attributes
    ----------
    asked, refused : int
        Arrays.
    used, most_used : int
        Current and peak bytes of the arrays on the GPU.
    """

    def __init__(self, monkeypatch, refuses=lambda _: False, most_bytes=1 << 62):
        self.asked = self.refused = self.used = self.most_used = 0
        self._refuses, self._most_bytes = refuses, most_bytes
        monkeypatch.setattr(available_memory, "free_memory", int)
        monkeypatch.setattr(cuda, "device_array", self._array)
        monkeypatch.setattr(cuda, "to_device", self._copy)
        monkeypatch.setattr(cuda, "pinned_array", self._pinned)

    def _ask(self, n_bytes):
        self.asked += 1
        if self._refuses(self.asked - 1) or self.used + n_bytes > self._most_bytes:
            self.refused += 1
            raise CudaAPIError("Call to cuMemAllocAsync results in CUDA_ERROR_OUT_OF_MEMORY")

    def _give_back(self, n_bytes):
        self.used -= n_bytes

    def _array(self, size, dtype):
        n_bytes = size * np.dtype(dtype).itemsize
        self._ask(n_bytes)
        memory = never_written(size, dtype)
        self.used += n_bytes
        self.most_used = max(self.most_used, self.used)
        weakref.finalize(memory, self._give_back, n_bytes)
        return memory.view(DeviceArray)

    def _copy(self, values):
        values = np.asarray(values)
        array = self._array(values.size, values.dtype)
        array[...] = values
        return array

    def _pinned(self, size, dtype):
        self._ask(0)
        return never_written(size, dtype)


class Case:
    """Records to sort, some of them still on the host, and the expected file."""

    def __init__(self, folder, compression, groups):
        self.folder, self.compression = folder, compression
        theirs = RecordSorter(folder, HEADER.contig_starts, 1 << 24, 2, compression)
        self.expected = write(folder, theirs, groups, compression)
        self.groups = [records_on_gpu(g) if i % 2 else g for i, g in enumerate(groups)]

    def sort(self, most_bytes):
        for path in self.folder.glob("run*"):
            path.unlink()
        sorter = DeviceRecordSorter(
            self.folder, HEADER.contig_starts, most_bytes, 2, self.compression, 1 << 20, 4
        )
        assert write(self.folder, sorter, self.groups, self.compression) == self.expected

    def runs(self) -> int:
        return len(list(self.folder.glob("run*")))


def small_case(folder, where) -> Case:
    """Return a case that the GPU sorts at once, and the host in runs."""
    compression = ON_HOST if where == "host" else on_gpu_compression()
    return Case(folder, compression, groups_of(some_records(20, 10), 4))


MOST_BYTES = {"host": 5000, "gpu": 1 << 20}


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("where", MOST_BYTES)
def test_any_allocation_may_fail_once(where, tmp_path, monkeypatch):
    case = small_case(tmp_path, where)
    whole = FullMemory(monkeypatch)
    case.sort(MOST_BYTES[where])
    assert (case.runs() > 1) == (where == "host")
    assert whole.asked > 20
    for number in range(whole.asked):
        memory = FullMemory(monkeypatch, number.__eq__)
        case.sort(MOST_BYTES[where])
        assert memory.refused == 1


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("where", MOST_BYTES)
def test_permanent_lack_of_memory_is_a_one_line_error(where, tmp_path, monkeypatch):
    case = small_case(tmp_path, where)
    whole = FullMemory(monkeypatch)
    case.sort(MOST_BYTES[where])
    for number in range(whole.asked):
        FullMemory(monkeypatch, number.__le__)
        with pytest.raises(
            GpuMemoryError, match="sorting records requires more GPU memory than is"
        ):
            case.sort(MOST_BYTES[where])


@pytest.mark.usefixtures("pretended")
def test_records_on_the_host_keep_room(tmp_path, monkeypatch):
    """The store takes nearly all memory: its records become a run; the next is smaller."""
    records = some_records(200, 10)
    case = Case(tmp_path, ON_HOST, [joined(records[:20]), joined(records[20:])])
    case.groups = [records_on_gpu(case.groups[0]), joined(records[20:])]
    memory = FullMemory(monkeypatch, most_bytes=(1 << 17) + 15_000)
    case.sort(1 << 17)
    assert memory.refused > 0
    assert case.runs() == 2


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize(
    ("free", "most_bytes"), [(1_200_000, 1 << 19), (1_700_000, 1 << 24), (3_000_000, 1 << 24)]
)
def test_little_memory(free, most_bytes, tmp_path, monkeypatch):
    """The store and the windows are as large as memory allows."""
    case = Case(tmp_path, on_gpu_compression(), groups_of(some_records(100, 300_000), 4))
    memory = FullMemory(monkeypatch, most_bytes=free)
    case.sort(most_bytes)
    assert memory.refused > 0
    assert memory.most_used > free // 2


@pytest.mark.usefixtures("pretended")
def test_a_full_store_can_be_sorted(tmp_path, monkeypatch):
    """The reserved memory suffices, even for the shortest possible records."""
    records = [(record("", 0, at, 0, []), 2 * at) for at in range(1000, 400, -1)]
    groups = groups_of(records, 12)
    case = Case(tmp_path, ON_HOST, groups)
    of_group = groups[0].data.size + BYTES_TO_SORT * groups[0].count
    most_bytes = 3 * of_group + record_sort_cuda._BESIDE
    memory = FullMemory(monkeypatch)
    case.sort(most_bytes)
    assert case.runs() == 4
    # One store, the data being written, and the copy of a group.
    assert memory.most_used < most_bytes + 3 * of_group


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("most", [0, 1])
def test_little_pinned_memory(most, tmp_path, monkeypatch):
    """Fewer threads write then; if there is none, the message says so."""
    case = small_case(tmp_path, "gpu")
    pinned, slots = cuda.pinned_array, weakref.WeakValueDictionary()

    def pinned_array(size, dtype):
        array = pinned(size, dtype)
        if size == sorted_blocks_cuda._SLOT:
            if len(slots) == most:
                raise CudaAPIError("Call to cuMemHostAlloc results in CUDA_ERROR_OUT_OF_MEMORY")
            slots[id(array)] = array
        return array

    monkeypatch.setattr(available_memory, "free_memory", int)
    monkeypatch.setattr(cuda, "pinned_array", pinned_array)
    if most:
        case.sort(1 << 20)
        return
    with pytest.raises(
        GpuMemoryError, match="sorting records requires more GPU memory than is free"
    ):
        case.sort(1 << 20)


@pytest.mark.usefixtures("pretended")
def test_a_file_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sorted_blocks_cuda.os, "pwrite", fail)
    with pytest.raises(OSError, match="No space left"):
        assert_same_file(tmp_path, some_records(100, 10), on_gpu_compression(), 1 << 20, 1)


@pytest.mark.usefixtures("pretended")
def test_finished_blocks_follow_whole_ones(tmp_path):
    some = joined(some_records(5, 10))
    with open(tmp_path / "x.bam", "wb") as file, bam_file(file, HEADER, 1) as writer:
        writer.write(some.data, some.starts)
        with pytest.raises(ValueError, match="wait for others"):
            writer.reserve(np.array([100]), 1000)


@pytest.mark.gpu
@pytest.mark.skipif(
    not nvcomp.is_installed(), reason="needs nvCOMP: pip install nvidia-libnvcomp-cu13"
)
@pytest.mark.parametrize("most_bytes", [1 << 24, 1 << 20])
def test_on_a_gpu(most_bytes, tmp_path):
    records = some_records(20_000, 200_000)
    for where, compression in (("gpu", on_gpu_compression()), ("host", ON_HOST)):
        folder = tmp_path / where
        folder.mkdir()
        assert_same_file(folder, records, compression, most_bytes, 7)
        assert_same_counts(folder, 50_000, compression, most_bytes, 7)
        with pysam.AlignmentFile(folder / "out.bam") as file:
            assert file.check_index()
            assert sum(1 for _ in file.fetch(until_eof=True)) == len(records)
            inside = [found.reference_start for found in file.fetch("one", 0, 2_000_000)]
            assert inside == sorted(inside)
