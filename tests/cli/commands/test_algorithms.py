"""The papers' algorithms, in programs and in Python: the same results as by default."""

import numpy as np
import pandas as pd
import pytest

import bwarp
from tests.helpers.programs.programs_here import run_here

#: Command lines without files and algorithm, and the algorithm of a paper.
PAIRS = ("align_pairs", "--queries", "q.fa", "--references", "r.fa", "--mode", "gatk")
SEARCH = ("search_database", "--queries", "q.fa", "--database", "r.fa", "--top", 3)
RUNS = {
    "pairs, softclip": (PAIRS, "run-lengths"),
    "pairs, indel": ((*PAIRS, "--overhang", "indel"), "run-lengths"),
    "search, affine gaps": ((*SEARCH, "--evalue"), "prefix-scan"),
    "search, linear gaps": ((*SEARCH, "--gap-open", 0, "--gap-extend", 4), "prefix-scan"),
}


def related(rng, count, longest):
    """Return sequences, and parts of them with changes, a deletion and foreign ends, by name."""
    letters = np.array(list("ACGT"))
    references, queries = {}, {}
    for i in range(count):
        reference = rng.choice(letters, rng.integers(8, longest))
        query = reference[rng.integers(0, reference.size // 2) :].copy()
        if i % 4:
            query[rng.integers(0, query.size)] = rng.choice(letters)
        if i % 2:
            query = np.delete(query, slice(query.size // 2, query.size // 2 + i))
        references[f"r{i}"] = "".join(reference)
        queries[f"q{i}"] = "".join(query) + "".join(rng.choice(letters, i % 3))
    return queries, references


@pytest.fixture
def folder(tmp_path):
    for name, records in zip("qr", related(np.random.default_rng(7), 9, 40), strict=True):
        text = "".join(f">{key}\n{letters}\n" for key, letters in records.items())
        (tmp_path / f"{name}.fa").write_text(text)
    return tmp_path


@pytest.fixture
def pretended(monkeypatch):
    """Simulate a GPU for programs and functions; record which algorithms have run."""
    from bwarp.alignment import gatk_run_lengths_cuda
    from bwarp.database_search import prefix_scan_cuda
    from tests.helpers.gpu.emulated_alignment import pretend

    pretend(monkeypatch)
    called = []

    def record(algorithm, module, function):
        run = getattr(module, function)
        monkeypatch.setattr(
            module, function, lambda *a, **named: called.append(algorithm) or run(*a, **named)
        )

    record("run-lengths", gatk_run_lengths_cuda, "gatk_alignments")
    record("prefix-scan", prefix_scan_cuda, "search_scores")
    for command in ("align_pairs", "search_database"):
        module = f"bwarp.cli.commands.{command}"
        monkeypatch.setattr(f"{module}.choose_engine", lambda *_: "cuda")
        monkeypatch.setattr(f"{module}.compile_first", lambda *_: None)
    monkeypatch.setattr("bwarp.api.engine.choose_backend", lambda _: "cuda")
    return called


@pytest.mark.parametrize("name", RUNS)
def test_a_pretended_gpu_gives_the_bytes_of_the_default(request, folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    arguments, algorithm = RUNS[name]
    assert run_here(*arguments, "-o", "expected.tsv", folder=folder).rc == 0
    called = request.getfixturevalue("pretended")
    done = run_here(*arguments, "-o", "o.tsv", "--algorithm", algorithm, folder=folder)
    assert set(called) == {algorithm}
    assert (done.rc, " on cuda" in done.last_line) == (0, True), done.said
    assert (folder / "o.tsv").read_bytes() == (folder / "expected.tsv").read_bytes()
    assert (folder / "o.tsv").read_text().count("\n") >= 10


@pytest.mark.gpu
@pytest.mark.parametrize("name", RUNS)
def test_a_gpu_gives_the_bytes_of_the_default(run_program, tmp_path, name):
    for file, records in zip("qr", related(np.random.default_rng(8), 400, 900), strict=True):
        text = "".join(f">{key}\n{letters}\n" for key, letters in records.items())
        (tmp_path / f"{file}.fa").write_text(text)
    (program, *arguments), algorithm = RUNS[name]
    runs = {
        "cpu.tsv": ("--backend", "cpu"),
        "gpu.tsv": ("--backend", "cuda"),
        "default.tsv": (),
        "o.tsv": ("--algorithm", algorithm),
    }
    for output, more in runs.items():
        done = run_program(f"{program}.py", *arguments, "-o", output, *more, cwd=tmp_path)
        assert done.rc == 0, done.stderr
    tables = {(tmp_path / output).read_bytes() for output in runs}
    assert len(tables) == 1


def test_from_python(request, folder):
    queries, references = folder / "q.fa", folder / "r.fa"
    expected = (
        bwarp.align_pairs(queries, references, mode="gatk", backend="cpu"),
        bwarp.search(queries, references, backend="cpu"),
    )
    called = request.getfixturevalue("pretended")
    found = (
        bwarp.align_pairs(queries, references, mode="gatk", algorithm="run-lengths"),
        bwarp.search(queries, references, algorithm="prefix-scan"),
    )
    assert set(called) == {"run-lengths", "prefix-scan"}
    for got, frame in zip(found, expected, strict=True):
        pd.testing.assert_frame_equal(got, frame)
