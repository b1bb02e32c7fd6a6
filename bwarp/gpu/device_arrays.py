"""Zeros and tables on the GPU, and single numbers of arrays there.

What numba-cuda has for them takes a tenth of a millisecond or more each, of which a turn on the GPU
has hundreds: zeros are made on the host and copied, and an array of one number is cut out first.
"""

import functools
import inspect
from collections.abc import Callable

import numpy as np

from bwarp.gpu import launch as queued_calls
from bwarp.gpu.cuda import as_dtype, cuda, driver, driver_calls, types


def zeros(size: int, dtype):
    """A device array of so many zeros; the host does not wait for them."""
    array = cuda.device_array(int(size), dtype)
    if size:
        _clear(array)
    return array


def columns(table: type[tuple], size: int, allocate: Callable | None = None, **given):
    """A table whose columns have room for so many numbers each, with any values.

    Parameters
    ----------
    table : class
        A named tuple whose fields are annotated with types of arrays (`bwarp.gpu.kernel`).
    allocate : function, optional
        Makes an array of a size and type, in a work space say.
    **given
        Columns that are there already.
    """
    allocate = allocate or cuda.device_array
    return table(*[
        given[name] if name in given else allocate(size, dtype)
        for name, dtype in _dtypes_of(table)
    ])  # fmt: skip


@functools.cache
def _dtypes_of(table: type[tuple]) -> list[tuple[str, np.dtype]]:
    kinds = inspect.get_annotations(table).items()
    return [
        (name, np.dtype(as_dtype(kind.dtype))) if isinstance(kind, types.Array) else (name, None)
        for name, kind in kinds
    ]


def number_at(array, index: int) -> int:
    """A number of a 1-d device array of integers, once it is there.

    Parameters
    ----------
    array : device array, shape=(n,), contiguous
    index : int
        From 0 to n - 1.
    """
    number = np.empty(1, array.dtype)
    _copy_number(number, array, index)
    return int(number[0])


def _clear(array) -> None:
    address = array.device_ctypes_pointer.value
    if not queued_calls.clear(address, array.nbytes):
        # numba-cuda says why not.
        driver.device_memset(array, 0, array.nbytes)


def _copy_number(number: np.ndarray, array, index: int) -> None:
    # Lets go of Python's lock while the GPU works.
    address = array.device_ctypes_pointer.value + index * number.itemsize
    driver_calls.cuMemcpyDtoH(number.ctypes.data, address, number.itemsize)
