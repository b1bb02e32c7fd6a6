"""Sorting pairs on the GPU, with the radix sort of NVIDIA's CUDA Core Compute Libraries."""

import contextlib
import functools
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numba
import numpy as np

from bwarp.errors import UsageError
from bwarp.gpu.cuda import cuda

__all__ = ["compiled_sort", "pair_sorter"]


def pair_sorter() -> Callable:
    """A function that sorts pairs of keys and values on the current GPU.

    ``sort_pairs(keys, values, count, key_bits)`` sorts the first `count` pairs by the lowest
    `key_bits` bits of their keys (fewer bits take fewer passes); equal keys keep their order.

    keys : pair of device arrays, dtype=uint64
        The keys to sort, and as much space.
    values : pair of device arrays, dtype=uint32
        What goes with each key, and as much space.

    It returns the same two pairs of arrays, in each the sorted one first: the sort goes to and
    fro between them and needs next to no memory beside. The arrays of the last call stay in
    memory as long as the function does.
    """
    try:  # here and not above, because it takes a driver
        from cuda.compute import DoubleBuffer, deserialize
    except ImportError as error:
        raise UsageError(
            "sorting on the GPU takes the package cuda-cccl: pip install 'bwarp[gpu-cu13]' "
            f"(or gpu-cu12), or use --backend cpu ({error})"
        ) from None

    sort = deserialize(compiled_sort(cuda.get_current_device().compute_capability))

    def sort_pairs(keys, values, count: int, key_bits: int):
        arguments = {
            "d_in_keys": DoubleBuffer(*keys),
            "d_out_keys": None,
            "d_in_values": DoubleBuffer(*values),
            "d_out_values": None,
            "num_items": count,
            "begin_bit": 0,
            "end_bit": key_bits,
        }
        scratch_bytes = sort(temp_storage=None, **arguments)
        sort(temp_storage=cuda.device_array(max(scratch_bytes, 1), np.uint8), **arguments)
        keys, values = arguments["d_in_keys"], arguments["d_in_values"]
        return (keys.current(), keys.alternate()), (values.current(), values.alternate())

    return sort_pairs


@functools.cache
def compiled_sort(capability: tuple[int, int]) -> bytes:
    """The sort compiled for this GPU. That takes seconds, so it is kept where Numba keeps its
    compiled functions; where nothing can be written it is compiled in every process."""
    folder = Path(numba.config.CACHE_DIR or Path(__file__).parent / "__pycache__")
    architecture = "sm_{}{}".format(*capability)
    path = folder / f"radix_sort.{architecture}.cuda-cccl-{version('cuda-cccl')}.bin"
    with contextlib.suppress(OSError):
        return path.read_bytes()

    from cuda.compute import DoubleBuffer, SortOrder, make_radix_sort, serialize

    keys, values = (
        DoubleBuffer(cuda.device_array(1, dtype), cuda.device_array(1, dtype))
        for dtype in (np.uint64, np.uint32)
    )
    sort = make_radix_sort(
        d_in_keys=keys,
        d_out_keys=None,
        d_in_values=values,
        d_out_values=None,
        order=SortOrder.ASCENDING,
    )
    compiled = serialize(sort)
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(compiled)
        part.replace(path)
    return compiled
