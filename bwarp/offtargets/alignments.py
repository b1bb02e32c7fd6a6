"""Align a guide to one site by the rules of `bwarp.offtargets`.

The bases of a guide and of a site are two bit planes each, where bit i is base i from the PAM on.
The locations of bulges are one number, one byte per base in a bulge, the nearest to the PAM
highest:

    2 i        a DNA bulge: a base of the site before base i of the guide
    2 i + 1    an RNA bulge: base i of the guide is left out
    255        no more

Of two alignments with equally many bases in bulges, the smaller number has its gaps nearer to the
PAM. The functions work on numbers and tuples of them, and can be called from CPU and CUDA code.
"""

from typing import NamedTuple

import numpy as np

from bwarp.options.finding import BULGES_EACH, LONGEST_GUIDE
from bwarp.runtime.compiled_code import inner

NO_BULGES = 0xFFFFFFFF

#: Dimensions of the working table: bases of the guide, of DNA bulges and of RNA bulges so far.
TABLE_SHAPE = (LONGEST_GUIDE + 1, BULGES_EACH + 1, BULGES_EACH + 1)

#: More mismatches than any alignment has; plus those of a whole guide it fits 8 bits.
_NEVER = 80


class Bases(NamedTuple):
    """Bases of a guide or a site as bit planes (uint64), and their number; others are ignored."""

    low: int
    high: int
    length: int


@inner
def differing_bits(guide, site, shift):
    """Return a mask of the bases i of the guide that differ from base i + shift of the site."""
    if shift >= 0:
        by = np.uint64(shift)
        return ((site.low >> by) ^ guide.low) | ((site.high >> by) ^ guide.high)
    by = np.uint64(-shift)
    return ((site.low << by) ^ guide.low) | ((site.high << by) ^ guide.high)


@inner
def _fewest_mismatches(guide, site, dna, rna, table):
    """Find the fewest mismatches for exact numbers of bases in bulges, for every suffix.

    ``table[i, d, r]`` is for what follows the first i bases of the guide, which took d and r bases
    in bulges.
    """
    length, available = guide.length, site.length
    for i in range(length, 0, -1):
        for d in range(dna, -1, -1):
            for r in range(rna, -1, -1):
                if i == length:
                    table[i, d, r] = 0 if d == dna and r == rna else _NEVER
                    continue
                at = i + d - r
                fewest = _NEVER
                if 0 < at < available:
                    differ = differing_bits(guide, site, d - r)
                    fewest = table[i + 1, d, r] + np.int64(differ >> np.uint64(i) & np.uint64(1))
                if d < dna:
                    fewest = min(fewest, table[i, d + 1, r])
                if r < rna and i <= length - 2:
                    fewest = min(fewest, table[i + 1, d, r + 1])
                table[i, d, r] = fewest
    first = np.int64(differing_bits(guide, site, 0) & np.uint64(1))
    return first + table[1, 0, 0] if available > 0 else _NEVER


@inner
def _first_gaps(length, dna, rna, table):
    """Return the bulges of the first alignment with the fewest mismatches in a table."""
    gaps = np.uint64(NO_BULGES)
    n_gaps = d = r = 0
    i = 1
    while i < length and (d < dna or r < rna):
        fewest = table[i, d, r]
        if d < dna and table[i, d + 1, r] == fewest:
            gaps = _with_gap(gaps, n_gaps, 2 * i)
            d += 1
            n_gaps += 1
        elif r < rna and i <= length - 2 and table[i + 1, d, r + 1] == fewest:
            gaps = _with_gap(gaps, n_gaps, 2 * i + 1)
            r += 1
            n_gaps += 1
            i += 1
        else:
            i += 1
    return gaps


@inner
def _with_gap(gaps, n_gaps, code):
    by = np.uint64(24 - 8 * n_gaps)
    return gaps & ~(np.uint64(255) << by) | (np.uint64(code) << by)


@inner
def best_alignment(guide, site, limits, table):
    """Find the best alignment of a guide to a site: mismatches, bases in bulges, and their
    locations.

    Parameters
    ----------
    guide, site : Bases
    limits : SiteOptions
    table : ndarray, shape=`TABLE_SHAPE`, dtype=int8
        Working memory.

    Returns
    -------
    mismatches, dna, rna, gaps : int
        -1 mismatches if no alignment is within the limits.
    """
    best, best_edits, best_bulges = -1, _NEVER, _NEVER
    best_dna = best_rna = 0
    best_gaps = np.uint64(NO_BULGES)
    for dna in range(limits.dna_bulge + 1):
        for rna in range(limits.rna_bulge + 1):
            bulges = dna + rna
            if bulges > best_edits or guide.length + dna - rna > site.length:
                continue
            here = _fewest_mismatches(guide, site, dna, rna, table)
            edits = here + bulges
            if here > limits.mismatches or edits > best_edits:
                continue
            if edits == best_edits and bulges > best_bulges:
                continue
            gaps = _first_gaps(guide.length, dna, rna, table)
            if edits == best_edits and bulges == best_bulges and gaps > best_gaps:
                continue
            best, best_edits, best_bulges, best_gaps = here, edits, bulges, gaps
            best_dna, best_rna = dna, rna
    return best, best_dna, best_rna, best_gaps


@inner
def list_alignments(guide, site, mismatches, bulges, table, path, found, count):
    """Append the alignments with exact numbers of bases in bulges to a list, as far as they fit.

    Parameters
    ----------
    bulges : tuple of int
        Bases in DNA and in RNA bulges.
    path : ndarray, shape=(LONGEST_GUIDE + 6, 5), dtype=int64
        Working memory.
    found : ndarray, dtype=uint64
        Edits, bases in bulges, their locations, bases in DNA bulges: 16, 8, 32 and 8 bits, so that
        the numbers are in the order of the alignments.

    Returns
    -------
    count : int
        The length of the list if it had enough space.
    """
    dna, rna = bulges
    length, available = guide.length, site.length
    if length + dna - rna > available:
        return count
    least = _fewest_mismatches(guide, site, dna, rna, table)
    if least > mismatches:
        return count
    # Columns so far: bases of the guide, DNA, RNA, mismatches, and what to try next.
    path[0, 0], path[0, 1], path[0, 2], path[0, 4] = 1, 0, 0, 0
    path[0, 3] = least - table[1, 0, 0]
    gaps = np.uint64(NO_BULGES)
    depth = 0
    while depth >= 0:
        i, d, r = path[depth, 0], path[depth, 1], path[depth, 2]
        m, turn = path[depth, 3], path[depth, 4]
        if i == length:
            edits = np.uint64(m + dna + rna)
            if count < found.size:
                found[count] = (
                    edits << np.uint64(48) | np.uint64(dna + rna) << np.uint64(40)
                    | gaps << np.uint64(8) | np.uint64(dna)
                )  # fmt: skip
            count += 1
            turn = 3
        path[depth, 4] = turn + 1
        if turn == 3:
            depth -= 1
            continue
        if turn == 0:
            # The DNA bulge of adjacent bulges is written first.
            after_rna = depth > 0 and path[depth, 2] > path[depth - 1, 2]
            if d < dna and not after_rna and table[i, d + 1, r] + m <= mismatches:
                gaps = _with_gap(gaps, d + r, 2 * i)
                path[depth + 1, 0], path[depth + 1, 1], path[depth + 1, 2] = i, d + 1, r
                path[depth + 1, 3], path[depth + 1, 4] = m, 0
                depth += 1
        elif turn == 1:
            if r < rna and i <= length - 2 and table[i + 1, d, r + 1] + m <= mismatches:
                gaps = _with_gap(gaps, d + r, 2 * i + 1)
                path[depth + 1, 0], path[depth + 1, 1], path[depth + 1, 2] = i + 1, d, r + 1
                path[depth + 1, 3], path[depth + 1, 4] = m, 0
                depth += 1
        else:
            at = i + d - r
            if 0 < at < available:
                differ = differing_bits(guide, site, d - r)
                cost = m + np.int64(differ >> np.uint64(i) & np.uint64(1))
                if table[i + 1, d, r] + cost <= mismatches:
                    path[depth + 1, 0], path[depth + 1, 1], path[depth + 1, 2] = i + 1, d, r
                    path[depth + 1, 3], path[depth + 1, 4] = cost, 0
                    depth += 1
    return count
