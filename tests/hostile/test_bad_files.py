"""Each file of Biopython's tests, good or bad, as input of each program that reads sequences.

A program either rejects a file with one sentence that names the line, and leaves no output, or
gives the result of a simple parser.
"""

import functools
import gzip
import re
from pathlib import Path

import pysam
import pytest

from bwarp.index.store import load_index
from tests.helpers.oracles.plain_fastx_oracle import AMINO_ACIDS, NUCLEOTIDES, plain_records
from tests.helpers.programs.programs_here import run_here

GENOME = b">one\nACGTTGCAACGGTATCGGATATCGCCTTAGGCATCGATTAGCAGCATCGGATCCGGTTAAC\n>two\nACGATCG\n"
PROTEIN = b">p\nMKVLAAGIVGLLLAQWERTYHHSDE\n"
WORD = b">w\nATCGGATATCGC\n"

COMPLEMENT = bytes.maketrans(b"ACGTN", b"TGCAN")


@pytest.fixture(scope="module")
def files(shared_data):
    folder = shared_data("badinput_biopython")
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Return a folder with an index and small valid files."""
    folder = tmp_path_factory.mktemp("given")
    for name, text in (("genome.fa", GENOME), ("protein.fa", PROTEIN), ("word.fa", WORD)):
        (folder / name).write_bytes(text)
    index = ("index_reference", folder / "genome.fa", "-o", folder / "i", "--with-reverse")
    done = run_here(*index, folder=folder)
    assert done.rc == 0
    return folder


@functools.cache
def content(path: Path) -> bytes:
    text = path.read_bytes()
    return gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text


@functools.cache
def records(path: Path, letters: bytes = NUCLEOTIDES):
    return plain_records(content(path), letters)


def names_of(path: Path) -> list[str]:
    return [header.split()[0].decode() for header, *_ in records(path)]


def is_bam(path: Path) -> bool:
    return content(path).startswith(b"BAM\x01")


def is_alignments(path: Path) -> bool:
    return content(path).startswith((b"BAM\x01", b"@HD\t", b"@SQ\t"))


def check(name, path, arguments, folder, letters=NUCLEOTIDES, refused=None) -> bool:
    """Return whether a program accepts a file; check that errors are as expected.

    `refused` is a pattern for other error messages than those about unreadable files.
    """
    done = run_here(name, *arguments, folder=folder)
    assert "Traceback" not in done.said
    found = records(path, letters)
    if is_alignments(path):
        message = ": the file contains alignments: convert it to FASTQ (samtools fastq)"
    elif isinstance(found, int):
        message = f", line {found}: "
    else:
        message = None
    if message is None and not refused:
        assert done.rc == 0, done.said
        return True
    assert done.rc == 1, (path, done)
    assert done.left == []
    assert done.last_line.startswith(f"{name}.py: error: {path}{message or ''}")
    if message is None:
        assert re.search(refused, done.last_line), done.last_line
    return False


def no_sequence(path: Path, letters) -> str | None:
    """Return the pattern of the error for records without letters, if there are any."""
    found = records(path, letters)
    if isinstance(found, int) or all(bases for _, bases, _ in found):
        return None
    return r"record \d+ \(EMWLCP001DHOHL\) has no sequence: remove it"


def test_index_reference(files, given, tmp_path):
    # `given` has an index, so nothing is compiled here, which would print messages.
    accepted = 0
    for number, path in enumerate(files):
        folder = tmp_path / str(number)
        folder.mkdir()
        arguments = (path, "-o", folder / "index", "--prefix-length", 2)
        found = records(path)
        if isinstance(found, list) and found[0][2] is None:
            names = names_of(path)
            twice = "two contigs are named" if len(set(names)) < len(names) else None
            if check("index_reference", path, arguments, folder, refused=twice):
                reference = load_index(folder / "index").reference
                assert list(reference.names) == names
                lengths = [len(bases) for _, bases, _ in found]
                assert (reference.contig_starts[1:] - reference.contig_starts[:-1]).tolist() == (
                    lengths
                )
                accepted += 1
            continue
        done = run_here("index_reference", *arguments, folder=folder)
        assert (done.rc, done.left) == (1, [])
        assert done.said.startswith(f"index_reference.py: error: {path}, line ")
        assert done.said.count("\n") == 1
        if content(path).startswith(b"@"):
            assert "line 1: this looks like FASTQ" in done.said
        elif content(path).startswith(b">"):
            assert f"line {found}: " in done.said
    assert accepted == 11


def test_map_reads(files, given, tmp_path):
    accepted = 0
    for path in files:
        if is_bam(path):
            continue
        output = tmp_path / "out.sam"
        arguments = ("--index", given / "i", "-1", path, "-o", output)
        if not check("map_reads", path, arguments, tmp_path):
            continue
        mapped = []
        for line in output.read_text().splitlines():
            if not line.startswith("@"):
                name, flag, *_, bases, qualities = line.split("\t")[:11]
                if int(flag) & 16:
                    bases = bases.encode().translate(COMPLEMENT)[::-1].decode()
                    qualities = qualities[::-1]
                mapped.append((name, bases, qualities))
        assert mapped == [
            (
                name.removesuffix("/1").removesuffix("/2"),
                bases.decode() or "*",
                (qualities or b"*").decode(),
            )
            for name, (_, bases, qualities) in zip(names_of(path), records(path), strict=True)
        ]
        output.unlink()
        accepted += 1
    assert accepted == 50


def test_map_reads_of_bam(files, given, tmp_path):
    """Alignments are rejected, and the command in the message converts them to reads."""
    paths = [path for path in files if is_bam(path)]
    assert len(paths) > 5
    for path in paths:
        arguments = ("--index", given / "i", "-o", tmp_path / "o.sam", "-1")
        done = run_here("map_reads", *arguments, path, folder=tmp_path)
        assert (done.rc, done.left) == (1, [])
        assert re.search(r": the read '.*' is aligned: remove the alignments", done.last_line)
        collated, reads = str(tmp_path / "collated.bam"), str(tmp_path / "reads.bam")
        pysam.collate("-u", "-o", collated, str(path), catch_stdout=False)
        pysam.reset("-o", reads, collated, catch_stdout=False)
        done = run_here("map_reads", *arguments, reads, folder=tmp_path)
        assert done.rc == 0, (path, done.said)
        n_reads = int(pysam.view("-c", "-F", "0x900", str(path)))
        assert f"{n_reads:,} reads, " in done.said
        for file in tmp_path.iterdir():
            file.unlink()


def test_map_reads_interleaved(files, given, tmp_path):
    for path in files:
        if is_bam(path):
            continue
        arguments = ("--index", given / "i", "-1", path, "--interleaved", "-o", tmp_path / "o.sam")
        if check("map_reads", path, arguments, tmp_path):
            names = [
                line.split("\t")[0]
                for line in (tmp_path / "o.sam").read_text().splitlines()
                if not line.startswith("@")
            ]
            assert names == [name.removesuffix("/1").removesuffix("/2") for name in names_of(path)]
            (tmp_path / "o.sam").unlink()


def test_find_seeds(files, given, tmp_path):
    for path in files:
        output = tmp_path / "hits.tsv"
        arguments = ("--index", given / "i", "--queries", path, "-o", output, "-k", 12)
        if not check("find_seeds", path, arguments, tmp_path):
            continue
        words = [bases[i : i + 12] for _, bases, _ in records(path) for i in range(len(bases) - 11)]
        genome = GENOME.split(b"\n")[1]
        expected = sum(
            genome.count(word) + genome.count(word.translate(COMPLEMENT)[::-1])
            for word in words
            if b"N" not in word
        )
        assert len(output.read_text().splitlines()) == 1 + expected
        skipped = len((tmp_path / "hits.skipped.tsv").read_text().splitlines()) - 1
        short = sum(len(bases) < 12 for _, bases, _ in records(path))
        assert skipped == sum(b"N" in word for word in words) + short
        for file in tmp_path.iterdir():
            file.unlink()


def test_find_mems(files, given, tmp_path):
    for path in files:
        output = tmp_path / "out.mums"
        arguments = ("--index", given / "i", "--queries", path, "-o", output)
        if check("find_mems", path, arguments, tmp_path):
            lines = output.read_text().splitlines()
            assert [line[2:] for line in lines if line.startswith(">")] == names_of(path)
            output.unlink()


@pytest.mark.parametrize("side", ["--reference", "--queries"])
def test_scan_composition(files, given, tmp_path, side):
    other = {"--reference": "--queries", "--queries": "--reference"}[side]
    for path in files:
        output = tmp_path / "out.tsv"
        arguments = (side, path, other, given / "word.fa", "-o", output, "--similarity", 1)
        is_fastq = content(path).startswith(b"@") and not is_alignments(path)
        if side == "--reference" and is_fastq:
            done = run_here("scan_composition", *arguments, folder=tmp_path)
            assert (done.rc, done.left) == (1, [])
            assert "Traceback" not in done.said
            # The first record decides, if it is complete.
            broken = f", line {records(path)}: "
            assert f"{path}: this looks like FASTQ" in done.said or broken in done.said, done.said
            continue
        if check("scan_composition", path, arguments, tmp_path):
            lines = output.read_text().splitlines()[1:]
            word = WORD.split(b"\n")[1]
            pairs = [(bases, word) for _, bases, _ in records(path)]
            if side == "--queries":
                pairs = [(word, bases) for bases, word in pairs]
            expected = sum(
                sorted(text[i : i + len(query)]) == sorted(query)
                for text, query in pairs
                for i in range(len(text) - len(query) + 1)
                if query
            )
            assert len(lines) == expected
            output.unlink()


@pytest.mark.parametrize("letters", [NUCLEOTIDES, AMINO_ACIDS])
def test_align_pairs(files, tmp_path, letters):
    matrix = [] if letters == NUCLEOTIDES else ["--matrix", "BLOSUM62"]
    for path in files:
        output = tmp_path / "out.tsv"
        arguments = ("--references", path, "--queries", path, "-o", output, *matrix)
        refused = no_sequence(path, letters)
        if check("align_pairs", path, arguments, tmp_path, letters, refused):
            lines = output.read_text().splitlines()[1:]
            assert [line.split("\t")[1] for line in lines] == [
                header.split()[0].decode() for header, *_ in records(path, letters)
            ]
            output.unlink()


@pytest.mark.parametrize("side", ["--queries", "--database"])
def test_search_database(files, given, tmp_path, side):
    other = {"--database": "--queries", "--queries": "--database"}[side]
    for path in files:
        output = tmp_path / "out.tsv"
        arguments = (side, path, other, given / "protein.fa", "-o", output)
        refused = no_sequence(path, AMINO_ACIDS)
        if check("search_database", path, arguments, tmp_path, AMINO_ACIDS, refused):
            assert output.read_text().startswith("query\ttarget\tscore\t")
            output.unlink()
