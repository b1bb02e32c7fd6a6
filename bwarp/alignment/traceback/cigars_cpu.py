"""Writing CIGARs on the CPU: run by run into arrays, and in the end into the order of the pairs."""

import numba
import numpy as np

from bwarp.runtime.compiled_code import compiled

__all__ = ["gather_cigars", "grown", "push"]


@numba.njit(forceinline=True)
def push(runs, count, run):
    """Add a run, ``length << 4 | operation``, to a CIGAR of `count` runs; returns how many now."""
    if count > 0 and runs[count - 1] & 15 == run & 15:
        runs[count - 1] += np.uint32(run & ~15)
        return count
    runs[count] = np.uint32(run)
    return count + 1


@compiled
def grown(array, size):
    """The same array, or a copy with space for `size` numbers and as many again."""
    if size <= array.size:
        return array
    larger = np.empty(2 * size, array.dtype)
    for k in range(array.size):
        larger[k] = array[k]
    return larger


def gather_cigars(
    parts: list[np.ndarray], starts: np.ndarray, operations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bring CIGARs that lie in several arrays into the order of the pairs.

    Parameters
    ----------
    parts : list of ndarray, dtype=uint32
    starts : ndarray, shape=(count,), dtype=int64
        Where each CIGAR starts in the concatenated parts.
    operations : ndarray, shape=(count,), dtype=int32
        How many operations each has.

    Returns
    -------
    cigar_offsets : ndarray, shape=(count + 1,), dtype=int64
    cigar : ndarray, dtype=uint32
    """
    offsets = np.zeros(starts.size + 1, np.int64)
    np.cumsum(operations, out=offsets[1:])
    cigar = np.empty(offsets[-1], np.uint32)
    _gather(np.concatenate([*parts, np.empty(0, np.uint32)]), starts, offsets, cigar)
    return offsets, cigar


@compiled
def _gather(parts, starts, offsets, cigar):
    for i in range(starts.size):
        for k in range(offsets[i + 1] - offsets[i]):
            cigar[offsets[i] + k] = parts[starts[i] + k]
