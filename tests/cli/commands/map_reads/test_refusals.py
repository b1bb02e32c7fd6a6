"""bwarp map: its errors, and what remains after an interruption."""

import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

from bwarp.reads.read_chunks import LONGEST_READ
from tests.helpers.programs.mapped_reads import contigs_of, outcome, records

USAGE = [
    (
        ("-o", "out.txt"),
        "out.txt: the output must end in .sam, .bam, .cram, .paf or .paf.gz, or be - for SAM on "
        "standard output",
    ),
    (
        ("--max-secondary", "3", "-o", "out.sam"),
        "--max-secondary requires --all",
    ),
    (
        ("-1", "-", "--regions", "-", "-o", "out.sam"),
        "-: standard input is given for both reads and --regions: use a file for one of them",
    ),
    (("-o", "out.paf", "--sort"), "out.paf: --sort cannot be combined with PAF output"),
    (("-2", "x.fq", "--interleaved", "-o", "-"), "-2 cannot be combined with --interleaved"),
    (
        ("-1", "x.fq", "-2", "./x.fq", "-o", "-"),
        "./x.fq: given with both -1 and -2: for pairs in one file, use --interleaved",
    ),
    (
        ("-1", "-", "-2", "-", "-o", "out.sam"),
        "-: given with both -1 and -2: for pairs in one file, use --interleaved",
    ),
    (
        ("--read-group", "SM:s", "-o", "-"),
        r"read group 'SM:s' is not a line such as '@RG\tID:1\tSM:sample': it must be plain text, "
        "with an ID and each tag at most once",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_usage_errors(map_reads, folder, tmp_path, arguments, message):
    reads = () if "-1" in arguments else ("-1", folder / "1.fq")
    done = map_reads(*reads, *arguments, cwd=tmp_path)
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
        "map_reads.py: error: cut.fq.gz: the compressed file is truncated: download or write it "
        "again\n"
    )
    assert os.listdir(tmp_path) == ["cut.fq.gz"]


@pytest.mark.parametrize(
    ("name", "letters", "message"),
    [
        (
            b"a\x00b", b"ACGT",
            r"read 1: SAM does not allow the read name 'a\x00b' (printable ASCII, no @ at the "
            r"start): rename it",
        ),
        (
            b"long", b"A" * (LONGEST_READ + 1),
            "read 1 ('long') has 10,001 bases, but the maximum is 10,000: use a mapper for long "
            "reads, such as minimap2",
        ),
    ],
)  # fmt: skip
def test_reads_that_are_refused(map_reads, tmp_path, name, letters, message):
    (tmp_path / "r.fa").write_bytes(b">%b\n%b\n" % (name, letters))
    done = map_reads("-1", "r.fa", "-o", "out.sam", cwd=tmp_path)
    assert (done.rc, done.stdout) == (1, "")
    assert done.stderr == f"map_reads.py: error: r.fa, {message}\n"
    assert os.listdir(tmp_path) == ["r.fa"]


def test_the_longest_read_is_mapped_and_reported(map_reads, folder, tmp_path):
    letters = contigs_of(folder / "genome.fa")["chr2"][5000 : 5000 + LONGEST_READ]
    # With gaps, which may be anywhere in the read.
    letters = letters[:3000] + letters[3003:7000] + "ACA" + letters[7000:]
    assert len(letters) == LONGEST_READ
    (tmp_path / "r.fa").write_text(f">r\n{letters}\n")
    done = map_reads("-1", "r.fa", "-o", "out.sam", cwd=tmp_path)
    assert done.rc == 0, done.stderr
    (record,) = records(tmp_path / "out.sam")
    assert (record.reference_name, record.reference_start) == ("chr2", 5000)
    assert re.fullmatch(r"3000M3D399\dM3I300\dM", record.cigarstring)
    assert f"reads of up to {LONGEST_READ:,} bases" in map_reads("--help").stdout


def test_a_wrong_reference_is_reported(run_program, map_reads, folder, tmp_path):
    """If less than a fifth of the reads is mapped, all programs that count reads say so."""
    genome = contigs_of(folder / "genome.fa")["chr2"]
    ours = "".join(f"@{i}\n{genome[5000 + i :][:80]}\n+\n{'I' * 80}\n" for i in range(2))
    letters = random.Random(1).choices("ACGT", k=9 * 80)
    others = "".join(f"@x{i}\n{''.join(letters[80 * i :][:80])}\n+\n{'I' * 80}\n" for i in range(9))
    (tmp_path / "few.fq").write_text(ours + others)
    (tmp_path / "enough.fq").write_text(ours + others.split("@x8")[0])
    warning = (
        "warning: only 2 of 11 reads (18.2 %) are mapped: check that the reads are from this "
        "reference"
    )
    for name, ends in (("few", warning), ("enough", "10 reads, 2 mapped")):
        done = map_reads(
            "-1", f"{name}.fq", "-o", f"{name}.bam", "--sort", "--stats", f"{name}.stats.json",
            cwd=tmp_path,
        )  # fmt: skip
        assert (done.rc, done.stderr.splitlines()[-1]) == (0, ends)
        done = run_program("merge_alignments.py", f"{name}.bam", "-o", "merged.bam", cwd=tmp_path)
        assert done.stderr.splitlines()[-1] == (
            warning if name == "few" else "merged.bam: 1 unit merged"
        )
        done = run_program(
            "find_alignments.py", "--index", folder / "index", "-1", f"{name}.fq", "--edits", 1,
            "-o", f"{name}.tsv", "--stats", f"{name}.stats.json", "--backend", "cpu", cwd=tmp_path,
        )  # fmt: skip
        assert ("warning" in done.stderr) == (name == "few")
        assert done.stderr.endswith(f"{warning}\n") == (name == "few")
        done = run_program("merge_loci.py", f"{name}.tsv", "-o", "merged.tsv", cwd=tmp_path)
        assert done.rc == 0, done.stderr
        assert done.stderr.endswith(f"{warning}\n") == (name == "few")


def test_a_contig_name_that_sam_forbids(run_program, map_reads, folder, tmp_path):
    (tmp_path / "bad.fa").write_text(f">a,b\n{'ACGGT' * 20}\n")
    assert run_program("index_reference.py", "bad.fa", "-o", "bad", cwd=tmp_path).rc == 0
    done = map_reads("-1", folder / "1.fq", "-o", "-", index=tmp_path / "bad")
    assert (done.rc, done.stdout) == (1, "")
    assert done.stderr == (
        "map_reads.py: error: SAM does not allow the contig name 'a,b' (printable ASCII, no "
        "comma, quote or bracket, no * or = at the start): rename it in the reference and index "
        "again\n"
    )


@pytest.mark.parametrize("ending", ["sam", "bam"])
def test_full_disk(map_reads, folder, small_disk, ending):
    output = small_disk / f"out.{ending}"
    done = map_reads("-1", folder / "1.fq", "-2", folder / "2.fq", "-o", output)
    assert (done.rc, done.stdout) == (4, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr == (
        f"map_reads.py: error: {output}: the disk is full: free some space, or write elsewhere, "
        "and run again\n"
    )
    assert os.listdir(small_disk) == []


def start_slowly(folder, output):
    """Start a run that has begun to write and waits for more reads."""
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
    assert said.decode() == ("map_reads.py: error: interrupted: no output file was written\n")
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
            "argument -I/--insert-size: '400' is not a mean and a standard deviation such as "
            "400,60 (see map_reads.py --help)\n",
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
