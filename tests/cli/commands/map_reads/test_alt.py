"""bwarp map: a genome with ALT contigs, mapped by the rules of bwa mem."""

import re
import shutil
import subprocess
from collections import defaultdict

import numpy as np
import pysam
import pytest

from tests.helpers.programs.mapped_reads import SCRIPT, check_record, contigs_of, records

LETTERS = np.frombuffer(b"ACGT", np.uint8)


def differing(rng, letters, rate):
    """Return a copy of letters with some of them changed."""
    changed = rng.random(letters.size) < rate
    return np.where(changed, LETTERS[rng.integers(4, size=letters.size)], letters)


@pytest.fixture(scope="module")
def alt(run_program, tmp_path_factory):
    """Make a genome in which 20,000 bases have an ALT copy with an indel, and pairs of it."""
    folder = tmp_path_factory.mktemp("alt")
    rng = np.random.default_rng(5)
    one, two = (LETTERS[rng.integers(4, size=size)] for size in (100_000, 30_000))
    near, far = differing(rng, one[40_000:49_000], 0.006), differing(rng, one[49_000:60_000], 0.03)
    copy = np.concatenate([near, LETTERS[rng.integers(4, size=40)], far])
    contigs = {"chr1": one, "chr2": two, "chr1_x_alt": copy}
    (folder / "genome.fa").write_bytes(
        b"".join(f">{name}\n".encode() + c.tobytes() + b"\n" for name, c in contigs.items())
    )
    turned = bytes.maketrans(b"ACGT", b"TGCA")
    with open(folder / "1.fq", "wb") as first, open(folder / "2.fq", "wb") as second:
        for name, source in (("both", one[39_000:61_000]), ("alt", copy), ("chr2", two)):
            for number in range(500 if name != "chr2" else 100):
                size = int(rng.normal(400, 40))
                start = int(rng.integers(source.size - size))
                ends = [differing(rng, source[start : start + 150], 0.004).tobytes()]
                end = differing(rng, source[start + size - 150 : start + size], 0.004)
                ends.append(end.tobytes().translate(turned)[::-1])
                for file, letters in zip((first, second), ends, strict=True):
                    file.write(
                        b"@%s_%d\n%s\n+\n%s\n" % (name.encode(), number, letters, b"I" * 150)
                    )
    index = ("index_reference.py", "genome.fa", "--backend", "cpu")
    done = run_program(*index, "-o", "plain", cwd=folder)
    assert "warning: 1 contig looks like ALT contigs (chr1_x_alt), but none" in done.stderr
    (folder / "genome.fa.alt").write_text("chr1_x_alt\t0\tchr1\t40001\t60\t*\n")
    done = run_program(*index, "-o", "known", cwd=folder)
    assert done.stderr.startswith("1 contig is an ALT contig, as listed in genome.fa.alt\n")

    def run(index, *arguments):
        reads = ("-1", "1.fq", "-2", "2.fq", "-o", "-", "--threads", 1)
        arguments = (SCRIPT, "--index", index, *reads, "--backend", "cpu", *arguments)
        return run_program(*arguments, cwd=folder)

    return folder, run


@pytest.fixture(scope="module")
def known(alt):
    """Return the SAM of the pairs, mapped with an index that knows the ALT contig."""
    folder, run = alt
    done = run("known")
    assert done.rc == 0
    assert "warning" not in done.stderr
    (folder / "known.sam").write_text(done.stdout)
    return folder / "known.sam"


def by_read(path):
    lines = defaultdict(list)
    for record in records(path):
        lines[record.query_name, record.is_read2].append(record)
    return lines


def test_a_copy_lowers_no_quality(alt, known):
    folder, _run = alt
    contigs = contigs_of(folder / "genome.fa")
    shares = 0
    for lines in by_read(known).values():
        first, *others = lines
        check_record(first, contigs)
        if first.query_name.startswith("both"):
            assert (first.reference_name, first.is_proper_pair) == ("chr1", True)
            assert first.mapping_quality >= 30
        for other in others:
            assert other.is_supplementary
            if other.reference_name != "chr1_x_alt":
                continue
            # It has all bases, and its own quality.
            assert other.query_length == 150
            assert "chr1_x_alt," in first.get_tag("SA")
            share = first.get_tag("AS") / other.get_tag("AS")
            assert first.get_tag("pa") == pytest.approx(share, abs=0.0006)
            assert share < 1
            shares += 1
    assert shares > 500
    with pysam.AlignmentFile(known) as file:
        assert [line.get("AH") for line in file.header.to_dict()["SQ"]] == [None, None, "*"]


def test_reads_of_the_copy_are_also_searched_at_its_origin(known):
    """Many have a mismatch in each seed that is searched before they are found on the copy."""
    lines = by_read(known)
    there = [lines[read][0] for read in lines if read[0].startswith("alt")]
    assert {read.reference_name for read in there} == {"chr1"}


def test_secondary_records_are_of_the_primary_assembly(alt, known, tmp_path):
    """As in bwa mem -a, a read with other hits has no secondary record on an ALT contig."""
    _, run = alt
    (tmp_path / "all.sam").write_text(run("known", "--all").stdout)
    found = records(tmp_path / "all.sam")
    assert [record.to_string() for record in found if not record.is_secondary] == [
        re.sub(r"\tXA:Z:\S+", "", record.to_string()) for record in records(known)
    ]
    assert not any(r.is_secondary and r.reference_name == "chr1_x_alt" for r in found)
    # If the contig is like the others, there are hundreds.
    (tmp_path / "plain.sam").write_text(run("known", "--alt", "none", "--all").stdout)
    on_copy = [r for r in records(tmp_path / "plain.sam") if r.is_secondary]
    assert sum(record.reference_name == "chr1_x_alt" for record in on_copy) > 300


def test_alt_contigs_may_be_given_to_map(alt, known):
    folder, run = alt
    (folder / "list").write_text("chr1_x_alt\nchr9_x_alt\n")
    for typed in ("chr1_x_alt", "list"):
        done = run("plain", "--alt", typed)
        assert (done.rc, done.stdout) == (0, known.read_text())
    plain = run("plain")
    assert "warning: 1 contig looks like ALT contigs (chr1_x_alt), but none" in plain.stderr
    none = run("known", "--alt", "none")
    assert "warning" not in none.stderr
    assert none.stdout == plain.stdout
    # Otherwise many reads of both copies have qualities from 0 to 29.
    (folder / "plain.sam").write_text(plain.stdout)
    low = sum(
        lines[0].mapping_quality < 30
        for (name, _), lines in by_read(folder / "plain.sam").items()
        if name.startswith("both")
    )
    assert low > 100


def test_a_wrong_list_is_refused(alt):
    folder, run = alt
    (folder / "wrong").write_text("6_alt\n")
    done = run("known", "--alt", "wrong")
    assert (done.rc, done.stdout) == (1, "")
    assert "wrong: no name in its first column is a contig of the reference" in (done.stderr)
    done = run("known", "--alt", "chr7_alt")
    assert (done.rc, done.stdout) == (2, "")
    assert "--alt chr7_alt: no such contig or file" in done.stderr


@pytest.mark.skipif(shutil.which("bwa") is None, reason="needs bwa")
def test_records_are_those_of_bwa(alt, known):
    folder, _ = alt
    subprocess.run(["bwa", "index", "genome.fa"], cwd=folder, check=True, capture_output=True)
    command = ["bwa", "mem", "-o", "bwa.sam", "genome.fa", "1.fq", "2.fq"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    ours, theirs = by_read(known), by_read(folder / "bwa.sam")
    assert ours.keys() == theirs.keys()

    def facts(lines):
        """Return positions of a read's lines, which one has pa, and which have high qualities."""
        return [
            (r.flag, r.reference_name, r.reference_start, r.cigarstring, r.query_sequence,
             r.has_tag("pa"), r.mapping_quality >= 30)
            for r in lines if r.reference_name == "chr1_x_alt" or not r.is_supplementary
        ]  # fmt: skip

    # Different clipping at the indel is unrelated to ALT contigs.
    agree = sum(facts(ours[read]) == facts(theirs[read]) for read in ours)
    assert agree >= 0.98 * len(ours)
    for read in ours:
        if read[0].startswith("both"):
            assert (ours[read][0].mapping_quality >= 30) >= (theirs[read][0].mapping_quality >= 30)
