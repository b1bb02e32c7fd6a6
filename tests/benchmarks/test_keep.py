"""Lines of a run replace older lines of the same jobs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "benchmarks"))

from frame.table import benchmarks  # noqa: E402
from keep import merged, programs_of  # noqa: E402


def line(what: str, program: str, seconds: float, **more) -> dict:
    return {"what": what, "program": program, "seconds": seconds, "commit": "0123456789"} | more


def test_a_job_is_replaced_where_it_stood():
    before = [line("a", "bwarp", 1), line("b", "bwarp", 2), line("a", "bwa", 3)]
    now = [line("c", "bwarp", 6), line("a", "bwarp", 4), line("a", "bwa", 5)]
    lines, lacking = merged(before, now, ["what"])
    assert lines == [now[1], now[2], before[1], now[0]]
    assert not lacking


def test_a_job_stays_whole_where_a_program_is_missing():
    before = [line("a", "bwarp", 1), line("a", "mummer", 3), line("b", "bwarp", 1)]
    now = [line("a", "bwarp", 4), line("b", "bwarp", 2), line("b", "bwa", 2)]
    lines, lacking = merged(before, now, ["what"])
    assert lines == [*before[:2], *now[1:]]
    assert lacking == [(("a",), {"mummer"})]


def test_a_library_is_a_program_as_well():
    before = [{"part": "dna", "mode": "local", "parasail_gcups": 3.0}]
    now = [{"part": "dna", "mode": "local"}]
    assert merged(before, now, ["part", "mode"])[0] == before
    assert programs_of(before) == {"parasail"}


def test_references_are_the_same_by_genome_and_by_index():
    before = [line("a", "bwarp", 1, reference="chr20.ix")]
    now = [line("a", "bwarp", 2, reference="chr20.index")]
    assert merged(before, now, ["what", "reference"])[0] == now


def test_without_fields_a_file_is_one_job():
    assert merged([line("a", "bwarp", 1)], [line("b", "bwarp", 2)], [])[0] == [
        line("b", "bwarp", 2)
    ]


@pytest.mark.parametrize("name", [name for name, one in benchmarks().items() if one.job])
def test_the_fields_of_a_job_are_fields_of_lines(name):
    benchmark = benchmarks()[name]
    path = CHECKOUT / "benchmarks/results" / benchmark.results
    known = {key for line in map(json.loads, path.open()) for key in line}
    assert set(benchmark.job) <= known


@pytest.fixture
def keep(tmp_path):
    """Return a function that writes and keeps a run of map: exit code, output and lines."""
    run, kept = tmp_path / "a run", tmp_path / "kept"
    run.mkdir()
    kept.mkdir()
    older = {"reference": "h133.fa", "mapper": "bwarp", "commit": "0123456789", "reads": 1}
    (kept / "map_cpu.json").write_text(json.dumps(older) + "\n")

    def done(of_small=False, described=True, only=(), **fields) -> tuple[int, str, list[dict]]:
        (run / "map_cpu.json").write_text(json.dumps(older | {"reads": 2} | fields) + "\n")
        if described:
            (run / "config.json").write_text(json.dumps({"small": of_small, "only": only}))
        command = [sys.executable, CHECKOUT / "benchmarks/keep.py", run, "--kept", kept]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [json.loads(one) for one in (kept / "map_cpu.json").open()]
        return ended.returncode, ended.stdout + ended.stderr, lines

    return done


def test_a_run_is_kept(keep):
    code, said, lines = keep()
    assert code == 0
    assert said == "map_cpu.json: 1 new lines of 1\n"
    assert [one["reads"] for one in lines] == [2]


def test_files_of_another_run_are_not_kept(keep):
    code, said, lines = keep(only=["seeds"])
    assert (code, said) == (0, "")
    assert [one["reads"] for one in lines] == [1]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"of_small": True}, "has a run of little data"),
        ({"small": True}, "its lines are of little data"),
        ({"described": False}, "only a run of make bench can be kept"),
        ({"commit": "0123456789+"}, "the code of its lines is not that of a commit"),
        ({"commit": None}, "the code of its lines is not that of a commit"),
    ],
)
def test_what_is_not_kept(keep, run, words):
    code, said, lines = keep(**run)
    assert code == 1
    assert words in said
    assert [one["reads"] for one in lines] == [1]
