"""bwarp map: valid SAM and BAM, with the same bytes in every way of running it."""

import os
import re
import shlex
from collections import Counter

import pysam
import pytest

from bwarp import __version__
from bwarp.index.store import load_index
from bwarp.io.names import Names
from bwarp.mapping import first_pairs
from bwarp.mapping.extension_cpu import genome_of
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.pipeline import CpuMapEngine
from bwarp.reads.read_chunks import paired_chunks
from bwarp.records.alignment_records import ReadAlignments, ReadArrays, mapped_tables
from bwarp.records.bam_records_cpu import sam_records
from bwarp.records.record_layout import alignment_records
from tests.helpers.programs.mapped_reads import check_mates, check_record, contigs_of, records


def test_header(pairs_sam):
    with pysam.AlignmentFile(pairs_sam[0]) as file:
        header = file.header.to_dict()
    assert header["HD"] == {"VN": "1.6", "SO": "unsorted", "GO": "query"}
    assert [(line["SN"], len(line["M5"])) for line in header["SQ"]] == [
        ("chr1", 32), ("chr2", 32), ("chr3", 32), ("copies", 32),
    ]  # fmt: skip
    assert sum(line["LN"] for line in header["SQ"]) == 140_000
    assert header["RG"] == [{"ID": "g1", "SM": "s"}]
    assert header["PG"] == [
        {
            "ID": "bwarp",
            "PN": "bwarp",
            "VN": __version__,
            # Exactly the options that affect records, whether typed or not.
            "CL": "bwarp map --index INDEX -1 R1.fq -2 R2.fq -o OUT.bam --mode local --match 1 "
            "--mismatch -4 --gap-open 6 --gap-extend 1 --clip 5 --min-score 30",
        }
    ]


@pytest.mark.parametrize("pairs", [False, True])
def test_the_command_in_the_header_can_be_run(map_reads, run_program, folder, tmp_path, pairs):
    """File names are filled in, and shell characters are quoted."""
    regions = tmp_path / "some regions.bed"
    regions.write_text("chr1\t20000\t30000\n")
    paired = ("-2", folder / "2.fq", "-I", "300,50", "--orientation", "FR") if pairs else ()
    done = map_reads(
        "-1", folder / "1.fq", *paired, "--regions", regions, "--all", "--max-secondary", 2, "-B",
        "3", "--eqx", "-Y", "--sort", "--mark-duplicates", "-o", tmp_path / "once.bam",
    )  # fmt: skip
    assert done.rc == 0, done.stderr
    with pysam.AlignmentFile(tmp_path / "once.bam") as file:
        command = shlex.split(file.header.to_dict()["PG"][0]["CL"])
    names = {
        "INDEX": folder / "index", "R1.fq": folder / "1.fq", "R2.fq": folder / "2.fq",
        "READS.fq": folder / "1.fq", "REGIONS.bed": regions, "OUT.bam": tmp_path / "again.bam",
    }  # fmt: skip
    assert command[:2] == ["bwarp", "map"]
    words = [names.get(word, word) for word in command[2:]]
    assert run_program("map_reads.py", *words, "--backend", "cpu").rc == 0
    assert (tmp_path / "again.bam").read_bytes() == (tmp_path / "once.bam").read_bytes()


def test_every_line_is_correct(folder, pairs_sam):
    found, contigs = records(pairs_sam[0]), contigs_of(folder / "genome.fa")
    bases = {"1": {}, "2": {}}
    for end in bases:
        with pysam.FastxFile(str(folder / f"{end}.fq")) as file:
            bases[end] = {record.name: (record.sequence, record.quality) for record in file}
    assert len(found) == 3000
    for record in found:
        check_record(record, contigs)
        assert record.get_tag("RG") == "g1"
        letters, qualities = bases["2" if record.is_read2 else "1"][record.query_name]
        assert record.get_forward_sequence() == letters
        assert pysam.qualities_to_qualitystring(record.get_forward_qualities()) == qualities
    for one, two in zip(found[0::2], found[1::2], strict=True):
        check_mates(one, two)
    operations = Counter(o for r in found if r.cigartuples for o, _ in r.cigartuples)
    assert min(operations[o] for o in (0, 1, 2, 4)) > 5


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_and_interleaving_change_nothing(map_reads, folder, pairs_sam, tmp_path, threads):
    pairs = [(folder / f"{end}.fq").read_text().splitlines(keepends=True) for end in (1, 2)]
    both = tmp_path / "both.fq"
    both.write_text(
        "".join("".join(lines[i : i + 4]) for i in range(0, len(pairs[0]), 4) for lines in pairs)
    )
    done = map_reads(
        "-1", both, "--interleaved", "-o", "-", "--threads", threads,
        "--read-group", r"@RG\tID:g1\tSM:s",
    )  # fmt: skip
    assert (done.rc, done.stdout) == (0, pairs_sam[0].read_text())


def test_options_of_bwa_without_effect(map_reads, folder, tmp_path):
    reads = "-1", folder / "1.fq", "-2", folder / "2.fq", "--quiet"
    plain = map_reads(*reads, "-o", tmp_path / "plain.sam")
    done = map_reads(*reads, "-o", tmp_path / "bwa.sam", "-K", 100_000_000, "-M", "-v", 0)
    assert (plain.rc, plain.stderr, done.rc, done.stderr) == (0, "", 0, "")
    assert (tmp_path / "bwa.sam").read_bytes() == (tmp_path / "plain.sam").read_bytes()
    done = map_reads(*reads[:4], "-o", tmp_path / "bwa.sam", "-v", 0)
    assert done.stderr.startswith("-v has no effect: use --quiet for less, --timeline for more\n")


def test_chunks_change_nothing(folder, pairs_sam, monkeypatch):
    index = load_index(folder / "index")
    genome = genome_of(index.reference)
    names = Names.of(index.reference.names)

    def run(reads_a_chunk, threads=1):
        lines, inserts = b"", set()
        chunks = paired_chunks(folder / "1.fq", folder / "2.fq", reads_a_chunk)
        for done in CpuMapEngine(index, genome, MappingParameters(), threads).map(chunks):
            found = ReadAlignments(done.mapped, done.primary, done.supplementary, done.secondary)
            records = alignment_records(genome.contig_starts, done.chunk, found)
            reads = ReadArrays.of(done.chunk, done.both)
            parts = sam_records(mapped_tables(genome, names, reads, records, b"g1"))
            lines += b"".join(part.data.tobytes() for part in parts)
            inserts.add(done.insert)
        (insert,) = inserts
        return lines, insert

    whole = run(1 << 16)
    assert whole[0] == re.sub(rb"(?m)^@.*\n", b"", pairs_sam[0].read_bytes())
    for reads_a_chunk, threads in ((128, 1), (64, 2), (200, 4), (1000, 2)):
        assert run(reads_a_chunk, threads) == whole
    # The insert size is estimated from the first pairs, even if these end within a chunk.
    monkeypatch.setattr(first_pairs, "FIRST_PAIRS", 300)
    few = run(256)
    assert few[1] != whole[1]
    assert run(1 << 16) == run(598) == run(256, 8) == few


def test_sorted_bam_with_index(map_reads, folder, pairs_sam, tmp_path):
    output = tmp_path / "new" / "pairs.bam"
    output.parent.mkdir()
    done = map_reads(
        "-1", folder / "1.fq", "-2", folder / "2.fq", "-o", output, "--sort", "--threads", 2,
        "--read-group", r"@RG\tID:g1\tSM:s",
    )  # fmt: skip
    assert (done.rc, done.stdout, done.stderr) == (0, "", pairs_sam[1])
    assert sorted(os.listdir(output.parent)) == ["pairs.bam", "pairs.bam.bai"]
    pysam.quickcheck("-v", str(output))
    with pysam.AlignmentFile(output) as file:
        assert file.header["HD"]["SO"] == "coordinate"
        assert file.check_index()
        found = list(file)
        assert sum(1 for _ in file.fetch("chr2")) > 300
    keys = [(r.reference_id % (1 << 31), r.reference_start) for r in found]
    assert keys == sorted(keys)
    lines = sorted(record.to_string() for record in found)
    assert lines == sorted(record.to_string() for record in records(pairs_sam[0]))
    stats = pysam.stats(str(output))
    assert "SN\tsequences:\t3000\n" in stats
    assert "SN\tpairs with other orientation:\t0\n" in stats


def test_unsorted_bam(map_reads, folder, pairs_sam, tmp_path):
    output = tmp_path / "pairs.bam"
    done = map_reads(
        "-1", folder / "1.fq", "-2", folder / "2.fq", "-o", output,
        "--read-group", r"@RG\tID:g1\tSM:s",
    )  # fmt: skip
    assert done.rc == 0
    assert os.listdir(tmp_path) == ["pairs.bam"]
    assert [r.to_string() for r in records(output)] == [
        r.to_string() for r in records(pairs_sam[0])
    ]
