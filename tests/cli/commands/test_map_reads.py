"""scripts/map_reads.py: correct alignments, valid SAM, the same bytes however it runs, refusals."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pysam
import pytest

from bwarp import __version__
from bwarp.index.store import load_index
from bwarp.mapping import pipeline
from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.output.alignment_records import alignment_records
from bwarp.mapping.output.comment_tags import no_tags
from bwarp.mapping.output.record_text import contig_names
from bwarp.mapping.output.sam_records import sam_records
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.pipeline import map_chunks
from bwarp.mapping.reads.read_chunks import LONGEST_READ, paired_chunks
from bwarp.reference import codes_of
from bwarp.simulation.read_names import parse_read_name

SCRIPT = "map_reads.py"


@pytest.fixture(scope="module")
def folder(run_program, tmp_path_factory):
    """genome.fa with copies, its index, and 1,500 pairs and 1,000 single reads of it."""
    folder = tmp_path_factory.mktemp("map")

    def run(script, *arguments):
        done = run_program(script, *arguments, cwd=folder)
        assert done.rc == 0, done.stderr

    run("simulate_genome.py", "-o", "genome.fa", "--length", 120_000, "--contigs", 3, "--seed", 3)
    with open(folder / "genome.fa", "a") as file:
        # An exact copy, and an older one.
        letters = contigs_of(folder / "genome.fa")["chr1"][10_000:20_000]
        older = re.sub("(.{59}).", r"\1A", letters)
        file.write(f">copies\n{letters}\n{older}\n")
    run("index_reference.py", "genome.fa", "-o", "index", "--backend", "cpu")
    reads = ("--reference", "genome.fa", "--variant-rate", 0.005, "--seed", 5)
    run("simulate_reads.py", *reads, "-1", "1.fq", "-2", "2.fq", "--pairs", 1500)
    run("simulate_reads.py", *reads, "-1", "single.fq.gz", "--reads", 1000)
    return folder


@pytest.fixture
def map_reads(run_program, folder):
    def run(*arguments, index=folder / "index", **keywords):
        return run_program(SCRIPT, "--index", index, *arguments, "--backend", "cpu", **keywords)

    return run


@pytest.fixture(scope="module")
def pairs_sam(run_program, folder):
    """The SAM of the pairs, and what was said."""
    output, group = folder / "pairs.sam", r"@RG\tID:g1\tSM:s"
    done = run_program(
        SCRIPT, "--index", "index", "-1", "1.fq", "-2", "2.fq", "-o", output, "--read-group", group,
        "--stats", "pairs.json", "--backend", "cpu", "--threads", 1, cwd=folder,
    )  # fmt: skip
    assert (done.rc, done.stdout) == (0, "")
    return output, done.stderr


def records(path):
    with pysam.AlignmentFile(path) as file:
        return list(file)


def outcome(path) -> Counter:
    """Correct, incorrect, random and mapped reads, by whether their quality is 10 or more."""
    counts = Counter()
    for record in records(path):
        truth = parse_read_name(record.query_name)
        if truth.contig is None:
            counts["random", not record.is_unmapped and record.mapping_quality >= 10] += 1
            continue
        end = truth.ends[record.is_read2]
        correct = (
            not record.is_unmapped
            and record.reference_name == truth.contig
            and record.is_reverse == end.reverse
            and abs(record.reference_start - record.query_alignment_start - end.start) <= 20
        )
        counts["correct" if correct else "incorrect", record.mapping_quality >= 10] += 1
    return counts


def test_where_pairs_are_from(folder, pairs_sam):
    output, said = pairs_sam
    assert said == "3,000 reads, 2,942 mapped, 2,942 properly paired\n"
    assert outcome(output) == {
        ("random", False): 58,
        ("correct", False): 208,
        ("correct", True): 2528,
        ("incorrect", False): 206,
    }
    statistics = json.loads((folder / "pairs.json").read_text())
    sizes = Counter(
        abs(r.template_length) // 10 for r in records(output) if r.is_proper_pair and r.is_read1
    )
    assert statistics.pop("insert_sizes") == [sizes[size] for size in range(201)]
    qualities = Counter(r.mapping_quality for r in records(output) if not r.is_unmapped)
    assert statistics.pop("mapping_qualities") == [qualities[q] for q in range(61)]
    stages = statistics.pop("stages")
    assert stages["reads"] == 3000 <= stages["hits scored"]
    # Reads of 150 bases have five seeds in the first round.
    assert stages["seeds searched"] >= 5 * 3000
    assert stages["hits located"] > 5 * 2942
    assert 2942 <= stages["candidates"] < stages["hits located"]
    assert 0 < stages["hits with gaps"] < stages["hits scored"]
    assert stages["reads mapped"] == 2942
    assert stages["reads of quality 30"] == sum(qualities[q] for q in range(30, 61))
    assert statistics == {
        "reads": 3000,
        "bases": 450000,
        "mapped": 2942,
        "unmapped": 58,
        "paired": 3000,
        "properly_paired": 2942,
        "duplicates": None,
        "insert_size": {
            "mean": 399.323,
            "standard_deviation": 59.22,
            "lowest": 130,
            "highest": 669,
            "orientation": "FR",
        },
    }


def test_where_single_reads_are_from(map_reads, folder, tmp_path):
    output = tmp_path / "single.sam"
    done = map_reads("-1", folder / "single.fq.gz", "-o", output)
    assert (done.rc, done.stdout, done.stderr) == (
        0,
        "",
        "1,000 reads, 979 mapped\n",
    )
    assert outcome(output) == {
        ("random", False): 21,
        ("correct", False): 88,
        ("correct", True): 814,
        ("incorrect", False): 77,
    }
    assert {record.flag & ~0x14 for record in records(output)} == {0}


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
            # What decides the records, whether it was typed or not, and nothing else.
            "CL": "bwarp map --mode local --match 1 --mismatch -4 --gap-open 6 --gap-extend 1 "
            "--clip 5 --min-score 30",
        }
    ]


def check_record(record, contigs):
    """CIGAR, NM and MD say what the bases say; the score is that of the CIGAR."""
    assert record.query_length == len(record.query_qualities or record.query_sequence)
    if record.is_unmapped:
        assert (record.mapping_quality, record.cigarstring) == (0, None)
        return
    assert record.infer_read_length() == record.query_length
    letters, contig = record.query_sequence, contigs[record.reference_name]
    edits = score = 0
    read, at, run, md = 0, record.reference_start, 0, ""
    for number, (operation, length) in enumerate(record.cigartuples):
        if operation == 4:
            assert number in (0, len(record.cigartuples) - 1)
            read += length
        elif operation == 0:
            for base, other in zip(letters[read : read + length], contig[at:], strict=False):
                if base == other != "N":
                    run, score = run + 1, score + 1
                else:
                    md, run, edits, score = f"{md}{run}{other}", 0, edits + 1, score - 4
            read, at = read + length, at + length
        else:
            edits, score = edits + length, score - 6 - length
            if operation == 1:
                read += length
            else:
                md, run = f"{md}{run}^{contig[at : at + length]}", 0
                at += length
    assert (read, at) == (len(letters), record.reference_end)
    assert record.get_tag("NM") == edits
    assert record.get_tag("MD") == f"{md}{run}"
    assert record.get_tag("AS") == score >= 30
    if record.get_tag("XS") >= score:
        assert record.mapping_quality <= 40
    assert record.reference_end <= len(contig)


def check_mates(one, two):
    assert one.query_name == two.query_name
    assert (one.is_read1, two.is_read2) == (True, True)
    for record, mate in ((one, two), (two, one)):
        assert record.is_paired
        assert record.mate_is_unmapped == mate.is_unmapped
        assert record.mate_is_reverse == mate.is_reverse
        assert record.is_proper_pair == mate.is_proper_pair
        assert (record.next_reference_id, record.next_reference_start) == (
            mate.reference_id, mate.reference_start,
        )  # fmt: skip
        assert record.has_tag("MC") == record.has_tag("MQ") == (not mate.is_unmapped)
        if not mate.is_unmapped:
            assert record.get_tag("MC") == mate.cigarstring
            assert record.get_tag("MQ") == mate.mapping_quality
    assert one.template_length + two.template_length == 0
    both = not one.is_unmapped and not two.is_unmapped
    if both and one.reference_id == two.reference_id and one.is_reverse != two.is_reverse:
        left, right = (two, one) if one.is_reverse else (one, two)
        size = right.reference_end - left.reference_start
        assert left.template_length == size + (0 if size > 0 else -2)
    if one.is_proper_pair:
        assert both
        assert one.is_reverse != two.is_reverse


def contigs_of(path) -> dict[str, str]:
    with pysam.FastxFile(str(path)) as file:
        return {record.name: record.sequence.upper() for record in file}


def test_every_line_says_what_it_should(folder, pairs_sam):
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


def test_chunks_change_nothing(folder, pairs_sam, monkeypatch):
    index = load_index(folder / "index")
    genome = Genome(codes_of(index.reference), index.reference.contig_starts)
    names = contig_names(index.reference)

    def run(reads_a_chunk, threads=1):
        lines, inserts = b"", set()
        chunks = paired_chunks(folder / "1.fq", folder / "2.fq", reads_a_chunk)
        for done in map_chunks(index, genome, chunks, MappingParameters(), threads):
            records = alignment_records(
                genome.contig_starts, done.chunk, done.mapped, done.primary, done.supplementary,
                done.secondary,
            )  # fmt: skip
            tags = no_tags(done.chunk.n_reads)
            parts = sam_records(genome, names, done.chunk, done.both, records, b"g1", tags)
            lines += b"".join(part.tobytes() for part in parts)
            inserts.add(done.insert)
        (insert,) = inserts
        return lines, insert

    whole = run(1 << 16)
    assert whole[0] == re.sub(rb"(?m)^@.*\n", b"", pairs_sam[0].read_bytes())
    for reads_a_chunk, threads in ((128, 1), (64, 2), (200, 4), (1000, 2)):
        assert run(reads_a_chunk, threads) == whole
    # The insert size is that of the first pairs, even where those end within a chunk.
    monkeypatch.setattr(pipeline, "FIRST_PAIRS", 300)
    few = run(256)
    assert few[1] != whole[1]
    assert run(1 << 16) == run(598) == few


def test_sorted_bam_with_index(map_reads, folder, pairs_sam, tmp_path):
    output = tmp_path / "new" / "pairs.bam"
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


@pytest.fixture(scope="module")
def odd(run_program, tmp_path_factory):
    """An index of contigs that are empty, short, of N, and circular-looking."""
    folder = tmp_path_factory.mktemp("odd")
    rng = np.random.default_rng(1)
    contigs = {
        "none": "",
        "short": "".join(rng.choice(list("ACGT"), 60)),
        "void": "N" * 50,
        "long": "".join(rng.choice(list("ACGT"), 900)),
        "last": "",
    }
    fasta = "".join(f">{name}\n{letters}\n" for name, letters in contigs.items())
    (folder / "odd.fa").write_text(fasta)
    done = run_program("index_reference.py", folder / "odd.fa", "-o", folder / "odd.index")
    assert done.rc == 0, done.stderr
    return folder / "odd.index", contigs


def fastq(reads: dict[str, str]) -> str:
    return "".join(
        f"@{name}\n{letters}\n+\n{'I' * len(letters)}\n" for name, letters in reads.items()
    )


@pytest.mark.skipif(
    shutil.which("PicardCommandLine") is None, reason="needs Picard (Debian: picard-tools)"
)
def test_picard_finds_nothing(map_reads, folder, tmp_path):
    group = ("--read-group", r"@RG\tID:1\tSM:s\tPL:ILLUMINA")
    lines = (folder / "1.fq").read_text().splitlines()
    for at in range(1, 800, 4):
        # The two halves of such a read are of two loci.
        lines[at] = lines[at][:75] + lines[at + 800][75:]
    (tmp_path / "split.fq").write_text("\n".join(lines) + "\n")
    pairs = ("-1", tmp_path / "split.fq", "-2", folder / "2.fq", *group)
    runs = {
        "marked.bam": (*pairs, "--sort", "--mark-duplicates"),
        "single.bam": ("-1", folder / "single.fq.gz", "--sort", *group),
        "pairs.cram": (*pairs, "--sort"),
    }
    for name, arguments in runs.items():
        assert map_reads(*arguments, "-o", tmp_path / name).rc == 0
    cram, genome = str(tmp_path / "pairs.cram"), str(folder / "genome.fa")
    pysam.quickcheck("-v", cram)
    pysam.view("-b", "-T", genome, "-o", f"{tmp_path}/decoded.bam", cram, catch_stdout=False)
    assert int(pysam.view("-c", "-f", "2048", cram)) > 100
    for name in ("marked.bam", "single.bam", "decoded.bam"):
        command = ["PicardCommandLine", "ValidateSamFile", f"I={tmp_path / name}", f"R={genome}"]
        done = subprocess.run([*command, "MODE=SUMMARY"], capture_output=True, text=True)
        assert "No errors found" in done.stdout, done.stdout + done.stderr[-2000:]


def test_odd_reads_on_odd_contigs(map_reads, odd, tmp_path):
    index, contigs = odd
    long, short = contigs["long"], contigs["short"]
    rng = np.random.default_rng(2)
    other = "".join(rng.choice(list("ACGT"), 500))
    reads = {
        "empty": "",
        "only_n": "N" * 100,
        "below_a_seed": long[100:115],
        "shortest": long[100:130],
        "five_hundred": long[200:700],
        "over_the_start": other[:50] + long[:70],
        "over_the_end": long[-70:] + other[:50],
        "beyond_the_contig": other[:200] + short + other[200:400],
        "whole_contig": short,
        "some_n": long[300:350] + "N" + long[351:400],
        "lower": long[500:600].lower(),
        "random": other[:150],
    }
    (tmp_path / "odd.fq").write_text(fastq(reads))
    output = tmp_path / "odd.sam"
    done = map_reads("-1", tmp_path / "odd.fq", "-o", output, index=index)
    assert (done.rc, done.stderr) == (0, "12 reads, 8 mapped\n")
    found = {record.query_name: record for record in records(output)}
    with pysam.AlignmentFile(output) as file:
        assert file.references == ("short", "void", "long")
    where = {
        name: (r.reference_name, r.reference_start, r.cigarstring)
        for name, r in found.items()
        if not r.is_unmapped
    }
    assert where == {
        "shortest": ("long", 100, "30M"),
        "five_hundred": ("long", 200, "500M"),
        "over_the_start": ("long", 0, "50S70M"),
        "over_the_end": ("long", 830, "70M50S"),
        "beyond_the_contig": ("short", 0, "200S60M200S"),
        "whole_contig": ("short", 0, "60M"),
        "some_n": ("long", 300, "100M"),
        "lower": ("long", 500, "100M"),
    }
    for record in found.values():
        if record.query_length:
            check_record(record, contigs)
    # The same reads as pairs, each with a good mate.
    mates = dict.fromkeys(reads, long[400:500])
    (tmp_path / "mates.fq").write_text(fastq(mates))
    output = tmp_path / "pairs.sam"
    done = map_reads(
        "-1", tmp_path / "odd.fq", "-2", tmp_path / "mates.fq", "-o", output, index=index
    )
    assert (done.rc, done.stderr) == (0, "24 reads, 20 mapped, 0 properly paired\n")
    found = records(output)
    for one, two in zip(found[0::2], found[1::2], strict=True):
        check_mates(one, two)


def test_empty_files_give_a_header_alone(map_reads, tmp_path):
    empty, other = tmp_path / "empty.fq", tmp_path / "other.fq"
    empty.write_text("")
    other.write_text("")
    for arguments in (("-1", empty), ("-1", empty, "-2", other), ("-1", empty, "--interleaved")):
        done = map_reads(*arguments, "-o", "-")
        assert (done.rc, done.stderr) == (0, "0 reads, 0 mapped\n")
        assert {line[:3] for line in done.stdout.splitlines()} == {"@HD", "@SQ", "@PG"}
    output = tmp_path / "empty.bam"
    done = map_reads("-1", empty, "-o", output, "--sort", "--stats", tmp_path / "empty.json")
    assert (done.rc, records(output)) == (0, [])
    assert json.loads((tmp_path / "empty.json").read_text())["reads"] == 0


USAGE = [
    (
        ("-o", "out.txt"),
        "out.txt: the output must end in .sam, .bam or .cram, or be - for SAM to stdout",
    ),
    (("-2", "x.fq", "--interleaved", "-o", "-"), "give either -2 or --interleaved, not both"),
    (
        ("-1", "x.fq", "-2", "./x.fq", "-o", "-"),
        "./x.fq is given as both ends: with pairs in one file, use --interleaved",
    ),
    (
        ("-1", "-", "-2", "-", "-o", "out.sam"),
        "- is given as both ends: with pairs in one file, use --interleaved",
    ),
    (
        ("--read-group", "SM:s", "-o", "-"),
        r"read group 'SM:s' is not one line like '@RG\tID:1\tSM:sample': it needs an ID, each tag "
        "once, and plain text",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_usage_errors(map_reads, folder, tmp_path, arguments, message):
    done = map_reads("-1", folder / "1.fq", *arguments, cwd=tmp_path)
    assert (done.rc, done.stdout) == (2, "")
    assert done.stderr == f"map_reads.py: error: {message}\n"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", ["sam", "bam"])
def test_bad_reads_leave_nothing(map_reads, folder, tmp_path, ending):
    text = (folder / "1.fq").read_bytes()
    (tmp_path / "cut.fq.gz").write_bytes(gzip.compress(text)[:-30])
    done = map_reads("-1", "cut.fq.gz", "-o", f"out.{ending}", "--sort", cwd=tmp_path)
    assert (done.rc, done.stdout) == (1, "")
    assert done.stderr == (
        "map_reads.py: error: cut.fq.gz: the compressed file ends too early: it was cut off; "
        "fetch or write it again\n"
    )
    assert os.listdir(tmp_path) == ["cut.fq.gz"]


@pytest.mark.parametrize(
    ("name", "letters", "message"),
    [
        (
            b"a\x00b", b"ACGT",
            r"read 1: SAM allows no read name like 'a\x00b' (printable ASCII, no @ at its start): "
            "rename it",
        ),
        (
            b"long", b"A" * (LONGEST_READ + 1),
            "read 1 ('long'): it has 10,001 bases, and the longest that are mapped have 10,000: "
            "map longer reads with a mapper made for them, such as minimap2",
        ),
    ],
)  # fmt: skip
def test_reads_that_are_refused(map_reads, tmp_path, name, letters, message):
    (tmp_path / "r.fa").write_bytes(b">%b\n%b\n" % (name, letters))
    done = map_reads("-1", "r.fa", "-o", "out.sam", cwd=tmp_path)
    assert (done.rc, done.stdout) == (1, "")
    assert done.stderr == f"map_reads.py: error: r.fa, {message}\n"
    assert os.listdir(tmp_path) == ["r.fa"]


def test_the_longest_read_is_mapped_and_said(map_reads, folder, tmp_path):
    letters = contigs_of(folder / "genome.fa")["chr2"][5000 : 5000 + LONGEST_READ]
    # With gaps, which are looked for in all of the read.
    letters = letters[:3000] + letters[3003:7000] + "ACA" + letters[7000:]
    assert len(letters) == LONGEST_READ
    (tmp_path / "r.fa").write_text(f">r\n{letters}\n")
    done = map_reads("-1", "r.fa", "-o", "out.sam", cwd=tmp_path)
    assert done.rc == 0, done.stderr
    (record,) = records(tmp_path / "out.sam")
    assert (record.reference_name, record.reference_start) == ("chr2", 5000)
    assert re.fullmatch(r"3000M3D399\dM3I300\dM", record.cigarstring)
    assert f"reads of up to {LONGEST_READ:,} bases" in map_reads("--help").stdout


def test_a_contig_name_that_sam_forbids(run_program, map_reads, folder, tmp_path):
    (tmp_path / "bad.fa").write_text(f">a,b\n{'ACGGT' * 20}\n")
    assert run_program("index_reference.py", "bad.fa", "-o", "bad", cwd=tmp_path).rc == 0
    done = map_reads("-1", folder / "1.fq", "-o", "-", index=tmp_path / "bad")
    assert (done.rc, done.stdout) == (1, "")
    assert done.stderr == (
        "map_reads.py: error: contig 'a,b': SAM allows no such name (printable ASCII, no comma, "
        "quote or bracket, not * or = at the start): rename it in the reference and index again\n"
    )


@pytest.mark.parametrize("ending", ["sam", "bam"])
def test_full_disk(map_reads, folder, small_disk, ending):
    output = small_disk / f"out.{ending}"
    done = map_reads("-1", folder / "1.fq", "-2", folder / "2.fq", "-o", output)
    assert (done.rc, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(
        "the disk is full: free some space, or write elsewhere, and run again\n"
    )
    assert os.listdir(small_disk) == []


def start_slowly(folder, output):
    """A run that waits for more reads than it gets, once it has begun to write."""
    command = [
        sys.executable, "scripts/map_reads.py", "--index", folder / "index", "-1", "-",
        "-o", output, "--sort", "--backend", "cpu",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    process.stdin.write((folder / "1.fq").read_bytes())
    process.stdin.flush()
    deadline = time.monotonic() + 120
    while not os.listdir(output.parent):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def test_interrupt_and_kill(map_reads, folder, checkout, monkeypatch, tmp_path):
    monkeypatch.chdir(checkout)
    output = tmp_path / "out.bam"
    process = start_slowly(folder, output)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.decode() == (
        "map_reads.py: error: interrupted; no output was written under its final name\n"
    )
    assert os.listdir(tmp_path) == []
    process = start_slowly(folder, output)
    process.kill()
    process.communicate(timeout=60)
    (left,) = os.listdir(tmp_path)
    assert re.fullmatch(r"\.out\.bam\.\d+\.part", left)
    done = map_reads("-1", folder / "1.fq", "-o", output, "--sort")
    assert done.rc == 0
    assert sorted(os.listdir(tmp_path)) == ["out.bam", "out.bam.bai"]


def test_scores_and_pairs_as_given(map_reads, folder, tmp_path):
    output, statistics = tmp_path / "given.sam", tmp_path / "given.json"
    files = ("-1", folder / "1.fq", "-2", folder / "2.fq", "-o", output, "--stats", statistics)
    done = map_reads(*files, "--match", 2, "--insert-size", "400,50.5", "--orientation", "FR")
    assert done.rc == 0, done.stderr
    assert json.loads(statistics.read_text())["insert_size"] == {
        "mean": 400.0, "standard_deviation": 50.5, "lowest": 198, "highest": 602,
        "orientation": "FR",
    }  # fmt: skip
    assert max(record.get_tag("AS") for record in records(output) if not record.is_unmapped) == 300
    assert outcome(output)["correct", True] > 2500


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--insert-size", "400"),
            "argument -I/--insert-size: '400': write mean and standard deviation with a comma "
            "between, such as 400,60 (see map_reads.py --help)\n",
        ),
        (
            ("--mismatch", "4"),
            "argument --mismatch: '4' is not a whole number from -100 to -1 "
            "(see map_reads.py --help)\n",
        ),
    ],
)
def test_options_that_cannot_be_used(map_reads, folder, options, message):
    done = map_reads("-1", folder / "1.fq", "-o", "-", *options)
    assert (done.rc, done.stderr) == (2, f"map_reads.py: error: {message}")
