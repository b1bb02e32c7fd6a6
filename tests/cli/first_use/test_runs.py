"""The runs that the table of functions is made of go well, and it has what they call."""

import json

import pytest

from bwarp.cli.first_use.listed_functions import listed_functions
from bwarp.cli.first_use.runs import MORE_KINDS, RUNS
from bwarp.cli.first_use.small_data import write_data
from bwarp.cli.subcommands import SUBCOMMANDS


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.mark.parametrize("name", RUNS)
def test_the_runs_go_well_and_the_table_has_what_they_call(
    data, run_program, program_servers, name, tmp_path
):
    """Where it has not, make it again: python -m bwarp.cli.first_use.recording."""
    if "index" in " ".join(RUNS[name]).split() and not (data / "index").exists():
        run_lines(data, run_program, "an index")
    for line in (*RUNS[name], *MORE_KINDS.get(name, ())):
        record = ["-m", "bwarp.cli.first_use.recording", tmp_path / "notes"]
        rc, said, _ = next(program_servers).run([*record, *line.split()], cwd=data, merged=True)
        assert rc == 0, said
        kind, notes = json.loads((tmp_path / "notes").read_text())
        called = {(name, types) for name, types, _ in notes}
        listed = [one for one in listed_functions([kind]) if kind in one.kinds]
        assert called <= {(one.function, one.types) for one in listed}, kind


def run_lines(folder, run_program, name):
    for line in RUNS[name]:
        subcommand, *words = line.split()
        done = run_program(f"{SUBCOMMANDS[subcommand].program}.py", *words, cwd=folder)
        assert done.rc == 0, done.stderr


def test_reads_of_every_kind_are_among_the_data(data, run_program):
    if not (data / "index").exists():
        run_lines(data, run_program, "an index")
    words = ("--index", "index", "-1", "1.fq", "-2", "2.fq", "-o", "-")
    done = run_program("map_reads.py", *words, cwd=data)
    lines = [line.split("\t") for line in done.stdout.splitlines() if line[0] != "@"]
    flags = [int(line[1]) for line in lines]
    cigars = "".join(line[5] for line in lines)
    assert all(sum(flag & bit > 0 for flag in flags) > 10 for bit in (0x2, 0x4, 0x10, 0x800))
    assert {"M", "S", "I", "D"} <= set(cigars)
