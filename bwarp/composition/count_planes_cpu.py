"""Compare the base counts of a query with many others, a vector at a time.

With N(x) the number of unambiguous bases of x, the distance of a query q and a window w is

    D = sum |q - w| = N(q) + N(w) - 2 sum min(q, w)

so D <= t is equivalent to 2 sum min(q, w) + A(w) >= N(q) + length - t, where A(w) = length - N(w)
is the number of ambiguous bases of the window. Halved, in integers (c is the right side):

    c even:  sum min(q, w) + floor(A(w) / 2) >= c / 2
    c odd:   sum min(q, w) + ceil(A(w) / 2)  >= (c + 1) / 2

This takes four minima, four additions and one comparison per vector of histograms, stored as
planes:

    plane 0      A count of histogram 0, 1, 2, ...     planes are concatenated in one array,
    plane 1      C count of ...                        `width` numbers each, as many as fill
    plane 2, 3   G, T                                  whole vectors
    plane 4      floor(A / 2)
    plane 5      ceil(A / 2)

Planes hold 8-bit numbers for lengths up to 255, and 16-bit ones above. No sum exceeds the length,
so none overflows. Unused columns are zero; as thresholds are below the length, the right side is at
least 1, so these columns are never hits.
"""

import numpy as np

from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import add, fill, greater, load, mask_bits, minimum, population_count

N_PLANES = 6


def count_type(length: int):
    """Return the type that holds the counts of windows of this length."""
    return np.uint8 if length <= 255 else np.uint16


@compiled
def set_query(counts, length, largest_distance, query):
    """Write the counts of a query and the threshold of the sum of minima; return the plane of A /
    2.

    Parameters
    ----------
    counts : ndarray, shape=(4,), dtype=uint16
    query : ndarray, shape=(5,), dtype=uint8 or uint16
        Four counts, and the right side minus 1, in the type of the planes.
    """
    unambiguous = 0
    for base in range(4):
        query[base] = counts[base]
        unambiguous += counts[base]
    right = unambiguous + length - largest_distance
    query[4] = (right + 1) // 2 - 1
    return 4 + right % 2


@compiled
def hits_in_planes(planes, width, at, query, half):
    """Return one bit for each of a vector of histograms from `at` on: whether it is a hit.

    Parameters
    ----------
    planes : ndarray, shape=(N_PLANES * width,), dtype=uint8 or uint16
    query : ndarray, shape=(5,), of the same type
    half : int
        The plane of A / 2 to use, from `set_query`.
    """
    a = minimum(load(planes, at), fill(query[0]))
    c = minimum(load(planes, width + at), fill(query[1]))
    g = minimum(load(planes, 2 * width + at), fill(query[2]))
    t = minimum(load(planes, 3 * width + at), fill(query[3]))
    ambiguous = load(planes, half * width + at)
    total = add(add(add(a, c), add(g, t)), ambiguous)
    return np.uint64(mask_bits(greater(total, fill(query[4]))))


@compiled
def list_hits(bits, planes, at, query, first, numbers, distances, used):
    """Append the hits of one vector: `first` + lane, and the distance of each.

    Returns the used length of numbers and distances.
    """
    width = planes.size // N_PLANES
    while bits != np.uint64(0):
        lane = np.int64(population_count(bits ^ (bits - np.uint64(1)))) - 1
        number = at + lane
        distance = 0
        for base in range(4):
            here = np.int64(planes[base * width + number])
            distance += abs(here - np.int64(query[base]))
        numbers[used] = first + lane
        distances[used] = distance
        used += 1
        bits &= bits - np.uint64(1)
    return used
