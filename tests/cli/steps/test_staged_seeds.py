"""batch_reads.py, seed_reads.py and locate_seeds.py in a row write what find_seeds.py writes."""

import shutil

import numpy as np
import pytest

from bwarp.index.store import save_index
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.oracles.seed_hits_oracle import GENOMES
from tests.helpers.programs.refusal import refusal


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an index, reads, and their packed k-mers."""
    folder = tmp_path_factory.mktemp("staged")
    save_index(index_of(GENOMES["repeats"]), folder / "index")
    genome = b"".join(GENOMES["repeats"]).decode()
    rng = np.random.default_rng(2)
    with (folder / "reads.fa").open("w") as file:
        for i in range(300):
            start = int(rng.integers(0, len(genome) - 40))
            letter = "N" if i % 9 == 0 else "A"
            read = genome[start : start + 20] + letter + genome[start + 21 : start + 40]
            file.write(f">read{i} x\n{read[: int(rng.integers(4, 41))]}\n")
    return folder


def tables(output) -> list[bytes]:
    return [output.with_suffix(s).read_bytes() for s in (".tsv", ".over.tsv", ".skipped.tsv")]


@pytest.mark.parametrize(
    ("cut", "search", "locate_modes"),
    [
        (("-k", 12, "--step", 3), ("--mismatches", 1, "--max-hits", 30), ("cpu", "hybrid")),
        ((), ("--mismatches", 2, "--max-hits", 0), ("hybrid",)),
    ],
)
def test_three_stages_are_one_run(run_program, folder, tmp_path, cut, search, locate_modes):
    def run(script, *arguments):
        done = run_program(script, *arguments, cwd=tmp_path)
        assert (done.rc, done.stdout) == (0, "")
        return done.stderr.splitlines()[-1]  # before it, warnings and the progress of a slow run

    index, reads = ("--index", folder / "index"), ("--queries", folder / "reads.fa")
    said = run("find_seeds.py", *index, *reads, "-o", "one.tsv", *cut, *search, "--backend", "cpu")
    expected = tables(tmp_path / "one.tsv")
    assert all(table.count(b"\n") > 1 for table in expected[::2])
    run("batch_reads.py", *reads, "-o", "kmers", *cut)
    for threads, locate in enumerate(locate_modes, 1):
        more = ("--locate", locate, "--threads", threads, "--backend", "cpu")
        run("seed_reads.py", *index, "--kmers", "kmers", "-o", "seeds", *search, *more)
        again = run("locate_seeds.py", *index, "--seeds", "seeds", "-o", "staged.tsv")
        assert tables(tmp_path / "staged.tsv") == expected
        assert again == said


@pytest.mark.gpu
@pytest.mark.parametrize("cut", [("-k", 12, "--step", 3), ()])
def test_a_gpu_writes_the_same(run_program, folder, tmp_path, cut):
    index, reads = ("--index", folder / "index"), ("--queries", folder / "reads.fa")
    search = ("--mismatches", 1, "--max-hits", 30)

    def run(script, *arguments):
        done = run_program(script, *arguments, cwd=tmp_path)
        assert done.rc == 0, done.stderr

    run("find_seeds.py", *index, *reads, "-o", "cpu.tsv", *cut, *search, "--backend", "cpu")
    expected = tables(tmp_path / "cpu.tsv")
    for locate in ("gpu", "hybrid", "cpu"):
        more = ("--locate", locate, "--backend", "cuda")
        run("find_seeds.py", *index, *reads, "-o", "gpu.tsv", *cut, *search, *more)
        assert tables(tmp_path / "gpu.tsv") == expected
    run("batch_reads.py", *reads, "-o", "kmers", *cut)
    run("seed_reads.py", *index, "--kmers", "kmers", "-o", "seeds", *search, "--backend", "cuda")
    run("locate_seeds.py", *index, "--seeds", "seeds", "-o", "staged.tsv")
    assert tables(tmp_path / "staged.tsv") == expected


def test_what_is_not_what_is_asked_for(
    run_program, checkout, monkeypatch, capsys, folder, tmp_path
):
    reads = folder / "reads.fa"
    kmers, seeds = tmp_path / "kmers", tmp_path / "seeds"
    index = ("--index", folder / "index")
    assert run_program("batch_reads.py", "--queries", reads, "-o", kmers).rc == 0
    found = ("seed_reads.py", *index, "--kmers", kmers, "-o", seeds, "--backend", "cpu")
    assert run_program(*found).rc == 0
    before = sorted(tmp_path.iterdir())

    def refused(script, *arguments) -> tuple[int, str]:
        rc, said = refusal(checkout / "scripts" / script, arguments, monkeypatch, capsys)
        assert said.startswith(f"{script}: error: ")
        assert sorted(tmp_path.iterdir()) == before
        return rc, said.removeprefix(f"{script}: error: ")

    output = tmp_path / "out.tsv"
    assert refused("batch_reads.py", "--queries", reads, "-o", output, "--step", 2) == (
        2,
        "--step is for cut k-mers: give their length with -k, or leave it out\n",
    )
    assert refused("seed_reads.py", *index, "--kmers", seeds, "-o", output) == (
        1,
        f"{seeds}: not a file of k-mers: make one with scripts/batch_reads.py\n",
    )
    on_gpu = ("--locate", "gpu", "--backend", "cpu")
    assert refused("seed_reads.py", *index, "--kmers", kmers, "-o", output, *on_gpu) == (
        2,
        "locate gpu needs a GPU, and the backend is cpu: use --locate cpu or hybrid\n",
    )
    assert refused("locate_seeds.py", *index, "--seeds", kmers, "-o", output) == (
        1,
        f"{kmers}: not a file of seeds: make one with scripts/seed_reads.py\n",
    )
    assert refused("locate_seeds.py", *index, "--seeds", seeds, "-o", tmp_path / "x.sam") == (
        2,
        f"{tmp_path}/x.sam: the ending says no format: "
        "use .tsv, .bed, .tsv.gz, .bed.gz or .parquet\n",
    )
    other = folder / "other"
    save_index(index_of(GENOMES["random"]), other)
    assert refused("locate_seeds.py", "--index", other, "--seeds", seeds, "-o", output) == (
        1,
        f"{seeds}: these seeds were found in another index than {other}: "
        "give that one, or find them again with scripts/seed_reads.py\n",
    )
    shutil.rmtree(other)
    seeds.write_bytes(seeds.read_bytes()[:-5])
    assert refused("locate_seeds.py", *index, "--seeds", seeds, "-o", output) == (
        1,
        f"{seeds}: the file is damaged or cut off: make it again\n",
    )
