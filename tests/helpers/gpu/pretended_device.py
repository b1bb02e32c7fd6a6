"""Arrays, launches and the sort of a GPU that is not there."""

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from tests.helpers.gpu import emulated_cuda


class DeviceArray(np.ndarray):
    """A NumPy array that passes for one on a device."""

    def copy_to_host(self):
        return np.array(self)


def device(array) -> DeviceArray:
    return np.array(array).view(DeviceArray)


class Launcher:
    """``kernel[blocks, threads](...)`` without a GPU."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, configuration):
        return lambda *arguments: emulated_cuda.launch(self.kernel, *configuration, *arguments)


def pair_sorter():
    """What `bwarp.gpu.radix_sort.pair_sorter` means; either buffer may end up sorted."""
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
