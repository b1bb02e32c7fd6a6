"""Programs exit with the right code and a one-line message, whatever fails."""

import os
import shlex
import subprocess
import sys
import textwrap

import pytest

from bwarp import __version__
from bwarp.cli import program
from bwarp.cli.commands import map_reads
from bwarp.cli.program import program_parser
from bwarp.errors import UsageError
from bwarp.options.option import Whole

PROGRAM = """
import os
import sys
import time
from bwarp.errors import InputError, UsageError
from bwarp.io.atomic_output import atomic_file
from bwarp.cli.program import (program_parser, run_program)
from bwarp.runtime.progress import say

parser = program_parser("Do what the test needs.", "prog.py raise InputError")
parser.add_argument("statement")

def main(options):
    exec(options.statement)

run_program(parser, main)
"""


@pytest.fixture
def run(tmp_path, run_program):
    """Run a statement inside `run_program`; return (rc, stdout, stderr)."""
    script = tmp_path / "prog.py"
    script.write_text(PROGRAM)

    def call(*arguments, stdout=None):
        if stdout is None:
            return run_program(script, *arguments, cwd=tmp_path)
        process = subprocess.run(
            [sys.executable, script, *arguments],
            cwd=tmp_path,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        return process.returncode, process.stdout, process.stderr

    return call


@pytest.mark.parametrize(
    ("requested", "gpus", "said"),
    [
        ("auto", 2, "--gpus 2 has no effect: no GPU is used (no driver)\n"),
        ("cpu", 3, "--gpus 3 has no effect: no GPU is used (--backend cpu)\n"),
        ("auto", 1, ""),
    ],
)
def test_several_gpus_where_there_is_none(monkeypatch, capsys, requested, gpus, said):
    monkeypatch.setattr(program, "claim_gpu", lambda *_, **__: None)
    monkeypatch.setattr(program, "choose_backend", lambda _: "cpu")
    monkeypatch.setattr(program, "gpu_problem", lambda: "no driver")
    monkeypatch.setattr(program, "give_up_cuda", lambda: None)
    assert program.choose_engine(requested, gpus) == "cpu"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ("raise InputError('a.fa line 2: is bad')", 1, "a.fa line 2: is bad"),
        ("raise UsageError('k is too large')", 2, "k is too large"),
        ("open('none.fa')", 1, "none.fa: no such file or folder: check the path"),
        ("open('.')", 1, ".: is a folder, not a file"),
        ("open('prog.py/x')", 1, "prog.py/x: part of the path is a file, not a folder"),
        (
            "raise PermissionError(13, 'Permission denied', 'a.fa')",
            1,
            "a.fa: no permission: choose a file or folder that you can access",
        ),
        (
            "raise OSError(24, 'Too many open files', 'a.fa')",
            1,
            "a.fa: too many files are open at once: raise the limit (ulimit -n)",
        ),
        (
            "open('x' * 256)",
            1,
            f"{'x' * 256}: the name is too long: choose a shorter one (bwarp adds up to 20 "
            "characters)",
        ),
        ("raise OSError(5, 'Input/output error', 'a.fa')", 1, "a.fa: Input/output error"),
        ("raise MemoryError", 3, "out of memory: give the job more memory, or use a smaller input"),
        (
            "raise OSError(12, 'Cannot allocate memory')",
            3,
            "out of memory: give the job more memory, or use a smaller input",
        ),
        (
            'raise RuntimeError("can\'t start new thread")',
            3,
            "cannot start another thread: give the job more memory, or use fewer --threads",
        ),
        (
            "raise type('CudaAPIError', (Exception,), {})('CUDA_ERROR_OUT_OF_MEMORY')",
            3,
            "the GPU is out of memory: stop other programs that use it, or use --backend cpu",
        ),
        (
            "import no_such_thing",
            1,
            "the Python package no_such_thing is required: pip install no_such_thing",
        ),
        (
            "raise ModuleNotFoundError(name='pyarrow')",
            1,
            "the Python package pyarrow is required: pip install 'bwarp[parquet]'",
        ),
    ],
)
def test_every_error_is_one_line_with_its_exit_code(run, statement, code, message):
    assert run(statement) == (code, "", f"prog.py: error: {message}\n")


def test_a_run_that_goes_well(run):
    assert run("print('table'); say('progress')") == (0, "table\n", "progress\n")


def test_a_quiet_run_says_only_warnings_and_errors(run):
    statement = "say('progress'); say('warning: odd'); print('table')"
    assert run("--quiet", statement) == (0, "table\n", "warning: odd\n")
    rc, _, stderr = run("--quiet", "say('progress'); raise InputError('is bad')")
    assert (rc, stderr) == (1, "prog.py: error: is bad\n")


def test_debug_shows_the_traceback(run):
    rc, _, stderr = run("--debug", "raise InputError('is bad')")
    assert rc != 0
    assert stderr.startswith("Traceback")
    assert stderr.endswith("InputError: is bad\n")


def test_a_bug_is_not_reported_as_a_user_error(run):
    rc, _, stderr = run("1 / 0")
    assert rc == 1
    assert "Traceback" in stderr


def test_wrong_options_name_the_help(run):
    assert run() == (
        2,
        "",
        "prog.py: error: the following arguments are required: statement (see prog.py --help)\n",
    )
    assert run("one", "two")[2] == (
        "prog.py: error: unrecognized arguments: two (see prog.py --help)\n"
    )
    assert run("--threads", "0", "pass")[2] == (
        "prog.py: error: argument -t/-@/--threads: '0' is not a whole number from 1 to 1024 "
        "(see prog.py --help)\n"
    )


def test_an_unknown_option_is_named_with_a_suggestion(run):
    message = "unknown option --theads: did you mean --threads? (see prog.py --help)"
    # Even if something else is wrong: the missing option may be the misspelt one.
    for words in (["--theads", "3", "pass"], ["--theads=3"]):
        assert run(*words) == (2, "", f"prog.py: error: {message}\n")
    assert run("--theads", "3", "--help")[0] == 0


@pytest.mark.parametrize("words", [["--file", ""], ["--file="], ["--files", "a", ""], [""]])
def test_empty_arguments_are_refused(words):
    parser = program_parser("Map.", "map.py a")
    parser.add_argument("name", metavar="NAME", nargs="?")
    parser.add_argument("--file")
    parser.add_argument("--files", nargs="+")
    name = "NAME" if words == [""] else words[0].rstrip("=")
    with pytest.raises(UsageError) as caught:
        parser.parse_args(words)
    assert str(caught.value).startswith(
        f"argument {name}: empty value, perhaps an unset variable (see "
    )


#: What is done with a stream, and how the program ends if it is closed.
CLOSED = {
    "with atomic_file('-') as file: file.write(b'x')": (
        1, 2, "standard output is closed: give the name of a file to write",
    ),
    "os.write(1, b'x')": (1, 1, "standard input or output is closed: give the name of a file"),
    "print('table')": (1, 0, None),
    "with atomic_file('o') as file: file.write(b'x')": (1, 0, None),
    "from bwarp.io.chunk_files import open_chunk_file\nwith open_chunk_file('-', 'reads'): pass": (
        0, 2, "standard input is closed: give the name of a file",
    ),
    "open(0).read()": (0, 1, "standard input or output is closed: give the name of a file"),
    "raise InputError('is bad')": (2, 1, None),
}  # fmt: skip


@pytest.mark.parametrize("statement", CLOSED)
def test_closed_streams(run, tmp_path, statement):
    number, code, message = CLOSED[statement]
    call = f"exec {number}>&-; {shlex.quote(sys.executable)} prog.py {shlex.quote(statement)}"
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    done = subprocess.run(["sh", "-c", call], cwd=tmp_path, text=True, check=False, **streams)
    said = f"prog.py: error: {message}\n" if message else ""
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)
    if "'o'" in statement:
        assert (tmp_path / "o").read_text() == "x"


def test_full_disk_under_standard_output(run):
    with open("/dev/full", "w") as full:
        rc, _, stderr = run("print('table')", stdout=full)
    assert (rc, stderr) == (
        4,
        "prog.py: error: the disk is full: free some space, or write elsewhere, and run again\n",
    )


def test_a_reader_that_goes_away_is_not_an_error_message(run):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        rc, _, stderr = run("print('x' * 100000)", stdout=pipe)
    assert (rc, stderr) == (1, "")


def test_help_shows_examples_and_the_version_is_the_packages(run):
    rc, stdout, _ = run("--help")
    assert rc == 0
    assert "\nexamples:\n  prog.py raise InputError\n\nexit codes:\n  0 success, 1" in stdout
    assert run("--version") == (0, f"bwarp {__version__}\n", "")


def test_descriptions_are_wrapped_and_examples_are_not():
    example = "prog.py " + "--long-option value " * 8
    help_text = program_parser("Word " * 60, example).format_help()
    assert textwrap.fill(("Word " * 60).strip(), 80) in help_text
    assert example.strip() in help_text


@pytest.fixture
def reads_parser():
    """Return a parser with an option that looks like a number, like bwarp map's."""
    parser = program_parser("Map.", "map.py -1 R1.fq")
    parser.add_argument("-1", dest="first")
    parser.add_argument("--interleaved", action="store_true")
    parser.add_argument("--name")
    parser.add_argument("--mismatch", type=Whole(-9, -1).parse)
    return parser


@pytest.mark.parametrize("value", ["-4", "-1"])
def test_a_negative_value_beside_an_option_that_looks_like_one(reads_parser, value):
    options = reads_parser.parse_args(["--mismatch", value, "--interleaved", "-1", "R1.fq"])
    assert (options.mismatch, options.first) == (int(value), "R1.fq")


def test_such_an_option_is_not_a_value_of_an_option_without_numbers(reads_parser):
    with pytest.raises(UsageError, match="argument --name: expected one argument"):
        reads_parser.parse_args(["--name", "-1", "R1.fq"])


def test_a_negative_value_out_of_range_is_named(reads_parser):
    with pytest.raises(UsageError, match="'-5' is not a whole number from 1 to 1024"):
        reads_parser.parse_args(["--threads", "-5"])


def test_a_missing_input_is_reported_before_compiling(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["bwarp map"])
    words = ["-x", "index", "-1", "R1.fq", "-2", "R2.fq", "-o", "out.bam", "--sort"]
    options = map_reads.parse_options().parse_args(words)
    compiled = []
    monkeypatch.setattr(program, "compile_once", lambda *words: compiled.append(words))
    monkeypatch.setattr(program, "gpu_capability", lambda: (9, 0))
    with pytest.raises(FileNotFoundError):
        program.compile_first("cpu", options, None, str(tmp_path / "reads.fq"))
    assert not compiled
    program.compile_first("cpu", options, None, "-", str(tmp_path))
    program.compile_first("cuda", options)
    assert [(kind, capability) for kind, _, capability in compiled] == [
        ("map pairs local sorted", None), ("map pairs local sorted", (9, 0))
    ]  # fmt: skip
