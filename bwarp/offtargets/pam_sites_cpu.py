"""Find PAMs: 64 positions at a time as masks, then one by one.

A site has a border, between its PAM and its protospacer, and a direction in which the protospacer
is read from there. PAMs at the 3' end, on the forward strand:

    genome       A C G T A C G T A C|T G G A A C        a backward site: base i of the
    backward     <- protospacer ... |PAM                protospacer is that at border - 1 - i
    forward      PAM (CCN)|protospacer ... ->           base i is that at border + i
                                                        (the reverse strand, complemented)

With PAMs at the 5' end, forward sites are on the forward strand.
"""

from typing import NamedTuple

import numpy as np

from bwarp.offtargets.site_filter_cpu import bits_at
from bwarp.runtime.compiled_code import compiled, inner

BACKWARD, FORWARD = 0, 1

#: Bases read beyond the searched positions, on both sides; a multiple of 64.
MARGIN = 128

_ONE = np.uint64(1)
_ALL = ~np.uint64(0)


class Stretch(NamedTuple):
    """A stretch of the genome.

    Attributes
    ----------
    low, high : ndarray, dtype=uint64
        Bit planes from base `origin` on.
    origin : int
    first, last : int
        The positions to search: from `first` up to, but excluding, `last`.
    """

    low: np.ndarray
    high: np.ndarray
    origin: int
    first: int
    last: int


@compiled
def pam_sites(stretch, segment_starts, segment_stops, allowed, direction, least):
    """Find the sites whose PAM begins in the positions to search.

    Parameters
    ----------
    stretch : Stretch
    segment_starts, segment_stops : ndarray, dtype=int64
        The segments that overlap the stretch.
    allowed : ndarray, shape=(n, length), dtype=uint8
        Bases of the PAMs on the forward strand.
    direction : int
        `BACKWARD` or `FORWARD`.
    least : int
        The minimum number of bases of a protospacer.

    Returns
    -------
    borders : ndarray, dtype=int32
        Relative to the origin of the stretch.
    available : ndarray, dtype=uint8
        Bases of the segment from the border on, in the direction; 64 stands for 64 or more.
    """
    low, high, origin, first, last = stretch
    borders, available = np.empty(last - first, np.int32), np.empty(last - first, np.uint8)
    count = 0
    length = allowed.shape[1]
    shift = length if direction == FORWARD else 0
    for segment in range(segment_starts.size):
        start, stop = segment_starts[segment], segment_stops[segment]
        at = max(first, start)
        end = min(last, stop - length + 1)
        if direction == FORWARD:
            end = min(end, stop - length - least + 1)
        else:
            at = max(at, start + least)
        while at < end:
            mask = _pam_mask(low, high, at - origin, allowed)
            if end - at < 64:
                mask &= (_ONE << np.uint64(end - at)) - _ONE
            while mask != np.uint64(0):
                bit = _trailing_zeros(mask)
                mask &= mask - _ONE
                border = at + bit + shift
                room = stop - border if direction == FORWARD else border - start
                borders[count] = border - origin
                available[count] = min(room, 64)
                count += 1
            at += 64
    return borders[:count], available[:count]


@inner(nogil=True, forceinline=True)
def _pam_mask(low, high, at, allowed):
    """Return a mask of 64 positions: whether a PAM begins there."""
    found = np.uint64(0)
    for pam in range(allowed.shape[0]):
        mask = _ALL
        for i in range(allowed.shape[1]):
            bases = allowed[pam, i]
            if bases == 15:
                continue
            low_bits, high_bits = bits_at(low, at + i), bits_at(high, at + i)
            here = np.uint64(0)
            if bases & 1:
                here |= ~low_bits & ~high_bits
            if bases & 2:
                here |= low_bits & ~high_bits
            if bases & 4:
                here |= ~low_bits & high_bits
            if bases & 8:
                here |= low_bits & high_bits
            mask &= here
        found |= mask
    return found


@inner(nogil=True, forceinline=True)
def _trailing_zeros(mask):
    count = 0
    while not mask & np.uint64(255):
        mask >>= np.uint64(8)
        count += 8
    while not mask & _ONE:
        mask >>= _ONE
        count += 1
    return count
