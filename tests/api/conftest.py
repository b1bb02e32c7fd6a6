"""A small genome with its index, and a function that runs a program on it and reads its tables."""

import numpy as np
import pytest

import bwarp
from tests.helpers.cases.small_genome import write_genome
from tests.helpers.programs.programs_here import run_here


@pytest.fixture(scope="session")
def genome(tmp_path_factory):
    """Write a FASTA file of two contigs of 2,000 random bases."""
    return write_genome(tmp_path_factory.mktemp("genome") / "genome.fa", 4_000)


@pytest.fixture(scope="session")
def contigs(genome):
    """Return the letters of the contigs in `genome`, by name."""
    lines = genome.read_text().split()
    return dict(zip((line[1:] for line in lines[::2]), lines[1::2], strict=True))


@pytest.fixture(scope="session")
def index(contigs):
    """Return an index of the same contigs, given in memory."""
    return bwarp.Index.build(contigs, with_reverse=True, backend="cpu", threads=1)


@pytest.fixture(scope="session")
def chunks(genome, tmp_path_factory):
    """Return the folder of an index of the same contigs in chunks of 1,100 bases."""
    folder = tmp_path_factory.mktemp("chunks")
    arguments = (genome, "-o", folder / "chunks", "--chunk-bases", 1_100, "--with-reverse")
    done = run_here("index_reference", *arguments, "--threads", 1, folder=folder)
    assert done.rc == 0, done.said
    return folder / "chunks"


@pytest.fixture(scope="session")
def queries(contigs):
    """Return pieces of the contigs by name, on both strands, some with a mismatch."""
    rng = np.random.default_rng(3)
    opposite = str.maketrans("ACGT", "TGCA")
    found = {}
    for i, start in enumerate(rng.integers(0, 1900, 20)):
        letters = contigs["one" if i % 2 else "two"][start : start + 30]
        if i % 3 == 0:
            letters = letters[:9] + ("A" if letters[9] != "A" else "C") + letters[10:]
        # Names that readers of tables may convert to other types.
        name = ("NA", "007", 'a"b', "1e5")[i] if i < 4 else f"q{i}"
        found[name] = letters.translate(opposite)[::-1] if i % 4 == 0 else letters
    return found


@pytest.fixture
def wrote(tmp_path, monkeypatch, genome, index):
    """Return a function that runs a program on sequences and returns its table.

    ``wrote("find_seeds", "hits.tsv", queries, "--mismatches", 1)`` writes Q.fa, and runs the
    program with the index; records are in the order of the dict.
    """
    monkeypatch.chdir(tmp_path)
    index.save("genome.index", threads=1)

    def run(program, output, *arguments, **files):
        for name, records in files.items():
            text = "".join(f">{key} and more\n{letters}\n" for key, letters in records.items())
            (tmp_path / f"{name}.fa").write_text(text)
        done = run_here(program, *arguments, "-o", output, folder=tmp_path)
        assert done.rc == 0, done.said
        return bwarp.read_table(output)

    return run
