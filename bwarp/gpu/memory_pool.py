"""Memory of a GPU from the driver's pool, which keeps what is given back for who asks next.

To take memory from the device and to free it costs a tenth of a millisecond each, and freeing waits
for the device; out of the pool both are handed over in the order of the default stream:

    kernel 1 uses a | a is given back | b is taken: it may be where a was | kernel 2 uses b
"""

import weakref
from collections import deque

from bwarp.gpu import queued_calls
from bwarp.gpu.cuda import AutoFreePointer, NumbaCUDAMemoryManager, binding, cuda, driver_calls

__all__ = ["PooledMemory", "use_pool"]

#: The share of a GPU's memory that a pool keeps though nobody uses it: work on a batch or two.
_KEPT_SHARE = 1 / 16

_DEFAULT_STREAM = 0


def use_pool() -> None:
    """Let arrays on GPUs that are used from now on come from a pool."""
    cuda.set_memory_manager(PooledMemory)


class PooledMemory(NumbaCUDAMemoryManager):
    """Numba's memory manager of one device, but for where arrays come from.

    Where the driver knows no pools it is Numba's own.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._pool = None
        self._is_asked = False
        self._kept = 0
        self._used = 0
        self._threshold = 0
        # Filled by whichever thread forgets an array, emptied by who allocates on this device.
        self._given_back = deque()

    def initialize(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            attributes = binding.CUdevice_attribute
            device = self.context.device.id
            supported = attributes.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
            if driver_calls.cuDeviceGetAttribute(supported, device):
                self._pool = driver_calls.cuDeviceGetDefaultMemPool(device)
                self._kept = int(super().get_memory_info().total * _KEPT_SHARE)
        super().initialize()

    def memalloc(self, size: int):
        if self._pool is None:
            return super().memalloc(size)
        self._free_given_back()
        address = queued_calls.take(size)
        if address is not None:
            pointer = binding.CUdeviceptr(address)
        else:
            # Numba frees what it still holds, and says what is wrong.
            pointer = self._attempt_allocation(
                lambda: driver_calls.cuMemAllocAsync(size, _DEFAULT_STREAM)
            )
        self._used += size
        self._keep_enough()
        key, allocations, given_back = int(pointer), self.allocations, self._given_back

        def give_back() -> None:
            allocations.pop(key, None)
            given_back.append((pointer, size))

        memory = AutoFreePointer(weakref.proxy(self.context), pointer, size, finalizer=give_back)
        allocations[key] = memory
        return memory.own()

    def get_memory_info(self):
        """What the device has free, and what the pool holds for others to come."""
        if self._pool is None:
            return super().get_memory_info()
        self._free_given_back()
        # The pool returns memory to the system only now: read before, it would count nowhere.
        driver_calls.cuCtxSynchronize()
        info = super().get_memory_info()
        attributes = binding.CUmemPool_attribute
        reserved, used = (
            int(driver_calls.cuMemPoolGetAttribute(self._pool, attribute))
            for attribute in (
                attributes.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                attributes.CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
            )
        )
        return type(info)(free=info.free + reserved - used, total=info.total)

    def reset(self) -> None:
        super().reset()
        self._free_given_back()

    def _free_given_back(self) -> None:
        while True:
            try:
                pointer, size = self._given_back.popleft()
            except IndexError:
                return
            queued_calls.free(int(pointer))
            self._used -= size

    def _keep_enough(self) -> None:
        """Say how much the pool may hold before it gives to the system what nobody uses.

        What is used counts too, so the number follows that: in large steps, and so seldom.
        """
        if self._kept <= 2 * (self._threshold - self._used) <= 4 * self._kept:
            return
        self._threshold = self._used + self._kept
        driver_calls.cuMemPoolSetAttribute(
            self._pool,
            binding.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
            binding.cuuint64_t(self._threshold),
        )
