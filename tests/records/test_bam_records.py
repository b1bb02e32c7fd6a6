"""BAM records equal those that samtools makes from the SAM lines, byte for byte."""

import gzip

import numpy as np
import pysam
import pytest

from bwarp.bam.records import record_starts
from bwarp.records.alignment_records import ReadArrays, mapped_tables
from bwarp.records.bam_records_cpu import bam_records, sam_records
from bwarp.records.record_layout import alignment_records
from tests.helpers.cases.random_alignment_records import (
    CONTIGS,
    random_chunk,
    random_genome,
    random_mapped,
)

HEADER = "".join(f"@SQ\tSN:{name}\tLN:{length}\n" for name, length in CONTIGS.items() if length)


def by_samtools(lines: bytes, folder) -> bytes:
    """Return the BAM records that samtools makes from SAM lines, without the header."""
    (folder / "in.sam").write_bytes(f"{HEADER}@RG\tID:a group\n".encode() + lines)
    pysam.view("-b", "-o", str(folder / "out.bam"), str(folder / "in.sam"), catch_stdout=False)
    data = gzip.decompress((folder / "out.bam").read_bytes())
    at = 8 + int.from_bytes(data[4:8], "little")
    n_contigs = int.from_bytes(data[at : at + 4], "little")
    at += 4
    for _ in range(n_contigs):
        at += 8 + int.from_bytes(data[at : at + 4], "little")
    return data[at:]


@pytest.mark.parametrize(("ends", "has_qualities"), [(2, True), (2, False), (1, True), (1, False)])
def test_records_are_those_of_samtools(tmp_path, ends, has_qualities):
    rng = np.random.default_rng(20 * ends + has_qualities)
    genome, names = random_genome(rng)
    chunk = random_chunk(rng, 1200, ends, has_qualities)
    both, mapped = random_mapped(rng, genome, chunk)
    mapped[0].scores[:3] = (70_000, 300, -5)
    mapped[1].suboptimal[:3] = (-200, -70_000, 255)
    mapped[4][:3] = 0
    records = alignment_records(genome.contig_starts, chunk, mapped)
    tables = mapped_tables(genome, names, ReadArrays.of(chunk, both), records, b"a group")
    expected = by_samtools(b"".join(part.data for part in sam_records(tables)), tmp_path)
    for threads in (1, 3):
        parts = bam_records(tables, threads)
        assert b"".join(part.data.tobytes() for part in parts) == expected
        for part in parts:
            assert np.array_equal(part.starts, record_starts(part.data))
