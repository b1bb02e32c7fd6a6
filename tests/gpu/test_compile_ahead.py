"""Launches find the kernels that were compiled without a GPU."""

import os
import subprocess
import sys

import pytest

from bwarp.cli.first_use import compiling
from bwarp.cli.subcommands import SUBCOMMANDS
from bwarp.gpu.compile_ahead import SECONDS, kernels_of, stated_types
from tests.conftest import CHECKOUT
from tests.helpers.gpu.cuda_compiler import missing_compiler

if missing_compiler():
    pytest.skip(missing_compiler(), allow_module_level=True)

pytestmark = pytest.mark.compiler

#: Compiles the kernels of a scan, and prints what a launch on a GPU then finds.
COMPILE = """
from pathlib import Path
import sys
from bwarp.cli.first_use import compiling
compiling.functions_of_kind = lambda kind: []
for capability in ((8, 0), (9, 0)):
    compiling.compile_once("scan", 2, capability)
# Of another kind of run of the same program.
compiling.compile_once("scan of another kind", 2, (9, 0))
from bwarp.gpu import compile_ahead
from bwarp.gpu.cuda import dispatcher
def refuse(*words, **options):
    raise AssertionError("this is compiled again")
dispatcher._Kernel.__init__ = refuse
for capability in ((8, 0), (9, 0)):
    kernels = compile_ahead.kernels_of([compiling._source_of("scan")], capability)
    compile_ahead.pretend_to_have(capability)
    for kernel in kernels:
        compile_ahead.compile_kernel(*kernel)
    print(len(kernels))
compile_ahead.pretend_to_have((12, 0))
try:
    compile_ahead.compile_kernel(*kernels[0])
except AssertionError as error:
    print(error)
"""


def test_compiled_kernels_are_not_compiled_again(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", COMPILE], capture_output=True, text=True, cwd=tmp_path,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(CHECKOUT)},
    )  # fmt: skip
    older, newer, another = done.stdout.splitlines()
    # Some kernels need a newer GPU.
    assert 0 < int(older) < int(newer)
    assert another == "this is compiled again"
    assert done.stderr.count("compiling for this machine took ") == 2


def modules_of(program, capability=(9, 0)) -> set[str]:
    """Return the modules with kernels of a program on GPUs of a compute capability."""
    return {module for module, _ in kernels_of([compiling._source_of(program)], capability)}


def test_a_program_needs_the_kernels_of_its_imports():
    assert "bwarp.mapping.seed_selection_cuda" in modules_of("map")
    assert "bwarp.allmap.hits_cuda" in modules_of("allmap") - modules_of("map")
    assert "bwarp.database_search.profile_kernel_cuda" in modules_of("search")


def test_kernels_for_newer_gpus_are_left_out_on_older_ones():
    newer = {"bwarp.alignment.packed_int16_kernel_cuda"}
    assert modules_of("map") - modules_of("map", (8, 9)) == newer


def test_the_slowest_modules_have_kernels():
    """They are compiled first; a renamed one would be last."""
    assert set(SECONDS) <= set().union(*map(modules_of, SUBCOMMANDS))


def test_map_finds_its_kernels_for_many_reads_and_for_few():
    """For reads of 150 bases: which kernels are launched depends on the number of pairs."""
    from bwarp.alignment import int32_kernel_cuda, packed_int16_kernel_cuda
    from bwarp.alignment import pair_ends_cuda as pairs_cuda
    from bwarp.mapping.extension_cpu import scoring_of
    from bwarp.mapping.parameters import MappingParameters

    scoring = scoring_of(MappingParameters())
    gap_is_shift = pairs_cuda._shift(scoring) == scoring.gap_open + scoring.gap_extend
    compiled = {kernel for kernel, _ in stated_types(packed_int16_kernel_cuda)}
    for tiles in (pairs_cuda.MANY_TILES, pairs_cuda.FEW_TILES):
        tile = next(tile for tile in tiles if tile[0] * tile[1] >= 150)
        made = packed_int16_kernel_cuda.packed_kernel(*tile, True, True, False, gap_is_shift)
        assert made in compiled
    compiled = {kernel for kernel, _ in stated_types(int32_kernel_cuda)}
    for threads in (8, 32):
        assert int32_kernel_cuda.full_matrix_kernel(threads, True, False, False) in compiled
    # The kernels of the directions of many pairs and of few.
    for threads in (4, int32_kernel_cuda.WHOLE_BLOCK):
        assert int32_kernel_cuda.full_matrix_kernel(threads, True, False, True) in compiled


def test_the_slowest_is_compiled_first(monkeypatch):
    """A slow kernel does not wait for faster functions and kernels."""
    compiled = []
    monkeypatch.setattr(compiling, "kept", lambda *words: None)
    monkeypatch.setattr(compiling, "keep", lambda *words: None)
    monkeypatch.setattr(compiling, "_is_missing", lambda one: True)
    monkeypatch.setattr(compiling, "_compile", lambda jobs, _: compiled.extend(jobs))
    compiling.compile_once("map pairs local sorted", 2, (9, 0))
    jobs = [job for _, job in compiled]
    slowest = [job[1] for job in jobs].index(max(SECONDS, key=SECONDS.get))
    functions = [at for at, job in enumerate(jobs) if job[0] == "function"]
    kernels = [at for at, job in enumerate(jobs) if job[0] == "kernel"]
    assert slowest < 5
    assert slowest in kernels
    assert slowest < max(functions) < max(kernels)
