"""Compiling ahead makes machine code only for functions that programs call."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import bwarp

#: A function that calls another, compiled ahead; then the inner one is called directly.
AHEAD = """
import numba
from bwarp.cli.first_use import compiling
from bwarp.runtime.type_text import types_of_text
from bwarp.records import record_text
from bwarp.runtime.machine_code import is_inner, leave_inner_functions_to_callers

INNER = record_text.put_cigar
KINDS = "(uint8[::1], int64, uint32[::1], int64, int64, )"
name = f"{INNER.py_func.__module__}.put_cigar"
@numba.njit
def outer(out, at, cigar, start, stop):
    return INNER(out, at, cigar, start, stop)
leave_inner_functions_to_callers()
outer.compile(types_of_text(KINDS))
print(is_inner(next(iter(INNER.dispatcher.overloads.values())).library))
print(is_inner(next(iter(outer.overloads.values())).library))
compiling._compile_function(name, KINDS)
print(is_inner(next(iter(INNER.dispatcher.overloads.values())).library))
"""

#: In another process: the stored function is loaded, and works.
LATER = """
import sys
import numpy as np
from bwarp.records.record_text import put_cigar
out = np.zeros(20, np.uint8)
at = put_cigar(out, 0, np.array([(10 << 4), (3 << 4) | 1], np.uint32), 0, 2)
print(out[:at].tobytes().decode(), int('numba' not in sys.modules))
"""


def run(code: str, package: Path, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=package,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(package)},
    )  # fmt: skip
    return done.stdout.split()


def test_an_inner_function_gets_machine_code_when_called(tmp_path):
    # A copy, because every folder of code starts with that of the package.
    package, folder = tmp_path / "package", tmp_path / "code"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(bwarp.__file__).parent, package / "bwarp", ignore=ignored)
    assert run(AHEAD, package, folder) == ["True", "False", "False"]
    assert run(LATER, package, folder) == ["10M3I", "1"]
