"""Reading FASTA and FASTQ, against simple parsers, another reader, and malformed files."""

import re

import dnaio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.errors import InputError
from bwarp.io import fastx
from bwarp.io import fastx as fastx_text
from bwarp.io.fastx import read_sequences
from bwarp.sequence import CODE_OF_BYTE, decode
from tests.helpers.oracles.plain_fastx_oracle import plain_records

CUT_OFF = "the last FASTQ record is truncated: a record has four lines (@name, bases, +, qualities)"


def records_of(path, **options) -> list[tuple[bytes, bytes, bytes | None]]:
    """Return header, bases and qualities of each record; check properties of the batches."""
    records = []
    for batch in read_sequences(path, **options):
        assert batch.count > 0
        assert batch.first_record == len(records)
        assert batch.codes.dtype == np.uint8
        assert batch.offsets.dtype == np.int64
        assert batch.offsets.shape == (batch.count + 1,)
        assert batch.offsets[0] == 0
        assert batch.offsets[-1] == batch.codes.size
        assert batch.qualities is None or batch.qualities.size == batch.codes.size
        for i in range(batch.count):
            part = slice(batch.offsets[i], batch.offsets[i + 1])
            qualities = None if batch.qualities is None else batch.qualities[part].tobytes()
            records.append((batch.header(i), decode(batch.codes[part]), qualities))
    return records


def outcome(path, **options):
    """Return the result of reading: the records, or the error message."""
    try:
        return records_of(path, **options)
    except InputError as error:
        return str(error)


def agree(path, text: bytes, **options):
    """Return whether reading `path` agrees with the oracle."""
    found, expected = outcome(path, **options), plain_records(text)
    if isinstance(expected, int):
        return isinstance(found, str) and found.startswith(f"{path}, line {expected}: ")
    return found == expected


FASTA = (
    b">a first one\nACGT\nacgu\n\n>b\r\nNNRYK\r\nGG\r\n>empty\n>\tc d\nAC GT\t\n\n\n"
    b">last\nTTTTTTTTTTTT"
)
FASTQ = (
    b"@a/1 x\nACGTN\n+\n!~IIA\n@b\r\nac\r\n+b\r\n@@\r\n@empty\n\n+\n\n\n\n"
    b"@c\nUUU\n+c\n+++\n\n\n\n\n\n\n\n"
)


@pytest.mark.parametrize("few_bytes", [1, 20, 4096])
@pytest.mark.parametrize("text", [FASTA, FASTQ, b"\r\n\n\r\n" + FASTA, b"\n\n\n" + FASTQ.rstrip()])
def test_every_chunk_size(monkeypatch, tmp_path, text, few_bytes):
    monkeypatch.setattr(fastx_text, "_FEW_BYTES", few_bytes)
    path = tmp_path / "sequences"
    path.write_bytes(text)
    expected = plain_records(text)
    assert len(expected) == text.count(b">") or len(expected) == 4
    for chunk_bytes in range(1, len(text) + 3):
        threads = 1 + chunk_bytes % 3
        assert records_of(path, chunk_bytes=chunk_bytes, threads=threads) == expected


def test_short_and_long_records_over_the_ends_of_chunks(tmp_path):
    rng = np.random.default_rng(41)
    lengths = np.where(rng.random(300) < 0.2, rng.integers(3000, 30_000, 300), 50)
    text = b"".join(
        b"@r%d\n%b\n+\n%b\n" % (i, decode(rng.integers(0, 4, n, np.uint8)), b"I" * n)
        for i, n in enumerate(lengths)
    )
    path = tmp_path / "reads.fq"
    path.write_bytes(text)
    expected = plain_records(text)
    for chunk_bytes in (5000, 8192, 20_011, 100_000, len(text)):
        assert records_of(path, chunk_bytes=chunk_bytes) == expected


@pytest.mark.parametrize("few_bytes", [1, 4096])
@pytest.mark.parametrize("text", [FASTA, FASTQ])
def test_every_truncation(monkeypatch, tmp_path, text, few_bytes):
    monkeypatch.setattr(fastx_text, "_FEW_BYTES", few_bytes)
    path = tmp_path / "sequences"
    for length in range(len(text)):
        path.write_bytes(text[:length])
        for chunk_bytes in (1, 7, 64, 1000):
            assert agree(path, text[:length], chunk_bytes=chunk_bytes), length


pieces = st.lists(
    st.one_of(
        st.sampled_from(
            [b"@r\nACGT\n+\nIIII\n", b">r\nACGTACGTAC\n", b"@", b">", b"+", b"\n", b"\r\n", b"\r"]
        ),
        st.sampled_from([b"ACGTN", b"ac gu\t", b"IIIII", b"!~", b"*", b"\x00", b"\x80\xff", b"E"]),
    ),
    max_size=14,
).map(b"".join)


@settings(deadline=None)  # the first call compiles
@given(st.sampled_from([b"@n\n", b">n\n", b"@n\nAC\n+\nII\n", b"\n", b""]), pieces, st.data())
def test_any_text_is_read_or_refused_alike_in_every_chunking(tmp_path_factory, start, text, data):
    text = start + text
    path = tmp_path_factory.getbasetemp() / "any_text"
    path.write_bytes(text)
    assert agree(path, text)
    whole = outcome(path)
    if not (isinstance(whole, str) and "neither FASTA" in whole):  # which shows the first chunk
        chunk_bytes = data.draw(st.integers(1, len(text) + 2))
        threads = data.draw(st.integers(1, 3))
        assert outcome(path, chunk_bytes=chunk_bytes, threads=threads) == whole


def test_many_more_bases_than_qualities(tmp_path):
    # Far more bases than qualities: nothing may be written outside the arrays.
    path = tmp_path / "long.fq"
    path.write_bytes(b"@a\n" + b"A" * 100_000 + b"\n+\n!\n")
    for chunk_bytes in (1000, 99_000, 1_000_000):
        with pytest.raises(InputError) as error:
            records_of(path, chunk_bytes=chunk_bytes)
        assert str(error.value) == f"{path}, line 4: the record has 100,000 bases and 1 quality"


def dnaio_records(path, fastq: bool):
    with dnaio.open(path, fileformat="fastq" if fastq else "fasta") as file:
        return [
            (
                record.name.encode(),
                decode(CODE_OF_BYTE[np.frombuffer(record.sequence.encode(), np.uint8)]),
                record.qualities.encode() if fastq else None,
            )
            for record in file
        ]


@pytest.mark.parametrize(
    ("parts", "fastq"),
    [
        (("reads_human_mito_na12878",), True),
        (("ref_lambda",), True),
        (("refs_bacteria_mummer",), False),
        (("smallrna_mirbase",), False),
    ],
)
def test_real_files_read_as_dnaio_reads_them(shared_data, parts, fastq):
    found = 0
    for path in sorted(shared_data(*parts).rglob("*")):
        name = path.name.removesuffix(".gz")
        if not name.endswith((".fastq", ".fq") if fastq else (".fa", ".fasta", ".fna")):
            continue
        expected = dnaio_records(path, fastq)
        for chunk_bytes in (1 << 16, 8 << 20):
            assert records_of(path, chunk_bytes=chunk_bytes) == expected
        found += 1
    assert found


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("diff_ids", "line 11: the name after + differs from the one after @"),
        (
            "double_qual",
            "line 13: a FASTQ record must begin with @, but this line is "
            "'+SLXA-B3_649_FC8437_R1_1_1_850_123'",
        ),
        (
            "double_seq",
            "line 15: the third line of a FASTQ record must begin with +, but this line is "
            "'@SLXA-B3_649_FC8437_R1_1_1_362_549': write each record on four lines",
        ),
        ("long_qual", "line 16: the record has 25 bases and 26 qualities"),
        ("no_qual", "line 4: the record has 25 bases and 0 qualities"),
        ("qual_del", r"line 16: '\x7f' is not a quality character (! to ~)"),
        ("qual_escape", r"line 20: '\x1b' is not a quality character (! to ~)"),
        ("qual_null", r"line 4: '\x00' is not a quality character (! to ~)"),
        ("qual_space", "line 16: ' ' is not a quality character (! to ~)"),
        ("qual_tab", r"line 20: '\t' is not a quality character (! to ~)"),
        ("qual_unit_sep", r"line 12: '\x1f' is not a quality character (! to ~)"),
        ("qual_vtab", r"line 4: '\x0b' is not a quality character (! to ~)"),
        ("short_qual", "line 12: the record has 25 bases and 24 qualities"),
        ("spaces", "line 2: ' ' is not a valid sequence letter"),
        ("tabs", r"line 2: '\t' is not a valid sequence letter"),
        (
            "trunc_at_plus",
            "line 19: the third line of a FASTQ record must begin with +, but this line is '': "
            "write each record on four lines",
        ),
        ("trunc_at_qual", "line 20: the record has 25 bases and 0 qualities"),
        ("trunc_at_seq", f"line 17: {CUT_OFF}"),
        ("trunc_in_plus", f"line 17: {CUT_OFF}"),
        ("trunc_in_qual", "line 20: the record has 25 bases and 24 qualities"),
        ("trunc_in_seq", f"line 17: {CUT_OFF}"),
        ("trunc_in_title", f"line 17: {CUT_OFF}"),
    ],
)
def test_wrong_fastq_files_of_biopython(shared_data, name, message):
    path = shared_data("badinput_biopython", "Quality", f"error_{name}.fastq")
    for chunk_bytes in (1, 100, 8 << 20):
        assert outcome(path, chunk_bytes=chunk_bytes) == f"{path}, {message}"


def test_the_other_files_of_biopython(shared_data):
    """Valid files with four lines per record are read as by dnaio; wrapped ones are errors."""
    wrapped = {"longreads_original_sanger", "tricky", "wrapping_original_sanger"}
    read = 0
    for path in sorted(shared_data("badinput_biopython", "Quality").glob("*.fastq")):
        if path.stem in wrapped:
            assert re.search(r"line \d+: .*(write each record on four lines|30 q)", outcome(path))
        elif not path.stem.startswith("error_"):
            assert records_of(path) == dnaio_records(path, fastq=True)
            read += 1
    assert read > 25


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            b"ACGT\n",
            ", line 1: neither FASTA (>name) nor FASTQ (@name): the line begins with 'ACGT'",
        ),
        (
            b"\n\r\n\x93\x00MUMPY\xff and much more\n",
            r", line 3: neither FASTA (>name) nor FASTQ (@name): the line begins with "
            r"'\x93\x00MUMPYÿ and much mo'",
        ),
        (
            b"BAM\x01\x00\x00",
            ": the file contains alignments: convert it to FASTQ (samtools fastq)",
        ),
        (b"@HD\tVN:1.6\n", ": the file contains alignments: convert it to FASTQ (samtools fastq)"),
        (b">a\nAC-GT\n", ", line 2: '-' is not a valid sequence letter"),
        (
            b">a\nACGT\n>b\n\nAC\x00GT\n",
            r", line 5: '\x00' is not a valid sequence letter",
        ),
        (b">a\nACGT\n@b\nACGT\n", ", line 3: FASTQ record in a FASTA file"),
        (b">a\nACGT\n+\nIIII\n", ", line 3: FASTQ record in a FASTA file"),
        (
            b">a\rACGT\r>b\rAC\r",
            ", line 1: a carriage return without a line feed: convert old Mac line endings to "
            r"Unix ones (tr '\r' '\n')",
        ),
        (
            b">a\nAC\rGT\n",
            ", line 2: a carriage return without a line feed: convert old Mac line endings to "
            r"Unix ones (tr '\r' '\n')",
        ),
        (
            b"\n\r>a\nACGT\n",
            ", line 2: a carriage return without a line feed: convert old Mac line endings to "
            r"Unix ones (tr '\r' '\n')",
        ),
        (
            b"@a\rACGT\r+\rIIII\r",
            ", line 1: a carriage return without a line feed: convert old Mac line endings to "
            r"Unix ones (tr '\r' '\n')",
        ),
        (
            b"@a\nA\n+\nI\n@b\rACGT\r+\rIIII\r@c\nA\n+\nI\n",
            ", line 5: a carriage return without a line feed: convert old Mac line endings to "
            r"Unix ones (tr '\r' '\n')",
        ),
        (
            b"@a\nAC\n+\nI\rI\n",
            ", line 4: a carriage return without a line feed: convert old Mac line endings to "
            r"Unix ones (tr '\r' '\n')",
        ),
        (b"@a\nAC*T\n+\nIIII\n", ", line 2: '*' is not a valid sequence letter"),
        (
            b"@a\nACGT\n+\nIIII\n>b\nACGT\nACGT\nACGT\n",
            ", line 5: a FASTQ record must begin with @, but this line is '>b'",
        ),
        (b"@a\nACGT\n+\nIII\n", ", line 4: the record has 4 bases and 3 qualities"),
        (b"@a\r\nACGT\r\n+\r\nIII\r\n", ", line 4: the record has 4 bases and 3 qualities"),
        (b"@a\nACGT\n+\nIIII\n@b\nACG", f", line 5: {CUT_OFF}"),
    ],
)
def test_messages(tmp_path, text, message):
    path = tmp_path / "wrong"
    path.write_bytes(text)
    with pytest.raises(InputError) as error:
        records_of(path)
    assert str(error.value) == f"{path}{message}"


@pytest.mark.parametrize("text", [b"", b"\n", b"\r\n\r\n\n"])
def test_nothing(tmp_path, text):
    path = tmp_path / "empty"
    path.write_bytes(text)
    for chunk_bytes in (1, 2, 1000):
        assert records_of(path, chunk_bytes=chunk_bytes) == []


def test_one_record_of_many_chunks(tmp_path):
    rng = np.random.default_rng(5)
    bases = decode(rng.integers(0, 5, 1_000_003).astype(np.uint8))
    lines = b"\n".join(bases[i : i + 61] for i in range(0, len(bases), 61))
    path = tmp_path / "long.fa"
    path.write_bytes(b">a\nAC\n>long\n" + lines + b"\n>z\nGT\n")
    expected = [(b"a", b"AC", None), (b"long", bases, None), (b"z", b"GT", None)]
    assert records_of(path, chunk_bytes=1000) == expected
    qualities = rng.integers(33, 127, len(bases)).astype(np.uint8).tobytes()
    path = tmp_path / "long.fq"
    path.write_bytes(b"@long\n" + bases + b"\n+\n" + qualities)
    assert records_of(path, chunk_bytes=1000) == [(b"long", bases, qualities)]


def test_very_long_headers(tmp_path):
    header = b"name " + b"x" * 300_000
    path = tmp_path / "header"
    path.write_bytes(b">" + header + b"\nACGT\n>b\nA\n")
    assert records_of(path, chunk_bytes=1000) == [(header, b"ACGT", None), (b"b", b"A", None)]
    path.write_bytes(b"@" + header + b"\nA\n+" + header + b"\nI\n")
    assert records_of(path, chunk_bytes=1000) == [(header, b"A", b"I")]


def test_names(tmp_path):
    path = tmp_path / "names.fa"
    path.write_bytes(b">chr1 of a genome\nA\n> chr2\tx\nA\n>\nA\n>\xff\xc3\xa9\nA\n")
    batches = list(read_sequences(path))
    assert [name for batch in batches for name in batch.names()] == [
        "chr1",
        "chr2",
        "",
        "\ufffd\u00e9",
    ]
    assert batches[0].name(0) == "chr1"
    assert batches[0].header(0) == b"chr1 of a genome"


def test_a_hundred_thousand_tiny_records(tmp_path):
    path = tmp_path / "tiny.fq"
    path.write_bytes(b"".join(b"@%d\n%c\n+\nI\n" % (i, b"ACGTN"[i % 5]) for i in range(100_000)))
    seen = 0
    for batch in read_sequences(path, chunk_bytes=50_000):
        expected = np.arange(seen, seen + batch.count)
        assert np.array_equal(batch.codes, expected % 5)
        assert np.array_equal(batch.offsets, np.arange(batch.count + 1))
        assert batch.name(batch.count - 1) == str(expected[-1])
        seen += batch.count
    assert seen == 100_000


def test_a_table_of_another_alphabet(tmp_path):
    table = np.full(256, 255, np.uint8)
    table[np.frombuffer(b"ARNDX*", np.uint8)] = range(6)
    path = tmp_path / "protein.fa"
    path.write_bytes(b">p\nDARN\nX*\n")
    (batch,) = read_sequences(path, table)
    assert batch.codes.tolist() == [3, 0, 1, 2, 4, 5]
    path.write_bytes(b">p\nDARNa\n")
    assert outcome(path, code_of_byte=table) == (
        f"{path}, line 2: 'a' is not a valid sequence letter"
    )


TEXT = b"".join(b"@read%d\nACGTTGCA\n+\nIIIIIIII\n" % i for i in range(400))


def test_random_bytes_are_refused(tmp_path):
    rng = np.random.default_rng(3)
    path = tmp_path / "random"
    for start in (b"", b">", b"@", b">a\n", b"@a\n"):
        path.write_bytes(start + rng.integers(0, 256, 20_000).astype(np.uint8).tobytes())
        assert outcome(path).startswith(f"{path}, line ")


def test_errors_of_the_system_are_unchanged(tmp_path):
    with pytest.raises(FileNotFoundError):
        records_of(tmp_path / "absent")
    with pytest.raises(IsADirectoryError):
        records_of(tmp_path)


def test_a_file_is_closed_when_reading_stops_early(tmp_path):
    path = tmp_path / "reads.fq"
    path.write_bytes(TEXT)
    batches = read_sequences(path, chunk_bytes=100)
    next(batches)
    batches.close()  # an open file would cause a ResourceWarning, which is an error


def test_chunks_have_about_the_requested_size(tmp_path):
    path = tmp_path / "reads.fq"
    path.write_bytes(TEXT * 20)
    sizes = [batch.text.size for batch in fastx.read_sequences(path, chunk_bytes=10_000)]
    assert max(sizes) < 10_100
