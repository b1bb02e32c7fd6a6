"""The runs that compile the programs go well, in their order, and say what failed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from bwarp.cli.first_use import runs as compilation_runs
from bwarp.cli.first_use.listed_functions import listed_functions
from bwarp.cli.first_use.runs import MORE_KINDS, RUNS, run_all
from bwarp.cli.first_use.small_data import write_data
from bwarp.cli.subcommands import SUBCOMMANDS
from tests.conftest import CHECKOUT

#: Notes its arguments, and fails or waits if asked to.
PROGRAM = """
import os, sys, time
again = os.path.exists("log") and sys.argv[1] in open("log").read()
with open("log", "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
if sys.argv[1] == "fail" or (sys.argv[1] == "once" and not again):
    sys.exit("progress\\nprogram.py: error: no luck")
if sys.argv[1] == "wait":
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.mark.parametrize("name", RUNS)
def test_the_runs_go_well_and_the_table_has_what_they_call(data, run_program, name, tmp_path):
    """Where it has not, make it again: python -m bwarp.cli.first_use.recording."""
    if "index" in " ".join(RUNS[name]).split() and not (data / "index").exists():
        run_lines(data, run_program, "an index")
    for line in (*RUNS[name], *MORE_KINDS.get(name, ())):
        record = [sys.executable, "-m", "bwarp.cli.first_use.recording", tmp_path / "notes"]
        environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
        subprocess.run([*record, *line.split()], cwd=data, check=True, env=environment)
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


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """Programs that note what they are called with, and a folder to run them in."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "folder").mkdir()

    def run(runs, processes=1):
        monkeypatch.setattr(compilation_runs, "RUNS", {name: tuple(runs[name]) for name in runs})
        command = [sys.executable, str(tmp_path / "program.py")]
        done = list(run_all(command, tmp_path / "folder", ["--last"], processes))
        return done, (tmp_path / "folder/log").read_text().splitlines()

    return run


def test_lines_follow_each_other_and_get_the_options(programs):
    done, log = programs({"an index": ["a"], "b": ["b 1", "b 2 index"], "c": ["c"]})
    assert done == [("an index", None), ("b", None), ("c", None)]
    assert log == [f"{line} --last" for line in ("a", "b 1", "b 2 index", "c")]


def test_a_failure_is_named_and_ends_its_own_lines_alone(programs):
    done, log = programs({"an index": ["a"], "b": ["fail", "b"], "c": ["c"]}, processes=2)
    # Of what runs side by side either may end first.
    assert sorted(done[:2]) == [("an index", None), ("c", None)]
    assert done[2:] == [("b", "program.py: error: no luck")]
    assert "b --last" not in log


def test_what_failed_beside_others_is_run_again_alone(programs):
    done, log = programs({"an index": ["once"], "b": ["b index"], "c": ["c"]})
    assert done == [("b", None), ("c", None), ("an index", None)]
    assert log == [f"{line} --last" for line in ("once", "b index", "c", "once")]


COMPILE = """
import sys
from pathlib import Path
from bwarp.cli.first_use import runs as compilation_runs
compilation_runs.RUNS |= dict.fromkeys(compilation_runs.RUNS, ("wait",))
command = [sys.executable, sys.argv[1] + "/program.py"]
for _ in compilation_runs.run_all(command, Path(sys.argv[1]), [], 2):
    pass
"""


def test_what_is_interrupted_leaves_no_program_behind(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    process = subprocess.Popen([sys.executable, "-c", COMPILE, tmp_path], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (tmp_path / "log").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    start = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    process.wait(timeout=30)
    assert time.monotonic() - start < 30
    assert process.returncode != 0
