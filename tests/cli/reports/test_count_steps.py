"""bwarp count-steps: the certificate of completeness as a table, with the seconds of steps."""

import json
from dataclasses import asdict

import pytest

from bwarp.allmap.find import Certificate
from bwarp.runtime.progress import compiling_took, engine_used
from tests.helpers.programs.programs_here import run_here


@pytest.fixture
def stats(tmp_path):
    path = tmp_path / "s.stats.json"
    counts = Certificate(
        reads=7, parts=70, located=20, dropped_by_kmers=5, aligned=6, reads_by_loci=[[3], [0, 3]]
    )
    path.write_text(json.dumps(asdict(counts)))
    return path


def test_numbers_and_seconds(stats, tmp_path):
    times = []
    for step, name, seconds, engine in (
        ("seed_reads", "merge_loci/1/0.1", "1.25", "cuda"),
        ("seed_reads", "merge_loci/1/1.1", "2", "cpu"),
        ("extend_candidates", "merge_loci/1/1.1", "7", "cuda"),
        ("batch_reads", "merge_loci/1", "0.04", ""),
        ("resample_index", "other", "3", ""),
    ):
        times.append(tmp_path / step / f"{name}.benchmark.tsv")
        times[-1].parent.mkdir(parents=True, exist_ok=True)
        times[-1].write_text(f"s\th:m:s\n{seconds}\t0:00:01\n")
        log = times[-1].with_name(times[-1].name.replace(".benchmark.tsv", ".log"))
        log.write_text(f"{engine_used(engine)}\n7 reads: 9 hits\n" if engine else "7 reads\n")
    out, page = tmp_path / "o.tsv", tmp_path / "o.html"
    given = (stats, "-o", out, "--page", page, "--times", *times)
    done = run_here("count_steps", *given, folder=tmp_path)
    assert done.rc == 0, done.said
    rows = [line.split("\t") for line in out.read_text().splitlines()]
    assert rows[0] == ["step", "engine", "takes", "of", "gives", "counted", "seconds"]
    assert {len(row) for row in rows} == {7}
    assert rows[1] == ["batch_reads", "cpu", "7", "reads", "7", "reads", "0.0"]
    of_seeds = ["seed_reads", "cpu, cuda", "7", "reads", "20", "hits of their parts", "3.2"]
    assert rows[2] == of_seeds
    assert rows[3] == ["", "", "7", "reads", "70", "parts of reads searched", ""]
    assert rows[5] == ["filter_candidates", "", "20", "positions", "15", "candidates", ""]
    assert rows[6] == ["", "", "20", "positions", "0", "dropped by histogram", ""]
    assert rows[7] == ["", "", "20", "positions", "5", "dropped by kmers", ""]
    assert rows[8][:2] == ["extend_candidates", "cuda"]
    shown = page.read_text()
    assert "<td>dropped by kmers</td>" in shown
    assert "<title>2 loci: 3</title>" in shown
    assert "From reads to loci" in shown
    for bar in (
        "seed_reads: 20 hits", "filter_candidates: 15 candidates", "merge_loci: 6 reads with loci",
        "batch_reads: 0.0 s, 1 job", "seed_reads: 3.2 s, 2 jobs", "extend_candidates: 7.0 s, 1 job",
    ):  # fmt: skip
        assert f"<title>{bar}</title>" in shown
    assert "5 dropped by kmers (25 %)</li>" in shown


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
    assert out.read_text().splitlines()[2].endswith("\thits of their parts\t4.2")


def test_other_counts_are_refused(tmp_path):
    (tmp_path / "s.stats.json").write_text("{}")
    out = tmp_path / "o.tsv"
    done = run_here("count_steps", tmp_path / "s.stats.json", "-o", out, folder=tmp_path)
    assert (done.rc, done.left) == (1, ["s.stats.json"])
    assert done.last_line.endswith("not statistics of a search for loci: make them again")
