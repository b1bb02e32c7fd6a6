"""compile_programs.py says what is compiled while it goes on, and nothing where all is."""

import pytest

from bwarp.cli.commands import compile_programs as program
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
    assert listed == [(["index", "map"], 1, None), (everything, 1, None)]


def test_a_program_that_is_not_compiled_before_is_refused(listed, tmp_path):
    done = run_here("compile_programs", "map", "doctor", folder=tmp_path)
    assert (done.rc, listed) == (2, [])
    assert done.last_line.endswith(
        "error: program doctor is not one of index, map, allmap, seeds, mems, scan, pairs, search"
    )
