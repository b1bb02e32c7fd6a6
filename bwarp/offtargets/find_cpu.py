"""Search stretches of the genome on the CPU: find PAMs, filter their sites, align guides."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.offtargets.alignments import TABLE_SHAPE, Bases, best_alignment, list_alignments
from bwarp.offtargets.hits import SiteHits
from bwarp.offtargets.pam_sites_cpu import BACKWARD, FORWARD, MARGIN, Stretch, pam_sites
from bwarp.offtargets.search import ROW, Search, hits_of_rows
from bwarp.offtargets.site_filter_cpu import (
    BATCH_SITES,
    BATCH_WORDS,
    bits_at,
    differing_bases,
    fitting_sites,
    planes_of,
)
from bwarp.options.finding import BULGES_EACH, LONGEST_GUIDE
from bwarp.reads.base_bits_cpu import bits_of_packed, shifted, turned
from bwarp.runtime.chunks import in_order
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.timeline import on_timeline

#: Positions searched at a time; a multiple of 64.
STRETCH = 1 << 18

_PATH_SHAPE = (LONGEST_GUIDE + BULGES_EACH + 4, 5)


class GuideBases(NamedTuple):
    """Guides in one direction.

    Attributes
    ----------
    codes : ndarray, shape=(n_guides, LONGEST_GUIDE), dtype=uint8
    low, high : ndarray, shape=(n_guides,), dtype=uint64
        Bit planes; base i is bit i.
    lengths : ndarray, shape=(n_guides,), dtype=int64
    """

    codes: np.ndarray
    low: np.ndarray
    high: np.ndarray
    lengths: np.ndarray


def stretch_to_search() -> int:
    """Return the number of positions to search at a time."""
    return STRETCH


def search_stretches(search: Search, threads: int, stretch: int) -> Iterator[SiteHits]:
    """Yield the hits of every stretch of the genome, in order: at sites whose PAM begins in it."""
    firsts = iter(range(0, search.end, stretch))
    return in_order(partial(_hits_of_stretch, search, stretch), firsts, threads)


@on_timeline("search a stretch")
def _hits_of_stretch(search: Search, stretch: int, first: int) -> SiteHits:
    return hits_of_rows(_search_stretch(search, first, min(first + stretch, search.end)), search)


def _search_stretch(search: Search, first: int, last: int) -> np.ndarray:
    """Return the rows of sites whose PAM begins from `first`, a multiple of 64, up to `last`."""
    n_words = (last - first + 2 * MARGIN) // 64 + 3
    low, high = np.empty(n_words, np.uint64), np.empty(n_words, np.uint64)
    stretch = Stretch(low, high, first - MARGIN, first, last)
    planes_of(search.packed, stretch.origin // 64, n_words, low, high)
    # The segments that overlap the stretch.
    meet = slice(
        int(np.searchsorted(search.segment_stops, first)),
        int(np.searchsorted(search.segment_starts, last, side="right")),
    )
    parts = []
    for direction in (BACKWARD, FORWARD):
        sites = pam_sites(
            stretch, search.segment_starts[meet], search.segment_stops[meet],
            search.allowed[direction], direction, search.least,
        )  # fmt: skip
        rows = _align_sites(
            stretch, sites, direction == BACKWARD, _guides_of(search, direction), search.options,
            np.empty(1024, ROW),
        )  # fmt: skip
        rows["border"] += stretch.origin
        rows["direction"] = direction
        parts.append(rows)
    return np.concatenate(parts)


def _guides_of(search: Search, direction: int) -> GuideBases:
    codes = search.codes[direction]
    return GuideBases(codes, *guide_planes(codes), search.lengths)


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
        Border, guide and room of each pair, as in `pam_sites_cpu`, with the border in the genome.
    """
    rows = _list_pairs(
        search.packed, borders, guides, rooms, direction == BACKWARD,
        _guides_of(search, direction), search.options, np.empty(1024, ROW),
    )  # fmt: skip
    rows["direction"] = direction
    return rows


@compiled
def _align_sites(stretch, sites, backward, guides, limits, rows):
    """Align every guide to every site that may fit; return the rows."""
    low, high = stretch.low, stretch.high
    borders, available = sites
    codes, guide_low, guide_high, lengths = guides
    n_guides = lengths.size
    n_bases = lengths.max() + limits.dna_bulge
    n_states = (limits.mismatches + 1) * (limits.dna_bulge + 1) * (limits.rna_bulge + 1)
    states = np.empty((n_states, BATCH_WORDS), np.uint64)
    planes = np.empty((2, 64, BATCH_WORDS), np.uint64)
    differing = np.empty((n_bases, 4, BATCH_WORDS), np.uint64)
    fitting = np.empty(BATCH_WORDS, np.uint64)
    table = np.empty(TABLE_SHAPE, np.int8)
    path = np.empty(_PATH_SHAPE, np.int64)
    listed = np.empty(256, np.uint64)
    n_rows = 0
    for first in range(0, borders.size, BATCH_SITES):
        last = min(first + BATCH_SITES, borders.size)
        differing_bases(low, high, borders, first, last, backward, planes, differing)
        for guide in range(n_guides):
            length = lengths[guide]
            if not fitting_sites(differing, codes[guide], length, limits, states, fitting):
                continue
            bases = Bases(guide_low[guide], guide_high[guide], length)
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
                    border, room = borders[site], available[site]
                    if backward:
                        site_low = turned(bits_at(low, border - 64))
                        site_high = turned(bits_at(high, border - 64))
                    else:
                        site_low, site_high = bits_at(low, border), bits_at(high, border)
                    there = Bases(site_low, site_high, room)
                    if limits.all_alignments:
                        n_listed, listed = _list_all(bases, there, limits, table, path, listed)
                        rows = _with_room(rows, n_rows + n_listed)
                        n_rows = _put_listed(rows, n_rows, guide, border, listed, n_listed)
                        continue
                    found = best_alignment(bases, there, limits, table)
                    if found[0] >= 0:
                        rows = _with_room(rows, n_rows + 1)
                        _put(rows, n_rows, guide, border, found, 0)
                        n_rows += 1
    return rows[:n_rows]


@compiled
def _list_pairs(packed, borders, guides, rooms, backward, guide_bases, limits, rows):
    """List all alignments of pairs; return the rows."""
    _, guide_low, guide_high, lengths = guide_bases
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
        bases = Bases(guide_low[guide], guide_high[guide], lengths[guide])
        there = Bases(site_low, site_high, rooms[pair])
        n_listed, listed = _list_all(bases, there, limits, table, path, listed)
        rows = _with_room(rows, n_rows + n_listed)
        n_rows = _put_listed(rows, n_rows, guide, border, listed, n_listed)
    return rows[:n_rows]


@compiled
def _list_all(guide, site, limits, table, path, listed):
    """List all alignments of a site in order; return their number and the list."""
    while True:
        count = 0
        for dna in range(limits.dna_bulge + 1):
            for rna in range(limits.rna_bulge + 1):
                count = list_alignments(
                    guide, site, limits.mismatches, (dna, rna), table, path, listed, count
                )
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
        gaps = key >> np.uint64(8) & np.uint64(0xFFFFFFFF)
        _put(rows, n_rows, guide, border, (edits - bulges, dna, bulges - dna, gaps), i)
        n_rows += 1
    return n_rows


@inner(nogil=True, forceinline=True)
def _put(rows, at, guide, border, found, rank):
    """Write an alignment, given as `best_alignment` returns it."""
    mismatches, dna, rna, gaps = found
    rows[at].guide = guide
    rows[at].gaps = gaps
    rows[at].border = border
    rows[at].mismatches = mismatches
    rows[at].dna = dna
    rows[at].rna = rna
    rows[at].rank = rank
