"""References: contigs, segments and coordinates against plain loops; checksums against samtools."""

import gzip
import hashlib
import subprocess
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp import reference as reference_module
from bwarp.errors import InputError
from bwarp.reference import codes_of, make_reference, read_reference, text_of
from bwarp.sequence import decode, encode, unpack


def reference_of(contigs: list[bytes]):
    starts = np.concatenate([[0], np.cumsum([len(contig) for contig in contigs])])
    names = tuple(f"contig{i}" for i in range(len(contigs)))
    return make_reference(names, starts, encode(b"".join(contigs)))


def write_fasta(path, contigs: list[bytes], width: int = 60, end: bytes = b"\n"):
    with open(path, "wb") as file:
        for i, contig in enumerate(contigs):
            file.write(b">contig%d of many" % i + end)
            for start in range(0, len(contig), width):
                file.write(contig[start : start + width] + end)
    return path


def plain_segments(contigs: list[bytes]) -> list[tuple[int, int, int]]:
    """Return contig number, start and stop of each maximal run of A, C, G and T."""
    segments = []
    for number, contig in enumerate(contigs):
        letters = decode(encode(contig)) + b"N"
        start = None
        for at, letter in enumerate(letters):
            if letter in b"ACGT" and start is None:
                start = at
            if letter not in b"ACGT" and start is not None:
                segments.append((number, start, at))
                start = None
    return segments


def check(reference, contigs: list[bytes]) -> None:
    """Compare all properties of a reference with the contigs."""
    letters = [decode(encode(contig)) for contig in contigs]
    segments = plain_segments(contigs)
    starts = np.concatenate([[0], np.cumsum([len(contig) for contig in contigs])])
    assert reference.contig_starts.tolist() == starts.tolist()
    assert reference.n_bases == starts[-1]
    assert reference.n_segments == len(segments)
    assert reference.segment_genome.dtype == np.uint32
    assert reference.segment_genome.tolist() == [starts[c] + start for c, start, _ in segments]
    expected_text = b"".join(letters[c][start:stop] + b"\x00" for c, start, stop in segments)
    text = text_of(reference)
    assert reference.text_length == text.size == len(expected_text)
    assert text.tobytes() == expected_text.translate(bytes.maketrans(b"ACGT", b"\1\2\3\4"))
    bases = np.flatnonzero(text)
    places = [starts[c] + at for c, start, stop in segments for at in range(start, stop)]
    assert reference.genome_position(bases).tolist() == places
    assert reference.genome_position(bases.astype(np.uint32)).tolist() == places
    owners = [c for c, contig in enumerate(contigs) for _ in contig]
    assert reference.contig_of(np.arange(starts[-1])).tolist() == owners
    assert decode(codes_of(reference)) == b"".join(letters)
    stored = decode(unpack(reference.packed, 0, reference.n_bases))
    assert stored == b"".join(letters).replace(b"N", b"A")
    held = {c for c, _, _ in segments}
    assert reference.contigs_without_segments() == [
        name for c, name in enumerate(reference.names) if c not in held
    ]


HOSTILE = {
    "one base": [b"G"],
    "one base among N": [b"NNNNaNNN"],
    "N at borders": [b"NNACGTNN", b"NACGT", b"ACGTN", b"ACGNT"],
    "single N": [b"ACNGTNAAN", b"NCN"],
    "empty contigs": [b"", b"", b"AC", b"", b"GT", b"", b""],
    "only N": [b"NNNN", b"AC", b"N", b"RYKM", b"GT", b"NN"],
    "one-base contigs": [b"A", b"C", b"A", b"G", b"T", b"N", b"C"],
    "other letters": [b"acgturyswkmbdhvnACGTURYSWKMBDHVN"],
    "many contigs": [b"ACGTN"[i % 5 :] * (i % 4) for i in range(200)],
    "words of 32": [b"A" * 31, b"C" * 32, b"G" * 33, b"T" * 64, b"N" * 32, b"A" * 65],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_contigs(name, tmp_path):
    contigs = HOSTILE[name]
    check(reference_of(contigs), contigs)
    for width, end in ((1, b"\n"), (7, b"\r\n"), (60, b"\n"), (1000, b"\r\n")):
        check(read_reference(write_fasta(tmp_path / "r.fa", contigs, width, end)), contigs)


@settings(deadline=None)
@given(
    st.lists(st.text("ACGTNRacgtu", max_size=40).map(str.encode), min_size=1, max_size=12).filter(
        plain_segments
    ),
    st.integers(1, 45),
)
def test_any_contigs(tmp_path_factory, contigs, width):
    check(reference_of(contigs), contigs)
    path = write_fasta(tmp_path_factory.getbasetemp() / "any.fa", contigs, width)
    reference = read_reference(path)
    check(reference, contigs)
    for i, contig in enumerate(contigs):
        assert reference.names[i] == f"contig{i}"
        assert reference.md5[i] == hashlib.md5(contig.upper()).hexdigest()


TEXT = (
    b"\n>a first\nACGTNNAC\nGT\n\n>b\r\nAC GT\t\r\nRYK\r\n>c\nuuUacgt\n>only_n\nNNNN\n>empty\n"
    b">d" + b"x" * 50 + b"\nGATTACA"
)


def test_every_block_size(tmp_path, monkeypatch):
    path = tmp_path / "r.fa"
    path.write_bytes(TEXT)
    whole = read_reference(path)
    assert whole.names == ("a", "b", "c", "only_n", "empty", "d" + "x" * 50)
    check(whole, [b"ACGTNNACGT", b"ACGTRYK", b"uuUacgt", b"NNNN", b"", b"GATTACA"])
    for block_bytes in range(1, len(TEXT) + 2):
        blocks = [TEXT[i : i + block_bytes] for i in range(0, len(TEXT), block_bytes)]
        monkeypatch.setattr(reference_module, "read_blocks", lambda path, blocks=blocks: blocks)
        again = read_reference(path)
        assert again.names == whole.names
        assert again.md5 == whole.md5
        for name in ("contig_starts", "segment_genome", "segment_text", "packed"):
            assert np.array_equal(getattr(again, name), getattr(whole, name))


def test_a_compressed_file_and_more_threads_give_the_same(tmp_path):
    rng = np.random.default_rng(6)
    contigs = [decode(rng.choice(5, n, p=[0.24] * 4 + [0.04])) for n in (200_000, 3, 70_000, 0, 9)]
    path = write_fasta(tmp_path / "r.fa", contigs)
    plain = read_reference(path)
    check(plain, contigs)
    compressed = tmp_path / "r.fa.gz"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    for again in (read_reference(compressed), read_reference(path, threads=4)):
        assert again.md5 == plain.md5
        assert np.array_equal(again.packed, plain.packed)
        assert np.array_equal(text_of(again, 4), text_of(plain))


def samtools_md5(path) -> dict[str, str]:
    import pysam

    sums = {}
    for line in pysam.dict(str(path)).splitlines():
        if line.startswith("@SQ"):
            fields = dict(field.split(":", 1) for field in line.split("\t")[1:])
            sums[fields["SN"]] = fields["M5"]
    return sums


def test_checksums_are_those_of_samtools(tmp_path, shared_data):
    rng = np.random.default_rng(7)
    letters = np.frombuffer(b"ACGTURYSWKMBDHVNacgturyswkmbdhvn", np.uint8)
    contigs = [rng.choice(letters, n).tobytes() for n in (1, 59, 60, 61, 5000)]
    iupac = write_fasta(tmp_path / "iupac.fa", contigs)
    for path in (iupac, shared_data("ref_lambda", "lambda_virus.fa")):
        reference = read_reference(path)
        assert dict(zip(reference.names, reference.md5, strict=True)) == samtools_md5(path)


def test_checksums_of_a_reference_from_codes():
    reference = reference_of([b"ACGTNRY", b"", b"acgu"])
    assert reference.md5 == tuple(
        hashlib.md5(letters).hexdigest() for letters in (b"ACGTNNN", b"", b"ACGT")
    )


def test_real_references_pass_whole(shared_data):
    for folder in ("ref_phix174", "ref_ecoli_k12_mg1655"):
        path = next(
            p for p in sorted(shared_data(folder).rglob("*.f*a*")) if "protein" not in p.name
        )
        text = (gzip.open if path.suffix == ".gz" else open)(path, "rb").read()
        records = [record.partition(b"\n") for record in text.split(b">")[1:]]
        reference = read_reference(path)
        assert reference.names == tuple(head.split()[0].decode() for head, _, _ in records)
        bases = b"".join(body.replace(b"\n", b"") for _, _, body in records)
        assert decode(codes_of(reference)) == decode(encode(bases))


def test_a_hundred_thousand_contigs_take_a_moment(tmp_path):
    path = tmp_path / "transcripts.fa"
    path.write_bytes(b"".join(b">t%d\n%s\n" % (i, b"ACGTTGCA" * 8) for i in range(100_000)))
    read_reference(path)
    started = time.process_time()
    reference = read_reference(path)
    # Counting lines from the block's start for every contig took half a minute.
    assert time.process_time() - started < 5
    assert len(reference.names) == 100_000
    assert reference.text_length == 6_500_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", ": the file contains no sequences"),
        (b"\n\r\n  \n", ": the file contains no sequences"),
        (b">a\n>b\n\n", ": all contigs are empty"),
        (b">a\nNNN\n>b\nRYK\n", ": no contig has an A, C, G or T: there is nothing to index"),
        (b"ACGT\n>a\nACGT\n", ", line 1: a FASTA file must begin with a line such as >chr1"),
        (b"\n\nACGT\nAC*\n", ", line 3: a FASTA file must begin with a line such as >chr1"),
        (b"\n#comment\n>a\nACGT\n", ", line 2: a FASTA file must begin with a line such as >chr1"),
        (b"BAM\x01\x00", ", line 1: a FASTA file must begin with a line such as >chr1"),
        (
            b"@r1\nACGT\n+\nIIII\n",
            ", line 1: this looks like FASTQ, but the reference must be FASTA (>name)",
        ),
        (
            b">sp|P1\nACDEFGH\n",
            ", line 2: 'E' is a protein letter: the reference must be DNA or RNA (IUPAC letters)",
        ),
        (
            b">a\nACGT\n>b\nACG\nAC*\n",
            ", line 5: '*' is a protein letter: the reference must be DNA or RNA (IUPAC letters)",
        ),
        (b">a\nAC-GT\n", ", line 2: '-' is not a nucleotide letter (IUPAC)"),
        (b">a\nACGT\n@r\nACGT\n", ", line 3: '@' is not a nucleotide letter (IUPAC)"),
        (b">a\nAC>GT\n", ", line 2: '>' is not a nucleotide letter (IUPAC)"),
        (b">a\r\n\r\nAC\x00T\r\n", r", line 3: '\x00' is not a nucleotide letter (IUPAC)"),
        (b">a\nAC\xffT\n", ", line 2: 'ÿ' is not a nucleotide letter (IUPAC)"),
        (b">a\nAC\n>\nGT\n", ", line 3: a contig without a name: write >name"),
        (b">a\nAC\n>  \t\r\nGT\n", ", line 3: a contig without a name: write >name"),
        (
            b">a x\nAC\n>b\nGT\n>a y\nTT\n",
            ", line 5: two contigs are named 'a', the first in line 1: rename one",
        ),
        (b">a\nAC\n>a", ", line 3: two contigs are named 'a', the first in line 1: rename one"),
        (
            b">a\rACGT\r>b\rGG\r",
            ", line 1: a carriage return without a line feed: convert old Mac line endings to "
            r"Unix ones (tr '\r' '\n')",
        ),
        (
            b">a\nACGT\n>b\nAC\rGT\nAC\n",
            ", line 4: a carriage return without a line feed: convert old Mac line endings to "
            r"Unix ones (tr '\r' '\n')",
        ),
        (
            b"\n\r>a\nACGT\n",
            ", line 2: a carriage return without a line feed: convert old Mac line endings to "
            r"Unix ones (tr '\r' '\n')",
        ),
        (
            b">a\r\nACGT\r\nAC\r\r\nAC\r\n",
            ", line 3: a carriage return without a line feed: convert old Mac line endings to "
            r"Unix ones (tr '\r' '\n')",
        ),
        (
            b">a\nACGT\n\r>b\nAC\n",
            ", line 3: a carriage return without a line feed: convert old Mac line endings to "
            r"Unix ones (tr '\r' '\n')",
        ),
    ],
)  # fmt: skip
def test_messages(tmp_path, monkeypatch, text, message):
    path = tmp_path / "wrong.fa"
    path.write_bytes(text)
    with pytest.raises(InputError) as error:
        read_reference(path)
    assert str(error.value) == f"{path}{message}"
    for block_bytes in (1, 2, 5):
        blocks = [text[i : i + block_bytes] for i in range(0, len(text), block_bytes)]
        monkeypatch.setattr(reference_module, "read_blocks", lambda path, blocks=blocks: blocks)
        with pytest.raises(InputError) as error:
            read_reference(path)
        assert str(error.value) == f"{path}{message}"


def test_line_ends_that_are_fine(tmp_path, monkeypatch):
    text = b"\r\n\n>a\r\nAC\r\n\r\nGT\n>b\nGATTACA\r"
    path = tmp_path / "r.fa"
    path.write_bytes(text)
    check(read_reference(path), [b"ACGT", b"GATTACA"])
    for n in (1, 2, 5):
        some = [text[i : i + n] for i in range(0, len(text), n)]
        monkeypatch.setattr(reference_module, "read_blocks", lambda path, some=some: some)
        check(read_reference(path), [b"ACGT", b"GATTACA"])


def test_a_truncated_file(tmp_path):
    path = tmp_path / "r.fa.gz"
    path.write_bytes(gzip.compress(TEXT)[:-9])
    with pytest.raises(InputError) as error:
        read_reference(path)
    assert str(error.value) == (
        f"{path}: the compressed file is truncated: download or write it again"
    )


@pytest.mark.parametrize("limit", [13, 12])
def test_too_long_for_one_index(tmp_path, monkeypatch, limit):
    # 12 bases in two segments make a text of 14 letters.
    path = tmp_path / "long.fa"
    path.write_bytes(b">a\nACGTACGTACG\n>b\nT\n")
    monkeypatch.setattr(reference_module, "LONGEST_TEXT", limit)
    with pytest.raises(InputError) as error:
        read_reference(path)
    assert str(error.value) == (
        f"{path}: 14 bases exceed the maximum of {limit} for one index: split the reference"
    )
    monkeypatch.setattr(reference_module, "LONGEST_TEXT", 14)
    assert read_reference(path).text_length == 14


def test_a_long_genome_with_little_to_index(tmp_path, monkeypatch):
    # Positions in the genome count, even if little of it is in the text.
    path = tmp_path / "gaps.fa"
    path.write_bytes(b">a\nAC" + b"N" * 100 + b"GT\n")
    monkeypatch.setattr(reference_module, "LONGEST_TEXT", 50)
    with pytest.raises(InputError, match="104 bases exceed the maximum of 50"):
        read_reference(path)


def test_samtools_reads_the_same_bases(tmp_path):
    import pysam

    contigs = [b"ACGTNNNNacgtRYK" * 20, b"A", b"TTTTT" * 30]
    path = write_fasta(tmp_path / "r.fa", contigs)
    reference = read_reference(path)
    codes = codes_of(reference)
    with pysam.FastaFile(str(path)) as fasta:
        for i, name in enumerate(reference.names):
            start, stop = reference.contig_starts[i : i + 2]
            assert decode(codes[start:stop]) == decode(encode(fasta.fetch(name).encode()))


def test_a_reference_through_a_pipe(tmp_path):
    path = tmp_path / "fifo"
    subprocess.run(["mkfifo", path], check=True)
    with subprocess.Popen(["sh", "-c", f"gzip -c > '{path}'"], stdin=subprocess.PIPE) as writer:
        writer.stdin.write(TEXT)
        writer.stdin.close()
        assert read_reference(path).n_bases == 35
