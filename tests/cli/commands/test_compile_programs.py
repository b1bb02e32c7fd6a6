"""compile_programs.py says what is compiled while it goes on, and nothing where all is."""

import pytest

from bwarp.cli.commands import compile_programs as program
from tests.helpers.programs.programs_here import run_here


@pytest.fixture
def compile_programs(monkeypatch, tmp_path):
    """Run the program with runs that end as listed: None is well."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def call(problems):
        monkeypatch.setattr(program, "RUNS", problems)
        monkeypatch.setattr(program, "run_all", lambda *_: iter(problems.items()))
        return run_here("compile_programs", folder=tmp_path)

    return call


def test_a_second_run_has_nothing_to_do_nor_to_say(compile_programs):
    first = compile_programs({"seeds": None, "a scan": None})
    assert (first.rc, first.said.splitlines()) == (
        0,
        [
            "compiling the programs for this machine, 1 at a time: a minute or two, once",
            "  1 of 2, seeds: compiled after 0 s",
            "  2 of 2, a scan: compiled after 0 s",
        ],
    )
    second = compile_programs({"seeds": "is not run"})
    assert (second.rc, second.said) == (0, "")


def test_what_failed_is_named_and_tried_again_by_the_next_run(compile_programs):
    problem = "find_seeds.py: error: the disk is full"
    for _ in range(2):
        done = compile_programs({"seeds": problem, "a scan": None})
        assert done.rc == 1
        assert f"  1 of 2, seeds: {problem}\n" in done.said
        assert done.last_line == f"compile_programs.py: error: not all could be compiled: {problem}"
    assert compile_programs({"seeds": None}).rc == 0
    assert compile_programs({"seeds": None}).said == ""
