"""Search stretches of the genome on the CPU: find PAMs, filter their sites, align guides."""

from collections.abc import Iterator
from functools import partial

import numba
import numpy as np

from bwarp.offtargets.alignments import TABLE_SHAPE, best_alignment, list_alignments
from bwarp.offtargets.hits import SiteHits
from bwarp.offtargets.pam_sites_cpu import BACKWARD, FORWARD, MARGIN, pam_sites
from bwarp.offtargets.search import ROW, Search, hits_of_rows
from bwarp.offtargets.site_filter_cpu import (
    BATCH_SITES,
    BATCH_WORDS,
    bits_at,
    differing_bases,
    fitting_sites,
    planes_of,
    state_count,
)
from bwarp.options.finding import BULGES_EACH, LONGEST_GUIDE
from bwarp.reads.base_bits_cpu import bits_of_packed, shifted, turned
from bwarp.runtime.chunks import in_order
from bwarp.runtime.compiled_code import compiled

#: Positions searched at a time; a multiple of 64.
STRETCH = 1 << 18

_PATH_SHAPE = (LONGEST_GUIDE + BULGES_EACH + 4, 5)


def stretch_to_search() -> int:
    """Return the number of positions to search at a time."""
    return STRETCH


def search_stretches(search: Search, threads: int, stretch: int) -> Iterator[SiteHits]:
    """Yield the hits of every stretch of the genome, in order: at sites whose PAM begins in it."""
    firsts = iter(range(0, search.end, stretch))
    return in_order(partial(_hits_of_stretch, search, stretch), firsts, threads)


def _hits_of_stretch(search: Search, stretch: int, first: int) -> SiteHits:
    return hits_of_rows(_search_stretch(search, first, min(first + stretch, search.end)), search)


def _search_stretch(search: Search, first: int, last: int) -> np.ndarray:
    """Return the rows of sites whose PAM begins from `first`, a multiple of 64, up to `last`."""
    n_words = (last - first + 2 * MARGIN) // 64 + 3
    low, high = np.empty(n_words, np.uint64), np.empty(n_words, np.uint64)
    origin = first - MARGIN
    planes_of(search.packed, origin // 64, n_words, low, high)
    # The segments that overlap the stretch.
    meet = slice(
        int(np.searchsorted(search.segment_stops, first)),
        int(np.searchsorted(search.segment_starts, last, side="right")),
    )
    limits = search.options.mismatches, search.options.dna_bulge, search.options.rna_bulge
    parts = []
    sites = np.empty(last - first, np.int32)
    available = np.empty(last - first, np.uint8)
    for direction in (BACKWARD, FORWARD):
        count = pam_sites(
            low, high, origin, first, last, search.segment_starts[meet],
            search.segment_stops[meet], search.allowed[direction], direction, search.least, sites,
            available,
        )  # fmt: skip
        rows, n_rows = _align_sites(
            low, high, sites[:count], available[:count], direction == BACKWARD,
            search.codes[direction], *guide_planes(search.codes[direction]), search.lengths,
            *limits, search.options.all_alignments,
            np.empty((state_count(*limits), BATCH_WORDS), np.uint64), np.empty(1024, ROW),
        )  # fmt: skip
        rows = rows[:n_rows]
        rows["border"] += origin
        rows["direction"] = direction
        parts.append(rows)
    return np.concatenate(parts)


def guide_planes(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return low and high bits of guides, shape=(n_guides,), dtype=uint64; base i is bit i."""
    bits = np.arange(codes.shape[1], dtype=np.uint64)
    return tuple(
        ((codes >> bit & 1).astype(np.uint64) << bits).sum(axis=1, dtype=np.uint64)
        for bit in range(2)
    )


def all_alignments(
    search: Search, direction: int, borders: np.ndarray, guides: np.ndarray, rooms: np.ndarray
) -> np.ndarray:
    """Return all alignments, dtype `ROW`, of pairs of a site and a guide.

    Parameters
    ----------
    borders, guides, rooms : ndarray, dtype=int64, int32, uint8
        Of every pair; as in `pam_sites_cpu`, with the border in the genome.
    """
    limits = search.options.mismatches, search.options.dna_bulge, search.options.rna_bulge
    rows, n_rows = _list_pairs(
        search.packed, borders, guides, rooms, direction == BACKWARD,
        *guide_planes(search.codes[direction]), search.lengths, *limits, np.empty(1024, ROW),
    )  # fmt: skip
    rows = rows[:n_rows]
    rows["direction"] = direction
    return rows


@compiled
def _align_sites(
    low, high, sites, available, backward, codes, guide_low, guide_high, lengths, mismatches,
    dna_bulge, rna_bulge, list_all, states, rows,
):  # fmt: skip
    """Align every guide to every site that may fit; return the rows and their number."""
    n_guides = lengths.size
    longest = lengths.max()
    n_bases = longest + dna_bulge
    planes = np.empty((2, 64, BATCH_WORDS), np.uint64)
    differing = np.empty((n_bases, 4, BATCH_WORDS), np.uint64)
    fitting = np.empty(BATCH_WORDS, np.uint64)
    table = np.empty(TABLE_SHAPE, np.int8)
    path = np.empty(_PATH_SHAPE, np.int64)
    listed = np.empty(256, np.uint64)
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
                        n_rows = _put_listed(rows, n_rows, guide, border, listed, n_listed)
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


@compiled
def _list_pairs(
    packed, borders, guides, rooms, backward, guide_low, guide_high, lengths, mismatches, dna_bulge,
    rna_bulge, rows,
):  # fmt: skip
    """List all alignments of pairs; return the rows and their number."""
    table = np.empty(TABLE_SHAPE, np.int8)
    path = np.empty(_PATH_SHAPE, np.int64)
    listed = np.empty(256, np.uint64)
    n_rows = 0
    for pair in range(borders.size):
        guide, border = guides[pair], borders[pair]
        begin = border - 64 if backward else border
        low, high = bits_of_packed(packed, begin >> 6)
        low_next, high_next = bits_of_packed(packed, (begin >> 6) + 1)
        shift = np.uint64(begin & 63)
        site_low, site_high = shifted(low, low_next, shift), shifted(high, high_next, shift)
        if backward:
            site_low, site_high = turned(site_low), turned(site_high)
        n_listed, listed = _list_all(
            guide_low[guide], guide_high[guide], lengths[guide], site_low, site_high, rooms[pair],
            mismatches, dna_bulge, rna_bulge, table, path, listed,
        )  # fmt: skip
        rows = _with_room(rows, n_rows + n_listed)
        n_rows = _put_listed(rows, n_rows, guide, border, listed, n_listed)
    return rows, n_rows


@compiled
def _list_all(
    guide_low, guide_high, length, site_low, site_high, room, mismatches, dna_bulge, rna_bulge,
    table, path, listed,
):  # fmt: skip
    """List all alignments of a site in order; return their number and the list."""
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


@compiled
def _with_room(rows, count):
    if count <= rows.size:
        return rows
    more = np.empty(2 * count, rows.dtype)
    for i in range(rows.size):
        more[i] = rows[i]
    return more


@compiled
def _put_listed(rows, n_rows, guide, border, listed, n_listed):
    """Append the alignments of a site to the rows; return the number of rows."""
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
    return n_rows


@numba.njit(nogil=True, forceinline=True)
def _put(rows, at, guide, border, mismatches, dna, rna, gaps, rank):
    rows[at].guide = guide
    rows[at].gaps = gaps
    rows[at].border = border
    rows[at].mismatches = mismatches
    rows[at].dna = dna
    rows[at].rna = rna
    rows[at].rank = rank
