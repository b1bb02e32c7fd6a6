"""Estimates of the number of reads in files."""

import bz2
import gzip
import random

import pytest

from bwarp.io.sequence_parts import estimated_reads

RNG = random.Random(5)
READS = [RNG.randbytes(100).translate(b"ACGT" * 64) for _ in range(5000)]
FASTQ = b"".join(b"@read%d\n%b\n+\n%b\n" % (i, read, b"I" * 100) for i, read in enumerate(READS))
FASTA = b"".join(b">%d\n%b\n" % (i, read) for i, read in enumerate(READS))


def pieces(text, size):
    """Compress like bgzip: many streams."""
    return b"".join(
        gzip.compress(text[at : at + size], mtime=0) for at in range(0, len(text), size)
    )


@pytest.mark.parametrize(
    "content",
    [
        FASTQ,
        FASTA,
        gzip.compress(FASTQ, mtime=0),
        gzip.compress(FASTA, mtime=0),
        pieces(FASTQ, 60_000),
    ],
)
def test_similar_reads_are_counted(tmp_path, content):
    (tmp_path / "reads").write_bytes(content)
    assert estimated_reads(tmp_path / "reads") == pytest.approx(5000, rel=0.1)


@pytest.mark.parametrize(
    ("content", "count"),
    [(b"", 0), (b"@", 1), (bz2.compress(FASTQ), None), (gzip.compress(FASTQ, mtime=0)[:9], 1),
     (b"\x1f\x8bno gz at all", 1), (bytes(1000), 10)],
)  # fmt: skip
def test_other_files_have_an_estimate(tmp_path, content, count):
    (tmp_path / "reads").write_bytes(content)
    expected = -(-len(content) // 100) if count is None else count
    assert estimated_reads(tmp_path / "reads") == expected
