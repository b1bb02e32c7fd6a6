"""Create zeroed arrays and tables on the GPU, and read single numbers.

The functions of numba-cuda for this take a tenth of a millisecond or more per call, and a batch
makes hundreds of calls: numba-cuda creates zeros on the host and copies them, and slices an array
to read a number.
"""

import functools
from collections.abc import Callable
from typing import get_type_hints

import numpy as np

from bwarp.gpu.cuda import as_dtype, cuda, driver, driver_calls, types
from bwarp.gpu.driver import clear
from bwarp.runtime.timeline import on_timeline


def zeros(size: int, dtype):
    """Return a device array of zeros without waiting for it."""
    array = cuda.device_array(int(size), dtype)
    if size:
        _clear(array)
    return array


def columns(table: type[tuple], size: int, allocate: Callable | None = None, **given):
    """Return a table with uninitialised columns of the given size.

    Parameters
    ----------
    table : class
        A named tuple whose fields are annotated with array types (`bwarp.gpu.kernel`).
    allocate : function, optional
        Function that allocates an array of a size and type, for example in a work space.
    **given
        Existing columns.
    """
    allocate = allocate or cuda.device_array
    return table(*[
        given[name] if name in given else allocate(size, dtype)
        for name, dtype in dtypes_of(table)
    ])  # fmt: skip


@functools.cache
def field_types(table: type[tuple]) -> dict:
    """Return the annotations of the fields of a named tuple; some modules write them as text."""
    return get_type_hints(table, localns=vars(types), include_extras=True)


def dtypes_of(table: type[tuple]) -> list[tuple[str, np.dtype]]:
    """Return the names and types of the columns of a table; None for a field of another kind."""
    kinds = field_types(table).items()
    return [
        (name, np.dtype(as_dtype(kind.dtype))) if isinstance(kind, types.Array) else (name, None)
        for name, kind in kinds
    ]


@on_timeline("wait for the GPU")
def number_at(array, index: int) -> int:
    """Return a number of a 1-d device array of integers; wait until it is computed.

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
    if not clear(address, array.nbytes):
        # numba-cuda reports the error.
        driver.device_memset(array, 0, array.nbytes)


def _copy_number(number: np.ndarray, array, index: int) -> None:
    # Releases the GIL while the GPU works.
    address = array.device_ctypes_pointer.value + index * number.itemsize
    driver_calls.cuMemcpyDtoH(number.ctypes.data, address, number.itemsize)
