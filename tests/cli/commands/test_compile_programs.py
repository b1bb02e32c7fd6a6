"""bwarp compile compiles the functions of all programs, or of the named ones."""

import pytest

from bwarp.cli.commands import compile_programs as program
from bwarp.cli.first_use.listed_functions import functions_of_programs, listed_functions
from tests.helpers.programs.programs_here import run_here


@pytest.fixture
def compiled(monkeypatch):
    """Record what would be compiled."""
    compiled = []
    monkeypatch.setattr(program, "compile_missing", lambda *words: compiled.append(words))
    return compiled


def test_named_programs_or_all_are_compiled(compiled, tmp_path):
    assert run_here("compile_programs", "map", "index", folder=tmp_path).rc == 0
    assert run_here("compile_programs", folder=tmp_path).rc == 0
    every = program.programs_of_table()
    assert {"allmap", "map", "merge", "offtargets", "primers", "simulate-reads"} < set(every)
    assert compiled == [
        (functions_of_programs(names), names, 1, None) for names in (["map", "index"], every)
    ]


def test_a_program_that_calls_no_compiled_function_is_refused(compiled, tmp_path):
    done = run_here("compile_programs", "map", "doctor", folder=tmp_path)
    assert (done.rc, compiled) == (2, [])
    assert "error: program doctor is not one of allmap, " in done.last_line


def test_where_no_code_can_be_kept_nothing_is_compiled(compiled, tmp_path, monkeypatch):
    monkeypatch.setattr(program, "code_folder", lambda: None)
    done = run_here("compile_programs", "map", folder=tmp_path)
    assert (done.rc, compiled) == (2, [])
    assert done.last_line.endswith(
        "error: compiled code cannot be stored: set NUMBA_CACHE_DIR to a folder that only you "
        "can write"
    )


def test_the_demo_needs_less(compiled, tmp_path):
    assert run_here("compile_programs", "--demo", folder=tmp_path).rc == 0
    [(functions, kernels, _)] = compiled
    known = {kind for one in listed_functions() for kind in one.kinds}
    assert known >= set(program.DEMO)
    assert all(set(one.kinds) & set(program.DEMO) for one in functions)
    assert len(functions) == len(set(functions)) > 50
    assert not kernels
