"""Search a stretch of the genome for all guides: PAMs, then the filter, then alignments."""

import numba
import numpy as np

from bwarp.mapping.reads.base_bits_cpu import turned
from bwarp.offtargets.alignments import (
    BULGES_EACH,
    LONGEST_GUIDE,
    TABLE_SHAPE,
    best_alignment,
    list_alignments,
)
from bwarp.offtargets.bit_planes_cpu import bits_at, planes_of
from bwarp.offtargets.pam_sites_cpu import BACKWARD, FORWARD, MARGIN, pam_sites
from bwarp.offtargets.site_filter_cpu import (
    BATCH_SITES,
    BATCH_WORDS,
    differing_bases,
    fitting_sites,
    state_count,
)

__all__ = ["ROW", "search_stretch"]

#: What is known of an alignment, before it is a row of a table.
ROW = np.dtype(
    [
        ("border", np.int64), ("guide", np.int32), ("gaps", np.uint32), ("rank", np.uint32),
        ("direction", np.uint8), ("mismatches", np.uint8), ("dna", np.uint8), ("rna", np.uint8),
    ]
)  # fmt: skip

_PATH_SHAPE = (LONGEST_GUIDE + BULGES_EACH + 4, 5)


def search_stretch(
    packed, segment_starts, segment_stops, first, last, allowed, codes, lengths, options
) -> np.ndarray:
    """All alignments at sites whose PAM begins from `first` up to, and without, `last`.

    Parameters
    ----------
    packed : ndarray, dtype=uint64
        The genome, as `bwarp.sequence.pack` makes it.
    segment_starts, segment_stops : ndarray, dtype=int64
        Where its segments lie that meet the stretch, in order.
    first, last : int
        `first` is a multiple of 64.
    allowed : tuple of ndarray, shape=(n, length), dtype=uint8
        The PAMs before a border that is read backwards from, and before one read forwards from.
    codes : tuple of ndarray, shape=(n_guides, LONGEST_GUIDE), dtype=uint8
        Of the guides from the PAM on, as backward and as forward sites are read.
    lengths : ndarray, shape=(n_guides,), dtype=int64
    options : SiteOptions

    Returns
    -------
    rows : ndarray, dtype=ROW
        By direction and border; alignments of one site in their order.
    """
    n_words = (last - first + 2 * MARGIN) // 64 + 3
    low, high = np.empty(n_words, np.uint64), np.empty(n_words, np.uint64)
    origin = first - MARGIN
    planes_of(packed, origin // 64, n_words, low, high)
    parts = []
    sites = np.empty(last - first, np.int32)
    available = np.empty(last - first, np.uint8)
    least = int(lengths.min()) - options.rna_bulge
    n_states = state_count(options.mismatches, options.dna_bulge, options.rna_bulge)
    for direction in (BACKWARD, FORWARD):
        count = pam_sites(
            low, high, origin, first, last, segment_starts, segment_stops, allowed[direction],
            direction, least, sites, available,
        )  # fmt: skip
        rows = np.empty(1024, ROW)
        rows, n_rows = _align_sites(
            low, high, sites[:count], available[:count], direction == BACKWARD, codes[direction],
            lengths, options.mismatches, options.dna_bulge, options.rna_bulge,
            options.all_alignments,
            np.empty((n_states, BATCH_WORDS), np.uint64), rows,
        )  # fmt: skip
        rows = rows[:n_rows]
        rows["border"] += origin
        rows["direction"] = direction
        parts.append(rows)
    return np.concatenate(parts)


@numba.njit(cache=True, nogil=True)
def _align_sites(
    low, high, sites, available, backward, codes, lengths, mismatches, dna_bulge, rna_bulge,
    list_all, states, rows,
):  # fmt: skip
    """Align every guide to every site that it may fit; returns the rows, and how many there are."""
    n_guides = lengths.size
    longest = lengths.max()
    n_bases = longest + dna_bulge
    planes = np.empty((2, 64, BATCH_WORDS), np.uint64)
    differing = np.empty((n_bases, 4, BATCH_WORDS), np.uint64)
    fitting = np.empty(BATCH_WORDS, np.uint64)
    table = np.empty(TABLE_SHAPE, np.int8)
    path = np.empty(_PATH_SHAPE, np.int64)
    listed = np.empty(256, np.uint64)
    guide_low, guide_high = np.zeros(n_guides, np.uint64), np.zeros(n_guides, np.uint64)
    for guide in range(n_guides):
        for i in range(lengths[guide]):
            guide_low[guide] |= np.uint64(codes[guide, i] & 1) << np.uint64(i)
            guide_high[guide] |= np.uint64(codes[guide, i] >> 1) << np.uint64(i)
    n_rows = 0
    for first in range(0, sites.size, BATCH_SITES):
        last = min(first + BATCH_SITES, sites.size)
        differing_bases(low, high, sites, first, last, backward, n_bases, planes, differing)
        for guide in range(n_guides):
            length = lengths[guide]
            if not fitting_sites(
                differing, codes[guide], length, mismatches, dna_bulge, rna_bulge, states, fitting
            ):
                continue
            for word in range(BATCH_WORDS):
                bits = fitting[word]
                bit = 0
                while bits != np.uint64(0):
                    if not bits & np.uint64(1):
                        bits >>= np.uint64(1)
                        bit += 1
                        continue
                    site = first + bit * BATCH_WORDS + word
                    bits >>= np.uint64(1)
                    bit += 1
                    if site >= last:
                        break
                    border, room = sites[site], available[site]
                    if backward:
                        site_low = turned(bits_at(low, border - 64))
                        site_high = turned(bits_at(high, border - 64))
                    else:
                        site_low, site_high = bits_at(low, border), bits_at(high, border)
                    if list_all:
                        n_listed, listed = _list_all(
                            guide_low[guide], guide_high[guide], length, site_low, site_high, room,
                            mismatches, dna_bulge, rna_bulge, table, path, listed,
                        )  # fmt: skip
                        rows = _with_room(rows, n_rows + n_listed)
                        for i in range(n_listed):
                            key = listed[i]
                            bulges = np.int64(key >> np.uint64(40) & np.uint64(255))
                            dna = np.int64(key & np.uint64(255))
                            edits = np.int64(key >> np.uint64(48))
                            _put(
                                rows, n_rows, guide, border, edits - bulges, dna, bulges - dna,
                                key >> np.uint64(8) & np.uint64(0xFFFFFFFF), i,
                            )  # fmt: skip
                            n_rows += 1
                        continue
                    found, dna, rna, gaps = best_alignment(
                        guide_low[guide], guide_high[guide], length, site_low, site_high, room,
                        mismatches, dna_bulge, rna_bulge, table,
                    )  # fmt: skip
                    if found >= 0:
                        rows = _with_room(rows, n_rows + 1)
                        _put(rows, n_rows, guide, border, found, dna, rna, gaps, 0)
                        n_rows += 1
    return rows, n_rows


@numba.njit(cache=True, nogil=True)
def _list_all(
    guide_low, guide_high, length, site_low, site_high, room, mismatches, dna_bulge, rna_bulge,
    table, path, listed,
):  # fmt: skip
    """All alignments of a site in their order; returns how many, and the list that holds them."""
    while True:
        count = 0
        for dna in range(dna_bulge + 1):
            for rna in range(rna_bulge + 1):
                count = list_alignments(
                    guide_low, guide_high, length, site_low, site_high, room, mismatches, dna, rna,
                    table, path, listed, count,
                )  # fmt: skip
        if count <= listed.size:
            listed[:count].sort()
            return count, listed
        listed = np.empty(2 * count, np.uint64)


@numba.njit(cache=True, nogil=True)
def _with_room(rows, count):
    if count <= rows.size:
        return rows
    more = np.empty(2 * count, rows.dtype)
    for i in range(rows.size):
        more[i] = rows[i]
    return more


@numba.njit(nogil=True, forceinline=True)
def _put(rows, at, guide, border, mismatches, dna, rna, gaps, rank):
    rows[at].guide = guide
    rows[at].gaps = gaps
    rows[at].border = border
    rows[at].mismatches = mismatches
    rows[at].dna = dna
    rows[at].rna = rna
    rows[at].rank = rank
