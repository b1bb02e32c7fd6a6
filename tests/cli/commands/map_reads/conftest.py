"""A genome with copies, its index, its reads, and their alignments."""

import re

import pytest

from tests.helpers.programs.mapped_reads import SCRIPT, contigs_of


@pytest.fixture(scope="module")
def folder(run_program, tmp_path_factory):
    """Write genome.fa with copies, its index, and 1,500 pairs and 1,000 single reads."""
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
    """Return the SAM of the pairs, and the messages."""
    output, group = folder / "pairs.sam", r"@RG\tID:g1\tSM:s"
    done = run_program(
        SCRIPT, "--index", "index", "-1", "1.fq", "-2", "2.fq", "-o", output, "--read-group", group,
        "--stats", "pairs.json", "--backend", "cpu", "--threads", 1, cwd=folder,
    )  # fmt: skip
    assert (done.rc, done.stdout) == (0, "")
    return output, done.stderr
