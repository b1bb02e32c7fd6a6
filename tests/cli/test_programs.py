"""Every program starts as the pages show it, or says how it can be started."""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted(path.name for path in (CHECKOUT / "scripts").glob("[!_]*.py"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_executable_and_names_its_interpreter(name):
    program = CHECKOUT / "scripts" / name
    assert os.access(program, os.X_OK)
    assert program.read_text().startswith("#!/usr/bin/env python3\n")


def run_bare(program, *arguments, **options):
    """Run a program with a Python that sees no installed packages."""
    command = [sys.executable, "-S", program, *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    options = {"env": environment} | options
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_the_packages_one_line_says_what_to_type(name, tmp_path):
    shutil.copytree(CHECKOUT / "scripts", tmp_path / "scripts")
    done = run_bare(f"scripts/{name}", "-o", "a b", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"{name}: error: No module named 'bwarp': type make doctor in {tmp_path}, which installs "
        f"what is missing, then .venv/bin/python scripts/{name} -o 'a b'\n"
    )


def test_an_environment_is_named_relative_to_the_current_folder(tmp_path):
    shutil.copytree(CHECKOUT / "scripts", tmp_path / "scripts")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").write_text("")
    (tmp_path / "here").mkdir()
    done = run_bare("../scripts/map_reads.py", cwd=tmp_path / "here")
    assert done.stderr.endswith(": type ../.venv/bin/python ../scripts/map_reads.py\n")


def test_the_library_without_what_it_needs():
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    done = run_bare(CHECKOUT / "scripts/find_mems.py", env=environment)
    assert done.returncode == 2
    assert re.match(
        r"find_mems.py: error: No module named '(llvmlite|numba|numpy)': type ", done.stderr
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_python_imports(number):
    command = [sys.executable, "-X", "importtime", CHECKOUT / "scripts/find_mems.py", "--version"]
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # Importing takes some tenths of a second more, even on a fast machine.
        while b" numpy." not in process.stderr.readline():
            pass
        time.sleep(random.uniform(0, 0.1))
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert b"Traceback" not in said


@pytest.mark.parametrize("megabytes", [150, 240])
def test_without_the_memory_to_import(megabytes):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20,) * 2)

    command = [sys.executable, CHECKOUT / "scripts/find_mems.py", "--version"]
    done = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("find_mems.py: error: Python cannot load its packages (")
    assert last.endswith("): give the job more memory")
