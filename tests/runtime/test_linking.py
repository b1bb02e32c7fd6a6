"""Stored functions run without Numba as they do with it."""

import os
import subprocess
import sys

#: Functions that return arrays and tuples, raise errors, and have defaults.
FUNCTIONS = """
import sys
from typing import NamedTuple
import numpy as np
from bwarp.runtime.compiled_code import compiled, inner

class Pair(NamedTuple):
    numbers: np.ndarray
    total: int

@inner
def doubled(number):
    if number < 0:
        raise ValueError("negative", number)
    return 2 * number

@compiled
def pair_of(numbers, first=1):
    out = np.empty_like(numbers)
    total = 0
    for i in range(numbers.size):
        out[i] = doubled(numbers[i]) + first
        total += out[i]
    return Pair(out, total)

@compiled
def sum_of(pair):
    return pair.numbers.sum() + pair.total, pair.numbers

@compiled
def later(numbers):
    return pair_of(numbers, 3).total

numbers = np.arange(4)
def refused(numbers):
    try:
        pair_of(numbers)
    except ValueError as error:
        return error.args

def numba():
    return "numba" in sys.modules
"""

RUN = """
from functions import *
pair = pair_of(numbers)
total, same = sum_of(pair)
counts = sys.getrefcount(numbers)
for _ in range(9):
    pair_of(numbers, first=2)
same[0] = 5
print(type(pair).__name__, pair.numbers.tolist(), pair.total, pair_of(numbers, first=2).total)
print(total, sys.getrefcount(numbers) == counts, numba())
print(refused(np.array([-1])), later(numbers), pair_of(numbers).total, pair_of(2 * numbers).total)
"""

SAID = """Pair [5, 3, 5, 7] 16 20
32 True {}
('negative', -1) 24 16 28
"""


def test_stored_functions_run_without_numba(tmp_path):
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for imported in (True, False, False):
        done = subprocess.run(
            [sys.executable, "-c", RUN], cwd=tmp_path, env=environment, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        assert done.stdout == SAID.format(imported)


def test_other_settings_of_numba_compile_again(tmp_path):
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    code = "from functions import *; print(pair_of(numbers).total, numba())"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}

    def run(**settings) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment | settings,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout

    assert run() == "16 True\n"
    assert run() == "16 False\n"
    assert run(NUMBA_OPT="1") == "16 True\n"
    assert run(NUMBA_CPU_NAME="x86-64", NUMBA_CPU_FEATURES="") == "16 True\n"
    assert run(NUMBA_DISABLE_JIT="1") == "16 False\n"
    assert run() == "16 False\n"
