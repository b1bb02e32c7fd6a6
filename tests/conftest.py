"""Fixtures that every test shares, and the rule that tests wait for what they need."""

import gc
import itertools
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from bwarp.errors import UsageError
from bwarp.runtime.backend import choose_backend

CHECKOUT = Path(__file__).resolve().parent.parent

# What the programs import, and what Numba does before it first compiles or loads a function.
PRELOADED = (
    *("bwarp.cli.program", "pysam", "Bio.Align.substitution_matrices"),
    *(
        ".".join(path.relative_to(CHECKOUT).with_suffix("").parts)
        for room in ("commands", "steps", "reports")
        for path in sorted(CHECKOUT.glob(f"bwarp/cli/{room}/[!_]*.py"))
    ),
    "bwarp.database_search.search_cpu",
    "bwarp.index.build_cpu",
    "bwarp.seeding.backtracking_cpu",
    "bwarp.seeding.find_cpu",
    "numba.core.entrypoints:init_all",
)

# Files that take long, after those of tests/workflow; the others are shorter.
LONG_FILES = (
    "test_cuda_compilation.py",
    "test_benchmark_programs.py",
    "test_pairs_cpu.py",
    "test_search_cpu.py",
    "test_scan.py",
    "test_find.py",
    "test_find_mems.py",
)

# Every process would otherwise read the sources anew, where the environment says so.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests share a GPU and do not wait for each other's.
os.environ.setdefault("BWARP_GPU", "shared")

# A process that a shell put into the background hears no Ctrl-C, nor do those it starts: tests do.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Compiling makes much, and little of it in circles: collecting takes a tenth of the time.
gc.set_threshold(100_000)

# Programs import a module beside them.
sys.path.append(str(CHECKOUT / "scripts"))


class Finished(NamedTuple):
    """What a program left behind: its exit code and what it wrote."""

    rc: int
    stdout: str
    stderr: str


def without_pytest(environment) -> dict:
    """The environment without the name of the test that runs."""
    return {name: value for name, value in environment.items() if "PYTEST" not in name}


def place_in_run(path: Path) -> int:
    """0 for what comes first."""
    if path.parent.name == "workflow":
        return 0
    return 1 + (LONG_FILES.index(path.name) if path.name in LONG_FILES else len(LONG_FILES))


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    """Put long files first, mark the tests that take real data, and skip what cannot run here.

    Files are handed out to processes in this order: one that takes long must not come last.
    """
    from tests.helpers.gpu.cuda_compiler import missing_compiler

    items.sort(key=lambda item: place_in_run(item.path))
    for item in items:
        if {"shared_data", "large_data"} & set(item.fixturenames):
            item.add_marker("data")
    skip_marked(items, "gpu", no_gpu)
    skip_marked(items, "compiler", missing_compiler)


def no_gpu() -> str | None:
    """Why the tests of a GPU cannot run; where they can, it is made ready as programs do."""
    try:
        choose_backend("cuda")
    except UsageError as error:
        return f"needs an NVIDIA GPU: {error}"
    return None


def skip_marked(items, name, problem_here):
    """Skip the tests of a mark where there is a problem, which is asked for where there are any."""
    marked = [item for item in items if item.get_closest_marker(name)]
    problem = problem_here() if marked else None
    if problem is not None:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=problem))


@pytest.fixture(scope="module", autouse=True)
def little_to_collect():
    """What earlier files left is not looked through again: code that asks for it takes seconds."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The folder of this checkout."""
    return CHECKOUT


@pytest.fixture(scope="session")
def shared_data():
    """A function ``shared_data(*parts) -> Path`` into ``../shared/data`` that skips what is absent.

    >>> fasta = shared_data("ref_lambda", "lambda.fa.gz")  # doctest: +SKIP
    """

    def locate(*parts: str) -> Path:
        path = CHECKOUT.parent.joinpath("shared", "data", *parts)
        if not path.exists():
            pytest.skip(f"needs ../shared/data/{'/'.join(parts)}, which is not here")
        return path

    return locate


@pytest.fixture(scope="session")
def large_data():
    """A function ``large_data(name) -> Path`` into the folder of large files, or a skip.

    The folder is $BWARP_LARGE, or ``../shared/data/large`` where that is not set.
    """

    def locate(name: str) -> Path:
        folder = os.environ.get("BWARP_LARGE") or CHECKOUT.parent / "shared" / "data" / "large"
        path = Path(folder) / name
        if not path.exists():
            pytest.skip(f"needs the large file {name} in $BWARP_LARGE, which is not here")
        return path

    return locate


@pytest.fixture(scope="session")
def program_servers():
    """Two servers that run the programs in turn: their sets have different orders."""
    from tests.helpers.programs.program_server import ProgramServer

    servers = [ProgramServer(*PRELOADED) for _ in range(2)]
    yield itertools.cycle(servers)
    for server in servers:
        server.close()


@pytest.fixture(scope="session")
def forked_python():
    """A `python` that forks from one that has imported the package."""
    from tests.helpers.programs.forked_python import ForkedPython

    python = ForkedPython(*PRELOADED)
    yield python
    python.close()


@pytest.fixture(scope="session")
def snakemake_server():
    """A server that has imported Snakemake and what its rule files import, except bwarp itself.

    And what Snakemake imports when it runs, and its plugins, which it looks for among all packages:
    two thirds of the time of a dry run.
    """
    from tests.helpers.programs.program_server import ProgramServer

    late = ("smart_open", "snakemake.report.html_reporter", "pandas", "pysam")
    modules = ("snakemake.cli", "snakemake.workflow", "numba", "jsonschema", "yaml")
    plugins = "snakemake.cli:get_argument_parser"
    server = ProgramServer(*modules, *late, plugins)
    yield server
    server.close()


@pytest.fixture(scope="session")
def run_program(program_servers):
    """A function that runs ``scripts/NAME`` with arguments, in a process of its own.

    ``run_program("index_reference.py", fasta, "-o", folder, cwd=..., env=..., stdin=...)`` returns
    ``(rc, stdout, stderr)`` as text; ``env`` adds to the environment. Progress is left out.
    """
    from tests.helpers.programs.program_output import without_progress

    environment = without_pytest(os.environ)

    def run(script, *arguments, cwd=None, env=None, stdin=None, timeout=280) -> Finished:
        words = [CHECKOUT / "scripts" / script, *arguments]
        if not env and environment == without_pytest(os.environ):
            server = next(program_servers)
            rc, stdout, stderr = server.run(words, cwd=cwd, stdin=stdin or "", timeout=timeout)
            return Finished(rc, stdout, without_progress(stderr))
        process = subprocess.run(
            [sys.executable, *map(str, words)],
            cwd=cwd,
            env=os.environ | (env or {}),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Finished(process.returncode, process.stdout, without_progress(process.stderr))

    return run


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 kB, where this process may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("needs the right to mount a small disk")
    yield disk
    subprocess.run(["umount", disk], check=True)
