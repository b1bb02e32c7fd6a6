"""bwarp map --hic: pairs over ligations, as bwa mem -5SP maps them."""

import json
import shutil
import subprocess
from collections import defaultdict

import numpy as np
import pytest

from tests.helpers.programs.mapped_reads import SCRIPT, check_record, contigs_of, records

LETTERS = np.frombuffer(b"ACGT", np.uint8)
TURNED = bytes.maketrans(b"ACGT", b"TGCA")


@pytest.fixture(scope="module")
def ligated(run_program, tmp_path_factory):
    """Return pairs from two ligated fragments; their names contain the origins of the fragments."""
    folder = tmp_path_factory.mktemp("hic")
    rng = np.random.default_rng(3)
    contigs = [LETTERS[rng.integers(4, size=60_000)].tobytes() for _ in range(2)]
    (folder / "genome.fa").write_bytes(b">c0\n%s\n>c1\n%s\n" % tuple(contigs))

    def fragment(size):
        contig, start = int(rng.integers(2)), int(rng.integers(60_000 - size))
        letters = contigs[contig][start : start + size]
        if rng.random() < 0.5:
            return f"c{contig}.{start}.{start + size}.f", letters
        return f"c{contig}.{start}.{start + size}.r", letters.translate(TURNED)[::-1]

    with open(folder / "1.fq", "wb") as first, open(folder / "2.fq", "wb") as second:
        for number in range(600):
            one, two = (fragment(int(size)) for size in rng.integers(75, 400, 2))
            whole = one[1] + two[1]
            name = f"{number}:{one[0]}:{two[0]}".encode()
            for file, letters in ((first, whole), (second, whole.translate(TURNED)[::-1])):
                file.write(b"@%s\n%s\n+\n%s\n" % (name, letters[:150], b"I" * 150))
    done = run_program("index_reference.py", "genome.fa", "-o", "index", cwd=folder)
    assert done.rc == 0, done.stderr

    def run(*arguments):
        return run_program(SCRIPT, "--index", "index", *arguments, "--backend", "cpu", cwd=folder)

    done = run("-1", "1.fq", "-2", "2.fq", "--hic", "-o", "out.sam", "--stats", "out.json")
    assert (done.rc, done.stderr) == (0, "1,200 reads, 1,200 mapped, 0 properly paired\n")
    return folder, run


def by_read(path):
    lines = defaultdict(list)
    for record in records(path):
        lines[record.query_name, record.is_read2].append(record)
    return lines


def test_the_5_prime_part_is_primary(ligated):
    folder, _ = ligated
    contigs = contigs_of(folder / "genome.fa")
    n_split = 0
    for (name, is_second), lines in by_read(folder / "out.sam").items():
        fragments = name.split(":")[1:]
        contig, start, stop, strand = fragments[is_second].split(".")
        first, *others = lines
        check_record(first, contigs)
        assert first.mapping_quality >= 30
        assert not first.is_proper_pair
        assert first.reference_name == contig
        assert int(start) - 5 <= first.reference_start < first.reference_end <= int(stop) + 5
        # In read 2 the fragments are reversed.
        assert first.is_reverse == ((strand == "r") != is_second)
        left = 150 - (int(stop) - int(start))
        if left >= 40:
            (other,) = others
            assert other.is_supplementary
            assert other.mapping_quality >= 30
            assert other.reference_name == fragments[not is_second].split(".")[0]
            n_split += 1
        elif left < 25:
            assert not others
    assert n_split > 50
    assert json.loads((folder / "out.json").read_text())["insert_size"] is None


@pytest.mark.skipif(shutil.which("bwa") is None, reason="needs bwa")
def test_records_are_those_of_bwa(ligated):
    folder, _ = ligated
    subprocess.run(["bwa", "index", "genome.fa"], cwd=folder, check=True, capture_output=True)
    command = ["bwa", "mem", "-5SP", "-o", "bwa.sam", "genome.fa", "1.fq", "2.fq"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    ours, theirs = by_read(folder / "out.sam"), by_read(folder / "bwa.sam")

    def facts(lines):
        return [
            (r.flag, r.reference_name, r.reference_start, r.cigarstring, r.template_length,
             r.mapping_quality >= 30, r.get_tag("SA").split(",")[0] if r.has_tag("SA") else None)
            for r in lines
        ]  # fmt: skip

    # A part of about 30 bases may be found by only one of both.
    assert sum(facts(ours[read]) == facts(theirs[read]) for read in theirs) >= 0.98 * len(theirs)


def test_options_that_conflict_with_hic(ligated):
    _, run = ligated
    done = run("-1", "1.fq", "-o", "-", "--hic")
    assert (done.rc, done.stdout) == (2, "")
    assert "--hic requires pairs: use -2 or --interleaved" in done.stderr
    for option in (("--insert-size", "400,50"), ("--orientation", "FR")):
        done = run("-1", "1.fq", "-2", "2.fq", "-o", "-", "--hic", *option)
        assert (done.rc, done.stdout) == (2, "")
        assert ("--hic cannot be combined with --insert-size or --orientation") in done.stderr
