"""Fixtures shared by all tests, and hooks that order and skip tests."""

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

# The imports of programs, Numba's preparation for compiling, and the code that is stored.
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
    "tests.helpers.programs.linked_functions:link_stored",
)

# Slow files, which run after those in tests/workflow; the others are faster.
LONG_FILES = (
    "test_cuda_compilation.py",
    "test_benchmark_programs.py",
    "test_compile_ahead.py",
    "test_plain_reads_cuda_emulated.py",
    "test_find_cuda_emulated.py",
    "test_bad_files.py",
    "test_ended_early.py",
    "test_end_gaps.py",
    "test_algorithms_cpu.py",
    "test_runs.py",
    "test_pipeline_cuda_emulated.py",
    "test_find_cpu.py",
)

# Otherwise each process would read the sources again if the environment says so.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests share a GPU, and do not wait for each other.
os.environ.setdefault("BWARP_GPU", "shared")

# Background processes of a shell, and their children, ignore Ctrl-C; tests need it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Compiling makes many objects, few of them in cycles: collecting takes a tenth of the time.
gc.set_threshold(100_000)

# Programs import a module from their own folder.
sys.path.append(str(CHECKOUT / "scripts"))


class Finished(NamedTuple):
    """The result of a program: exit code and output."""

    rc: int
    stdout: str
    stderr: str


def without_pytest(environment) -> dict:
    """Return the environment without the name of the running test."""
    return {name: value for name, value in environment.items() if "PYTEST" not in name}


def place_in_run(path: Path) -> int:
    """Return the place in the order of tests; 0 is first."""
    if path.parent.name == "workflow":
        return 0
    return 1 + (LONG_FILES.index(path.name) if path.name in LONG_FILES else len(LONG_FILES))


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    """Put slow files first, mark the tests of real data, and skip tests that cannot run here.

    Files are distributed to processes in this order, so slow ones must not come last.
    """
    from tests.helpers.gpu.cuda_compiler import missing_compiler

    items.sort(key=lambda item: place_in_run(item.path))
    for item in items:
        if {"shared_data", "large_data"} & set(item.fixturenames):
            item.add_marker("data")
    skip_marked(items, "gpu", no_gpu)
    skip_marked(items, "compiler", missing_compiler)


def no_gpu() -> str | None:
    """Return why GPU tests cannot run; if they can, prepare the GPU as programs do."""
    try:
        choose_backend("cuda")
    except UsageError as error:
        return f"needs an NVIDIA GPU: {error}"
    return None


def skip_marked(items, name, problem_here):
    """Skip the tests with a mark if `problem()`, called only if there are any, returns a reason."""
    marked = [item for item in items if item.get_closest_marker(name)]
    problem = problem_here() if marked else None
    if problem is not None:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=problem))


@pytest.fixture(scope="module", autouse=True)
def little_to_collect():
    """Freeze objects of earlier files, because code that collects garbage would take seconds."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def checkout() -> Path:
    """Return the folder of this checkout."""
    return CHECKOUT


@pytest.fixture(scope="session")
def shared_data():
    """Return ``shared_data(*parts) -> Path`` for ``../shared/data``, which skips if a file is
    missing.

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
    """Return ``large_data(name) -> Path`` for large files, which skips if a file is missing.

    The folder is $BWARP_LARGE, or ``../shared/data/large`` if that is not set.
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
    """Return two servers that run programs in turn, with different hash seeds."""
    from tests.helpers.programs.program_server import ProgramServer

    servers = [ProgramServer(*PRELOADED) for _ in range(2)]
    yield itertools.cycle(servers)
    for server in servers:
        server.close()


@pytest.fixture(scope="session")
def forked_python():
    """Return a `python` that forks from a process that has imported the package."""
    from tests.helpers.programs.forked_python import ForkedPython

    python = ForkedPython(*PRELOADED)
    yield python
    python.close()


@pytest.fixture(scope="session")
def snakemake_server():
    """Return a server that has imported Snakemake and the imports of its rules, except bwarp.

    It has also imported what Snakemake imports when it runs, and its plugins, which Snakemake
    searches among all packages: this saves two thirds of the time of a dry run.
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
    """Return a function that runs ``scripts/NAME`` with arguments in a separate process.

    ``run_program("index_reference.py", fasta, "-o", folder, cwd=..., env=..., stdin=...)`` returns
    ``(rc, stdout, stderr)`` as text; ``env`` adds to the environment. Progress lines are removed.
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
    """Mount a disk of 64 kB, if this process may."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("needs the right to mount a small disk")
    yield disk
    subprocess.run(["umount", disk], check=True)
