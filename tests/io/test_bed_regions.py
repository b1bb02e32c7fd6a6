"""Regions of BED files, and errors."""

import gzip

import numpy as np
import pytest

from bwarp.errors import InputError
from bwarp.io.bed_regions import read_regions
from bwarp.reference import make_reference

REFERENCE = make_reference(("one", "t\u00e9", "none"), np.array([0, 50, 80, 80]), np.zeros(80, int))


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_regions_are_positions_of_the_genome(tmp_path, compress):
    text = "browser x\ntrack name=one\n#one\t1\t2\n\none\t0\t50\tname\t0\t+\r\nt\u00e9\t007\t30\n"
    (tmp_path / "r.bed").write_bytes(compress(text.encode()))
    assert read_regions(tmp_path / "r.bed", REFERENCE) == [(0, 50), (57, 80)]


NOT_BED = "not BED: write contig, start and end, separated by tabs"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        *((line, NOT_BED) for line in (
            "one", "one\t1", "one 1 2", "one\t\t2", "one\t-1\t2", "one\t1\t2.0", "one\t1\t\u00b2",
            "one\t1\t\u0663", "one\t1\t" + "9" * 5000, "one\t1\t 2", "\x00\xff",
        )),
        ("two\t1\t2", "no contig two in the reference: its first contig is one"),
        *((line, "one has 50 bases: the start must be less than the end, and the end at most 50")
          for line in ("one\t2\t2", "one\t3\t2", "one\t0\t51", "one\t50\t51")),
        ("none\t0\t0", "none has 0 bases: the start must be less than the end, and the end at "
         "most 0"),
    ],
)  # fmt: skip
def test_lines_that_are_refused(tmp_path, line, message):
    path = tmp_path / "r.bed"
    path.write_bytes(f"one\t1\t2\n{line}\n".encode())
    with pytest.raises(InputError) as error:
        read_regions(path, REFERENCE)
    assert str(error.value) == f"{path}, line 2: {message}"


def test_a_file_without_regions(tmp_path):
    (tmp_path / "r.bed").write_bytes(b"#one\t1\t2\n\n")
    with pytest.raises(
        InputError, match="no regions: write contig, start and end, separated by tabs"
    ):
        read_regions(tmp_path / "r.bed", REFERENCE)
