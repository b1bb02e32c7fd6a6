"""Sorting pairs on the GPU against NumPy's stable sort."""

import sys

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.errors import UsageError
from bwarp.gpu import sums_and_sorts as radix_sort
from bwarp.gpu.cuda import cuda
from bwarp.gpu.sums_and_sorts import pair_sorter


def test_without_the_package_that_sorts(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.compute", None)
    with pytest.raises(UsageError) as error:
        pair_sorter()
    assert str(error.value) == (
        "sorting on the GPU requires the package cuda-cccl: pip install 'bwarp[gpu-cu13]' (or "
        "gpu-cu12), or use --backend cpu (import of cuda.compute halted; None in sys.modules)"
    )


@pytest.mark.gpu
@pytest.mark.parametrize("key_bits", [1, 9, 40, 64])
@pytest.mark.parametrize("count", [1, 1000, 300_000])
def test_pairs_are_sorted_by_the_lowest_bits(count, key_bits):
    rng = np.random.default_rng(count + key_bits)
    keys = rng.integers(0, 2**64, count + 5, np.uint64)
    values = np.arange(count + 5, dtype=np.uint32)
    sorted_keys, sorted_values = pair_sorter()(
        (cuda.to_device(keys), cuda.device_array_like(keys)),
        (cuda.to_device(values), cuda.device_array_like(values)),
        count,
        key_bits,
    )
    order = np.argsort(keys[:count] << np.uint64(64 - key_bits), kind="stable")
    assert np.array_equal(sorted_keys[0][:count].copy_to_host(), keys[:count][order])
    assert np.array_equal(sorted_values[0][:count].copy_to_host(), order)


@pytest.mark.gpu
def test_the_compiled_sort_is_kept(monkeypatch):
    stored = {}
    monkeypatch.setattr(radix_sort, "kept", lambda *words: stored.get(words))
    monkeypatch.setattr(
        radix_sort, "keep", lambda content, *words: stored.setdefault(words, content)
    )
    capability = cuda.get_current_device().compute_capability
    compiled = radix_sort.compiled_sort.__wrapped__(capability)
    (words,) = stored
    assert stored[words] == compiled
    stored[words] = b"read back"
    assert radix_sort.compiled_sort.__wrapped__(capability) == b"read back"


@pytest.mark.gpu
def test_a_sorter_releases_its_arrays():
    context = cuda.current_context()

    def free_memory():
        context.memory_manager.deallocations.clear()
        return context.get_memory_info().free

    sort_pairs = pair_sorter()
    before = free_memory()
    keys = tuple(cuda.device_array(10_000_000, np.uint64) for _ in range(2))
    values = tuple(cuda.device_array(10_000_000, np.uint32) for _ in range(2))
    keys, values = sort_pairs(keys, values, 10_000_000, 8)
    del keys, values, sort_pairs
    assert free_memory() > before - 20_000_000
