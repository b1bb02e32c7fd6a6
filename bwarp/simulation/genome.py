"""Simulate a genome: contigs of uneven length with realistic repeats and gaps.

Layers are written in this order, each over the previous ones:

    background       independent bases with the given GC content
    interspersed     transposon families and microsatellites, not overlapping
    duplications     segments of 1 to 64 kb copied elsewhere in the genome, 0-2 % diverged
    satellites       one array per contig of 171-base monomers in higher-order units
    gaps             runs of N: both telomeres, one next to the satellite array, and smaller ones
    IUPAC letters    single ambiguous bases

A later layer may cover parts of an earlier one; fractions refer to what each layer wrote.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range
from bwarp.sequence import AMBIGUOUS, LETTERS
from bwarp.simulation.counter_random import (
    bits_at,
    check_share,
    draws,
    index_draws,
    stream_key,
    threshold,
    unit_draws,
)

# Repeats: units, the plan of their copies, and writing copies.
#
# Every repeat is a copy of a unit: the consensus of a transposon family, the motif of a
# microsatellite, the higher-order unit of a satellite, the source of a segmental duplication. A
# copy starts at a phase of its unit, runs in either direction, wraps around (tandem repeats) and
# differs from the unit at a given rate.
#
#     unit      0123456789
#     copy      56789 (phase 5), 789012345678901 (phase 7, tandem), complement of 43210 (reverse)


MONOMER = 171
MONOMERS_PER_UNIT = 12
SATELLITE_UNITS = 24
N_MOTIFS = 256


class FamilyKind(NamedTuple):
    """A kind of transposon: length, families, and share of all interspersed bases."""

    length: int
    families: int
    share: float
    shortest: float  # the length of the shortest copy relative to the full length
    youngest: float  # minimum and maximum divergence of copies from the consensus
    oldest: float


#: Modelled on the human genome: Alu, L1 (mostly truncated at the 5' end), LTR and DNA transposons.
FAMILY_KINDS = (
    FamilyKind(300, 12, 0.35, 0.7, 0.01, 0.16),
    FamilyKind(6000, 8, 0.45, 0.02, 0.01, 0.25),
    FamilyKind(1500, 24, 0.20, 0.1, 0.05, 0.25),
)


class Units(NamedTuple):
    """Concatenated repeat units: unit i is ``codes[offsets[i]:offsets[i + 1]]``.

    First the transposon families in the order of `FAMILY_KINDS`, then `N_MOTIFS` microsatellite
    motifs, then `SATELLITE_UNITS` higher-order units.
    """

    codes: np.ndarray
    offsets: np.ndarray


class Copies(NamedTuple):
    """Copies of units to write, one array element per copy.

    starts, lengths (int64): position in the genome; units, phases (int64): the unit and the start
    within it; reverse (bool): whether to write the reverse complement; divergences (float64): the
    rate of substitutions; small insertions and deletions occur at a tenth of this rate.
    """

    starts: np.ndarray
    lengths: np.ndarray
    units: np.ndarray
    phases: np.ndarray
    reverse: np.ndarray
    divergences: np.ndarray


def random_bases(codes: np.ndarray, key: np.uint64, gc: float, threads: int = 1) -> None:
    """Fill an array of codes with independent bases of a given GC content."""
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
    """Make four bases per draw: of 16 bits, 15 select GC or AT and one selects between the two."""
    for word in range(first, last):
        bits = bits_at(key, np.uint64(word))
        for i in range(4 * word, min(4 * word + 4, codes.size)):
            strong = (bits & np.uint64(0x7FFF)) < gc_threshold
            other = np.int64((bits >> np.uint64(15)) & np.uint64(1))
            codes[i] = 1 + other if strong else 3 * other
            bits >>= np.uint64(16)


def repeat_units(key: np.uint64, gc: float) -> Units:
    """Return the units of all repeats of a genome."""
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
    """Plan non-overlapping transposons and microsatellites, shuffled, over a whole genome.

    Bases outside copies are distributed between the copies at random. As many copies are made as
    fit into the requested bases, so a genome shorter than a family may have none of it.
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
    # A truncated copy keeps the 3' end of its family, which comes first on the reverse strand.
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
    """Return a number of draws whose sum exceeds `bases` almost certainly."""
    expected = bases / mean
    return int(expected + 6 * expected**0.5) + 16


def write_copies(
    codes: np.ndarray, units: Units, copies: Copies, key: np.uint64, threads: int = 1
) -> None:
    """Write copies into the codes of a genome; if copies overlap, use one thread."""
    thresholds = threshold(copies.divergences)
    for_each_range(
        lambda first, last: _write_copies(codes, units, copies, thresholds, key, first, last),
        copies.starts.size,
        threads,
        smallest=256,
    )


@compiled
def _write_copies(codes, units, copies, thresholds, key, first, last):
    """Use one draw per base: 32 bits for a substitution, the rest for its base or for an indel."""
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
                # Skip up to four bases of the unit, or repeat up to four of them.
                at += np.int64(bits & np.uint64(7)) - 4 + np.int64((bits & np.uint64(7)) >= 4)
            if at >= n or at < 0:
                at %= n


#: The share of satellite arrays in the bases of tandem repeats; the rest is microsatellites.
SATELLITE_SHARE = 0.7
SATELLITE_DIVERGENCE = 0.01
OLDEST_DUPLICATION = 0.02
#: The shares of each telomere and of the gap next to the satellite array in the bases of gaps.
TELOMERE_SHARE = 0.1
CENTROMERE_SHARE = 0.5
LONGEST_TELOMERE = 10_000

IUPAC_LETTERS = b"RYSWKM"


@dataclass(frozen=True)
class GenomeParameters:
    """Parameters of a simulated genome.

    Attributes
    ----------
    length, contigs : int
        The total bases, and the number of contigs; the first is five times as long as the last.
    seed : int
        The same seed and parameters give the same genome.
    gc : float
        The fraction of G or C in the background.
    repeat_fraction, tandem_fraction, duplication_fraction, n_fraction : float
        The fractions of transposons, tandem repeats (microsatellites and satellite arrays),
        segmental duplications, and runs of N in the genome.
    iupac_letters : int
        The number of single bases that become ambiguous letters such as R and Y, except those that
        fall on one another or on N.
    """

    length: int
    contigs: int = 1
    seed: int = 1
    gc: float = 0.41
    repeat_fraction: float = 0.45
    tandem_fraction: float = 0.04
    duplication_fraction: float = 0.04
    n_fraction: float = 0.02
    iupac_letters: int = 0

    def __post_init__(self):
        if self.contigs < 1:
            raise UsageError(f"contigs {self.contigs}: a genome must have at least 1 contig")
        if self.length < self.contigs:
            raise UsageError(
                f"length {self.length} is too short for {counted(self.contigs, 'contig')}: each "
                "contig must have at least 1 base"
            )
        parts = ("repeat_fraction", "tandem_fraction", "duplication_fraction", "n_fraction")
        for name in ("gc", *parts):
            check_share(name.replace("_", " "), getattr(self, name))
        in_all = sum(getattr(self, name) for name in parts)
        if round(in_all, 9) > 1:
            raise UsageError(
                f"the repeat, tandem, duplication and n fractions sum to {in_all:g}: the maximum "
                "is 1"
            )
        if not 0 <= self.iupac_letters <= self.length:
            raise UsageError(
                f"iupac letters {self.iupac_letters} is not from 0 to the length of the genome"
            )


@dataclass(frozen=True)
class Genome:
    """A simulated genome.

    Attributes
    ----------
    names : tuple of str
        ``chr1``, ``chr2``, ...
    codes : ndarray, shape=(n_bases,), dtype=uint8
        The concatenated contigs, 4 for ambiguous bases.
    offsets : ndarray, shape=(n_contigs + 1,), dtype=int64
        Contig i is ``codes[offsets[i]:offsets[i + 1]]``.
    repeats : ndarray, shape=(n, 2), dtype=int64
        The starts and ends of interspersed repeats and satellite arrays, sorted.
    iupac_positions : ndarray, shape=(m,), dtype=int64
        The positions of single ambiguous letters, sorted.
    iupac_letters : ndarray, shape=(m,), dtype=uint8
        These letters in ASCII.
    """

    names: tuple[str, ...]
    codes: np.ndarray
    offsets: np.ndarray
    repeats: np.ndarray
    iupac_positions: np.ndarray
    iupac_letters: np.ndarray


def simulate_genome(parameters: GenomeParameters, threads: int = 1) -> Genome:
    """Simulate a genome; it depends only on the parameters, not on the number of threads.

    Takes one byte per base, and about 60 bytes per transposon and microsatellite.
    """
    p = parameters
    offsets = _contig_offsets(p.length, p.contigs)
    codes = np.empty(p.length, np.uint8)
    random_bases(codes, stream_key(p.seed, 0), p.gc, threads)
    units = repeat_units(stream_key(p.seed, 1), p.gc)

    tandem_bases = p.length * p.tandem_fraction
    interspersed = plan_interspersed(
        stream_key(p.seed, 2),
        p.length,
        p.length * p.repeat_fraction,
        tandem_bases * (1 - SATELLITE_SHARE),
    )
    write_copies(codes, units, interspersed, stream_key(p.seed, 3), threads)
    duplicated_bases = int(p.length * p.duplication_fraction)
    _paint_duplications(codes, offsets, duplicated_bases, stream_key(p.seed, 4))
    satellites = _plan_satellites(offsets, p.tandem_fraction * SATELLITE_SHARE)
    write_copies(codes, units, satellites, stream_key(p.seed, 5), threads)
    _paint_gaps(codes, offsets, satellites, p.n_fraction, stream_key(p.seed, 6))

    starts = np.concatenate([interspersed.starts, satellites.starts])
    lengths = np.concatenate([interspersed.lengths, satellites.lengths])
    repeats = np.stack([starts, starts + lengths], axis=1)[np.argsort(starts, kind="stable")]
    positions = np.unique(index_draws(stream_key(p.seed, 7), p.iupac_letters, p.length))
    positions = positions[codes[positions] != AMBIGUOUS]
    codes[positions] = AMBIGUOUS
    letters = np.frombuffer(IUPAC_LETTERS, np.uint8)
    return Genome(
        names=tuple(f"chr{i + 1}" for i in range(p.contigs)),
        codes=codes,
        offsets=offsets,
        repeats=repeats,
        iupac_positions=positions,
        iupac_letters=letters[index_draws(stream_key(p.seed, 8), positions.size, letters.size)],
    )


def _contig_offsets(length: int, contigs: int) -> np.ndarray:
    """Return contigs that shrink evenly from the first to a fifth of it, none empty."""
    weights = np.linspace(5.0, 1.0, contigs)
    shares = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    return np.int64(np.round(shares * (length - contigs))) + np.arange(contigs + 1)


def _plan_satellites(offsets: np.ndarray, fraction: float) -> Copies:
    """Plan one array around two fifths of every contig that is long enough for two monomers."""
    contig_lengths = np.diff(offsets)
    lengths = np.int64(np.round(contig_lengths * fraction))
    contig = np.flatnonzero(lengths >= 342)
    lengths = lengths[contig]
    n = contig.size
    return Copies(
        starts=offsets[contig] + np.int64((contig_lengths[contig] - lengths) * 0.4),
        lengths=lengths,
        units=_first_satellite_unit() + contig % SATELLITE_UNITS,
        phases=np.zeros(n, np.int64),
        reverse=np.zeros(n, bool),
        divergences=np.full(n, SATELLITE_DIVERGENCE),
    )


def _paint_duplications(codes, offsets, bases: int, key: np.uint64) -> None:
    """Copy segments one after another, each from the genome as modified by the previous ones."""
    n = max(1, bases // 1000)
    octaves = index_draws(stream_key(key, 0), n, 6)
    lengths = np.int64(1000 * 2.0**octaves * (1 + unit_draws(stream_key(key, 1), n)))
    lengths = lengths[np.cumsum(lengths) <= bases]
    n = lengths.size
    sources = index_draws(stream_key(key, 2), n, codes.size)
    targets = index_draws(stream_key(key, 3), n, codes.size)
    reverse = draws(stream_key(key, 4), n) & np.uint64(1) == 1
    divergences = OLDEST_DUPLICATION * unit_draws(stream_key(key, 5), n)
    source_ends = offsets[np.searchsorted(offsets, sources, side="right")]
    target_ends = offsets[np.searchsorted(offsets, targets, side="right")]
    lengths = np.minimum(lengths, np.minimum(source_ends - sources, target_ends - targets))
    for i in range(n):
        segment = codes[sources[i] : sources[i] + lengths[i]].copy()
        one, none = slice(i, i + 1), np.zeros(1, np.int64)
        copy = Copies(targets[one], lengths[one], none, none, reverse[one], divergences[one])
        unit = Units(segment, np.array([0, segment.size]))
        write_copies(codes, unit, copy, stream_key(key, 6, i))


def _paint_gaps(codes, offsets, satellites: Copies, fraction: float, key: np.uint64) -> None:
    contigs = np.searchsorted(offsets, satellites.starts, side="right") - 1
    satellite_ends = dict(zip(contigs, satellites.starts + satellites.lengths, strict=True))
    for contig in range(offsets.size - 1):
        start, stop = int(offsets[contig]), int(offsets[contig + 1])
        bases = round((stop - start) * fraction)
        telomere = min(LONGEST_TELOMERE, int(bases * TELOMERE_SHARE))
        centromere = int(bases * CENTROMERE_SHARE)
        codes[start : start + telomere] = AMBIGUOUS
        codes[stop - telomere : stop] = AMBIGUOUS
        middle = int(satellite_ends.get(contig, (start + stop - centromere) // 2))
        codes[middle : min(middle + centromere, stop)] = AMBIGUOUS
        rest = bases - 2 * telomere - centromere
        lengths = 100 << index_draws(stream_key(key, 0, contig), rest // 100, 10)
        lengths = np.minimum(lengths, max(100, rest // 8))
        lengths = lengths[np.cumsum(lengths) <= rest]
        gaps = start + index_draws(stream_key(key, 1, contig), lengths.size, stop - start)
        for gap, length in zip(gaps.tolist(), lengths.tolist(), strict=True):
            codes[gap : min(gap + length, stop)] = AMBIGUOUS


def _first_satellite_unit() -> int:
    return sum(kind.families for kind in FAMILY_KINDS) + N_MOTIFS


# FASTA output, in pieces.


PIECE_BASES = 1 << 22
_BASE_OF_CODE = np.frombuffer(LETTERS, np.uint8)
_CASE_BIT = 0x20


def fasta_pieces(genome: Genome, line_width: int, masked: np.ndarray) -> Iterator[bytes]:
    """Yield the text of a FASTA file, about 4 MB at a time.

    Parameters
    ----------
    genome : Genome
    line_width : int
        Bases per line.
    masked : ndarray, shape=(n, 2), dtype=int64
        Intervals to write in lower case, sorted by start: ``genome.repeats`` or none.
    """
    step = max(1, PIECE_BASES // line_width) * line_width
    # With cumulative maxima of ends, the intervals that overlap a piece are one slice of the list.
    reach = np.maximum.accumulate(masked[:, 1])
    for name, contig_start, contig_stop in zip(
        genome.names, genome.offsets[:-1].tolist(), genome.offsets[1:].tolist(), strict=True
    ):
        yield b">" + name.encode() + b"\n"
        for start in range(contig_start, contig_stop, step):
            stop = min(start + step, contig_stop)
            bases = _BASE_OF_CODE[genome.codes[start:stop]]
            first, last = np.searchsorted(genome.iupac_positions, [start, stop])
            bases[genome.iupac_positions[first:last] - start] = genome.iupac_letters[first:last]
            met = masked[
                np.searchsorted(reach, start, "right") : np.searchsorted(masked[:, 0], stop)
            ]
            for begin, end in (met - start).tolist():
                bases[max(begin, 0) : max(end, 0)] |= _CASE_BIT
            yield _lines(bases, line_width)


def _lines(bases: np.ndarray, width: int) -> bytes:
    """Put a line end after every `width` bases and after the last one."""
    whole = bases.size // width
    text = np.empty((whole, width + 1), np.uint8)
    text[:, :width] = bases[: whole * width].reshape(whole, width)
    text[:, width] = ord("\n")
    rest = bases[whole * width :].tobytes()
    return text.tobytes() + (rest + b"\n" if rest else b"")
