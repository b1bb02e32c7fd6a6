"""Matching with GPU kernels in plain Python, against comparing all pairs of positions."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.errors import UsageError
from bwarp.gpu import ptx_reference
from bwarp.gpu import sums_and_sorts as prefix_sum
from bwarp.gpu.cuda import cuda
from bwarp.gpu.kernel import kernels_in
from bwarp.index import device_index_cuda, locate_cuda, memory_plan
from bwarp.mems import maximal_cuda as maximal_matches_cuda
from bwarp.mems import maximal_cuda as window_rows_cuda
from bwarp.mems import unique_cuda as unique_matches_cuda
from bwarp.mems.find import KINDS, find_matches
from bwarp.mems.find import prepare as prepare_for
from bwarp.mems.maximal_cuda import prepare
from tests.helpers.cases.chunked_indexes import save_chunks
from tests.helpers.cases.mems_cases import index_of, reference_of, text_of
from tests.helpers.gpu import emulated_cuda
from tests.helpers.gpu.pretended_device import (
    DeviceArray,
    Launcher,
    pair_sorter,
    pretend_arrays,
)
from tests.helpers.oracles.mems_oracle import expected_matches, random_case, rows_of

MODULES = (
    device_index_cuda,
    locate_cuda,
    prefix_sum,
    maximal_matches_cuda,
    unique_matches_cuda,
)
KERNELS_OF = {maximal_matches_cuda: window_rows_cuda}


@pytest.fixture
def emulated(monkeypatch):
    for module in MODULES:
        monkeypatch.setattr(module, "_THREADS", 32)
        for kernel in kernels_in(KERNELS_OF.get(module, module)):
            monkeypatch.setattr(module, kernel.py_func.__name__, Launcher(kernel))
    monkeypatch.setattr(prefix_sum, "TILE", 32)
    monkeypatch.setattr(device_index_cuda, "pair_sorter", pair_sorter)
    monkeypatch.setattr(cuda, "pinned_array", np.empty)
    monkeypatch.setattr(memory_plan, "SHORTEST_STRING", 2)
    monkeypatch.setattr(device_index_cuda, "MOST_ELEMENTS", 60)
    monkeypatch.setattr(device_index_cuda, "FEWEST_ELEMENTS", 10)
    monkeypatch.setattr(device_index_cuda, "free_memory", lambda: 10**9)
    monkeypatch.setattr(window_rows_cuda, "_MANY", 3)
    monkeypatch.setattr(unique_matches_cuda, "_PIECE", 20)
    operations = {
        "popc": lambda bits: int(bits).bit_count(),
        "load_uint32x2": lambda array, at: ptx_reference.load_uint32x2(array.array, int(at)),
        "load_uint32x4": lambda array, at: ptx_reference.load_uint32x4(array.array, int(at)),
    }
    for name, operation in operations.items():
        monkeypatch.setattr(emulated_cuda._Thread, name, staticmethod(operation), raising=False)
    pretend_arrays(monkeypatch)
    monkeypatch.setattr(DeviceArray, "copy_to_host", lambda array: np.array(array))


@pytest.mark.parametrize("seed", range(4))
def test_random_cases(emulated, seed):
    rng = np.random.default_rng(seed)
    contigs, queries = random_case(rng)
    queries = [query[:70] for query in queries[-2:]]
    index = prepare(index_of(contigs, sa_rate=1 + seed % 3), with_reverse=True)
    for min_length in (5, 12):
        text = text_of(queries, (0, 1), min_length)
        for kind in KINDS:
            found = rows_of(find_matches(index, text, min_length, kind, "cuda"))
            assert found == expected_matches(contigs, queries, (0, 1), min_length, kind), kind


def test_all_matches_need_no_reverse(emulated):
    contigs, queries = random_case(np.random.default_rng(5))
    index = replace(index_of(contigs), reverse=None)
    ready = prepare_for(index, "maxmatch", "cuda")
    assert ready.device.reverse is None
    queries = [query[:70] for query in queries[-2:]]
    found = find_matches(ready, text_of(queries, (0, 1), 8), 8, "maxmatch", "cuda")
    assert rows_of(found) == expected_matches(contigs, queries, (0, 1), 8, "maxmatch")
    with pytest.raises(UsageError, match="has no reverse BWT, which a search for unique matches"):
        prepare_for(index, "mum", "cuda")
    assert prepare_for(index_of(contigs), "mum", "cuda").device.reverse is not None


@pytest.mark.parametrize("gpus", [0, 1])
def test_an_index_in_chunks(emulated, monkeypatch, tmp_path, gpus):
    """One chunk at a time on the GPU (0), or all of them."""
    monkeypatch.setattr(memory_plan, "DRIVER_BYTES", 0)
    contigs, queries = random_case(np.random.default_rng(2))
    contigs.append(np.tile(contigs[0], 2)[:90])
    index = save_chunks(reference_of(contigs), 64, tmp_path / "index", with_reverse=False)
    queries = [query[:70] for query in queries[-2:]]
    text = text_of(queries, (0, 1), 8)
    for kind in KINDS:
        ready = prepare_for(index, kind, "cuda", gpus)
        assert f"{len(index.chunks)} chunks, " in ready.plan
        found = rows_of(find_matches(ready, text, 8, kind, "cuda"))
        assert found == expected_matches(contigs, queries, (0, 1), 8, kind), kind


def test_long_matches_and_repeats(emulated):
    """Longer than 32 bases, with several copies, runs of one base, a sampled suffix array."""
    rng = np.random.default_rng(9)
    unit = rng.integers(0, 4, 45)
    contigs = [np.concatenate([unit, [0] * 20, unit, [3], unit[:40]]).astype(np.uint8)]
    queries = [np.concatenate([unit[3:], [0] * 12, unit[:30]]).astype(np.uint8)]
    reference = prepare(index_of(contigs, sa_rate=3), with_reverse=True)
    for min_length in (10, 38):
        text = text_of(queries, (0,), min_length)
        for kind in KINDS:
            expected = expected_matches(contigs, queries, (0,), min_length, kind)
            assert rows_of(find_matches(reference, text, min_length, kind, "cuda")) == expected


@pytest.mark.parametrize("largest_rate", [4, 8])
def test_sampled_suffix_array(emulated, monkeypatch, largest_rate):
    rng = np.random.default_rng(3)
    contigs = [rng.integers(0, 4, 150).astype(np.uint8)]
    index = index_of(contigs, sa_rate=4)
    monkeypatch.setattr(memory_plan, "DRIVER_BYTES", 0)
    monkeypatch.setattr(memory_plan, "LARGEST_RATE", largest_rate)
    # The minimum sufficient memory.
    for free in range(0, 40000, 100):
        monkeypatch.setattr(device_index_cuda, "free_memory", lambda free=free: free)
        with contextlib.suppress(UsageError):
            reference = prepare(index, with_reverse=True)
            break
    assert reference.plan.suffix_rate == largest_rate
    queries = [contigs[0][20:90]]
    for kind in KINDS:
        expected = expected_matches(contigs, queries, (0, 1), 10, kind)
        found = find_matches(reference, text_of(queries, (0, 1), 10), 10, kind, "cuda")
        assert rows_of(found) == expected


def test_too_many_matches_at_one_place(emulated):
    contigs = [np.zeros(120, np.uint8)]
    reference = prepare(index_of(contigs), with_reverse=True)
    text = text_of([np.zeros(10, np.uint8)], (0,), 10)
    with pytest.raises(UsageError) as error:
        rows_of(find_matches(reference, text, 10, "maxmatch", "cuda"))
    assert str(error.value) == (
        "the matches at one position require more GPU memory than is free: use a larger "
        "--min-length, or --backend cpu"
    )
