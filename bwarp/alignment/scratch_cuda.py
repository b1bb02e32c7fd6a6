"""Work space on the card that outlives a call: to take and free a gigabyte costs a millisecond."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numba import cuda

__all__ = ["MOST_BYTES", "scratch"]

#: Larger work space is not kept.
MOST_BYTES = 2 << 30

_spare: dict[tuple, object] = {}
_lock = threading.Lock()


@contextmanager
def scratch(words: int, dtype) -> Iterator:
    """A device array of at least so many 32-bit words, which nobody else uses inside the block.

    The work space of one call at a time is kept for the next, per card and type. It may be given
    back before the kernels that use it are done: those of the next call wait for them, because all
    run on the default stream.
    """
    key = cuda.get_current_device().id, np.dtype(dtype).char
    with _lock:
        array = _spare.pop(key, None)
    if array is None or array.size < words:
        # The old one is freed first.
        del array
        array = cuda.device_array(max(1, words), dtype)
    yield array
    if array.nbytes <= MOST_BYTES:
        with _lock:
            _spare[key] = array
