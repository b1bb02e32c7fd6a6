"""Functions are compiled once, in parallel, and the waiting program finds them."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bwarp
from bwarp.cli.first_use import compiling
from bwarp.cli.first_use.listed_functions import functions_of_programs, listed_functions
from bwarp.runtime.progress import seconds_of_compiling
from bwarp.runtime.type_text import types_of_text

COMPILE = """
import sys
from bwarp.cli.first_use import compiling
from bwarp.cli.first_use.listed_functions import functions_of_programs
small = [one for one in functions_of_programs(["map"]) if one.seconds < 0.4][-4:]
compiling.functions_of_kind = lambda kind: small
compiling.WORTH_IT = 0
if sys.argv[1:] == ["kill"]:
    start = compiling.subprocess.Popen
    def started(*words, **options):
        process = start(*words, **options)
        process.kill()
        return process
    compiling.subprocess.Popen = started
compiling.compile_once("map", 2)
print([not compiling._is_missing(one) for one in small])
"""


#: Has a worker that never answers, and prints its process number.
ENDED = """
import subprocess
from bwarp.runtime.signals import ended_by_signals
def worker(environment):
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    print(process.pid, flush=True)
    return process
compiling._worker = worker
def ended(function, *words):
    with ended_by_signals("test"):
        function("map", 1)
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """Return a copy of the package without compiled code."""
    folder = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(bwarp.__file__).parent, folder / "bwarp", ignore=ignored)
    return folder


@pytest.fixture
def compile_in(copied):
    """Run `COMPILE` with a folder for functions; return standard output and error."""

    def run(folder, *words) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", COMPILE, *words], capture_output=True, text=True, check=True,
            env=os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(copied)},
            cwd=copied, timeout=200,
        )  # fmt: skip
        return done.stdout.strip(), done.stderr

    return run


def test_every_function_of_the_table_exists():
    for one in listed_functions():
        function = compiling._function(one.function)
        arguments = function.py_func.__code__.co_argcount
        assert len(types_of_text(one.types)) == arguments, one.function


def test_the_slowest_functions_come_first():
    seconds = [one.seconds for one in functions_of_programs(["map", "index"])]
    assert seconds == sorted(seconds, reverse=True)


def test_functions_are_compiled_once(compile_in, tmp_path):
    kept, said = compile_in(tmp_path)
    assert kept == "[True, True, True, True]"
    # On a slow machine, lines about the remaining functions are in between.
    first, *_, last = said.splitlines()
    assert first == "compiling for this machine (once): 4 functions, 2 at a time"
    assert seconds_of_compiling(last) > 1
    assert compile_in(tmp_path) == (kept, "")


def test_a_missing_function_is_skipped():
    one = listed_functions()[0]
    assert not compiling._is_missing(one._replace(function="bwarp.io.names.of_yesterday"))
    assert not compiling._is_missing(one._replace(types="(named('bwarp.io.names.Former'), )"))


def test_workers_that_are_killed_do_not_keep_the_program_from_going_on(compile_in, tmp_path):
    kept, _ = compile_in(tmp_path, "kill")
    assert kept == "[False, False, False, False]"


def test_a_program_that_is_ended_leaves_no_worker(copied, tmp_path):
    code = COMPILE.replace("compiling.compile_once(", "ended(compiling.compile_once, ")
    code = code.replace("if sys.argv", ENDED + "if sys.argv", 1)
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=copied, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(copied)},
    )  # fmt: skip
    worker = int(process.stdout.readline())
    process.terminate()
    assert process.wait(timeout=30) == 128 + signal.SIGTERM
    process.communicate()
    deadline = time.monotonic() + 2
    while Path(f"/proc/{worker}").exists():
        state = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "Z":  # it has ended, but has not been waited for
            break
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_error_while_others_wait_is_passed_on():
    with pytest.raises(OSError, match="the disk"), compiling._one_at_a_time():
        raise OSError("the disk is full")


def test_without_a_cache_nothing_is_compiled_ahead(compile_in, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / f"bwarp-{os.geteuid()}").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert compile_in(tmp_path / "file") == ("[False, False, False, False]", "")


def test_progress_says_what_is_left_and_how_long_it_takes():
    seconds = {"long": 6.0, "short": 2.0, "shorter": 1.0}
    assert compiling._progress(seconds, ["long"], 12) == (
        "compiling for this machine (once): 2 functions left, about 6 s"
    )
