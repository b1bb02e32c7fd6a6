"""Valid FASTA and FASTQ files with one or more random errors, as input of whole programs.

tests/io/test_fastx.py compares the reader with a simple parser on any text; this file tests the
programs around it. More examples: BWARP_EXAMPLES=2000 pytest tests/hostile
"""

import bz2
import gzip
import lzma
import os
import re
import shutil

import pysam
import pytest
import xopen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bwarp.counted import counted
from tests.helpers.oracles.plain_fastx_oracle import AMINO_ACIDS, NUCLEOTIDES, plain_records
from tests.helpers.programs.programs_here import run_here

EXAMPLES = int(os.environ.get("BWARP_EXAMPLES", 40))

FASTA = b">a one\nACGTTGCAACGG\nTATCGGATATCG\n>b\nCCTTAGGCATCGATTAGCAGCAT\n>c\nNNNNACGUacgu\n"
FASTQ = (
    b"@a/1 x\nACGTTGCAACGGTATCGGATAT\n+\n!~II@+>IIIIIIIIIIIIIII\n"
    b"@b\nCCTTAGGCATCG\n+b\n@@@@@@@@@@@@\n@c\nACGT\n+\nIIII\n"
)

#: Texts that are inserted into a file, or replace a part of it.
PIECES = [
    b"", b"\n", b"\r\n", b"\r", b"\x00", b" ", b"\t", b">", b"@", b"+", b"-", b"*", b"\xef\xbb\xbf",
    b"\xff", b"\x01", b"n" * 300, b"E", b"\n\n\n", b"@a/1 x\nAC\n+\nII\n", b">a\n", b"A" * 5000,
    b"\x1a", b" \n", b"n",
]  # fmt: skip


@st.composite
def broken_files(draw):
    """Yield valid files with up to three changes, other line ends, compressed or truncated."""
    text = draw(st.sampled_from([FASTA, FASTQ]))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.sampled_from([0, 0, 1, 2, 30])))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[end:]
    if draw(st.booleans()):
        text = text.replace(b"\n", b"\r\n")
    if draw(st.booleans()):
        text = text.removesuffix(b"\n")
    stored = text
    kind = draw(st.sampled_from(["plain", "plain", "one", *DAMAGE, "two", "padded"]))
    if kind != "plain":
        compress = draw(st.sampled_from(COMPRESSORS))
        half = len(text) // 2
        parts = [text] if kind == "one" else [text[:half], b"", text[half:]]
        parts = [compress(part) for part in parts]
        if kind == "padded" and compress != xopen.zstd.compress:
            parts.append(bytes(512))
        if kind in DAMAGE:
            parts[-1] = DAMAGE[kind](parts[-1], draw(st.integers(1, len(parts[-1]) - 1)))
            text = None
        stored = b"".join(parts)
    return stored, text


def gzipped(text: bytes) -> bytes:
    return gzip.compress(text, mtime=0)


COMPRESSORS = [gzipped, gzipped, bz2.compress, lzma.compress, xopen.zstd.compress]

#: Damage to the last of several streams, which is always an error.
DAMAGE = {
    "cut off": lambda stream, at: stream[:at],
    "trailing": lambda stream, at: stream + b"rubbish after the end"[:at],
    "no start": lambda stream, at: b"x" + stream[1:],
    "not compressed": lambda stream, at: b">a\nAC\n"[:at],
}


def expected_of(text, letters=NUCLEOTIDES):
    """Return the records, or None if the file must be rejected."""
    if text is None:
        return None
    found = plain_records(text.removeprefix(b"\xef\xbb\xbf"), letters)
    return None if isinstance(found, int) else found


def sam_names(records) -> list[str] | None:
    """Return the names of reads as in SAM, or None if SAM does not allow them."""
    names = []
    for header, *_ in records:
        name = re.sub(rb"(?<=.)/[12]$", b"", re.split(rb"[ \t]", header)[0])
        if not re.fullmatch(rb"([!-?A-~][!-~]{0,253})?", name):
            return None
        names.append(name.decode() or "*")
    return names


def all_named(records) -> bool:
    return all(header.split() for header, *_ in records)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzzed")
    (folder / "given").mkdir()
    (folder / "given/genome.fa").write_bytes(b">g\nACGTTGCAACGGTATCGGATATCGCCTTAGGCATCGATTAG\n")
    (folder / "given/protein.fa").write_bytes(b">p\nMKVLAAGIVGLLLAQ\n")
    index = ("index_reference", folder / "given/genome.fa", "-o", folder / "given/i")
    index = (*index, "--with-reverse")
    assert run_here(*index, folder=folder).rc == 0
    return folder


def run_on(folder, stored, name, *arguments):
    """Run a program on a file; the words FILE and OUT are replaced by it and the output."""
    file, out = folder / "given/file", folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    file.write_bytes(stored)
    words = {
        "FILE": file,
        "OUT": out / "out.tsv",
        "SAM": out / "out.sam",
        "MUMS": out / "out.mums",
        "INDEX": folder / "given/i",
    }
    done = run_here(name, *(words.get(word, word) for word in arguments), folder=out)
    assert "Traceback" not in done.said
    if done.rc:
        assert done.rc == 1
        assert done.left == []
        assert str(file) in done.last_line
        assert done.last_line.startswith(f"{name}.py: error: ")
    return done, out / "out.tsv"


fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES == 40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@fuzzed
@given(broken_files())
def test_reads_are_mapped_or_refused(folder, file):
    stored, text = file
    expected = expected_of(text)
    names = None if expected is None else sam_names(expected)
    done, out = run_on(folder, stored, "map_reads", "--index", "INDEX", "-1", "FILE", "-o", "SAM")
    assert (done.rc == 0) == (names is not None), done
    if done.rc == 0:
        assert f"\n{counted(len(expected), 'read')}, " in f"\n{done.said}", done
        with pysam.AlignmentFile(out.with_suffix(".sam")) as file:
            assert [record.query_name or "*" for record in file] == names


@fuzzed
@given(broken_files())
def test_a_reference_is_read_or_refused(folder, file):
    stored, text = file
    arguments = ("--reference", "FILE", "--queries", "FILE", "-o", "MUMS", "-l", "4")
    done, out = run_on(folder, stored, "find_mems", *arguments)
    expected = expected_of(text)
    if done.rc == 0:
        names = [
            line[2:]
            for line in out.with_suffix(".mums").read_bytes().split(b"\n")
            if line.startswith(b">")
        ]
        assert names == [header.split()[0] for header, *_ in expected]
    elif expected:
        names = [header.split()[:1] for header, *_ in expected]
        repeated = any(names.count(name) > 1 for name in names)
        fastq = expected[0][2] is not None
        empty = not any(set(bases) - set(b"N") for _, bases, _ in expected)
        assert repeated or fastq or empty or not all_named(expected), done


@fuzzed
@given(broken_files())
def test_proteins_are_searched_or_refused(folder, file):
    stored, text = file
    database = str(folder / "given/protein.fa")
    arguments = ("--queries", "FILE", "--database", database, "-o", "OUT")
    done, _out = run_on(folder, stored, "search_database", *arguments)
    expected = expected_of(text, AMINO_ACIDS)
    usable = expected and all_named(expected) and all(bases for _, bases, _ in expected)
    assert (done.rc == 0) == bool(usable), done


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("index_reference", ["FILE", "-o", "OUT"]),
        ("batch_reads", ["-1", "FILE", "-o", "OUT"]),
        ("search_database", ["--queries", "FILE", "--database", "FILE", "-o", "OUT"]),
        ("align_pairs", ["--references", "FILE", "--queries", "FILE", "-o", "OUT"]),
    ],
)
@settings(fuzzed, max_examples=EXAMPLES // 2)
@given(stored=st.binary(max_size=300))
def test_any_bytes_are_refused_or_read(folder, name, arguments, stored):
    run_on(folder, stored, name, *arguments)
