"""All sequences of a file at once, against a plain parser and the reader in one thread."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.alignment.scoring import AMINO_ACIDS, matrix_scoring
from bwarp.errors import InputError
from bwarp.io import standard_streams
from bwarp.io.fastx import read_sequences
from bwarp.io.sequence_table import read_table, table_of
from tests.helpers.oracles.plain_fastx_oracle import plain_records

PROTEINS = matrix_scoring("BLOSUM62", 11, 1).code_of_byte

HOSTILE = {
    "empty records": b">a\n>b\n\n>c\nAR\n>d\n",
    "CRLF": b">a x\r\nARN\r\nDC\r\n\r\n>b\r\nQ\r\n",
    "no final line feed": b">a\nARND\n>b\nCQ",
    "a header at the end": b">a\nARND\n>",
    "no names": b">\nARN\n> \t \nDC\n",
    "names with >": b">a>b >c\nAR\n>>x\nND\n",
    "stops and lower case": b">a\narnd*\n>b\n*\n",
    "blanks at the ends of lines": b"\n\n>a\nAR \t\nND\t\n",
    "long lines": b">long " + b"n" * 5000 + b"\n" + b"ARNDCQEGHI" * 3000 + b"\n>b\nAR\n",
    "a NUL": b">a\nAR\n>b\nA\0R\n",
    "a letter beyond ASCII": b">a\nAR\n>b\nAR\xe9\n",
    "a lone return": b">a\nAR\rND\n",
    "FASTQ among FASTA": b">a\nAR\n@b\nAC\n+\nII\n",
    "FASTQ": b"@a\nARND\n+\nIIII\n@b\nA\n+\nI\n",
    "nothing": b"",
    "blank lines": b"\n\r\n",
    "neither": b"ARND\n",
}


def rows(table, threads=1):
    """Return name and codes of each sequence."""
    offsets = table.offsets
    codes = table.codes(offsets[:-1], threads)
    assert offsets.size == table.count + 1
    return [
        (table.names.name(i), codes[offsets[i] : offsets[i + 1]].tobytes())
        for i in range(table.count)
    ]


def expected_rows(path):
    return [
        (batch.name(i), batch.codes[batch.offsets[i] : batch.offsets[i + 1]].tobytes())
        for batch in read_sequences(path, PROTEINS)
        for i in range(batch.count)
    ]


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_give_the_rows_or_the_error_of_one_thread(tmp_path, text):
    path = tmp_path / "p.fa"
    path.write_bytes(text)
    expected = outcome(expected_rows, path)
    for threads in (1, 3):
        for text_bytes in (1 << 20, 1000, 16, 7):
            found = outcome(
                lambda *how: rows(read_table(path, PROTEINS, *how), how[0]), threads, text_bytes
            )
            assert found == expected or "neither FASTA" in expected


@settings(deadline=None)  # the first call compiles
@given(
    st.lists(
        st.sampled_from(
            [b">r x\n", b">s\r\n", b"ARND", b"acgt*\n", b"\n", b"\r\n", b"\r", b">", b" ", b"\0"]
        ),
        max_size=20,
    ).map(b"".join),
    st.integers(1, 40),
    st.integers(1, 3),
)
def test_any_fasta_is_read_or_refused_as_by_a_plain_parser(
    tmp_path_factory, text, text_bytes, threads
):
    text = b">n\n" + text
    path = tmp_path_factory.getbasetemp() / "any_table"
    path.write_bytes(text)
    found = outcome(lambda: rows(read_table(path, PROTEINS, threads, text_bytes), threads))
    expected = plain_records(text, b"A-Z*")
    if isinstance(expected, int):
        assert isinstance(found, str)
        assert found.startswith(f"{path}, line {expected}: ")
        return
    codes = [PROTEINS[np.frombuffer(letters, np.uint8)].tobytes() for _, letters, _ in expected]
    names = [(header.split() or [b""])[0].decode() for header, _, _ in expected]
    assert found == list(zip(names, codes, strict=True))


def test_gzip_and_standard_input(tmp_path, monkeypatch):
    text = HOSTILE["CRLF"]
    path = tmp_path / "p.fa.gz"
    path.write_bytes(gzip.compress(text))
    expected = expected_rows(path)
    assert [name for name, _ in expected] == ["a", "b"]
    for threads in (1, 3):
        assert rows(read_table(path, PROTEINS, threads)) == expected
        with open(path, "rb") as file:
            monkeypatch.setattr(standard_streams, "_STDIN", file.fileno())
            assert rows(read_table("-", PROTEINS, threads)) == expected


def test_the_first_of_several_errors_is_raised(tmp_path):
    path = tmp_path / "p.fa"
    path.write_text(">a\n" + "AR\n" * 1000 + "A1\n" + "AR\n" * 1000 + "A2\n>b\nA3\n")
    for threads in (1, 4):
        with pytest.raises(InputError, match="line 1002: '1' is not a valid sequence letter"):
            read_table(path, PROTEINS, threads, 100)


def test_codes_in_another_order(tmp_path):
    path = tmp_path / "p.fa"
    path.write_text(">a\nARN\n>b\nD\n>c\nCQ\n")
    for threads, text_bytes in ((1, 1000), (3, 4)):
        table = read_table(path, PROTEINS, threads, text_bytes)
        codes = table.codes(np.array([3, 0, 1]), threads)
        assert bytes(AMINO_ACIDS[code] for code in codes) == b"DCQARN"
    batches = list(read_sequences(path, PROTEINS, 4))
    assert rows(table_of(batches)) == rows(table)
