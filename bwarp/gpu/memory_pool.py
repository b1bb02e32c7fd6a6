"""GPU memory: a pool of the driver for arrays, and reusable work space.

Allocating memory from the device and freeing it takes a tenth of a millisecond each, and freeing
waits for the device. A pool does both in the order of the default stream:

    kernel 1 uses a | a is freed | b is allocated, possibly at the same address | kernel 2 uses b
"""

import ctypes
import functools
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from bwarp.gpu import driver
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

#: Fraction of a GPU's memory that a pool keeps unused: enough for one or two batches.
_KEPT_SHARE = 1 / 16

_DEFAULT_STREAM = 0


def use_pool() -> None:
    """Allocate arrays from a pool on GPUs used from now on."""
    cuda.set_memory_manager(PooledMemory)


class PooledMemory(NumbaCUDAMemoryManager):
    """Numba's memory manager of one device, except that arrays come from a pool.

    If the driver does not support pools, it behaves like Numba's own.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._pool = None
        self._is_asked = False
        self._kept = 0
        self._used = 0
        self._threshold = 0
        # Filled by any thread that frees an array, emptied by threads that allocate on this device.
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
        address = driver.take(size)
        if address is not None:
            pointer = binding.CUdeviceptr(address)
        else:
            # Numba frees what it still holds, and reports errors.
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
        """Return the free memory of the device plus unused memory in the pool, and the total."""
        if self._pool is None:
            return super().get_memory_info()
        self._free_given_back()
        # The pool returns memory to the system only now; if read before, it would not be counted.
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
            driver.free(int(pointer))
            self._used -= size

    def _keep_enough(self) -> None:
        """Set how much memory the pool may hold before it returns unused memory to the system.

        Used memory counts too, so the limit follows it, in large steps to change it rarely.
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
# Work space on the GPU that is reused between calls, because allocating takes longer than using it.
#
# Inside ``with work_space():``, `device_array` takes arrays one after another from memory that is
# kept for the next call on this GPU. They are valid until the end of the block; allocate longer-
# lived arrays before it. A nested block releases its own arrays:
#
#     memory   [ codes | starts | lengths | scores | selectors |  free ...          ]
#              ^ outer block                       ^ inner block
#
# Memory may be released before the kernels that use it are done: kernels and copies of the next
# call wait for them, because all run on the default stream.


#: Maximum fraction of a GPU's memory that is kept.
MOST_SHARE = 0.125
#: Arrays start at multiples of this number of bytes, as those of the driver do.
ALIGNMENT = 256
#: Minimum number of bytes to allocate at once.
CHUNK = 1 << 20

_spare: dict[object, "_Memory"] = {}
_lock = threading.Lock()
_of_thread = threading.local()


class _Memory:
    """Chunks of device memory, used up to a position in one of them."""

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
    """Let `device_array` return work space within the block; blocks can be nested."""
    memory = getattr(_of_thread, "memory", None)
    if memory is not None:
        before = memory.chunk, memory.used
        yield
        memory.chunk, memory.used = before
        return
    from bwarp.gpu.available_memory import total_memory  # imports this module

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
        # The next call gets a single chunk of the total size of this call's chunks.
        memory.first_size, memory.chunks = memory.size, []
    memory.chunk = memory.used = 0
    with _lock:
        _spare[gpu] = memory


def give_back() -> None:
    """Free the memory kept for the next call on the current GPU."""
    with _lock:
        _spare.pop(cuda.get_current_device().id, None)


def device_array(size: int, dtype):
    """Return an uninitialised array, taken from work space inside a `work_space` block."""
    memory = getattr(_of_thread, "memory", None)
    if memory is None:
        return cuda.device_array(size, dtype)
    return memory.array(size, np.dtype(dtype))


def cut(memory, begin: int, size: int, dtype):
    """Return an array in the memory of another, starting at its byte `begin`.

    It equals a slice and a view, in a sixth of their time.
    """
    dtype = np.dtype(dtype)
    part = _Part(memory, begin)
    array = KernelArgument((size,), (dtype.itemsize,), dtype, gpu_data=part)
    array._numba_type_ = _numba_type(dtype)
    return array


def room_for(n_bytes: int) -> int:
    """Return the number of bytes from the start of an array to that of the next."""
    return -(-n_bytes // ALIGNMENT) * ALIGNMENT


def are_neighbours(array, following) -> bool:
    """Return whether two device arrays are adjacent in one work space."""
    here, there = array.gpu_data, following.gpu_data
    return (
        isinstance(here, _Part)
        and isinstance(there, _Part)
        and here.memory is there.memory
        and here.begin + room_for(array.nbytes) == there.begin
    )


class KernelArgument(DeviceNDArray, ArgHint):
    """A device array that is ready to be passed to kernels.

    Numba would determine the type of each array, and whether to copy it to the GPU: a tenth of a
    millisecond per launch with a dozen arrays, in which a small batch could be done.
    """

    def to_device(self, _retrievals, stream=0):
        return self._strided_memory_view_shim


class _Part:
    """The memory of a device array from a given byte on, in the form that Numba expects."""

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
