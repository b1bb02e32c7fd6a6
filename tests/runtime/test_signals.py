"""A signal ends a program at any point with the right exit code, and without leftovers."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bwarp.runtime.signals import ended_by_signals
from tests.helpers.programs.left_behind import names

PROGRAM = """
import contextlib, ctypes, os, signal, subprocess, sys, time
import numba, numpy
from bwarp.runtime.signals import naming_outputs, not_ended, undone_if_ended
from bwarp.io.atomic_output import atomic_file, private_folder
from bwarp.io.atomic_output import atomic_folder, make_folder, named_together
from bwarp.cli.program import (program_parser, run_program)
from bwarp.runtime.progress import say

parser = program_parser("Do what the test needs.", "prog.py pass")
parser.add_argument("statements")
run_program(parser, lambda options: exec(options.statements, globals()))
"""

NOTHING = "interrupted: no output file was written"


@pytest.fixture(autouse=True)
def hang_ups_are_heard():
    """Handle SIGHUP, which may be ignored where the tests run, as by nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def start(tmp_path):
    """Return a function that runs statements in `run_program` until they report their start."""
    (tmp_path / "prog.py").write_text(PROGRAM)

    def call(statements, **how):
        process = subprocess.Popen(
            [sys.executable, "prog.py", statements],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **how,
        )
        while (said := process.stderr.readline()) != "begun\n":
            assert said.startswith("compiling"), said + process.stderr.read()
        return process

    return call


def end(process, number) -> tuple[int, str, str]:
    """Send a signal; return the exit code, and the output since then."""
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    return process.returncode, stdout, stderr


WRITERS = {
    "file": "with atomic_file('o'): say('begun'); time.sleep(60)",
    "gz": "with atomic_file('o.gz'): say('begun'); time.sleep(60)",
    "folder": "with atomic_folder('o', 'a') as f: (f / 'a').touch(); say('begun'); time.sleep(60)",
    "work": "with private_folder('o') as f: (f / 'a').touch(); say('begun'); time.sleep(60)",
}


@pytest.mark.parametrize(
    ("what", "number"),
    zip(WRITERS, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTERM], strict=True),
)
def test_unfinished_output_is_removed(start, tmp_path, what, number):
    done = end(start(WRITERS[what]), number)
    assert done == (128 + number, "", f"prog.py: error: {NOTHING}\n")
    assert names(tmp_path) == ["prog.py"]


#: Places where an exception would be late or lost: Python prints it and continues.
PLACES = {
    "called back": """
        wait = ctypes.CFUNCTYPE(None)(lambda: (say('begun'), time.sleep(9)))
        wait()
    """,
    "destructor": """
        class Slow:
            def __del__(self):
                say('begun'); time.sleep(9)
        Slow()
    """,
    "caught": """
        def wait():
            try:
                say('begun'); time.sleep(9)
            except BaseException:
                pass
        wait()
    """,
    "compiled": """
        @numba.njit(nogil=True)
        def spin(n):
            x = 1
            for i in range(n):
                x = (x * 6364136223846793005 + i) & 0x7fffffffffffffff
            return x
        spin(1); say('begun'); spin(20_000_000_000)
    """,
}


@pytest.mark.parametrize(
    ("place", "number"), zip(PLACES, [signal.SIGINT, signal.SIGTERM] * 2, strict=True)
)
def test_at_any_point_of_the_main_thread(start, tmp_path, place, number):
    body = "\n".join(" " + line for line in PLACES[place].splitlines())
    process = start(f"with atomic_file('o'):\n{body}\nprint('the end')")
    begin = time.monotonic()
    assert end(process, number) == (128 + number, "", f"prog.py: error: {NOTHING}\n")
    assert time.monotonic() - begin < 5
    assert names(tmp_path) == ["prog.py"]


def test_outputs_that_take_their_names_together_do_so(start, tmp_path):
    statements = (
        "for i in range(3):\n"
        "    with naming_outputs():\n"
        "        say('begun')\n"
        "        open('a', 'w').close(); time.sleep(1); open('b', 'w').close()\n"
        "    time.sleep(1)\n"
    )
    done = end(start(statements), signal.SIGTERM)
    said = "prog.py: error: interrupted: completed outputs were kept\n"
    assert done == (143, "", said)
    assert names(tmp_path) == ["a", "b", "prog.py"]


def test_complete_outputs_that_wait_for_others_are_removed(start, tmp_path):
    statements = (
        "with named_together():\n"
        "    with atomic_file('a'): pass\n"
        "    make_folder('new')\n"
        "    with atomic_file('new/b'): pass\n"
        "    say('begun'); time.sleep(60)\n"
    )
    done = end(start(statements), signal.SIGTERM)
    assert done == (143, "", f"prog.py: error: {NOTHING}\n")
    assert names(tmp_path) == ["prog.py"]


def test_a_thread_that_goes_on_writing_leaves_nothing(start, tmp_path):
    statements = (
        "import itertools, threading\n"
        "def write(folder, name):\n"
        "    for i in itertools.count():\n"
        "        with contextlib.suppress(OSError): (folder / f'{name}{i}').touch()\n"
        "with private_folder('o') as folder:\n"
        "    for name in 'abc':\n"
        "        threading.Thread(target=write, args=(folder, name)).start()\n"
        "    time.sleep(0.3); say('begun'); time.sleep(60)\n"
    )
    assert end(start(statements), signal.SIGTERM)[0] == 143
    assert names(tmp_path) == ["prog.py"]


def test_a_signal_at_the_very_end_is_not_lost(start):
    statements = "say('begun'); sys.stdin.read(); os.kill(os.getpid(), signal.SIGTERM)"
    process = start(statements, stdin=subprocess.PIPE)
    assert process.communicate("", timeout=60)[1] == f"prog.py: error: {NOTHING}\n"
    assert process.returncode == 143


def test_a_signal_during_an_error_is_reported_alone(start):
    statements = "say('begun'); time.sleep(0.5); os.kill(os.getpid(), 2); raise MemoryError"
    process = start(statements)
    assert process.communicate(timeout=60)[1] == f"prog.py: error: {NOTHING}\n"
    assert process.returncode == 130


HELPERS = {
    "samtools": (
        "from bwarp.bam.samtools import samtools\n"
        "import pathlib\n"
        "with samtools(['view', '-'], pathlib.Path('.'), 'o.sam') as helper:\n"
        "    say(str(helper.pid)); time.sleep(60)\n"
    ),
    "cram": (
        "from bwarp.bam.cram import cram_file\n"
        "from bwarp.bam.header import BamHeader\n"
        "import pathlib\n"
        "made, header = pathlib.Path('o.cram').absolute(), BamHeader(b'', (), ())\n"
        "with cram_file(made, header, 2, 'o.cram', '3.0') as writer:\n"
        "    helper = writer._encoders._begin()._process\n"
        "    say(str(helper.pid)); time.sleep(60)\n"
    ),
}


@pytest.mark.parametrize("what", HELPERS)
def test_helper_programs_also_end(start, what):
    statements = HELPERS[what]
    process = start(statements.replace("say(", "say('begun'); say("))
    helper = int(process.stderr.readline())
    assert end(process, signal.SIGTERM)[0] == 143
    with pytest.raises(ProcessLookupError):
        os.kill(helper, 0)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_ignored_signals_stay_ignored(start, number):
    def ignore():
        signal.signal(number, signal.SIG_IGN)

    statements = "say('begun'); time.sleep(1); print('the end')"
    done = end(start(statements, preexec_fn=ignore), number)
    assert done == (0, "the end\n", "")


def test_handlers_are_put_back():
    before = {number: signal.getsignal(number) for number in (1, 2, 15)}
    with ended_by_signals("here"):
        assert all(signal.getsignal(number) != before[number] for number in before)
    assert {number: signal.getsignal(number) for number in before} == before
