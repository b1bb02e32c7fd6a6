"""Filter sites on a GPU: 32 sites per machine word, one bit each, as in `site_filter_cpu`.

A block of threads takes a batch of sites and tests one guide after another on all of them. Rows of
bases are in shared memory, 32 sites per thread; the states of a guide are in registers:

    warp       32 sites at a time: a lane reads the bases of one, the warp votes on each bit
    shared     differing[i, c, thread]    the thread's sites whose base i is not c
    thread     a guide: one read per base and number of bulges, one instruction per state

The limits of mismatches and bulges are compile-time constants, so that every state has its own
register.
"""

import functools
from typing import NamedTuple

from bwarp.gpu.cuda import cuda, int32, int64, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP
from bwarp.gpu.ptx import load_uint32x4
from bwarp.options.finding import BULGES_EACH, LONGEST_GUIDE


class SitesToFilter(NamedTuple):
    """The borders of sites, of which those from `first` up to `last` are tested.

    Attributes
    ----------
    backward : bool
        The reading direction.
    n_bases : int
        The number of bases used.
    """

    borders: int32[::1]
    first: int
    last: int
    backward: bool
    n_bases: int


class GuidesToFilter(NamedTuple):
    """Guides, of which those from `first` up to `last` are tested: two words each, 2 bits per base,
    the base next to the PAM lowest; and their bases.
    """

    words: uint64[::1]
    lengths: int64[::1]
    first: int
    last: int


# The bases of a site as two planes of 64 bits, cut out of a stretch of the genome.


@cuda.jit(device=True)
def site_planes(blocks, border, backward):
    """Return low and high bits of 64 bases from a border on, the nearest base in bit 0.

    Parameters
    ----------
    blocks : device array, dtype=uint32
        Blocks of bits from `bwarp.reads.base_bits_cuda`.
    border : int
        As in `bwarp.offtargets.pam_sites_cpu`, including its margin.
    backward : bool
        Whether to read backwards from the border.

    Reads three blocks.
    """
    begin = uint32(border - 64) if backward else uint32(border)
    first = uint64(4) * (uint64(begin) >> uint64(5))
    shift = uint64(begin & uint32(31))
    low_0, high_0, _, _ = load_uint32x4(blocks, first)
    low_1, high_1, _, _ = load_uint32x4(blocks, first + uint64(4))
    low_2, high_2, _, _ = load_uint32x4(blocks, first + uint64(8))
    low = cut_out(low_0, low_1, low_2, shift)
    high = cut_out(high_0, high_1, high_2, shift)
    if backward:
        low, high = uint64(cuda.brev(low)), uint64(cuda.brev(high))
    return low, high


@cuda.jit(device=True)
def cut_out(first, second, third, shift):
    """Return 64 bits of three words of 32, from bit `shift` (0 to 31) of the first on."""
    lower = (uint64(first) | uint64(second) << uint64(32)) >> shift
    upper = (uint64(second) | uint64(third) << uint64(32)) >> shift
    return uint64((lower & uint64(0xFFFFFFFF)) | upper << uint64(32))


THREADS = 64

#: Sites on which a block of threads tests guides: 32 per thread.
BLOCK_SITES = 32 * THREADS

#: Guides per block of threads: enough to make transposing the sites cheap in comparison.
GUIDES_A_BLOCK = 512

#: The maximum bases of guide and DNA bulges for the smaller size of shared memory.
FEW_BASES = 24
MOST_BASES = LONGEST_GUIDE + BULGES_EACH


@functools.cache
def filter_kernel(mismatches, dna_bulge, rna_bulge, few_bases):
    """Make a kernel that lists the sites that may have an alignment within the limits.

    Parameters
    ----------
    mismatches, dna_bulge, rna_bulge : int
    few_bases : bool
        Whether guides and DNA bulges have at most `FEW_BASES` bases together.

    Notes
    -----
    `blocks` is the stretch of the genome. A number in `found` is the index of a site and of a
    guide, 32 bits each; `counters[0]` counts all of them, including those that did not fit.
    """
    most_bases = FEW_BASES if few_bases else MOST_BASES
    levels = mismatches + 1
    of_dna = (rna_bulge + 1) * levels
    n_states = (dna_bulge + 1) * of_dna
    a_base = 4 * THREADS
    # Dummy bases in front, which states with more RNA bulges than bases read without effect.
    n_words = (rna_bulge + most_bases) * a_base

    @kernel
    def fit_sites(
        blocks: uint32[::1], sites: SitesToFilter, guides: GuidesToFilter, found: uint64[::1],
        counters: uint64[::1],
    ):  # fmt: skip
        differing = cuda.shared.array(n_words, uint32)
        states = cuda.local.array(n_states, uint32)
        first, last, last_guide = sites.first, sites.last, guides.last
        n_groups = (last_guide - guides.first + GUIDES_A_BLOCK - 1) // GUIDES_A_BLOCK
        batch = cuda.blockIdx.x // n_groups
        guide_begin = guides.first + int64(cuda.blockIdx.x % n_groups) * GUIDES_A_BLOCK
        guide_end = min(guide_begin + GUIDES_A_BLOCK, last_guide)
        begin = first + int64(batch) * BLOCK_SITES
        thread = cuda.threadIdx.x
        lane = cuda.laneid
        warp_begin = begin + int64(thread // WARP) * (WARP * WARP)
        for column in range(WARP):
            site = min(warp_begin + column * WARP + lane, last - 1)
            low, high = site_planes(blocks, sites.borders[site], sites.backward)
            at = uint32(rna_bulge * a_base + (thread - lane) + column)
            for i in range(sites.n_bases):
                low_row = uint32(cuda.ballot_sync(ALL_LANES, (low & uint64(1)) != 0))
                high_row = uint32(cuda.ballot_sync(ALL_LANES, (high & uint64(1)) != 0))
                low >>= uint64(1)
                high >>= uint64(1)
                if lane < 4:
                    low_row = uint32(low_row ^ (uint32(0) - uint32(lane & 1)))
                    high_row = uint32(high_row ^ (uint32(0) - uint32(lane >> 1)))
                    differing[uint32(at + uint32(i * a_base + lane * THREADS))] = uint32(
                        low_row | high_row
                    )
        cuda.syncwarp()
        # Mask of existing sites: those of the thread begin at a multiple of 32.
        own = warp_begin + lane * WARP
        there = uint32(0)
        if own < last:
            there = uint32(uint64(0xFFFFFFFF) >> uint64(max(int64(32) - (last - own), int64(0))))
        for guide in range(guide_begin, guide_end):
            bases = guides.words[2 * guide]
            length = guides.lengths[guide]
            row = uint32(rna_bulge * a_base + thread)
            code = uint32(bases & uint64(3))
            bases >>= uint64(2)
            for state in range(n_states):
                states[state] = uint32(0)
            states[0] = uint32(~differing[uint32(row + code * uint32(THREADS))])
            for m in range(1, levels):
                states[m] = uint32(0xFFFFFFFF)
            for i in range(1, length):
                row = uint32(row + uint32(a_base))
                if not few_bases and i == 32:
                    bases = guides.words[2 * guide + 1]
                code = uint32(bases & uint64(3))
                bases >>= uint64(2)
                here = uint32(row + code * uint32(THREADS))
                may_skip = uint32(0xFFFFFFFF) if i <= length - 2 else uint32(0)
                for state in range(of_dna, n_states):
                    states[state] = uint32(states[state] | states[state - of_dna])
                for dna in range(dna_bulge + 1):
                    for less in range(rna_bulge + 1):
                        rna = rna_bulge - less
                        base = dna * of_dna + rna * levels
                        differ = differing[
                            uint32(here + uint32(dna * a_base) - uint32(rna * a_base))
                        ]
                        equal = uint32(~differ)
                        for down in range(levels - 1):
                            state = base + levels - 1 - down
                            states[state] = uint32(states[state] & equal | states[state - 1])
                        states[base] = uint32(states[base] & equal)
                        if rna > 0:
                            for m in range(levels):
                                states[base + m] = uint32(
                                    states[base + m] | states[base + m - levels] & may_skip
                                )
            fits = uint32(0)
            for kind in range((dna_bulge + 1) * (rna_bulge + 1)):
                fits = uint32(fits | states[kind * levels + mismatches])
            fits = uint32(fits & there)
            if fits != 0:
                slot = cuda.atomic.add(counters, 0, uint64(cuda.popc(fits)))
                while fits != 0:
                    bit = cuda.ffs(fits) - 1
                    fits = uint32(fits & uint32(fits - uint32(1)))
                    if slot < uint64(found.size):
                        found[slot] = uint64(own + bit) << uint64(32) | uint64(guide)
                    slot += uint64(1)

    return fit_sites


#: The most common limits, and those with the most states.
MADE_KERNELS = tuple(
    filter_kernel(*limits, few_bases)
    for limits, few_bases in (((4, 0, 0), True), ((4, 1, 1), True), ((6, 2, 2), False))
)
