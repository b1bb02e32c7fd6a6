"""bwarp map: unusual reads and contigs, and empty files."""

import json
import shutil
import subprocess

import numpy as np
import pysam
import pytest

from tests.helpers.programs.mapped_reads import check_mates, check_record, records


@pytest.fixture(scope="module")
def odd(run_program, tmp_path_factory):
    """Return an index of contigs that are empty, short, all N, or appear circular."""
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
        # The two halves of such a read are from two loci.
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
        files = ", ".join(str(file) for file in arguments[1::2])
        warning = f"warning: {files}: no reads\n"
        assert (done.rc, done.stderr) == (0, f"0 reads, 0 mapped\n{warning}")
        assert {line[:3] for line in done.stdout.splitlines()} == {"@HD", "@SQ", "@PG"}
    output = tmp_path / "empty.bam"
    done = map_reads("-1", empty, "-o", output, "--sort", "--stats", tmp_path / "empty.json")
    assert (done.rc, records(output)) == (0, [])
    assert json.loads((tmp_path / "empty.json").read_text())["reads"] == 0
