"""The index of a BAM file: searches with it find the same records as a scan of the file."""

import numpy as np
import pysam
import pytest

from bwarp.bam.sort_keys import sorted_order
from bwarp.bam.sorted_file import indexed_bam_file
from tests.helpers.cases.small_bam_records import header_of, joined, random_record, record

SHORT = {"one": 3_000_000, "none": 10_000, "two": 40_000, "last": 16_384}
LONG = {"one": (1 << 29) + 1, "two": 700_000_000, "three": 16_384}


def write(contigs, records, folder):
    header = header_of(contigs, "coordinate")
    some = joined(records)
    order = sorted_order(some.keys)
    with indexed_bam_file(folder / "out.bam", header, 2) as writer:
        # In two pieces, whose border is within a block.
        middle = order.size // 3
        writer.write(some.data, some.starts, order[:middle])
        writer.write(some.data, some.starts, order[middle:])
    return str(folder / "out.bam")


def overlapping(records, contig, start, stop):
    names = []
    for found in records:
        end = found.reference_end or found.reference_start + 1
        if found.reference_id == contig and found.reference_start < stop and end > start:
            names.append(found.query_name)
    return names


@pytest.mark.parametrize(("contigs", "ending"), [(SHORT, ".bai"), (LONG, ".csi")])
def test_every_region(contigs, ending, tmp_path):
    rng = np.random.default_rng(len(ending) + len(contigs))
    header = header_of(contigs)
    records = [random_record(rng, number, header) for number in range(3000)]
    if ending == ".bai":
        # A contig without records.
        records = [(data, key) for data, key in records if data[4] != 1]
        assert len(records) < 2600
    path = write(contigs, records, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.bam", f"out.bam{ending}"]
    other = str(tmp_path / "theirs")
    pysam.index("-c" if ending == ".csi" else "-b", "-o", other, path)
    assert pysam.idxstats(path) == pysam.idxstats("-X", path, other)
    with (
        pysam.AlignmentFile(path) as file,
        pysam.AlignmentFile(path, index_filename=other) as theirs,
    ):
        every = list(file.fetch(until_eof=True))
        assert len(every) == len(records)
        assert file.check_index()
        assert file.nocoordinate == theirs.nocoordinate == sum(r.reference_id < 0 for r in every)
        assert file.get_index_statistics() == theirs.get_index_statistics()
        for contig, length in enumerate(contigs.values()):
            regions = [(0, length), (length - 1, length), (0, 1)]
            regions += [np.sort(rng.integers(0, length, 2)) + [0, 1] for _ in range(30)] + [
                (at, at + 1 + rng.integers(300)) for at in rng.integers(0, length - 300, 30)
            ]
            for start, stop in regions:
                name = list(contigs)[contig]
                found = [r.query_name for r in file.fetch(name, int(start), int(stop))]
                assert found == overlapping(every, contig, start, stop)


def test_files_without_records(tmp_path):
    path = write(SHORT, [], tmp_path)
    with pysam.AlignmentFile(path) as file:
        assert file.check_index()
        assert list(file.fetch("one")) == []
        assert file.nocoordinate == 0


def test_bins_of_htslib():
    """The bin of a record is always the one that samtools writes."""
    header = pysam.AlignmentHeader.from_references(["c"], [1 << 29])
    rng = np.random.default_rng(8)
    for _ in range(200):
        place = int(rng.choice([0, 16383, 16384, 131072 - 1, 1 << 26, 5_000_000]))
        span = int(rng.choice([1, 2, 16384, 1 << 20, 1 << 27]))
        theirs = pysam.AlignedSegment(header)
        theirs.reference_id, theirs.reference_start = 0, place
        theirs.cigartuples = [(0, 1), (3, span - 1)] if span > 1 else [(0, 1)]
        ours = record("r", 0, place, 0, [(1, 0), (span - 1, 3)] if span > 1 else [(1, 0)])
        assert int.from_bytes(ours[14:16], "little") == theirs.bin
