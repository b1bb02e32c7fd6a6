"""Arrays without reference counts in compiled code.

Numba counts references to an array with atomic operations whenever it is taken from a tuple or
passed to an inlined function. It removes pairs of counts that it can match, but not across loops:
each step of a search counted six times, and took three times as long as its work.

The caller of a compiled function holds its arguments, so counting within it is unnecessary.
"""

from types import ModuleType

from bwarp.runtime.lazy_function import CompilerFunction


def _intrinsics() -> ModuleType:
    from bwarp.runtime import intrinsics

    return intrinsics


#: uncounted(arrays): the same array or tuple without reference counts, not to be returned or stored
uncounted = CompilerFunction(_intrinsics, "uncounted")
