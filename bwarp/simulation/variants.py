"""Simulate variants of a diploid individual: substitutions and short indels along a reference.

A variant is anchored at a reference base, as in VCF, and is on one or both haplotypes:

    reference   A C G T A C G
    SNV at 2    A C T T A C G          that base becomes another
    insertion   A C G a a T A C G      anchored at 2: bases after it
    deletion    A C G . . C G          anchored at 2: the two bases after it are gone

Variants do not overlap, even on different haplotypes. Haplotypes are never stored: a stretch of one
is made from the reference and the variants.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.threads import for_each_range
from bwarp.sequence import AMBIGUOUS, LETTERS
from bwarp.simulation.counter_random import bits_at, check_share, draws, stream_key, threshold

SUBSTITUTION = 0
INSERTION = 1
DELETION = 2
LONGEST_INDEL = 32

#: A variant is on both haplotypes with probability 1/3, otherwise on one of them.
_HAPLOTYPES = np.array([1, 2, 3], np.uint8)
_GENOTYPES = ("", "1|0", "0|1", "1|1")


@dataclass(frozen=True)
class VariantParameters:
    """Differences of an individual from the reference.

    Attributes
    ----------
    rate : float
        Variants per base, of both haplotypes together.
    indel_fraction : float
        The fraction of variants that are insertions or deletions, in equal shares.
    extend : float
        The probability that an indel continues for one more base, up to `LONGEST_INDEL` bases.
    """

    rate: float = 0.001
    indel_fraction: float = 0.15
    extend: float = 0.3

    def __post_init__(self):
        check_share("variant rate", self.rate)
        check_share("indel fraction", self.indel_fraction)
        check_share("indel extend", self.extend)


class Variants(NamedTuple):
    """Variants sorted by position, one array element per variant.

    A named tuple, so that Numba functions can take it.

    Attributes
    ----------
    positions : ndarray, shape=(n,), dtype=int64
        The genome position (in concatenated contigs) of the anchor.
    kinds : ndarray, shape=(n,), dtype=uint8
        `SUBSTITUTION`, `INSERTION` or `DELETION`.
    lengths : ndarray, shape=(n,), dtype=int64
        Bases substituted (1), inserted or deleted.
    haplotypes : ndarray, shape=(n,), dtype=uint8
        Bit 0 for the first haplotype, bit 1 for the second.
    bases : ndarray, shape=(m,), dtype=uint8
        Concatenated codes of the new bases of all substitutions and insertions.
    base_offsets : ndarray, shape=(n + 1,), dtype=int64
        The bases of variant i are ``bases[base_offsets[i]:base_offsets[i + 1]]``.
    """

    positions: np.ndarray
    kinds: np.ndarray
    lengths: np.ndarray
    haplotypes: np.ndarray
    bases: np.ndarray
    base_offsets: np.ndarray


def simulate_variants(
    codes: np.ndarray,
    offsets: np.ndarray,
    parameters: VariantParameters,
    seed: int,
    threads: int = 1,
) -> Variants:
    """Simulate the variants of an individual.

    Parameters
    ----------
    codes : ndarray, shape=(n_bases,), dtype=uint8
        The concatenated contigs, 4 for ambiguous bases.
    offsets : ndarray, shape=(n_contigs + 1,), dtype=int64
        Contig i is ``codes[offsets[i]:offsets[i + 1]]``.
    parameters : VariantParameters
    seed : int
    threads : int
        Does not change the result.
    """
    key = stream_key(seed, 0)
    rate = threshold(parameters.rate)
    found = for_each_range(
        lambda start, stop: _anchors(codes, key, rate, start, stop),
        codes.size,
        threads,
        smallest=1 << 20,
    )
    positions = np.concatenate([np.empty(0, np.int64), *found])
    n = positions.size
    kinds = _kinds(stream_key(seed, 1), n, parameters.indel_fraction)
    lengths = _indel_lengths(stream_key(seed, 2), n, parameters.extend)
    lengths[kinds == SUBSTITUTION] = 1
    haplotypes = _HAPLOTYPES[draws(stream_key(seed, 3), n) % np.uint64(3)]
    keep = _compatible(codes, offsets, positions, kinds, lengths)
    positions, kinds, lengths = positions[keep], kinds[keep], lengths[keep]

    new_bases = np.where(kinds == DELETION, 0, lengths)
    base_offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(new_bases)])
    random = draws(stream_key(seed, 4), int(base_offsets[-1]))
    bases = np.uint8(random & np.uint64(3))
    snv = np.flatnonzero(kinds == SUBSTITUTION)
    other = 1 + random[base_offsets[snv]] % np.uint64(3)
    bases[base_offsets[snv]] = (codes[positions[snv]] + other.astype(np.uint8)) & 3
    return Variants(positions, kinds, lengths, haplotypes[keep], bases, base_offsets)


@compiled
def _anchors(codes, key, rate, start, stop):
    """Return variant positions from `start` to `stop`; one draw per base."""
    count = 0
    for position in range(start, stop):
        count += (bits_at(key, np.uint64(position)) >> np.uint64(32)) < rate
    positions = np.empty(count, np.int64)
    count = 0
    for position in range(start, stop):
        if (bits_at(key, np.uint64(position)) >> np.uint64(32)) < rate:
            positions[count] = position
            count += 1
    return positions


def _kinds(key, n, indel_fraction):
    bits = draws(key, n)
    indel = (bits & np.uint64(0xFFFFFFFF)) < threshold(indel_fraction)
    kind = np.where(bits >> np.uint64(63) == 1, DELETION, INSERTION)
    return np.where(indel, kind, SUBSTITUTION).astype(np.uint8)


def _indel_lengths(key, n, extend):
    """Return geometric lengths from 1 to `LONGEST_INDEL`."""
    lengths = np.ones(n, np.int64)
    going = np.ones(n, bool)
    for step in range(LONGEST_INDEL - 1):
        going &= (draws(stream_key(key, step), n) >> np.uint64(32)) < threshold(extend)
        if not going.any():
            break
        lengths += going
    return lengths


@compiled
def _compatible(codes, offsets, positions, kinds, lengths):
    """Return which variants to keep: within one contig, on known bases, not overlapping the
    previous.
    """
    keep = np.zeros(positions.size, np.bool_)
    contig = 0
    free = 0
    for i in range(positions.size):
        position = positions[i]
        while offsets[contig + 1] <= position:
            contig += 1
        last = position + lengths[i] if kinds[i] == DELETION else position
        # A base must follow an indel, so that it does not reach the end of the contig.
        follows = last if kinds[i] == SUBSTITUTION else last + 1
        good = position >= free and follows < offsets[contig + 1]
        if good:
            for at in range(position, follows + 1):
                good &= codes[at] != AMBIGUOUS
        if good:
            keep[i] = True
            free = follows + 1
    return keep


def vcf_lines(
    codes: np.ndarray, offsets: np.ndarray, names: tuple[str, ...], variants: Variants
) -> Iterator[str]:
    """Yield the lines of a VCF file of one sample, ``simulated``, with phased genotypes.

    The first haplotype in the truth of reads is the first of the genotype.
    """
    yield "##fileformat=VCFv4.2\n"
    for name, length in zip(names, np.diff(offsets).tolist(), strict=True):
        yield f"##contig=<ID={name},length={length}>\n"
    yield '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
    yield "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tsimulated\n"
    letters = LETTERS.decode()
    contigs = np.searchsorted(offsets, variants.positions, side="right") - 1
    within = variants.positions - offsets[contigs]
    columns = (
        variants.positions, contigs, within, variants.kinds, variants.lengths,
        variants.haplotypes, variants.base_offsets[:-1],
    )  # fmt: skip
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for position, contig, at, kind, length, haplotypes, first in rows:
        stop = position + 1 + (length if kind == DELETION else 0)
        before = "".join(letters[code] for code in codes[position:stop])
        after = before[0] if kind != SUBSTITUTION else ""
        if kind != DELETION:
            after += "".join(letters[code] for code in variants.bases[first : first + length])
        yield (
            f"{names[contig]}\t{at + 1}\t.\t{before}\t{after}\t.\tPASS\t.\tGT\t"
            f"{_GENOTYPES[haplotypes]}\n"
        )


# Stretches of a haplotype, made from the reference and its variants, and back.
#
# reference     10 11 12 13 14 15 16
#                A  C  G  T  A  C  G
# template       A  C  a  a  G        C  G       an insertion after 11, a deletion of 13 and 14
# positions     10 11 11 11 12       15 16       an inserted base has the position of its anchor


@inner
def first_above(values, value):
    """Return the first index of a sorted array whose element is greater than `value`."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) >> 1
        if values[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


@inner
def haplotype_stretch(codes, variants, haplotype, start, stop, template, positions):
    """Write the bases of a haplotype along a stretch of the reference, and the position of each.

    An inserted base has the position of the base before it. Returns the number of bases.
    """
    i = first_above(variants.positions, start - 1)
    at = start
    if i > 0 and variants.kinds[i - 1] == DELETION and variants.haplotypes[i - 1] & haplotype:
        at = max(at, variants.positions[i - 1] + variants.lengths[i - 1] + 1)
    n = 0
    while at < stop:
        anchor = variants.positions[i] if i < variants.positions.size else stop
        until = min(anchor + 1, stop)
        # Non-negative indices allow this loop to be vectorised.
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


@inner
def reference_span(codes, template, positions, a, b):
    """Return start and end of template bases a to b on the reference, and their differences from
    it.
    """
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
        # The whole read is in an insertion and covers no base of the reference.
        start = stop = positions[a] + 1
    return start, stop, differences
