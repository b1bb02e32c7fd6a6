"""Count all windows of one length by histogram on a GPU; see `classes_cpu`.

One thread per window computes its counts from prefix counts, numbers the histogram and adds one to
a table in the second-level cache. Windows with ambiguous bases are rare; those close enough to some
query are listed in any order and sorted afterwards.
"""

import numpy as np

from bwarp.composition.classes_cpu import WindowClasses, number_of_classes
from bwarp.composition.tiles_cuda import DeviceReferences, window_word
from bwarp.gpu.cuda import cuda, int64, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch

_THREADS = 256
#: The word of a position where no window begins.
_NO_WINDOW = 0xFFFFFFFF
#: Initial space for ambiguous windows; if it is too small, the kernel runs again with enough.
_FIRST_ROOM = 1 << 16


def count_windows(
    prepared: DeviceReferences, length: int, most_ambiguous: int, room: int = _FIRST_ROOM
) -> WindowClasses:
    """Count all windows of one length, at most 255, by histogram.

    Parameters
    ----------
    prepared : DeviceReferences
    length : int
    most_ambiguous : int
        Windows with more ambiguous bases are left out, because no query is close enough.
    room : int
        Space for ambiguous windows.
    """
    n_positions = prepared.room.size
    n_classes = number_of_classes(length)
    # The last element counts the ambiguous windows.
    table = cuda.device_array(n_classes + 1, np.uint32)
    clear[launch(table.size, _THREADS)](table)
    ambiguous = cuda.device_array(room, np.uint64)
    number_windows[launch(n_positions, _THREADS)](
        prepared, uint32(length), uint32(most_ambiguous), table, ambiguous
    )
    table = table.copy_to_host()
    if table[-1] > room:
        return count_windows(prepared, length, most_ambiguous, int(table[-1]))
    found, times = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    if table[-1]:
        found, times = np.unique(ambiguous[: int(table[-1])].copy_to_host(), return_counts=True)
    tables = table[None, :-1]
    if found.size:
        tables = np.concatenate([tables, times.astype(np.uint32)[None, :]], axis=1)
    ranges = np.array([[0, n_positions]], np.int64)
    return WindowClasses(length, ranges, tables, found, most_ambiguous)


@kernel
def clear(table: uint32[::1]):
    """Set a table to zero; one thread per element."""
    i = cuda.grid(1)
    if i < table.size:
        table[i] = uint32(0)


@kernel
def number_windows(
    references: DeviceReferences, length: uint32, most_ambiguous: uint32, table: uint32[::1],
    ambiguous: uint64[::1],
):  # fmt: skip
    """Count every window in the class of its histogram; one thread per window.

    Reads two words and a byte, and makes one atomic addition to the table.
    """
    at = uint32(cuda.grid(1))
    if at >= uint32(references.room.size):
        return
    word = window_word(references, at, length)
    if word == uint32(_NO_WINDOW):
        return
    a = uint32(word & uint32(255))
    c = uint32((word >> uint32(8)) & uint32(255))
    g = uint32((word >> uint32(16)) & uint32(255))
    t = uint32(word >> uint32(24))
    missing = uint32(length - a - c - g - t)
    side = uint32(length + uint32(1))
    if missing == uint32(0):
        # Below 2**24, for lengths up to 255.
        number = uint32(uint32(uint32(a * side) + c) * side + g)
        cuda.atomic.add(table, int64(number), uint32(1))
    elif missing <= most_ambiguous:
        slot = cuda.atomic.add(table, int64(table.size - 1), uint32(1))
        if slot < ambiguous.size:
            ambiguous[slot] = uint64(
                uint64(a)
                | uint64(c) << uint64(16)
                | uint64(g) << uint64(32)
                | uint64(t) << uint64(48)
            )
