"""Items cut into ranges of a bounded size, as memory allows."""

from collections.abc import Iterator

import numpy as np

__all__ = ["bounded_ranges"]


def bounded_ranges(offsets: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Consecutive ranges of items, each as long as its items have at most a size together.

    Parameters
    ----------
    offsets : ndarray, shape=(n_items + 1,)
        Where each item begins when they lie end to end, and where the last one ends.
    most : int
        A larger item is a range of its own.

    Yields
    ------
    start, stop : int
    """
    start = 0
    while start < len(offsets) - 1:
        stop = int(np.searchsorted(offsets, offsets[start] + most, side="right")) - 1
        stop = max(stop, start + 1)
        yield start, stop
        start = stop
