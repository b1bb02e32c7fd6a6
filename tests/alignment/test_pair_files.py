"""Errors in pairs that are found before they are aligned."""

import pytest

from bwarp.alignment.pair_aligner import read_pair_table, read_paired_files
from bwarp.errors import InputError
from bwarp.sequence import CODE_OF_BYTE

LONG = b"ACGT" * 250_001
REFUSED = (
    r", pair 2 \(b\): the product of the lengths 1,000,004 and 1,000,004 exceeds "
    "1,000,000,000,000: use a program for long sequences"
)


def test_a_pair_that_takes_hours(tmp_path):
    path = tmp_path / "long.fa"
    path.write_bytes(b">a\nACGT\n>b\n" + LONG + b"\n")
    with pytest.raises(InputError, match=REFUSED):
        list(read_paired_files(path, path, CODE_OF_BYTE))


def test_one_in_a_table(tmp_path):
    path = tmp_path / "long.tsv"
    path.write_bytes(b"a\tACGT\ta\tACGT\nb\t" + LONG + b"\tc\t" + LONG + b"\n")
    with pytest.raises(InputError, match=REFUSED):
        list(read_pair_table(path, CODE_OF_BYTE))


def test_one_long_and_one_short(tmp_path):
    (tmp_path / "long.fa").write_bytes(b">a\n" + LONG + b"\n")
    (tmp_path / "short.fa").write_bytes(b">b\nACGT\n")
    read = list(read_paired_files(tmp_path / "short.fa", tmp_path / "long.fa", CODE_OF_BYTE))
    assert [part.query_names for part in read] == [["b"]]
