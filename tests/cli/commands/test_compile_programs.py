"""compile_programs.py says what is compiled while it goes on, and nothing where all is."""

from pathlib import Path

import pytest

import bwarp
from bwarp.cli.commands import compile_programs as program
from bwarp.errors import BwarpError
from bwarp.runtime.kept_functions import KeptFunctions
from tests.helpers.programs.programs_here import run_here


@pytest.fixture
def listed(monkeypatch):
    """What functions are compiled of."""
    listed = []
    monkeypatch.setattr(program, "compile_once", lambda *words: listed.append(words))
    return listed


def test_what_is_named_is_compiled_or_all(listed, tmp_path):
    assert run_here("compile_programs", "map", "index", folder=tmp_path).rc == 0
    assert run_here("compile_programs", folder=tmp_path).rc == 0
    everything = ["allmap", "index", "map", "mems", "pairs", "scan", "search", "seeds"]
    assert listed == [(["index", "map"], 1), (everything, 1)]


def test_a_program_that_is_not_compiled_before_is_refused(listed, tmp_path):
    done = run_here("compile_programs", "map", "doctor", folder=tmp_path)
    assert (done.rc, listed) == (2, [])
    assert done.last_line.endswith(
        "error: program doctor is not one of index, map, allmap, seeds, mems, scan, pairs, search"
    )


@pytest.fixture
def compile_kernels(monkeypatch, tmp_path, capfd):
    """Run the programs with runs that end as listed: None is well."""
    kept = KeptFunctions(Path(bwarp.__file__).parent, [tmp_path / "cpu.code"])
    monkeypatch.setattr(program, "kept_functions", lambda: kept)

    def call(problems) -> str:
        monkeypatch.setattr(program, "RUNS", problems)
        monkeypatch.setattr(program, "run_all", lambda *_: iter(problems.items()))
        capfd.readouterr()
        program.compile_kernels("cuda", 2)
        return capfd.readouterr().err

    return call


def test_a_second_run_has_nothing_to_do_nor_to_say(compile_kernels):
    assert compile_kernels({"seeds": None, "a scan": None}).splitlines() == [
        "compiling kernels for the GPU, 2 programs at a time: a minute or two, once",
        "  1 of 2, seeds: compiled after 0 s",
        "  2 of 2, a scan: compiled after 0 s",
    ]
    assert compile_kernels({"seeds": "is not run"}) == ""


def test_what_failed_is_named_and_tried_again_by_the_next_run(compile_kernels):
    problem = "find_seeds.py: error: the disk is full"
    for _ in range(2):
        with pytest.raises(BwarpError, match=f"not all could be compiled: {problem}"):
            compile_kernels({"seeds": problem, "a scan": None})
    assert "seeds: compiled" in compile_kernels({"seeds": None})
    assert compile_kernels({"seeds": None}) == ""
