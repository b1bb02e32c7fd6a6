"""All output formats contain the SAM lines, sorted and marked as by samtools."""

import gzip
import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pysam
import pytest

from bwarp.errors import InputError, UsageError
from bwarp.mapping.extension_cpu import both_strands
from bwarp.mapping.final_alignments import MappedReads
from bwarp.mapping.primary_hits_cpu import PrimarySelection
from bwarp.reads.read_chunks import ReadChunk
from bwarp.records.alignment_file import alignment_file
from bwarp.records.alignment_records import ReadAlignments, SecondaryHits, Supplementary
from bwarp.records.output_options import AlignmentOutput, default_sort_bytes
from bwarp.records.record_layout import alignment_records
from bwarp.reference import make_reference
from tests.helpers.cases.random_alignment_records import (
    CONTIGS,
    random_chunk,
    random_genome,
    random_mapped,
)
from tests.helpers.oracles.mapping_oracle import codes_in
from tests.helpers.oracles.slow_duplicates import slow_duplicates

TIMES = 6
PROGRAM = "@PG\tID:bwarp\tPN:bwarp\tCL:bwarp map --match 1"


@pytest.fixture(scope="module")
def run():
    """Return a reference and chunks of its reads: pairs, most of them repeated."""
    rng = np.random.default_rng(77)
    genome, _ = random_genome(rng)
    small = random_chunk(rng, 60, 2)
    _, mapped = random_mapped(rng, genome, small)
    chunks = [repeated(rng, small, TIMES, 0), repeated(rng, small, 1, 60 * TIMES)]
    lines = []
    for chunk, times in zip(chunks, (TIMES, 1), strict=True):
        again = [tiled(part, 120, times) for part in mapped]
        # samtools fixmate has its own definition of proper pairs.
        again[1].proper[:] = False
        records = alignment_records(genome.contig_starts, chunk, ReadAlignments(*again))
        lines.append((chunk, both_strands(chunk.codes, chunk.offsets), records))
    reference = make_reference(tuple(CONTIGS), genome.contig_starts, codes_in(genome))
    return reference, genome, lines


def repeated(rng, chunk: ReadChunk, times: int, first: int) -> ReadChunk:
    """Repeat the reads with other qualities and other names, numbered from `first`."""
    lengths = np.tile(np.diff(chunk.offsets), times)
    numbers = range(first, first + 60 * times)
    names = "".join(f"{i * 7919 % 1000:03}:{i:04} XN:i:{i:04}" for i in numbers)
    places = np.arange(0, 18 * 60 * times, 18)
    comments = np.repeat(np.column_stack([places + 9, places + 18]), 2, axis=0)
    return ReadChunk(
        np.tile(chunk.codes, times), np.concatenate([[0], np.cumsum(lengths)]),
        rng.integers(33, 74, chunk.codes.size * times).astype(np.uint8),
        np.frombuffer(names.encode(), np.uint8), np.column_stack([places, places + 8]), 2, 0,
        comments,
    )  # fmt: skip


def tiled(part, n_reads: int, times: int):
    """Repeat the alignments for each copy of the reads."""
    if isinstance(part, MappedReads):
        fields = {name: np.tile(value, times) for name, value in part._asdict().items()}
        sizes = np.tile(np.diff(part.cigar_offsets), times)
        return MappedReads(**fields | {"cigar_offsets": np.concatenate([[0], np.cumsum(sizes)])})
    if isinstance(part, PrimarySelection):
        return PrimarySelection(*(np.tile(value, times) for value in part))
    if isinstance(part, np.ndarray):
        return np.tile(part, times)
    reads = part.reads[None] + n_reads * np.arange(times)[:, None]
    more = {}
    if isinstance(part, Supplementary):
        names = ("qualities", "suboptimal", "soft", "hits")
        more = {name: np.tile(getattr(part, name), times) for name in names}
    elif isinstance(part, SecondaryHits):
        # An upper bound for the lines of a copy: the random case has a third of it.
        more = {"named_by": np.full(part.reads.size * times, -1)}
    return type(part)(reads=reads.reshape(-1), alignments=tiled(part.alignments, 0, times), **more)


@pytest.fixture
def write(run, tmp_path):
    def write(name, threads=2, some_reference=None, **changes):
        output = AlignmentOutput(
            str(tmp_path / name), default_sort_bytes(1),
            read_group="@RG\tID:a group\tSM:s", read_group_id=b"a group",
        )  # fmt: skip
        output = replace(output, **changes)
        reference, genome, lines = run
        with alignment_file(
            output, PROGRAM, some_reference or reference, genome, threads, write.duplicates.append
        ) as writer:
            for some in lines:
                writer.write(writer.encode(*some))
        return tmp_path / name

    write.duplicates = []
    return write


def lines_of(path, *options) -> list[str]:
    return pysam.view("--no-PG", *options, str(path)).splitlines()


def test_every_form_holds_the_same_lines(run, write, tmp_path):
    sam = write("out.sam").read_text().splitlines()
    assert len(sam) > 60 * 2 * (TIMES + 1) + 8
    assert lines_of(write("out.bam"), "-h") == sam
    pysam.sort("--no-PG", "-o", str(tmp_path / "theirs.bam"), str(tmp_path / "out.sam"))
    expected = lines_of(tmp_path / "theirs.bam")
    bam = write("sorted.bam", sort=True)
    assert lines_of(bam) == expected
    header = lines_of(bam, "-H")
    assert header == ["@HD\tVN:1.6\tSO:coordinate", *sam[1 : len(header)]]
    text = write("sorted.sam", sort=True).read_text().splitlines()
    assert text == header + expected
    cram = write("sorted.cram", sort=True)
    assert lines_of(cram, "-H") == header
    fasta = "".join(f">{name}\n{letters}\n" for name, letters in contigs(run).items())
    (tmp_path / "genome.fa").write_text(fasta)
    found = lines_of(cram, "-T", str(tmp_path / "genome.fa"))
    assert list(map(tags_sorted, found)) == list(map(tags_sorted, expected))
    pysam.quickcheck("-v", str(bam), str(cram))
    assert {"sorted.bam.bai", "sorted.cram.crai"} < set(os.listdir(tmp_path))


def contigs(run) -> dict[str, str]:
    reference, genome, _ = run
    letters = "".join("ACGTN"[code] for code in codes_in(genome))
    starts = reference.contig_starts
    places = zip(reference.names, starts, starts[1:], strict=False)
    return {name: letters[start:stop] for name, start, stop in places}


def tags_sorted(line: str) -> list[str]:
    fields = line.split("\t")
    return fields[:11] + sorted(fields[11:])


def as_by_fixmate(line: str) -> list[str]:
    """Remove fields that samtools fixmate changes: template lengths, and * as a mate's CIGAR."""
    fields = tags_sorted(line)
    return fields[:8] + [field for field in fields[9:] if field != "MC:Z:*"]


def test_bytes_do_not_depend_on_the_way_of_running(write):
    marked = {"mark_duplicates": True}
    for name, changes in (("x.bam", {}), ("x.bam", marked), ("x.cram", marked)):
        whole = write(name, threads=1, sort=True, **changes).read_bytes()
        assert write(name, threads=3, sort=True, sort_bytes=20_000, **changes).read_bytes() == whole


def test_duplicates_are_those_of_a_slow_search(write, tmp_path):
    write("in.sam")
    folder = str(tmp_path)
    pysam.fixmate("--no-PG", "-m", f"{folder}/in.sam", f"{folder}/mates.bam")
    pysam.sort("--no-PG", "-o", f"{folder}/sorted.bam", f"{folder}/mates.bam")
    expected = [as_by_fixmate(line) for line in lines_of(f"{folder}/sorted.bam")]
    duplicates, *_ = slow_duplicates(f"{folder}/sorted.bam")
    names = {name for name, _ in duplicates}
    for line in expected:
        if line[0] in names and not int(line[1]) & 4:
            line[1] = str(int(line[1]) | 1024)
    flags = [int(line[1]) for line in expected]
    assert 100 < sum(flag & 1024 > 0 for flag in flags) < len(flags) - 100
    for name in ("out.bam", "out.sam"):
        found = write(name, sort=True, mark_duplicates=True)
        assert [as_by_fixmate(line) for line in lines_of(found)] == expected
    not_primary = 256 | 2048
    reads = sum(flag & 1024 > 0 and not flag & not_primary for flag in flags)
    assert [counts.reads for counts in write.duplicates] == [reads, reads]
    with pysam.AlignmentFile(tmp_path / "out.bam") as file:
        assert file.check_index()


def test_comments_are_in_every_form(write):
    with_comments = write("out.sam", comments=True).read_text().splitlines()
    assert with_comments[-1].endswith("\tXN:i:0419")
    assert lines_of(write("out.bam", comments=True), "-h") == [
        line.replace("XN:i:0", "XN:i:").replace("XN:i:0", "XN:i:").replace("XN:i:0", "XN:i:")
        for line in with_comments
    ]


@pytest.mark.parametrize(
    ("name", "changes", "format"),
    [
        ("out.bam", {}, "bam"),
        ("out.bam", {"sort": True, "eqx": True}, "bam"),
        ("out.cram", {"sort": True}, "bam"),
        ("out.sam", {"sort": True, "comments": True}, "bam"),
        ("out.bam", {"sort": True, "mark_duplicates": True, "duplicate_tags": True}, "bam"),
        ("out.sam", {"comments": True}, "sam"),
        ("out.paf", {"regions_file": "r.bed"}, "paf"),
    ],
)
def test_the_form_for_gpus(run, tmp_path, name, changes, format):
    reference, genome, _ = run
    output = AlignmentOutput(str(tmp_path / name), default_sort_bytes(1), **changes)
    with alignment_file(output, PROGRAM, reference, genome, 1, int) as writer:
        assert writer.form.format == format
        assert not writer.form.stay_there
        assert (writer.form.tags is not None) == (output.comments or output.duplicate_tags)
        assert writer.form.with_comments == output.comments


def test_an_old_index_is_removed(write, tmp_path):
    write("out.bam", sort=True)
    assert (tmp_path / "out.bam.bai").exists()
    write("out.bam")
    assert sorted(os.listdir(tmp_path)) == ["out.bam"]


REFUSED = [
    (
        {"path": "x.txt"},
        "x.txt: the output must end in .sam, .bam, .cram, .paf or .paf.gz, or be - for SAM on "
        "standard output",
    ),
    ({"path": "x.paf", "sort": True}, "x.paf: --sort cannot be combined with PAF output"),
    (
        {"path": "x.paf", "mark_duplicates": True},
        "x.paf: --mark-duplicates cannot be combined with PAF output",
    ),
    (
        {"path": "x.paf.gz", "read_group_id": b"1"},
        "x.paf.gz: --read-group cannot be combined with PAF output",
    ),
    ({"path": "x.paf", "soft_clip": True}, "x.paf: --soft-clip cannot be combined with PAF output"),
    ({"path": "-", "sort": True}, "--sort requires a file: use -o OUT.bam, OUT.cram or OUT.sam"),
    ({"path": "x.cram"}, "x.cram: CRAM output requires --sort"),
    (
        {"path": "x.bam", "mark_duplicates": True},
        "--mark-duplicates requires --sort",
    ),
    (
        {"path": "x.bam", "reference_file": "x.fa"},
        "x.bam: --reference requires CRAM output",
    ),
    (
        {"path": "x.bam", "cram_version": "3.1"},
        "x.bam: --cram-version requires CRAM output",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_invalid_combinations(write, tmp_path, changes, message):
    with pytest.raises(UsageError) as error:
        write("x", **changes)
    assert str(error.value) == message
    assert os.listdir(tmp_path) == []


def test_letters_for_cram(run, write, tmp_path):
    reference, genome, _ = run
    letters = contigs(run)
    letters["HLA:A*01=2"] = letters["HLA:A*01=2"].replace("N", "R").lower()
    sums = [hashlib.md5(text.upper().encode()).hexdigest() for text in letters.values()]
    other = make_reference(reference.names, genome.contig_starts, codes_in(genome), tuple(sums))
    with pytest.raises(InputError) as error:
        write("x.cram", sort=True, some_reference=other)
    assert str(error.value) == (
        "contig 'HLA:A*01=2' has letters other than A, C, G, T and N, which the index does not "
        "keep: use --reference with the FASTA file that was indexed"
    )
    fasta = tmp_path / "genome.fa"
    for some, message in (
        (contigs(run), "contig 'HLA:A*01=2' differs from that of the index: give the"),
        ({"chr1": letters["chr1"]}, "contig 'none' of the index is missing: give the"),
    ):
        fasta.write_text("".join(f">{name} x\n{text}\n" for name, text in some.items()))
        with pytest.raises(InputError) as error:
            write("x.cram", sort=True, some_reference=other, reference_file=str(fasta))
        assert str(error.value) == f"{fasta}: {message} FASTA file that was indexed"
    assert os.listdir(tmp_path) == ["genome.fa"]
    fasta.write_text("".join(f">{name}\n{text}\n" for name, text in (letters | {"y": "A"}).items()))
    cram = write("x.cram", sort=True, some_reference=other, reference_file=str(fasta))
    assert sums[2] in pysam.view("-H", str(cram))
    assert len(lines_of(cram, "-T", str(fasta))) > 800


@pytest.mark.parametrize("marked", [False, True])
def test_cram_is_of_the_version_that_older_programs_read(write, marked):
    for given, version in ((None, b"\3\0"), ("3.0", b"\3\0"), ("3.1", b"\3\1")):
        cram = write("x.cram", sort=True, mark_duplicates=marked, cram_version=given)
        assert cram.read_bytes()[:6] == b"CRAM" + version


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_samtools_finds_the_reference_of_cram(run, write, tmp_path, compressed, marked):
    """From any folder, and without a server."""
    fasta = tmp_path / "the genome.fa"
    fasta.write_text("".join(f">{name}\n{text}\n" for name, text in contigs(run).items()))
    if compressed:
        pysam.tabix_compress(str(fasta), f"{fasta}.gz")
        fasta.unlink()
        fasta = tmp_path / "the genome.fa.gz"
    changes = {"sort": True, "mark_duplicates": marked}
    cram = write("x.cram", reference_file=os.path.relpath(fasta), **changes)
    header = lines_of(cram, "-H")
    assert [line.split("\t")[-1] for line in header if line.startswith("@SQ")] == [
        f"UR:{fasta}"
    ] * (len(contigs(run)) - 1)
    assert "UR:" not in pysam.view("-H", str(write("x.bam", **changes)))
    found = subprocess.run(
        [sys.executable, "-c", "import pysam, sys; print(pysam.view(sys.argv[1]))", cram],
        cwd="/",
        env={
            "REF_CACHE": str(tmp_path / "none/%s"),
            **{name: value for name, value in os.environ.items() if not name.startswith("REF_")},
        },
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    bam = lines_of(tmp_path / "x.bam")
    assert [line.split("\t")[:11] for line in found if line] == [
        line.split("\t")[:11] for line in bam
    ]


def test_cram_names_no_reference_that_samtools_cannot_read(run, write, tmp_path):
    fasta = tmp_path / "genome.fa.gz"
    text = "".join(f">{name}\n{text}\n" for name, text in contigs(run).items())
    fasta.write_bytes(gzip.compress(text.encode()))
    assert "UR:" not in pysam.view("-H", str(write("x.cram", sort=True, reference_file=str(fasta))))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("out.bam", {}),
        ("out.bam", {"sort": True}),
        ("out.bam", {"sort": True, "sort_bytes": 40_000}),
        ("out.bam", {"sort": True, "mark_duplicates": True}),
        ("out.cram", {"sort": True}),
        ("out.sam", {"sort": True}),
    ],
)
def test_a_full_disk_leaves_nothing(write, small_disk, name, changes):
    with pytest.raises(OSError, match="No space left on device"):
        write(f"disk/{name}", **changes)
    assert os.listdir(small_disk) == []


def test_a_folder_that_cannot_be_written(write, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for name in ("out.bam", "out.sam"):
        with pytest.raises(InputError) as error:
            write(f"disk/{name}", sort=name == "out.bam")
        assert str(error.value) == (
            f"{small_disk}: no permission to write here: choose another output"
        )
