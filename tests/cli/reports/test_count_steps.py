"""bwarp count-steps: the certificate of completeness as a table, with the seconds of steps."""

import json
from dataclasses import asdict

import pytest

from bwarp.allmap.find import Certificate
from bwarp.runtime.progress import compiling_took
from tests.helpers.programs.programs_here import run_here


@pytest.fixture
def stats(tmp_path):
    path = tmp_path / "s.stats.json"
    path.write_text(json.dumps(asdict(Certificate(reads=7, parts=70, dropped=5, aligned=6))))
    return path


def test_numbers_and_seconds(stats, tmp_path):
    times = []
    for step, name, seconds in (
        ("seed_reads", "merge_loci/1/0.1", "1.25"),
        ("seed_reads", "merge_loci/1/1.1", "2"),
        ("batch_reads", "merge_loci/1", "0.04"),
    ):
        times.append(tmp_path / step / f"{name}.benchmark.tsv")
        times[-1].parent.mkdir(parents=True, exist_ok=True)
        times[-1].write_text(f"s\th:m:s\n{seconds}\t0:00:01\n")
    out = tmp_path / "o.tsv"
    done = run_here("count_steps", stats, "-o", out, "--times", *times, folder=tmp_path)
    assert done.rc == 0, done.said
    rows = [line.split("\t") for line in out.read_text().splitlines()]
    assert rows[0] == ["step", "counted", "number", "seconds"]
    assert rows[1] == ["batch_reads", "reads", "7", "0.0"]
    assert rows[2] == ["seed_reads", "parts of reads searched", "70", "3.2"]
    assert rows[9] == ["merge_loci", "reads with loci", "6", ""]
    assert rows[4] == ["filter_candidates", "hits dropped by the bound", "5", ""]


def test_seconds_do_not_include_compiling(stats, tmp_path):
    """In the first jobs on a machine, compiling takes nearly all the time."""
    (tmp_path / "seed_reads").mkdir()
    times = [tmp_path / "seed_reads" / f"{batch}.1.benchmark.tsv" for batch in (0, 1)]
    for path, seconds in zip(times, (14.5, 2.0), strict=True):
        path.write_text(f"s\th:m:s\n{seconds}\t0:00:01\n")
    said = "100 reads done, 50 per second\n" + compiling_took(12.3) + "\n70 parts\n"
    (tmp_path / "seed_reads" / "0.1.log").write_text(said)
    out = tmp_path / "o.tsv"
    done = run_here("count_steps", stats, "-o", out, "--times", *times, folder=tmp_path)
    assert done.rc == 0, done.said
    assert out.read_text().splitlines()[2].endswith("\t70\t4.2")


def test_other_counts_are_refused(tmp_path):
    (tmp_path / "s.stats.json").write_text("{}")
    out = tmp_path / "o.tsv"
    done = run_here("count_steps", tmp_path / "s.stats.json", "-o", out, folder=tmp_path)
    assert (done.rc, done.left) == (1, ["s.stats.json"])
    assert done.last_line.endswith("not statistics of a search for loci: make them again")
