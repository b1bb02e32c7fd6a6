"""Find PAMs and align pairs on a GPU; see `pam_sites_cpu` for the definition of sites."""

from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, int8, int32, int64, uint8, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.ptx import load_uint32x4
from bwarp.gpu.sums_and_sorts import reserve
from bwarp.offtargets.alignments import TABLE_SHAPE, Bases, best_alignment
from bwarp.offtargets.hits import SiteOptions
from bwarp.offtargets.site_filter_cuda import site_planes

THREADS = 128

#: The index of the list of sites among the counters.
SITES = 0


class Stretch(NamedTuple):
    """A stretch of the genome in blocks, and the position of its first base, a multiple of 32."""

    blocks: uint32[::1]
    origin: int


class Segments(NamedTuple):
    """Where segments of the genome start and stop."""

    starts: int64[::1]
    stops: int64[::1]


class PamRules(NamedTuple):
    """The PAMs of one reading direction, and the minimum bases of a site.

    Attributes
    ----------
    allowed : device array, shape=(at least count * length,), dtype=uint8
        As in `pam_sites_cpu.pam_sites`, flattened.
    count, length : int
    forward : bool
    least : int
    """

    allowed: uint8[::1]
    count: int
    length: int
    forward: bool
    least: int


class Sites(NamedTuple):
    """The border of each site in its stretch, and its bases within the segment, at most 64."""

    borders: int32[::1]
    available: uint8[::1]


class GuidePlanes(NamedTuple):
    """Low and high bits of the bases of each guide, and their number."""

    low: uint64[::1]
    high: uint64[::1]
    lengths: int64[::1]


class AlignedPairs(NamedTuple):
    """Pairs of a site and a guide, and the best alignment of each.

    The number of `guides`, the `borders` and the `rooms` identify the pair; `gaps` are those of the
    best alignment, and `edits` its mismatches, bases in DNA and in RNA bulges, one byte each from
    the lowest on; 255 mismatches if no alignment is within the limits.
    """

    borders: int32[::1]
    guides: int32[::1]
    gaps: uint32[::1]
    edits: uint32[::1]
    rooms: uint8[::1]


@cuda.jit(device=True)
def pam_mask(blocks, block, pams):
    """Return at which of the 32 positions of a block a PAM begins; also reads the next block."""
    first = uint64(4) * uint64(block)
    low_here, high_here, _, _ = load_uint32x4(blocks, first)
    low_next, high_next, _, _ = load_uint32x4(blocks, first + uint64(4))
    low = uint64(low_here) | uint64(low_next) << uint64(32)
    high = uint64(high_here) | uint64(high_next) << uint64(32)
    found = uint32(0)
    for pam in range(pams.count):
        mask = uint32(0xFFFFFFFF)
        for i in range(pams.length):
            bases = uint32(pams.allowed[pam * pams.length + i])
            low_bits = uint32((low >> uint64(i)) & uint64(0xFFFFFFFF))
            high_bits = uint32((high >> uint64(i)) & uint64(0xFFFFFFFF))
            here = uint32(0)
            if bases & uint32(1):
                here = uint32(here | ~(low_bits | high_bits))
            if bases & uint32(2):
                here = uint32(here | (low_bits & ~high_bits))
            if bases & uint32(4):
                here = uint32(here | (~low_bits & high_bits))
            if bases & uint32(8):
                here = uint32(here | (low_bits & high_bits))
            mask = uint32(mask & here)
        found = uint32(found | mask)
    return found


@cuda.jit(device=True)
def bases_there(pams, position, start, stop):
    """Return the bases of a segment from the border on, for the site of a PAM at a position.

    -1 if the PAM, or the minimum bases of a site, are not all within the segment.
    """
    if position < start or position + pams.length > stop:
        return int64(-1)
    room = stop - position - pams.length if pams.forward else position - start
    return room if room >= pams.least else int64(-1)


@kernel
def list_sites(
    stretch: Stretch, first: int, last: int, segments: Segments, pams: PamRules, sites: Sites,
    counters: uint32[::1],
):  # fmt: skip
    """List the sites whose PAM begins from `first` up to, but excluding, `last`.

    One thread per 32 positions; `first` is a multiple of 32. ``counters[0]`` counts all sites,
    including those that did not fit.
    """
    at = first + int64(cuda.grid(1)) * 32
    mask, kept = uint32(0), uint32(0)
    needed = pams.length + pams.least if pams.forward else pams.length
    origin, starts, stops = stretch.origin, segments.starts, segments.stops
    segment = int64(0)
    if at < last:
        mask = pam_mask(stretch.blocks, (at - origin) >> 5, pams)
        # The first segment that does not end before what a PAM that begins here needs; without a
        # PAM, this may be the one that ends here, or the next.
        beyond = int64(stops.size)
        while segment < beyond:
            middle = (segment + beyond) >> 1
            if stops[middle] < at + needed:
                segment = middle + 1
            else:
                beyond = middle
    here = segment
    while mask != 0:
        bit = uint32(cuda.ffs(mask) - 1)
        mask = uint32(mask & uint32(mask - uint32(1)))
        position = at + int64(bit)
        while here < stops.size and stops[here] < position + needed:
            here += 1
        if here < stops.size and position < last:
            room = bases_there(pams, position, starts[here], stops[here])
            if room >= 0:
                kept = uint32(kept | uint32(uint32(1) << bit))
    slot = reserve(counters, SITES, uint32(cuda.popc(kept)))
    while kept != 0:
        bit = uint32(cuda.ffs(kept) - 1)
        kept = uint32(kept & uint32(kept - uint32(1)))
        position = at + int64(bit)
        while stops[segment] < position + needed:
            segment += 1
        if slot < uint32(sites.borders.size):
            room = bases_there(pams, position, starts[segment], stops[segment])
            border = position + pams.length if pams.forward else position
            sites.borders[slot] = int32(border - origin)
            sites.available[slot] = uint8(min(room, int64(64)))
        slot = uint32(slot + uint32(1))


# The best alignment of each pair of a site and a guide that passed the filter.


@kernel
def align_pairs(
    blocks: uint32[::1], sites: Sites, backward: bool, guides: GuidePlanes, limits: SiteOptions,
    found: uint64[::1], n_found: int, pairs: AlignedPairs,
):  # fmt: skip
    """Align the pairs that `site_filter_cuda` lists. One thread per pair."""
    i = cuda.grid(1)
    table = cuda.local.array(TABLE_SHAPE, int8)
    if i >= n_found:
        return
    pair = found[i]
    site = int64(pair >> uint64(32))
    guide = int64(pair & uint64(0xFFFFFFFF))
    border, room = sites.borders[site], sites.available[site]
    low, high = site_planes(blocks, border, backward)
    best, dna, rna, where = best_alignment(
        Bases(np.uint64(guides.low[guide]), np.uint64(guides.high[guide]), guides.lengths[guide]),
        Bases(np.uint64(low), np.uint64(high), int64(room)),
        limits,
        table,
    )
    pairs.borders[i] = border
    pairs.guides[i] = guide
    pairs.rooms[i] = uint8(room)
    pairs.gaps[i] = uint32(where)
    pairs.edits[i] = uint32(best | dna << 8 | rna << 16) if best >= 0 else uint32(255)


#: The working table of an alignment, of which a thread reads a few bytes per base.
LOCAL_MEMORY = {align_pairs: 384}
