"""Fixtures that every test shares, and the rule that GPU tests wait for a GPU."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from bwarp.backend import gpu_problem

CHECKOUT = Path(__file__).resolve().parent.parent

# Test modules of the same name may stand in different folders; the helpers and oracles that they
# import from their own folder are found here.
sys.path += sorted(str(folder) for folder in (CHECKOUT / "tests").glob("**/") if folder.is_dir())


class Finished(NamedTuple):
    """What a program left behind: its exit code and what it wrote."""

    rc: int
    stdout: str
    stderr: str


def pytest_collection_modifyitems(items):
    """Skip the tests marked `gpu`, with the reason, where no GPU can be used."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    problem = gpu_problem() if marked else None
    if problem is not None:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"needs an NVIDIA GPU: {problem}"))


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
def run_program():
    """A function that runs ``scripts/NAME`` with arguments, in a process of its own.

    ``run_program("index_reference.py", fasta, "-o", folder, cwd=..., env=..., stdin=...)`` returns
    ``(rc, stdout, stderr)`` as text; ``env`` adds to the environment. Progress is left out.
    """

    from program_output import without_progress

    def run(script, *arguments, cwd=None, env=None, stdin=None, timeout=280) -> Finished:
        process = subprocess.run(
            [sys.executable, CHECKOUT / "scripts" / script, *map(str, arguments)],
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
