"""Sorting on the GPU: the bytes of the file and of its index are those of the host's sorter."""

import functools
import gzip

import numpy as np
import pysam
import pytest

from bwarp.io.bam.bam_file import bam_file, indexed_bam_file
from bwarp.io.bam.compression import ON_HOST, Compression
from bwarp.io.bam.external_sort import RecordSorter
from bwarp.io.bam.header import header_bytes

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu import launch, nvcomp, prefix_sum
from bwarp.io.bam import (
    bgzf_blocks_cuda,
    checksums_cuda,
    finished_blocks_cuda,
    record_order_cuda,
    record_sort_cuda,
    sorted_blocks_cuda,
)
from bwarp.io.bam.bgzf_blocks_cuda import BlocksOnGpu
from bwarp.io.bam.device_records_cuda import records_on_gpu
from bwarp.io.bam.record_sort_cuda import DeviceRecordSorter
from tests.helpers.cases.small_bam_records import header_of, joined, random_record, record
from tests.helpers.gpu.pretended_device import pair_sorter, pretend_gpu
from tests.helpers.gpu.pretended_nvcomp import pretend_nvcomp

CONTIGS = {"one": 2_000_000, "two": 300, "three": 70_000}
HEADER = header_of(CONTIGS, "coordinate")


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
    """Among them one that is longer than a block, or than some windows."""
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
    """The bytes of a sorted file and of its index."""
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


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("where", ["host", "gpu"])
@pytest.mark.parametrize("most_bytes", [1, 100_000])
def test_runs_on_disk(where, most_bytes, tmp_path):
    compression = ON_HOST if where == "host" else on_gpu_compression()
    assert_same_file(tmp_path, some_records(400, 70_000), compression, most_bytes, 1, groups=4)
    assert (tmp_path / "run1").exists()


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("where", ["host", "gpu"])
@pytest.mark.parametrize("count", [0, 1])
def test_no_records_and_one(where, count, tmp_path):
    compression = ON_HOST if where == "host" else on_gpu_compression()
    assert_same_file(tmp_path, some_records(5, 10)[:count], compression, 1 << 20, 4)
    assert gzip.decompress((tmp_path / "out.bam").read_bytes()).startswith(header_bytes(HEADER))


@pytest.mark.usefixtures("pretended")
def test_less_memory_than_asked_for(tmp_path, monkeypatch):
    """The store is smaller then, and so are windows."""
    attempt, refused = sorted_blocks_cuda.attempt, []

    def attempt_later(work):
        refused.append(work)
        return attempt(work) if len(refused) % 3 == 0 else None

    monkeypatch.setattr(sorted_blocks_cuda, "attempt", attempt_later)
    assert_same_file(tmp_path, some_records(400, 70_000), on_gpu_compression(), 1 << 20, 16)
    assert len(refused) >= 4


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
        with pysam.AlignmentFile(folder / "out.bam") as file:
            assert file.check_index()
            assert sum(1 for _ in file.fetch(until_eof=True)) == len(records)
            inside = [found.reference_start for found in file.fetch("one", 0, 2_000_000)]
            assert inside == sorted(inside)
