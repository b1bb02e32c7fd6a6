"""The GPU memory that the mapping engine leaves to other data."""

import types

import pytest

from bwarp.index.memory_plan import MemoryPlan
from bwarp.mapping import engine
from bwarp.mapping.engine import sort_bytes_on_gpu

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

GB = 10**9


def kept(free_bytes: int):
    """Return what `load` reserves on a GPU, with an index of 20 GB and 9 GB of workspace."""
    plan = MemoryPlan(1, 13, 1 << 20, 20 * GB, 9 * GB, free_bytes)
    return types.SimpleNamespace(index=types.SimpleNamespace(plan=plan))


def test_records_on_a_gpu_leave_room_to_map():
    found = sort_bytes_on_gpu("cuda", [kept(50 * GB)])
    # Waiting groups and their records take about 2.9 GB besides the plan.
    assert 0.75 * 17.9 * GB < found < 0.75 * 18.3 * GB


def test_records_on_a_gpu_take_limited_memory():
    assert sort_bytes_on_gpu("cuda", [kept(140 * GB)]) == engine.MOST_SORT_BYTES
    assert sort_bytes_on_gpu("cuda", [kept(33 * GB)]) == 0
    assert sort_bytes_on_gpu("cuda", [kept(20 * GB)]) == 0


def test_the_first_of_several_gpus_sorts():
    large, small = kept(140 * GB), kept(33 * GB)
    assert sort_bytes_on_gpu("cuda", [large, small]) == engine.MOST_SORT_BYTES
    assert sort_bytes_on_gpu("cuda", [small, large]) == 0


def test_no_records_stay_where_there_is_no_gpu():
    assert sort_bytes_on_gpu("cpu", None) == 0
