"""The pool's manager takes, gives back and keeps memory, here from a pretended driver."""

import types

import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu import memory_pool
from bwarp.gpu.memory_pool import PooledMemory

CARD = 1 << 40


class PretendedDriver:
    def __init__(self, pools):
        self.pools, self.next, self.freed, self.thresholds = pools, 1, [], []

    def cuDeviceGetAttribute(self, _attribute, _device):  # noqa: N802
        return self.pools

    def cuDeviceGetDefaultMemPool(self, _device):  # noqa: N802
        return "the pool"

    def cuMemPoolSetAttribute(self, pool, _attribute, value):  # noqa: N802
        assert pool == "the pool"
        self.thresholds.append(int(value))

    def cuMemAllocAsync(self, _size, stream):  # noqa: N802
        assert stream == 0
        self.next += 1
        return memory_pool.binding.CUdeviceptr(self.next)

    def cuMemFreeAsync(self, pointer, stream):  # noqa: N802
        assert stream == 0
        self.freed.append(int(pointer))


class Context:
    device = types.SimpleNamespace(id=0)


@pytest.fixture
def driver(monkeypatch):
    driver = PretendedDriver(1)
    monkeypatch.setattr(memory_pool, "driver", driver)
    info = types.SimpleNamespace(free=CARD, total=CARD)
    monkeypatch.setattr(memory_pool.NumbaCUDAMemoryManager, "get_memory_info", lambda self: info)
    monkeypatch.setattr(memory_pool.NumbaCUDAMemoryManager, "initialize", lambda self: None)
    return driver


def test_what_is_forgotten_goes_back_at_the_next_allocation(driver):
    context = Context()
    memory = PooledMemory(context=context)
    memory.initialize()
    first, second = memory.memalloc(100), memory.memalloc(200)
    view = first.view(10, 20)
    del first
    memory.memalloc(1)
    assert driver.freed == []
    del view
    memory.memalloc(1)
    assert 2 in driver.freed
    assert 3 not in driver.freed
    del second
    memory.memalloc(1)
    assert 3 in driver.freed


def test_what_the_pool_keeps_follows_what_is_used(driver):
    context = Context()
    memory = PooledMemory(context=context)
    memory.initialize()
    kept = CARD // 16
    held = memory.memalloc(100)
    assert driver.thresholds == [kept + 100]
    few = [memory.memalloc(1000) for _ in range(10)]
    assert len(driver.thresholds) == 1
    large = memory.memalloc(CARD // 4)
    assert driver.thresholds[1:] == [CARD // 4 + kept + 10_100]
    del large
    memory.memalloc(1)
    assert driver.thresholds[2:] == [kept + 10_101]
    # Both are held until here.
    del held, few
