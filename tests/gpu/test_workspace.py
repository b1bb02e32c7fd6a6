"""Workspace is reused, and never by two users at once."""

import threading

import numpy as np
import pytest

from bwarp.gpu import memory_pool as workspace
from bwarp.gpu.memory_pool import CHUNK, cut, device_array, work_space
from tests.helpers.gpu.pretended_device import pretend_gpu


@pytest.fixture(autouse=True)
def _gpu(monkeypatch):
    pretend_gpu(monkeypatch, [])


def address(array):
    return array.__array_interface__["data"][0]


def test_arrays_are_adjacent_and_reused():
    with work_space():
        arrays = [device_array(size, np.int32) for size in (10, 0, 100, 7)]
        assert [array.size for array in arrays] == [10, 0, 100, 7]
        assert [address(arrays[i]) - address(arrays[0]) for i in (2, 3)] == [256, 768]
    with work_space():
        again = device_array(3, np.int64)
        assert (address(again), again.dtype) == (address(arrays[0]), np.int64)


def test_an_inner_block_frees_its_memory():
    with work_space():
        outer = device_array(8, np.uint8)
        with work_space():
            inner = device_array(8, np.uint8)
            # More than is left: a separate allocation.
            large = device_array(CHUNK, np.uint8)
        assert address(device_array(5, np.uint8)) == address(inner)
        assert address(device_array(CHUNK, np.uint8)) == address(large)
        assert address(outer) + 256 == address(inner)
    with work_space():
        # Now the workspace is one piece.
        first, second = device_array(8, np.uint8), device_array(CHUNK, np.uint8)
        assert address(second) - address(first) == 256


def test_without_a_block_arrays_are_not_shared():
    kept = device_array(4, np.int32)
    with work_space():
        assert not np.shares_memory(kept, device_array(4, np.int32))
    assert not np.shares_memory(kept, device_array(4, np.int32))


def test_large_or_abandoned_work_space_is_not_kept(monkeypatch):
    abandoned = []

    def fail():
        with work_space():
            abandoned.append(device_array(5, np.int32))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with work_space():
        other = device_array(5, np.int32)
        assert not np.shares_memory(other, abandoned[0])
    monkeypatch.setattr(workspace, "MOST_SHARE", 1e-9)
    with work_space():
        large = device_array(CHUNK, np.int32)
    with work_space():
        assert not np.shares_memory(device_array(CHUNK, np.int32), large)


def test_two_threads_have_separate_workspaces():
    with work_space():
        mine, theirs = device_array(9, np.int32), []

        def work():
            with work_space():
                theirs.append(device_array(9, np.int32))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert not np.shares_memory(mine, theirs[0])


def test_part_of_an_array_as_another_type():
    array = device_array(4, np.uint32)
    array[:] = [1, 2, 3, 4]
    assert cut(array, 8, 1, np.uint64).tolist() == [4 << 32 | 3]
