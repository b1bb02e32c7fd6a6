"""Sorting pairs on the GPU, with the radix sort of NVIDIA's CUDA Core Compute Libraries."""

import numpy as np
from numba import cuda

__all__ = ["sort_pairs"]


def sort_pairs(keys, values, count: int, key_bits: int):
    """Sort the first `count` pairs by their key; equal keys keep their order.

    The sort goes to and fro between two buffers, so it needs next to no memory beside them.

    Parameters
    ----------
    keys : pair of device arrays, dtype=uint64
        The keys to sort, and as much space.
    values : pair of device arrays, dtype=uint32
        What goes with each key, and as much space.
    key_bits : int
        Only the lowest `key_bits` bits of a key are looked at; fewer bits take fewer passes.

    Returns
    -------
    keys, values : pairs of device arrays
        The same buffers, in each pair the sorted one first.
    """
    # Imported here: it takes the NVRTC and driver libraries, and compiles for seconds.
    from cuda.compute import DoubleBuffer, SortOrder, make_radix_sort

    buffers = {
        "d_in_keys": DoubleBuffer(*keys),
        "d_out_keys": None,
        "d_in_values": DoubleBuffer(*values),
        "d_out_values": None,
    }
    sort = make_radix_sort(**buffers, order=SortOrder.ASCENDING)
    bits = {"begin_bit": 0, "end_bit": key_bits}
    scratch_bytes = sort(temp_storage=None, **buffers, num_items=count, **bits)
    scratch = cuda.device_array(max(scratch_bytes, 1), np.uint8)
    sort(temp_storage=scratch, **buffers, num_items=count, **bits)
    keys, values = buffers["d_in_keys"], buffers["d_in_values"]
    return (keys.current(), keys.alternate()), (values.current(), values.alternate())
