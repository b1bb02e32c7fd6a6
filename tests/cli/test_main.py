"""The command `bwarp`: its list, its subcommands, and that it starts without their imports."""

import ast
import importlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tomllib

import pytest

from bwarp import __version__
from bwarp.cli.error_sentences import explanation
from bwarp.cli.subcommands import GROUPS, SUBCOMMANDS
from bwarp.index.store import save_index
from tests.conftest import CHECKOUT
from tests.helpers.cases.report_cases import PAIRED
from tests.helpers.oracles.index_oracle import index_of

#: Modules that are too slow to import before showing the list of commands.
HEAVY = ("numba", "numpy", "pandas", "pysam", "Bio", "yaml", "argparse", "bwarp.cli.program")


@pytest.fixture
def bwarp(program_servers, tmp_path):
    """Run `python -m bwarp`, like the installed command; return exit code, output and errors."""

    def run(*words, stdin="", cwd=tmp_path):
        server = next(program_servers)
        return server.run(["-m", "bwarp", *words], cwd=cwd, stdin=stdin)

    return run


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"], ["help"]])
def test_alone_it_lists_every_subcommand(bwarp, words):
    rc, said, errors = bwarp(*words)
    assert (rc, errors) == (0, "")
    assert re.findall(r"^  ([\w-]+)  ", said, re.MULTILINE) == list(SUBCOMMANDS)
    for wish in GROUPS:
        assert f"\n\n{wish}\n" in said
    assert max(map(len, said.splitlines())) <= 80


def test_nothing_heavy_is_imported_for_the_list(checkout):
    code = "import sys; from bwarp.cli.main import overview; overview(); print(*sys.modules)"
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    assert not {name for name in done.stdout.split() if name.startswith(HEAVY)}


def test_programs_in_scripts_are_the_subcommands(checkout):
    programs = {path.stem: path for path in (checkout / "scripts").glob("[!_]*.py")}
    assert set(programs) == {command.program for command in SUBCOMMANDS.values()}
    for command in SUBCOMMANDS.values():
        modules = {
            node.module
            for node in ast.walk(ast.parse(programs[command.program].read_text()))
            if isinstance(node, ast.ImportFrom)
        }
        assert modules == {f"bwarp.cli.{command.module}", "bwarp.cli.program"}
        assert command.program in command.module


def test_help_of_a_command_may_be_asked_for_in_either_order(bwarp):
    assert bwarp("help", "map") == bwarp("map", "--help")


def test_help_of_an_unknown_command_names_the_nearest(bwarp):
    rc, said, errors = bwarp("help", "mapp")
    assert (rc, said) == (2, "")
    assert errors.startswith("bwarp: error: unknown command mapp: did you mean map?")


def test_an_installation_has_the_command(checkout):
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["bwarp"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize("name", ["map", "simulate-genome", "locate-seeds"])
def test_help_is_that_of_the_program_with_the_name_that_was_typed(bwarp, run_program, name):
    program = f"{SUBCOMMANDS[name].program}.py"
    rc, said, errors = bwarp(name, "--help")
    assert (rc, errors) == (0, "")
    of_program = run_program(program, "--help").stdout
    assert said.startswith(f"usage: bwarp {name} ")
    assert of_program.startswith(f"usage: {program} ")
    assert f"  bwarp {name} " in said[said.index("examples:") :]
    assert f" {program} " in of_program.replace("/", " ")
    assert ".py" not in said
    options = r"^  (-\S+)"
    assert re.findall(options, said, re.M) == re.findall(options, of_program, re.M)


def test_a_subcommand_does_what_the_program_does(bwarp, run_program, tmp_path):
    options = ("--length", "3000", "--contigs", "2", "--threads", "1")
    rc, _, errors = bwarp("simulate-genome", "-o", "one.fa", *options)
    assert rc == 0, errors
    assert run_program("simulate_genome.py", "-o", "two.fa", *options, cwd=tmp_path).rc == 0
    assert (tmp_path / "one.fa").read_bytes() == (tmp_path / "two.fa").read_bytes()


def test_errors_and_their_remedies_name_the_subcommand(bwarp, tmp_path):
    reads = ("--queries", "-", "-o", "out.tsv", "--backend", "cpu")
    assert bwarp("seeds", "--index", "none", *reads) == (
        1, "", "bwarp seeds: error: none: no such index: make it with bwarp index REF.fa -o none\n",
    )  # fmt: skip
    save_index(index_of([b"ACGTTGCA" * 9], with_reverse=False), tmp_path / "genome.index")
    assert bwarp("seeds", "--index", "genome.index", *reads, "--mismatches", "1") == (
        2, "", "bwarp seeds: error: genome.index: no reverse BWT, which a search with mismatches "
        "requires: add it with bwarp index -o genome.index --with-reverse\n",
    )  # fmt: skip
    assert bwarp("map")[::2] == (
        2,
        "bwarp map: error: the following arguments are required: -x/--index, -o/--output "
        "(see bwarp map --help)\n",
    )


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("mpa", "did you mean map?"),
        ("find_seeds", "did you mean seeds?"),
        ("find-mems", "did you mean mems?"),
        ("map_reads.py", "did you mean map?"),
        ("Xyzzy", "type bwarp to list all"),
    ],
)
def test_an_unknown_subcommand(bwarp, word, meant):
    assert bwarp(word) == (
        2, "", f"bwarp: error: unknown command {word}: {meant} (see bwarp --help)\n",
    )  # fmt: skip


def test_a_signal_while_python_imports():
    command = [sys.executable, "-X", "importtime", "-m", "bwarp", "mems", "--version"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while b" numpy." not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in said


def test_without_the_memory_to_import():
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (150 << 20,) * 2)

    command = [sys.executable, "-m", "bwarp", "mems", "--version"]
    done = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("bwarp mems: error: Python cannot load its packages (")
    assert last.endswith("): give the job more memory")


def test_a_compiler_that_cannot_be_imported_is_explained():
    error = ImportError("Numba needs NumPy 2.4 or less. Got NumPy 2.9.")
    sentence, code = explanation(error)
    assert sentence.startswith("Numba needs NumPy 2.4 or less. Got NumPy 2.9.: install bwarp again")
    assert code == 2
    error = ImportError("libsvml.so: failed to map segment from shared object")
    assert explanation(error) == (explanation(MemoryError())[0], 3)


def test_an_option_whose_extra_is_missing_names_it(tmp_path):
    (tmp_path / "a.stats.json").write_text(json.dumps(PAIRED))
    code = (
        "import sys; sys.modules['yaml'] = None; from bwarp.cli.main import main; "
        "sys.argv = ['bwarp', 'draw-report', *sys.argv[1:]]; main()"
    )
    words = ["--statistics", "a.stats.json", "-o", "a.html"]
    for more, rc, said in (
        ([], 0, ""),
        (
            ["--multiqc", "folder"],
            1,
            "bwarp draw-report: error: the Python package yaml is required: "
            "pip install 'bwarp[report]'\n",
        ),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *words, *more], cwd=tmp_path, capture_output=True,
            text=True, check=False, env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (rc, "", said)


@pytest.mark.parametrize("words", [[], ["--version"], ["map", "--help"], ["map", "--version"]])
def test_a_reader_that_goes_away_is_not_an_error_message(words):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "bwarp", *words]
    with os.fdopen(writing, "w") as pipe:
        # If Python buffers text, as it does for users, it writes at exit.
        held_back = {name: os.environ[name] for name in os.environ if name != "PYTHONUNBUFFERED"}
        done = subprocess.run(
            command, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False, env=held_back
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", [["-V"], ["--version"], ["map", "--version"]])
def test_the_version(bwarp, words):
    assert bwarp(*words) == (0, f"bwarp {__version__}\n", "")
