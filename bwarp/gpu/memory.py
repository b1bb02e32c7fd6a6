"""Memory of a GPU from the driver's pool, which keeps what is given back for who asks next.

To take memory from the device and to free it costs a tenth of a millisecond each, and freeing waits
for the device; out of the pool both are handed over in the order of the default stream:

    kernel 1 uses a | a is given back | b is taken: it may be where a was | kernel 2 uses b
"""

import ctypes
import functools
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from bwarp.gpu import launch as queued_calls
from bwarp.gpu.cuda import (
    ArgHint,
    AutoFreePointer,
    DeviceNDArray,
    NumbaCUDAMemoryManager,
    binding,
    cuda,
    driver_calls,
    from_dtype,
    types,
)

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


# --------------------------------------------------------------------------------------------------
# Work space on the GPU that outlives a call: to take and free memory takes longer than to use it.
#
# Inside ``with work_space():`` the arrays of `device_array` are cut, one after another, out of
# memory
# that is kept for the next call on this GPU. They end with the block; what must outlive it is
# made
# before. A block inside another gives back what came after it began:
#
#     memory   [ codes | starts | lengths | scores | selectors |  free ...          ]
#              ^ outer block                       ^ inner block
#
# The memory may be given back before the kernels that use it are done: those of the next call
# wait
# for them, because all run on the default stream, and copies wait for them likewise.


#: Larger shares of a GPU's memory are not kept.
MOST_SHARE = 0.125
#: Arrays start at multiples of so many bytes, as those of the driver do.
ALIGNMENT = 256
#: The least memory to take at once.
CHUNK = 1 << 20

_spare: dict[object, "_Memory"] = {}
_lock = threading.Lock()
_of_thread = threading.local()


class _Memory:
    """Chunks of device memory, in use up to a byte of one of them."""

    def __init__(self):
        self.chunks, self.chunk, self.used = [], 0, 0
        self.first_size = CHUNK

    @property
    def size(self) -> int:
        return sum(chunk.size for chunk in self.chunks)

    def array(self, size: int, dtype):
        n_bytes = room_for(size * dtype.itemsize)
        while self.chunk < len(self.chunks):
            begin = self.used
            if begin + n_bytes <= self.chunks[self.chunk].size:
                self.used += n_bytes
                return cut(self.chunks[self.chunk], begin, size, dtype)
            self.chunk, self.used = self.chunk + 1, 0
        least = CHUNK if self.chunks else self.first_size
        self.chunks.append(cuda.device_array(max(n_bytes, least), np.uint8))
        return self.array(size, dtype)


@contextmanager
def work_space() -> Iterator[None]:
    """A block in which `device_array` gives out work space; may stand in another one."""
    memory = getattr(_of_thread, "memory", None)
    if memory is not None:
        before = memory.chunk, memory.used
        yield
        memory.chunk, memory.used = before
        return
    from bwarp.gpu.available_memory import total_memory  # which imports this module

    gpu = cuda.get_current_device().id
    with _lock:
        memory = _spare.pop(gpu, None) or _Memory()
    _of_thread.memory = memory
    try:
        yield
    finally:
        _of_thread.memory = None
    if memory.size > MOST_SHARE * total_memory():
        memory = _Memory()
    elif len(memory.chunks) > 1:
        # The next call gets in one piece what this one had to take in several.
        memory.first_size, memory.chunks = memory.size, []
    memory.chunk = memory.used = 0
    with _lock:
        _spare[gpu] = memory


def give_back() -> None:
    """Give back what is kept for the next call on the current GPU."""
    with _lock:
        _spare.pop(cuda.get_current_device().id, None)


def device_array(size: int, dtype):
    """An array of so many numbers, of any values: work space inside a `work_space`."""
    memory = getattr(_of_thread, "memory", None)
    if memory is None:
        return cuda.device_array(size, dtype)
    return memory.array(size, np.dtype(dtype))


def cut(memory, begin: int, size: int, dtype):
    """An array in the memory of another, from its byte `begin` on.

    As slicing and a view would make it, in a sixth of their time.
    """
    dtype = np.dtype(dtype)
    part = _Part(memory, begin)
    array = KernelArgument((size,), (dtype.itemsize,), dtype, gpu_data=part)
    array._numba_type_ = _numba_type(dtype)
    return array


def room_for(n_bytes: int) -> int:
    """Bytes from the start of an array to that of the next."""
    return -(-n_bytes // ALIGNMENT) * ALIGNMENT


def are_neighbours(array, following) -> bool:
    """Whether device arrays lie side by side in one work space, `room_for` the first apart."""
    here, there = array.gpu_data, following.gpu_data
    return (
        isinstance(here, _Part)
        and isinstance(there, _Part)
        and here.memory is there.memory
        and here.begin + room_for(array.nbytes) == there.begin
    )


class KernelArgument(DeviceNDArray, ArgHint):
    """A device array that is ready to be given to kernels.

    Numba would find out the type of each array, and whether it has to go to the GPU first: a tenth
    of a millisecond a launch of a dozen arrays, in which a small batch could be done.
    """

    def to_device(self, _retrievals, stream=0):
        return self._strided_memory_view_shim


class _Part:
    """The memory of a device array from a byte on, as Numba asks for it."""

    __cuda_memory__ = True

    def __init__(self, memory, begin: int):
        self.memory, self.begin = memory, begin

    @property
    def device_ctypes_pointer(self):
        return ctypes.c_size_t(self.memory.device_ctypes_pointer.value + self.begin)

    def view(self, start: int, _stop: int | None = None):
        return _Part(self.memory, self.begin + start)


@functools.cache
def _numba_type(dtype):
    return types.Array(from_dtype(dtype), 1, "C")
