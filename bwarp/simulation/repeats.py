"""Repeats: the units a genome repeats, the plan of their copies, and writing copies.

Everything repeated is a copy of a unit: a transposon family's consensus, a microsatellite's motif,
a satellite's higher-order unit, the source of a segmental duplication. A copy starts at a phase of
its unit, runs in either direction, wraps round (tandem repeats) and differs from it at a rate.

    unit      0123456789
    copy      56789 (phase 5), 789012345678901 (phase 7, tandem), complement of 43210 (reverse)
"""

from typing import NamedTuple

import numpy as np

from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range
from bwarp.simulation.counter_random import (
    bits_at,
    draws,
    index_draws,
    stream_key,
    threshold,
    unit_draws,
)

__all__ = [
    "SATELLITE_UNITS",
    "Copies",
    "Units",
    "plan_interspersed",
    "random_bases",
    "repeat_units",
    "write_copies",
]

MONOMER = 171
MONOMERS_PER_UNIT = 12
SATELLITE_UNITS = 24
N_MOTIFS = 256


class FamilyKind(NamedTuple):
    """A kind of transposon: length, families, and share of all dispersed bases."""

    length: int
    families: int
    share: float
    shortest: float  # the shortest copy, as a part of the whole
    youngest: float  # divergence of copies from the consensus, least and most
    oldest: float


#: After the human genome: Alu, L1 (mostly cut short at the 5' end), LTR and DNA transposons.
FAMILY_KINDS = (
    FamilyKind(300, 12, 0.35, 0.7, 0.01, 0.16),
    FamilyKind(6000, 8, 0.45, 0.02, 0.01, 0.25),
    FamilyKind(1500, 24, 0.20, 0.1, 0.05, 0.25),
)


class Units(NamedTuple):
    """Repeated units, one after another: unit i is ``codes[offsets[i]:offsets[i + 1]]``.

    First the transposon families in the order of `FAMILY_KINDS`, then `N_MOTIFS` microsatellite
    motifs, then `SATELLITE_UNITS` higher-order units.
    """

    codes: np.ndarray
    offsets: np.ndarray


class Copies(NamedTuple):
    """Copies of units to write, one array element a copy.

    starts, lengths (int64): where in the genome; units, phases (int64): what is copied, from
    where; reverse (bool): the complement, read backwards; divergences (float64): the rate of
    substitutions, a tenth of which again is the rate of small insertions and deletions.
    """

    starts: np.ndarray
    lengths: np.ndarray
    units: np.ndarray
    phases: np.ndarray
    reverse: np.ndarray
    divergences: np.ndarray


def random_bases(codes: np.ndarray, key: np.uint64, gc: float, threads: int = 1) -> None:
    """Fill an array of codes with independent bases of a GC content."""
    gc_threshold = np.uint64(round(gc * 2**15))
    words = -(-codes.size // 4)
    for_each_range(
        lambda first, last: _random_bases(codes, key, gc_threshold, first, last),
        words,
        threads,
        smallest=1 << 16,
    )


@compiled
def _random_bases(codes, key, gc_threshold, first, last):
    """Four bases a draw: of 16 bits, 15 choose GC or AT and one chooses between the two."""
    for word in range(first, last):
        bits = bits_at(key, np.uint64(word))
        for i in range(4 * word, min(4 * word + 4, codes.size)):
            strong = (bits & np.uint64(0x7FFF)) < gc_threshold
            other = np.int64((bits >> np.uint64(15)) & np.uint64(1))
            codes[i] = 1 + other if strong else 3 * other
            bits >>= np.uint64(16)


def repeat_units(key: np.uint64, gc: float) -> Units:
    """The units that all of a genome's repeats are copies of."""
    lengths = [kind.length for kind in FAMILY_KINDS for _ in range(kind.families)]
    motif_lengths = 1 + index_draws(stream_key(key, 0), N_MOTIFS, 6)
    lengths += motif_lengths.tolist()
    lengths += [MONOMER * MONOMERS_PER_UNIT] * SATELLITE_UNITS
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    codes = np.empty(offsets[-1], np.uint8)
    random_bases(codes, stream_key(key, 1), gc)

    # As in alpha satellite, every monomer of every unit is a diverged copy of one monomer.
    monomer = np.empty(MONOMER, np.uint8)
    random_bases(monomer, stream_key(key, 2), gc)
    n = SATELLITE_UNITS * MONOMERS_PER_UNIT
    satellites = Copies(
        starts=offsets[-1] - MONOMER * np.arange(n, 0, -1),
        lengths=np.full(n, MONOMER),
        units=np.zeros(n, np.int64),
        phases=np.zeros(n, np.int64),
        reverse=np.zeros(n, bool),
        divergences=np.full(n, 0.25),
    )
    monomers = Units(monomer, np.array([0, MONOMER]))
    write_copies(codes, monomers, satellites, stream_key(key, 3))
    return Units(codes, offsets)


def plan_interspersed(
    key: np.uint64, length: int, dispersed_bases: int, microsatellite_bases: int
) -> Copies:
    """Transposons and microsatellites, shuffled, that do not overlap, over a whole genome.

    Bases that no copy takes are shared out between the copies at random. As many copies are made
    as fit into the bases asked for, so that a genome shorter than a family may hold none of it.
    """
    parts = []
    first_unit = 0
    for number, kind in enumerate(FAMILY_KINDS):
        parts.append(
            _transposons(stream_key(key, 0, number), kind, first_unit, dispersed_bases * kind.share)
        )
        first_unit += kind.families
    parts.append(_microsatellites(stream_key(key, 1), first_unit, microsatellite_bases))
    n = sum(len(part[0]) for part in parts)
    order = np.argsort(draws(stream_key(key, 2), n), kind="stable")
    lengths, *rest = (np.concatenate(columns)[order] for columns in zip(*parts, strict=True))
    free = length - int(lengths.sum())
    before = np.sort(index_draws(stream_key(key, 3), n, free + 1))
    starts = before + np.cumsum(lengths) - lengths
    return Copies(starts, lengths, *rest)


def _transposons(key, kind, first_unit, bases):
    mean = kind.length * (1 + kind.shortest) / 2
    part = unit_draws(stream_key(key, 0), _enough(bases, mean))
    part = kind.shortest + (1 - kind.shortest) * part
    whole = np.int64(np.round(kind.length * part))
    lengths = whole[np.cumsum(whole) <= bases]
    n = lengths.size
    family = index_draws(stream_key(key, 1), n, kind.families)
    age = (family + 0.5) / kind.families * (0.7 + 0.6 * unit_draws(stream_key(key, 2), n))
    divergences = np.clip(kind.oldest * age, kind.youngest, kind.oldest)
    reverse = draws(stream_key(key, 3), n) & np.uint64(1) == 1
    # A copy cut short keeps the 3' end of its family; read backwards, that end comes first.
    phases = np.where(reverse, 0, kind.length - lengths)
    return lengths, first_unit + family, phases, reverse, divergences


def _microsatellites(key, first_unit, bases):
    drawn = 12 + index_draws(stream_key(key, 0), _enough(bases, 46), 70)
    lengths = drawn[np.cumsum(drawn) <= bases]
    n = lengths.size
    units = first_unit + index_draws(stream_key(key, 1), n, N_MOTIFS)
    divergences = 0.05 * unit_draws(stream_key(key, 2), n)
    return lengths, units, np.zeros(n, np.int64), np.zeros(n, bool), divergences


def _enough(bases, mean):
    """A number of draws whose sum passes `bases` but for a chance that is next to none."""
    expected = bases / mean
    return int(expected + 6 * expected**0.5) + 16


def write_copies(
    codes: np.ndarray, units: Units, copies: Copies, key: np.uint64, threads: int = 1
) -> None:
    """Write copies into a genome's codes; where copies overlap, the threads must be one."""
    thresholds = threshold(copies.divergences)
    for_each_range(
        lambda first, last: _write_copies(codes, units, copies, thresholds, key, first, last),
        copies.starts.size,
        threads,
        smallest=256,
    )


@compiled
def _write_copies(codes, units, copies, thresholds, key, first, last):
    """One draw a base: 32 bits for a substitution, the rest for its base or for an indel."""
    for copy in range(first, last):
        copy_key = bits_at(key, np.uint64(copy))
        unit = copies.units[copy]
        unit_start = units.offsets[unit]
        n = units.offsets[unit + 1] - unit_start
        at = copies.phases[copy]
        for i in range(copies.lengths[copy]):
            bits = bits_at(copy_key, np.uint64(i))
            if copies.reverse[copy]:
                base = np.int64(3 - units.codes[unit_start + n - 1 - at])
            else:
                base = np.int64(units.codes[unit_start + at])
            if (bits & np.uint64(0xFFFFFFFF)) < thresholds[copy]:
                base = (base + 1 + np.int64((bits >> np.uint64(32)) % np.uint64(3))) & 3
            codes[copies.starts[copy] + i] = base
            at += 1
            if (bits >> np.uint64(32)) * np.uint64(10) < thresholds[copy]:
                # Skip up to four bases of the unit, or say up to four of them again.
                at += np.int64(bits & np.uint64(7)) - 4 + np.int64((bits & np.uint64(7)) >= 4)
            if at >= n or at < 0:
                at %= n
