"""The manager of the memory pool allocates, frees and keeps memory of a simulated driver."""

import types

import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu import memory_pool
from bwarp.gpu.cuda import CudaAPIError, MemoryInfo
from bwarp.gpu.memory_pool import PooledMemory

TOTAL = 1 << 40


class PretendedDriver:
    def __init__(self, pools):
        self.pools, self.next, self.freed, self.thresholds = pools, 1, [], []
        self.sizes, self.reserved = {}, 0

    def cuDeviceGetAttribute(self, _attribute, _device):  # noqa: N802
        return self.pools

    def cuDeviceGetDefaultMemPool(self, _device):  # noqa: N802
        return "the pool"

    def cuMemPoolSetAttribute(self, pool, _attribute, value):  # noqa: N802
        assert pool == "the pool"
        self.thresholds.append(int(value))

    def cuMemPoolGetAttribute(self, pool, attribute):  # noqa: N802
        assert pool == "the pool"
        attributes = memory_pool.binding.CUmemPool_attribute
        is_used = attribute == attributes.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
        return sum(self.sizes.values()) if is_used else self.reserved

    def cuCtxSynchronize(self):  # noqa: N802
        """Only here does the pool return memory above its threshold to the system."""
        self.reserved = max(sum(self.sizes.values()), min(self.reserved, self.thresholds[-1]))

    def take(self, size):
        if sum(self.sizes.values()) + size > TOTAL:
            return None
        self.next += 1
        self.sizes[self.next] = size
        self.reserved = max(self.reserved, sum(self.sizes.values()))
        return self.next

    def cuMemAllocAsync(self, size, stream):  # noqa: N802
        assert stream == 0
        raise CudaAPIError(2, f"no {size} bytes")

    def free(self, address):
        self.freed.append(address)
        del self.sizes[address]


class Context:
    device = types.SimpleNamespace(id=0)


@pytest.fixture
def driver(monkeypatch):
    driver = PretendedDriver(1)
    monkeypatch.setattr(memory_pool, "driver_calls", driver)
    monkeypatch.setattr(memory_pool, "driver", driver)
    monkeypatch.setattr(
        memory_pool.NumbaCUDAMemoryManager,
        "get_memory_info",
        lambda self: MemoryInfo(TOTAL - driver.reserved, TOTAL),
    )
    monkeypatch.setattr(memory_pool.NumbaCUDAMemoryManager, "initialize", lambda self: None)
    return driver


def test_unused_memory_is_freed_at_the_next_allocation(driver):
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


def test_the_threshold_follows_memory_use(driver):
    context = Context()
    memory = PooledMemory(context=context)
    memory.initialize()
    kept = TOTAL // 16
    held = memory.memalloc(100)
    assert driver.thresholds == [kept + 100]
    few = [memory.memalloc(1000) for _ in range(10)]
    assert len(driver.thresholds) == 1
    large = memory.memalloc(TOTAL // 4)
    assert driver.thresholds[1:] == [TOTAL // 4 + kept + 10_100]
    del large
    memory.memalloc(1)
    assert driver.thresholds[2:] == [kept + 10_101]
    # Both are allocated until here.
    del held, few


def test_memory_that_the_pool_returns_to_the_system_counts_as_free(driver):
    context = Context()
    memory = PooledMemory(context=context)
    memory.initialize()
    large, small = memory.memalloc(TOTAL // 4 * 3), memory.memalloc(1000)
    assert memory.get_memory_info().free == TOTAL // 4 - 1000
    del large
    # The threshold falls here, and the pool shrinks when memory is requested.
    more = memory.memalloc(1000)
    assert memory.get_memory_info().free == TOTAL - 2000
    del small, more


def test_numba_says_that_there_is_too_little(driver):
    memory = PooledMemory(context=Context())
    memory.initialize()
    with pytest.raises(CudaAPIError, match="no 2199023255552 bytes"):
        memory.memalloc(2 * TOTAL)
