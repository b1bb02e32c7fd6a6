"""Several files are read like their concatenation; single reads may accompany pairs."""

import numpy as np
import pytest

from bwarp.errors import UsageError
from bwarp.reads.read_chunks import interleaved_chunks, paired_chunks, single_chunks
from bwarp.reads.read_files import ReadFiles, as_orphans, chunks_of_files


@pytest.fixture
def write(tmp_path):
    def written(name, first, stop, end=""):
        text = "".join(
            f"@r{i}{end} n:i:{i}\n{'ACGT' * (i % 5)}\n+\n{'I' * (i % 5 * 4)}\n"
            for i in range(first, stop)
        )
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return written


def reads_of(chunks):
    """Return name, bases, qualities, comment of all reads; check that chunks are consecutive."""
    found, first = [], 0
    for chunk in chunks:
        assert chunk.first_template == first
        first += chunk.n_templates
        for read in range(chunk.n_reads):
            if chunk.orphans is not None and read % 2 and chunk.orphans[read // 2]:
                assert chunk.offsets[read] == chunk.offsets[read + 1]
                continue
            part = slice(*chunk.offsets[read : read + 2])
            text = chunk.text if chunk.mate_text is None or not read % 2 else chunk.mate_text
            comment = text[slice(*chunk.comments[read])].tobytes()
            codes, qualities = chunk.codes[part].tolist(), chunk.qualities[part].tobytes()
            found.append((chunk.name(read // chunk.ends), codes, qualities, comment))
    return found


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [2, 6, 1000])
def test_files_in_a_row(write, size, threads):
    one, two = [write(f"{i}.fq", 10 * i, 10 * i + 7 + i) for i in range(2)], write("a.fq", 0, 7)
    both = [*reads_of(single_chunks(one[0])), *reads_of(single_chunks(one[1]))]
    assert reads_of(chunks_of_files(ReadFiles(tuple(one)), size, threads)) == both
    mates = write("b.fq", 10, 18), write("c.fq", 0, 7)
    files = ReadFiles((one[1], two), (mates[0], mates[1]))
    pairs = [*reads_of(paired_chunks(one[1], mates[0])), *reads_of(paired_chunks(two, mates[1]))]
    assert reads_of(chunks_of_files(files, size, threads)) == pairs


@pytest.mark.parametrize("size", [2, 6, 1000])
def test_single_reads_beside_pairs(write, size):
    one, two, single = write("1.fq", 0, 9), write("2.fq", 0, 9), write("s.fq", 3, 20)
    files = ReadFiles((one,), (two,), single=(single,))
    chunks = list(chunks_of_files(files, size))
    assert {chunk.ends for chunk in chunks} == {2}
    assert sum(chunk.n_orphans for chunk in chunks) == 17
    expected = [*reads_of(paired_chunks(one, two)), *reads_of(single_chunks(single))]
    assert reads_of(chunks) == expected
    mixed = write("mixed.fq", 0, 4)
    files = ReadFiles((mixed,), interleaved=True, single=(single,))
    assert reads_of(chunks_of_files(files, size)) == [
        *reads_of(interleaved_chunks(mixed)), *reads_of(single_chunks(single)),
    ]  # fmt: skip


def test_single_reads_beside_single_reads(write):
    one, single = write("1.fq", 0, 9), write("s.fq", 3, 20)
    chunks = list(chunks_of_files(ReadFiles((one,), single=(single,))))
    assert {chunk.ends for chunk in chunks} == {1}


def test_orphans_are_those_of_an_interleaved_file(write):
    path = write("s.fq", 0, 19)
    orphans = next(interleaved_chunks(path))
    made = as_orphans(next(single_chunks(path, orphans.n_templates)))
    for name in ("codes", "offsets", "qualities", "comments", "orphans"):
        assert np.array_equal(getattr(made, name), getattr(orphans, name)), name
    assert made.ends == orphans.ends == 2
    assert made.name(7) == orphans.name(7) == "r7"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            ReadFiles(("1.fq", "2.fq"), ("3.fq",)),
            "-1 has 2 files but -2 has 1: give the same number, in the same order",
        ),
        (
            ReadFiles(("1.fq", "./1.fq")),
            "./1.fq: given twice: give each file of reads once",
        ),
        (
            ReadFiles(("1.fq",), ("2.fq",), single=("2.fq",)),
            "2.fq: given twice: give each file of reads once",
        ),
        (ReadFiles(("-",), single=("-",)), "-: given twice: give each file of reads once"),
    ],
)
def test_files_that_do_not_go_together(files, message):
    with pytest.raises(UsageError) as error:
        chunks_of_files(files)
    assert str(error.value) == message


def test_records_are_not_single_reads(tmp_path):
    (tmp_path / "s.cram").write_bytes(b"CRAM")
    with pytest.raises(UsageError) as error:
        chunks_of_files(ReadFiles(("1.fq",), ("2.fq",), single=(f"{tmp_path}/s.cram",)))
    assert (
        str(error.value)
        == f"{tmp_path}/s.cram: BAM and CRAM may contain pairs: give the file with -1"
    )
