"""Arrays, launches and the sort of a simulated GPU."""

import itertools
import threading
import types

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu.cuda import cuda
from bwarp.gpu.kernel import Kernel
from tests.helpers.gpu import emulated_cuda
from tests.helpers.gpu.emulated_cuda import WARP, never_written

_numbers = itertools.count()

#: The GPUs that a thread has entered; the last is the current one.
_entered = threading.local()


class PretendedGpu:
    """A GPU as in Numba, and its context: a thread uses the one that it entered last."""

    def __init__(self, number, capability, memory):
        self.id, self.compute_capability = number, capability
        self.MULTIPROCESSOR_COUNT = 1
        self.get_memory_info = lambda: memory

    def push(self):
        _entered.__dict__.setdefault("gpus", []).append(self)

    def pop(self):
        assert _entered.gpus.pop() is self

    def __enter__(self):
        self.push()

    def __exit__(self, *_):
        self.pop()


def _current():
    entered = getattr(_entered, "gpus", None)
    return entered[-1] if entered else cuda.gpus[0]


def _current_id():
    """Return the current GPU, or None if only kernels are simulated."""
    return _current().id if isinstance(cuda.gpus, list) else None


class DeviceArray(np.ndarray):
    """A NumPy array that acts as one on a device: the current device, or that of its base."""

    def __array_finalize__(self, base):
        self.gpu = base.gpu if isinstance(base, DeviceArray) else _current_id()

    def copy_to_host(self, array=None, stream=0):
        assert self.gpu == _current_id(), "an array of another GPU"
        if array is None:
            return np.array(self)
        array[...] = self
        return array

    def copy_to_device(self, array, stream=0):
        self[...] = array

    # The array of which this is a view.
    gpu_data = None


def device(array) -> DeviceArray:
    return np.array(array).view(DeviceArray)


def _device_array(shape, dtype):
    assert type(shape) is int, "numba-cuda takes no NumPy number for a shape"
    return never_written(shape, dtype).view(DeviceArray)


def _array_in_memory(shape, _strides, dtype, gpu_data):
    begin, end = gpu_data.begin, gpu_data.begin + shape[0] * dtype.itemsize
    array = gpu_data.memory.view(np.uint8)[begin:end].view(dtype)
    array.gpu_data = gpu_data
    return array


def _copy_bytes(to, array, size, _stream=0):
    part = getattr(array, "gpu_data", None)
    if part is not None and array.nbytes < size:
        # Adjacent arrays are copied at once.
        array = part.memory.view(np.uint8)[part.begin :]
    to.view(np.uint8)[:size] = array.view(np.uint8)[:size]


def _copy_between_gpus(target, target_gpu, source, source_gpu):
    assert target.gpu == target_gpu == _current_id()
    assert source.gpu == source_gpu
    target[...] = source


def _copy_number(number, array, index):
    assert 0 <= index < array.size, "of the array"
    number[0] = array[index]


def _parts(arguments):
    """Yield the arguments, with tuples expanded."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _parts(argument)
        else:
            yield argument


def _plain(argument):
    """Return an argument with the types that it would have on a GPU."""
    if isinstance(argument, tuple):
        parts = map(_plain, argument)
        return type(argument)(*parts) if hasattr(argument, "_fields") else tuple(parts)
    return argument.view(np.ndarray) if isinstance(argument, DeviceArray) else argument


class Launcher:
    """``kernel[blocks, threads](...)`` without a GPU."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, configuration):
        grid, block = map(int, configuration[:2])

        def run(*arguments):
            if isinstance(self.kernel, Kernel):
                self.kernel.require([*map(_plain, arguments)])
            for array in _parts(arguments):
                if isinstance(array, DeviceArray):
                    assert array.gpu == _current_id(), "an array of another GPU"
            emulated_cuda.launch(self.kernel, grid, block, *arguments)

        return run


def pair_sorter():
    """Replace `bwarp.gpu.sums_and_sorts.pair_sorter`; either buffer may have the sorted pairs."""
    calls = []

    def sort_pairs(keys, values, count, key_bits):
        assert int(keys[0][:count].max()) < 2**key_bits
        order = np.argsort(keys[0][:count], kind="stable")
        sorted_keys, sorted_values = keys[0][:count][order], values[0][:count][order]
        calls.append(count)
        side = len(calls) % 2
        for pair, result in ((keys, sorted_keys), (values, sorted_values)):
            pair[side][:count] = result
            pair[1 - side][:count] = 0
        return (keys[side], keys[1 - side]), (values[side], values[1 - side])

    return sort_pairs


def pretend_arrays(monkeypatch):
    """Put device arrays into the memory of the host."""
    from bwarp.gpu import device_arrays

    monkeypatch.setattr(cuda, "to_device", device)
    monkeypatch.setattr(cuda, "device_array", _device_array)
    monkeypatch.setattr(device_arrays, "_clear", lambda array: array.fill(0))
    monkeypatch.setattr(device_arrays, "_copy_number", _copy_number)


def pretend_gpu(monkeypatch, modules, capability=(9, 0), free_bytes=1 << 30, gpus=1):
    """Make library code run its kernels here, as if there were one or more GPUs.

    Blocks have one warp in modules that define `BLOCK`.
    """
    for module in modules:
        if hasattr(module, "BLOCK"):
            monkeypatch.setattr(module, "BLOCK", WARP)

    memory = types.SimpleNamespace(free=free_bytes, total=free_bytes)
    monkeypatch.setattr(Kernel, "__getitem__", lambda kernel, grid: Launcher(kernel)[grid])
    from bwarp.gpu.cuda import driver

    monkeypatch.setattr(driver, "host_to_device", _copy_bytes)
    monkeypatch.setattr(driver, "device_to_host", _copy_bytes)
    monkeypatch.setattr(driver, "device_to_device", _copy_bytes)
    monkeypatch.setattr(cuda, "pinned_array", never_written)
    monkeypatch.setattr(cuda, "stream", lambda: types.SimpleNamespace(synchronize=int))
    from bwarp.gpu import memory_pool as workspace
    from bwarp.gpu import several_gpus

    monkeypatch.setattr(several_gpus, "_copy_between_gpus", _copy_between_gpus)
    pretend_arrays(monkeypatch)
    give = workspace._Memory.array

    def filled(memory, size, dtype):
        array = give(memory, size, dtype)
        array.view(np.uint8).fill(0x71)
        return array

    monkeypatch.setattr(workspace._Memory, "array", filled)
    monkeypatch.setattr(workspace, "KernelArgument", _array_in_memory)
    monkeypatch.setattr(cuda, "is_cuda_array", lambda a: isinstance(a, DeviceArray))
    # New numbers: nothing cached for the GPUs of earlier tests applies to these.
    gpus = [PretendedGpu(next(_numbers), capability, memory) for _ in range(gpus)]
    monkeypatch.setattr(cuda, "current_context", _current)
    monkeypatch.setattr(cuda, "get_current_device", _current)
    monkeypatch.setattr(cuda, "gpus", gpus)
