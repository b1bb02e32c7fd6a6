"""The runs recorded in the table of functions succeed, and the table has all functions called."""

import json

import pytest

from bwarp.cli.commands import compile_programs
from bwarp.cli.first_use.listed_functions import listed_functions
from bwarp.cli.subcommands import SUBCOMMANDS
from tests.helpers.first_use.runs import FURTHER, INDEXING, RUNS
from tests.helpers.first_use.small_data import write_data
from tests.helpers.programs.programs_here import run_here


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


def noted(data, program_servers, notes, *lines) -> tuple[str, set]:
    """Return the kind of the last line, and the functions that all lines call."""
    command = ["-m", "tests.helpers.first_use.recording", notes, *lines]
    rc, said, _ = next(program_servers).run(command, cwd=data, merged=True)
    assert rc == 0, said
    kind, called = json.loads(notes.read_text())
    return kind, {(name, types) for name, types in called}


@pytest.mark.parametrize("name", RUNS)
def test_the_table_has_what_the_first_use_calls(data, run_program, program_servers, name, tmp_path):
    """If it fails, renew the table: python -m tests.helpers.first_use.recording."""
    prepare(data, run_program)
    for line in RUNS[name]:
        kind, called = noted(data, program_servers, tmp_path / "notes", line)
        listed = [one for one in listed_functions() if kind in one.kinds]
        assert called <= {(one.function, one.types) for one in listed}, kind


@pytest.mark.parametrize("name", FURTHER)
def test_nothing_is_left_to_compile_after_bwarp_compile(
    data, run_program, program_servers, name, tmp_path
):
    """For all programs and options, the functions called are in the table and are compiled."""
    prepare(data, run_program)
    _, called = noted(data, program_servers, tmp_path / "notes", *FURTHER[name])
    assert called <= {(one.function, one.types) for one in listed_functions()}


def test_bwarp_compile_compiles_the_whole_table(monkeypatch, tmp_path):
    compiled = []
    monkeypatch.setattr(
        compile_programs, "compile_missing", lambda functions, *_: compiled.extend(functions)
    )
    assert run_here("compile_programs", "--backend", "cpu", folder=tmp_path).rc == 0
    assert compiled == listed_functions()


def prepare(data, run_program):
    """Make the inputs for runs of other groups."""
    if not (data / "index").exists():
        run_lines(data, run_program, *RUNS[INDEXING], *FURTHER["indexes"])


def run_lines(folder, run_program, *lines):
    for line in lines:
        subcommand, *words = line.split()
        done = run_program(f"{SUBCOMMANDS[subcommand].program}.py", *words, cwd=folder)
        assert done.rc == 0, done.stderr


def test_reads_of_every_kind_are_among_the_data(data, run_program):
    prepare(data, run_program)
    words = ("--index", "index", "-1", "1.fq", "-2", "2.fq", "-o", "-")
    done = run_program("map_reads.py", *words, cwd=data)
    lines = [line.split("\t") for line in done.stdout.splitlines() if line[0] != "@"]
    flags = [int(line[1]) for line in lines]
    cigars = "".join(line[5] for line in lines)
    assert all(sum(flag & bit > 0 for flag in flags) > 10 for bit in (0x2, 0x4, 0x10, 0x800))
    assert {"M", "S", "I", "D"} <= set(cigars)
