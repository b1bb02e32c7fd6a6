"""Sequences in memory become the same batches as from files; errors name the argument."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bwarp.alignment.scoring import matrix_scoring
from bwarp.api.engine import threads_or_all
from bwarp.api.sequences import sequence_batches
from bwarp.errors import InputError, UsageError
from bwarp.io.fastx import read_sequences
from bwarp.sequence import encode


def records(given, *table):
    """Return the names and codes of converted sequences."""
    _, batches = sequence_batches(given, "reads", *table)
    return [
        (batch.name(i), batch.codes[batch.offsets[i] : batch.offsets[i + 1]].tolist())
        for batch in batches
        for i in range(batch.count)
    ]


def test_every_kind_of_sequences_gives_the_same(tmp_path):
    letters = ["ACGT", "nacgu", "", "TTTTT"]
    path = tmp_path / "reads.fa"
    path.write_text("".join(f">{i} x\n{text}\n" for i, text in enumerate(letters)))
    expected = [(str(i), encode(text.encode()).tolist()) for i, text in enumerate(letters)]
    for given in (
        letters,
        [text.encode() for text in letters],
        [bytearray(letters[0].encode()), *letters[1:]],
        [encode(text.encode()) for text in letters],
        (text for text in letters),
        np.array(letters),
        np.array(letters, "S"),
        pd.Series(letters),
        dict(enumerate(letters)),
        path,
        str(path),
    ):
        assert records(given) == expected
    assert records(np.array([[0, 1], [2, 4]], np.uint8)) == [("0", [0, 1]), ("1", [2, 4])]
    assert records(pd.Series(["AC", "G"], index=["a", "b"])) == [("a", [0, 1]), ("b", [2])]
    assert records([]) == []


def test_errors_name_their_source(tmp_path):
    path = tmp_path / "reads.fa"
    path.write_text(">a\nACGT\n")
    assert sequence_batches(path, "reads")[0] == str(path)
    assert sequence_batches(["ACGT"], "reads")[0] == "reads"


def test_many_sequences_come_in_batches_that_count_on():
    given = ["ACGT", "GG"] * 50_000
    batches = list(sequence_batches(given, "reads")[1])
    assert len(batches) > 1
    assert [batch.first_record for batch in batches[:2]] == [0, batches[0].count]
    assert sum(batch.count for batch in batches) == len(given)
    assert batches[-1].name(batches[-1].count - 1) == str(len(given) - 1)


def test_proteins(tmp_path):
    table = matrix_scoring("BLOSUM62", 11, 1).code_of_byte
    path = tmp_path / "proteins.fa"
    path.write_text(">0\nMKVUOJBZX*\n")
    (batch,) = read_sequences(path, table)
    assert records(["MKVUOJBZX*"], table) == [("0", batch.codes.tolist())]
    # Codes are not converted.
    assert records([batch.codes], table) == [("0", batch.codes.tolist())]


@pytest.mark.parametrize("text", ["ACGT", b"ACGT", bytearray(b"ACGT"), "A\0C", "ACGT" * 2000])
def test_a_string_is_not_a_list_of_letters(text):
    with pytest.raises(UsageError) as error:
        sequence_batches(text, "reads")
    shown = repr(text[:30])
    assert str(error.value) == (
        f"reads {shown} is not an existing file: use [{shown}] for a list of one sequence, or "
        "the path of a FASTA or FASTQ file"
    )


def test_a_path_without_a_file():
    with pytest.raises(InputError, match="no_such.fa: no such file"):
        list(sequence_batches(Path("no_such.fa"), "reads")[1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["ACGT", "ACET"], "reads[1]: 'E' at position 2 is not a valid sequence letter"),
        (["ACGT", "ACG T"], "reads[1]: ' ' at position 3 is not a valid sequence letter"),
        (["é"], "reads[0]: 'é' at position 0 is not a valid sequence letter"),
        (["AC€"], "reads[0]: '?' at position 2 is not a valid sequence letter"),
        (
            {"a": "", "b": b"AC-"},
            "reads['b']: '-' at position 2 is not a valid sequence letter",
        ),
        (
            ["ACGT", float("nan")],
            "reads[1] is of type float: a sequence must be a str, bytes, or an array of codes "
            "(uint8)",
        ),
        (
            np.zeros(3, np.uint8),
            "reads[0] is of type uint8: a sequence must be a str, bytes, or an array of codes "
            "(uint8)",
        ),
        (
            [np.zeros(3)],
            "reads[0] is of type ndarray: a sequence must be a str, bytes, or an array of codes "
            "(uint8)",
        ),
        (
            [np.array([0, 5], np.uint8)],
            "reads[0]: 5 is not a valid code: codes are 0 to 4",
        ),
        (
            {"my guide": "ACGT"},
            "reads['my guide']: names must not be empty or contain white space: rename it",
        ),
        (
            {"": "ACGT"},
            "reads['']: names must not be empty or contain white space: rename it",
        ),
    ],
)
def test_not_a_sequence(given, message):
    with pytest.raises(InputError, match=re.escape(message) + "$"):
        records(given)


def test_not_a_list():
    with pytest.raises(UsageError) as error:
        sequence_batches(7, "reads")
    assert str(error.value) == (
        "reads is of type int: give a list of sequences, a dict of names and sequences, or the "
        "path of a FASTA or FASTQ file"
    )


def test_options_that_cannot_be_used():
    for value in (0, 1.5, "2"):
        with pytest.raises(UsageError) as error:
            threads_or_all(value)
        assert str(error.value) == f"threads {value!r} is not a whole number from 1 to 1024"
    assert threads_or_all(np.int64(2)) == 2
