"""Filter sites that a guide may align to, with stretches of the genome as bit planes.

base       A  C  G  T        plane word i holds bases 64 i to 64 i + 63 of the stretch,
high bit   0  0  1  1        the first in bit 0
low bit    0  1  0  1
"""

import numpy as np

from bwarp.reads.base_bits_cpu import bits_of_packed, shifted
from bwarp.runtime.compiled_code import compiled, inner

_inlined = inner(nogil=True, forceinline=True)


@compiled
def planes_of(packed, first_word, n_words, low, high):
    """Write both planes of `n_words` words, 64 bases each.

    Parameters
    ----------
    packed : ndarray, dtype=uint64
        From `bwarp.sequence.pack`.
    first_word : int
        The number of the first word; positions outside the genome are A.
    low, high : ndarray, shape=(n_words,), dtype=uint64
    """
    for i in range(n_words):
        low[i], high[i] = bits_of_packed(packed, first_word + i)


@_inlined
def bits_at(plane, at):
    """Return 64 bits of a plane from bit `at` on; the plane must have one more word after them."""
    word = np.uint64(at) >> np.uint64(6)
    shift = np.uint64(at) & np.uint64(63)
    return shifted(plane[word], plane[word + np.uint64(1)], shift)


# The filter: 64 sites per machine word, one bit each.
#
# The protospacers of a batch of sites are stored as bits in rows of words, transposed so that a row
# has the same base of all of them. A state (D, R, m) is also a row: the sites whose bases so far
# align to the guide's with D and R bases in bulges and at most m mismatches. Each base of the guide
# updates every state by a few operations on rows, which the compiler vectorises. The cost of a
# search does not depend on the sequences of the sites.
#
#     batch      differing[i, c]    the sites whose base i is not c
#     guide      base i, at base i + D - R of the site
#     states     (D, R, m)  <-  (D, R, m) where the bases agree, or (D, R, m - 1), or (D, R - 1, m)
#                (D, R, m)  <-  (D - 1, R, m), before the next base


#: Words of a row, and sites of a batch: all states and bases fit in the first-level cache of a
#: core.
BATCH_WORDS = 32
BATCH_SITES = 64 * BATCH_WORDS

_HALVES = np.array([
    0x00000000FFFFFFFF, 0x0000FFFF0000FFFF, 0x00FF00FF00FF00FF, 0x0F0F0F0F0F0F0F0F,
    0x3333333333333333, 0x5555555555555555,
], np.uint64)  # fmt: skip


@compiled
def differing_bases(low, high, sites, first, last, backward, planes, differing):
    """Write the batch of sites `first` to `last`; site `first + 32 i + w` is bit i of word w.

    Parameters
    ----------
    low, high : ndarray, dtype=uint64
        Planes of a stretch of the genome.
    sites : ndarray, dtype=int32
        Borders, from `bwarp.offtargets.pam_sites_cpu`.
    backward : bool
        Whether protospacers are read backwards from there.
    planes : ndarray, shape=(2, 64, BATCH_WORDS), dtype=uint64
        Working memory.
    differing : ndarray, shape=(n_bases, 4, BATCH_WORDS), dtype=uint64
        For the number of bases needed of each, at most 64.
    """
    n_bases = len(differing)
    for at in range(64 * BATCH_WORDS):
        site = min(first + at, last - 1)
        begin = sites[site] - n_bases if backward else sites[site]
        row, word = at // BATCH_WORDS, at % BATCH_WORDS
        planes[0, row, word] = bits_at(low, begin)
        planes[1, row, word] = bits_at(high, begin)
    _turn(planes[0])
    _turn(planes[1])
    for i in range(n_bases):
        row = n_bases - 1 - i if backward else i
        for word in range(BATCH_WORDS):
            low_bits, high_bits = planes[0, row, word], planes[1, row, word]
            differing[i, 0, word] = low_bits | high_bits
            differing[i, 1, word] = ~low_bits | high_bits
            differing[i, 2, word] = low_bits | ~high_bits
            differing[i, 3, word] = ~low_bits | ~high_bits


@compiled
def _turn(rows):
    """Transpose: bit j of row i becomes bit i of row j, in every column of words."""
    half = 32
    for step in range(6):
        keep = _HALVES[step]
        shift = np.uint64(half)
        for i in range(64):
            if i & half:
                continue
            for word in range(BATCH_WORDS):
                upper, lower = rows[i, word], rows[i + half, word]
                moved = ((upper >> shift) ^ lower) & keep
                rows[i, word] = upper ^ (moved << shift)
                rows[i + half, word] = lower ^ moved
        half >>= 1


@compiled
def fitting_sites(differing, guide, length, limits, states, fitting):
    """Write which sites of a batch have an alignment within the limits.

    Parameters
    ----------
    differing : ndarray, shape=(n_bases, 4, BATCH_WORDS), dtype=uint64
        With at least `length` + `limits.dna_bulge` bases.
    guide : ndarray, dtype=uint8
        Codes of its bases from the PAM on, in the reading direction of the sites.
    limits : SiteOptions
    states : ndarray, shape=(n_states, BATCH_WORDS), dtype=uint64
        Working memory.
    fitting : ndarray, shape=(BATCH_WORDS,), dtype=uint64
        Also written for words without any site of the batch.

    Returns
    -------
    any_fits : bool
    """
    mismatches, dna_bulge, rna_bulge, _ = limits
    levels = mismatches + 1
    of_dna = (rna_bulge + 1) * levels
    states[:] = np.uint64(0)
    here = differing[0, guide[0]]
    for word in range(BATCH_WORDS):
        states[0, word] = ~here[word]
    for m in range(1, levels):
        for word in range(BATCH_WORDS):
            states[m, word] = ~np.uint64(0)
    for i in range(1, length):
        for state in range(of_dna, (dna_bulge + 1) * of_dna):
            for word in range(BATCH_WORDS):
                states[state, word] |= states[state - of_dna, word]
        may_skip = i <= length - 2
        for dna in range(dna_bulge + 1):
            for rna in range(min(rna_bulge, i), -1, -1):
                here = differing[i + dna - rna, guide[i]]
                base = dna * of_dna + rna * levels
                _pair(states, base, levels, here)
                if rna > 0 and may_skip:
                    for state in range(base, base + levels):
                        for word in range(BATCH_WORDS):
                            states[state, word] |= states[state - levels, word]
    fitting[:] = np.uint64(0)
    for state in range(mismatches, (dna_bulge + 1) * of_dna, levels):
        for word in range(BATCH_WORDS):
            fitting[word] |= states[state, word]
    any_fits = np.uint64(0)
    for word in range(BATCH_WORDS):
        any_fits |= fitting[word]
    return any_fits != np.uint64(0)


@compiled
def _pair(states, base, levels, differ):
    """Pair the next two bases in the states of one kind: a mismatch if they differ."""
    for state in range(base + levels - 1, base, -1):
        for word in range(BATCH_WORDS):
            states[state, word] = states[state, word] & ~differ[word] | states[state - 1, word]
    for word in range(BATCH_WORDS):
        states[base, word] &= ~differ[word]
