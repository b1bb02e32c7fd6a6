"""Memory that is given back is kept for what comes next, where a program does the same over and
over with large arrays.

The C library gets arrays of more than 32 MB, or 128 kB at first, from the system, and gives them
back to it at once. The system clears every page that it hands out and, while threads run on other
processors, has to tell all of these of pages that it takes back; Python's lock is held meanwhile.
"""

import ctypes

__all__ = ["keep_freed_memory"]

#: Of malloc.h: parameters of glibc's mallopt, and what keeps memory.
_KEPT = (
    (-8, 1),  # M_ARENA_MAX: what one thread gives back another one takes
    (-4, 0),  # M_MMAP_MAX: nothing comes from mmap
    (-1, -1),  # M_TRIM_THRESHOLD: nothing is given back before the end
)


def keep_freed_memory() -> None:
    """Do so from now on, where the C library is glibc; before threads begin."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for parameter, value in _KEPT:
        mallopt(parameter, value)
