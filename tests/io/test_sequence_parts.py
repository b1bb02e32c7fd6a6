"""Parts of a sequence file: whole records, in order, about equal in size."""

import os
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.errors import InputError
from bwarp.io import sequence_parts
from bwarp.io.compressed_files import read_blocks
from bwarp.io.sequence_parts import write_parts, write_parts_by_length

#: A check that accepts everything.
read_all = list


def parts_of(path, folder, n_parts, threads=1, write=write_parts):
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    write(path, folder, n_parts, read_all, threads=threads)
    assert len(list(folder.iterdir())) == n_parts
    return [(folder / f"{part}.fa").read_bytes() for part in range(1, n_parts + 1)]


def expected_parts(records, n_parts):
    """Return parts by a loop: a part begins after its share, or if few records remain."""
    total, parts, before = sum(map(len, records)), [], 0
    for number, record in enumerate(records):
        left = len(records) - number
        if left == n_parts - len(parts) or (
            len(parts) < n_parts and before * n_parts >= len(parts) * total
        ):
            parts.append(b"")
        parts[-1] += record
        before += len(record)
    return parts


@settings(deadline=None)
@given(
    lengths=st.lists(st.integers(0, 200), min_size=1, max_size=30),
    n_parts=st.integers(1, 30),
    is_fasta=st.booleans(),
    block_bytes=st.sampled_from([7, 64, 1 << 20]),
)
def test_parts_are_those_of_a_loop(tmp_path_factory, lengths, n_parts, is_fasta, block_bytes):
    folder = tmp_path_factory.mktemp("parts")
    if is_fasta:
        records = [b">%d\n%s\r\n" % (i, b"ACgt" * n) for i, n in enumerate(lengths)]
    else:
        records = [b"@%d x\n%s\n+\n%s\n" % (i, b"C" * n, b"@" * n) for i, n in enumerate(lengths)]
    (folder / "all").write_bytes(b"".join(records))
    if is_fasta:
        records[-1] += b"\n"  # the reader ends each file with a blank line
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence_parts, "read_blocks", partial(read_blocks, block_bytes=block_bytes))
        if n_parts > len(records):
            with pytest.raises(InputError, match=r"sequences? cannot be cut into"):
                parts_of(folder / "all", folder / "out", n_parts)
            return
        assert parts_of(folder / "all", folder / "out", n_parts) == expected_parts(records, n_parts)
        by_length = [records[i] for i in sorted(range(len(records)), key=lengths.__getitem__)]
        parts = parts_of(folder / "all", folder / "out", n_parts, write=write_parts_by_length)
        assert parts == expected_parts(by_length, n_parts)


def test_compressed_and_unfinished(tmp_path):
    import gzip

    text = b"".join(b">%d\n%s\n" % (i, b"ACGT" * 9) for i in range(100))
    (tmp_path / "all.fa.gz").write_bytes(gzip.compress(text[:-1]))
    for threads in (1, 3):
        parts = parts_of(tmp_path / "all.fa.gz", tmp_path / "out", 7, threads)
        assert b"".join(parts) == text
        assert np.ptp([len(part) for part in parts]) < 60


def test_not_a_sequence_file(tmp_path):
    (tmp_path / "a.fa").write_bytes(b"hello\n")
    with pytest.raises(InputError, match="neither FASTA"):
        write_parts(tmp_path / "a.fa", tmp_path, 1, read_all)


@pytest.mark.parametrize("write", [write_parts, write_parts_by_length])
def test_errors_name_lines_of_the_whole_file(tmp_path, write):
    (tmp_path / "a.fa").write_bytes(b">a\nACGT\n\n>b\nAC\nA*\n")
    with pytest.raises(InputError, match=r"a\.fa, line 6: '\*' is not a valid sequence letter"):
        write(tmp_path / "a.fa", tmp_path, 2, read_all)


def test_input_that_can_be_read_once(tmp_path):
    """A pipe, as from <(zcat queries.fa.gz), cannot be read a second time."""
    reading, writing = os.pipe()
    os.write(writing, b">a\nACGT\n>b\nACGT\n")
    os.close(writing)
    with pytest.raises(InputError, match="the sequences changed between two readings"):
        write_parts(f"/dev/fd/{reading}", tmp_path, 2, read_all)
    os.close(reading)


def test_a_file_that_grows(tmp_path, monkeypatch):
    path = tmp_path / "all.fa"
    path.write_bytes(b">a\nACGT\n")

    def read_and_append(*arguments, **options):
        yield from read_blocks(*arguments, **options)
        with open(path, "ab") as file:
            file.write(b">b\nACGT\n")

    monkeypatch.setattr(sequence_parts, "read_blocks", read_and_append)
    with pytest.raises(InputError, match="the sequences changed between two readings"):
        write_parts(path, tmp_path, 1, read_all)
