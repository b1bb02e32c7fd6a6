"""Stretches of a haplotype made from the reference and its variants, and back.

reference     10 11 12 13 14 15 16
               A  C  G  T  A  C  G
template       A  C  a  a  G        C  G       an insertion after 11, a deletion of 13 and 14
positions     10 11 11 11 12       15 16       an inserted base has its anchor's position
"""

import numba

from bwarp.simulation.variants import DELETION, INSERTION, SUBSTITUTION

__all__ = ["first_above", "haplotype_stretch", "reference_span"]


@numba.njit
def first_above(values, value):
    """The first index of a sorted array whose element is greater than `value`."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) >> 1
        if values[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


@numba.njit
def haplotype_stretch(codes, variants, haplotype, start, stop, template, positions):
    """Write a haplotype's bases over a stretch of the reference, and the position of each.

    An inserted base has the position of the base that it comes after. Returns the number of bases.
    """
    i = first_above(variants.positions, start - 1)
    at = start
    if i > 0 and variants.kinds[i - 1] == DELETION and variants.haplotypes[i - 1] & haplotype:
        at = max(at, variants.positions[i - 1] + variants.lengths[i - 1] + 1)
    n = 0
    while at < stop:
        anchor = variants.positions[i] if i < variants.positions.size else stop
        until = min(anchor + 1, stop)
        # Indices that cannot be negative let this loop become vector operations.
        source, bases_to, positions_to = codes[at:until], template[n:], positions[n:]
        for k in range(source.size):
            bases_to[k] = source[k]
            positions_to[k] = at + k
        n += until - at
        at = until
        if anchor < stop and variants.haplotypes[i] & haplotype:
            first = variants.base_offsets[i]
            if variants.kinds[i] == SUBSTITUTION:
                template[n - 1] = variants.bases[first]
            elif variants.kinds[i] == INSERTION:
                for base in range(first, first + variants.lengths[i]):
                    template[n] = variants.bases[base]
                    positions[n] = anchor
                    n += 1
            else:
                at += variants.lengths[i]
        i += 1
    return n


@numba.njit
def reference_span(codes, template, positions, a, b):
    """Begin and end on the reference of bases a to b of a template, and how they differ from it."""
    start = -1
    stop = -1
    differences = 0
    for k in range(a, b):
        position = positions[k]
        if k > 0 and positions[k - 1] == position:
            differences += 1
            continue
        if start < 0:
            start = position
        else:
            differences += position - stop
        differences += template[k] != codes[position]
        stop = position + 1
    if start < 0:
        # All of the read lies in an insertion: it covers no base of the reference.
        start = stop = positions[a] + 1
    return start, stop, differences
