"""Duplicates marked on the GPU: the file has the same bytes as from the host's sorter."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from bwarp.bam.bgzf import read_bgzf
from bwarp.bam.compression_engine import ON_HOST
from bwarp.bam.duplicates import DuplicateMarker, records_with_room
from bwarp.bam.external_sort import RecordSorter
from bwarp.bam.fields import FLAG_AT, REVERSE, SIZE_BYTES
from bwarp.bam.header import split_header
from bwarp.bam.index import record_loci
from bwarp.bam.records import Records, record_starts
from bwarp.bam.sort_keys import sort_keys
from bwarp.bam.sorted_file import indexed_bam_file
from bwarp.errors import GpuMemoryError
from bwarp.runtime.compiled_code import read_only
from tests.helpers.cases.duplicate_library import located_name, write_library

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.bam.record_sort_cuda import DeviceRecordSorter
from bwarp.bam.sorted_blocks_cuda import records_on_gpu
from bwarp.gpu import launch
from bwarp.gpu.cuda import cuda
from tests.bam.test_record_sort_cuda import FullMemory, pretended  # noqa: F401
from tests.helpers.gpu.pretended_device import pretend_gpu

# NumPy warns where a register wraps around.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")

#: Shares of pairs, pairs with an unmapped mate, single reads and unmapped pairs.
KINDS = {"mixed": (0.7, 0.15, 0.1, 0.05), "pairs": (1, 0, 0, 0), "singles": (0, 0, 1, 0)}


class Library:
    """Records in the order of the input, in groups, and the file that the host writes."""

    def __init__(self, folder, count, share, groups=5, kinds="mixed", read_groups=True, tags=False):
        write_library(folder / "in.bam", 7, count, share, KINDS[kinds], located_name)
        path = folder / "in.bam.unsorted"
        with open(path, "rb") as file:
            self.header, blocks = split_header(path, read_bgzf(file, path))
            data = read_only(np.frombuffer(b"".join(blocks), np.uint8))
        if not read_groups:
            lines = self.header.text.splitlines(keepends=True)
            text = b"".join(line for line in lines if not line.startswith(b"@RG"))
            self.header = replace(self.header, text=text)
        if tags:
            starts = record_starts(data)
            records = Records(data, starts, np.zeros(starts.size - 1, np.uint64))
            data = read_only(records_with_room(records, True).data)
        self._starts, self._keys, self._data = record_starts(data), None, data
        loci = record_loci(data, self._starts[:-1])
        self._keys = sort_keys(
            np.where(loci.contigs < 0, -1, self.header.contig_starts[loci.contigs] + loci.firsts),
            data[self._starts[:-1] + SIZE_BYTES + FLAG_AT] & REVERSE != 0,
        )
        edges = np.linspace(0, self._keys.size, groups + 1).astype(int).tolist()
        self.groups = [self._part(*edge) for edge in pairwise(edges)]
        self._folder, self._with_tags = folder, tags
        theirs, marker = self._sorter(RecordSorter, 1 << 24)
        self.expected = *self._written(theirs, self.groups), marker.counts

    def partly_sent(self) -> list:
        """Return the groups, every second of them on the GPU."""
        return [records_on_gpu(g) if i % 2 else g for i, g in enumerate(self.groups)]

    def _part(self, first, stop) -> Records:
        starts = self._starts[first : stop + 1]
        data = self._data[starts[0] : starts[-1]]
        return Records(data, starts - starts[0], self._keys[first:stop])

    def _sorter(self, sorter, most_bytes):
        marker = DuplicateMarker(self.header, None, None, 2, with_tags=self._with_tags)
        arguments = self._folder, self.header.contig_starts, most_bytes, 2, ON_HOST
        return sorter(*arguments, duplicates=marker), marker

    def _written(self, sorter, groups):
        with sorter:
            for group in groups:
                sorter.add(group)
            with indexed_bam_file(self._folder / "out.bam", self.header, 2) as writer:
                sorter.finish(writer)
        return tuple((self._folder / f"out.bam{end}").read_bytes() for end in ("", ".bai"))

    def check(self, most_bytes=1 << 24, groups=None):
        """Sort on the GPU; return the number of runs."""
        for path in self._folder.glob("run*"):
            path.unlink()
        groups = groups or self.partly_sent()
        ours, marker = self._sorter(DeviceRecordSorter, most_bytes)
        written = self._written(ours, groups)
        assert written == self.expected[:2]
        for found, expected in zip(marker.counts, self.expected[2], strict=True):
            assert np.array_equal(found, expected)
        return len(list(self._folder.glob("run*")))


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("share", [0, 0.2, 0.6])
def test_files_are_those_of_the_host(tmp_path, share, kinds):
    library = Library(tmp_path, 150, share, kinds=kinds)
    assert (library.expected[2].reads > 0) == (share > 0)
    assert library.check() == 0


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("most_bytes", [1 << 24, 30_000])
def test_tags(tmp_path, most_bytes):
    library = Library(tmp_path, 150, 0.6, tags=True)
    assert library.expected[2].optical_pairs.sum() > 0
    assert (library.check(most_bytes) > 0) == (most_bytes == 30_000)


@pytest.mark.usefixtures("pretended")
def test_names_without_read_groups(tmp_path):
    Library(tmp_path, 150, 0.5, read_groups=False).check()


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("most_bytes", [1, 30_000])
def test_runs_on_disk(tmp_path, most_bytes):
    assert Library(tmp_path, 150, 0.4).check(most_bytes) > 1


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("count", [0, 1])
def test_no_records_and_one(tmp_path, count):
    Library(tmp_path, count, 0, groups=1, kinds="singles").check()


def test_records_of_several_gpus(pretended, tmp_path, monkeypatch):  # noqa: F811
    pretend_gpu(monkeypatch, [launch], gpus=3)
    library, groups = Library(tmp_path, 150, 0.4, groups=6), []
    for number, group in enumerate(library.groups):
        with cuda.gpus[number % 3]:
            groups.append(records_on_gpu(group))
    library.check(groups=groups)


@pytest.mark.usefixtures("pretended")
def test_any_allocation_may_fail_once(tmp_path, monkeypatch):
    library = Library(tmp_path, 6, 0.4, groups=2)
    groups = library.partly_sent()
    # The first run also allocates what the process keeps.
    library.check(groups=groups)
    whole = FullMemory(monkeypatch)
    library.check(groups=groups)
    assert whole.asked > 30
    for number in range(whole.asked):
        memory = FullMemory(monkeypatch, number.__eq__)
        library.check(groups=groups)
        assert memory.refused == 1


@pytest.mark.usefixtures("pretended")
def test_permanent_lack_of_memory_is_a_one_line_error(tmp_path, monkeypatch):
    library = Library(tmp_path, 6, 0.4, groups=2)
    groups = library.partly_sent()
    library.check(groups=groups)
    whole = FullMemory(monkeypatch)
    library.check(groups=groups)
    for number in range(0, whole.asked, 3):
        FullMemory(monkeypatch, number.__le__)
        with pytest.raises(GpuMemoryError, match="sorting records requires more GPU memory"):
            library.check(groups=groups)


@pytest.mark.gpu
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("share", [0, 0.2, 0.6])
@pytest.mark.parametrize("most_bytes", [1 << 24, 1 << 18])
def test_on_a_gpu(tmp_path, share, kinds, most_bytes):
    library = Library(tmp_path, 8000, share, kinds=kinds)
    assert share == 0 or library.expected[2].reads > 0
    assert (library.check(most_bytes) > 0) == (most_bytes == 1 << 18)


@pytest.mark.gpu
@pytest.mark.parametrize("most_bytes", [1 << 24, 1 << 18])
def test_tags_on_a_gpu(tmp_path, most_bytes):
    library = Library(tmp_path, 8000, 0.6, tags=True)
    assert library.expected[2].optical_pairs.sum() > 100
    assert (library.check(most_bytes) > 0) == (most_bytes == 1 << 18)


@pytest.mark.gpu
def test_names_without_read_groups_on_a_gpu(tmp_path):
    Library(tmp_path, 8000, 0.5, read_groups=False).check()
