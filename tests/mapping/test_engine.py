"""The GPU memory that the mapping engine leaves to other data."""

from types import SimpleNamespace

import pytest

from bwarp.index.memory_plan import MemoryPlan
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.pipeline import CpuMapEngine

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.mapping import pipeline_cuda

GB = 10**9


def sort_bytes(*free_bytes: int) -> int:
    """Return what an engine leaves, with an index of 20 GB and 9 GB of workspace."""
    plans = [MemoryPlan(1, 13, 1 << 20, 20 * GB, 9 * GB, free) for free in free_bytes]
    devices = [SimpleNamespace(index=SimpleNamespace(plan=plan)) for plan in plans]
    return pipeline_cuda.GpuMapEngine(None, None, MappingParameters(), 1, devices).sort_bytes


def test_records_on_a_gpu_leave_room_to_map():
    found = sort_bytes(50 * GB)
    # Waiting groups and their records take about 2.9 GB besides the plan.
    assert 0.75 * 17.9 * GB < found < 0.75 * 18.3 * GB


def test_records_on_a_gpu_take_limited_memory():
    assert sort_bytes(140 * GB) == pipeline_cuda.MOST_SORT_BYTES
    assert sort_bytes(33 * GB) == 0
    assert sort_bytes(20 * GB) == 0


def test_the_first_of_several_gpus_sorts():
    assert sort_bytes(140 * GB, 33 * GB) == pipeline_cuda.MOST_SORT_BYTES
    assert sort_bytes(33 * GB, 140 * GB) == 0


def test_no_records_stay_where_there_is_no_gpu():
    assert CpuMapEngine(None, None, MappingParameters()).sort_bytes == 0
