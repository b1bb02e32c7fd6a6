"""Simulate reads of a diploid individual, single or paired, with their true origins.

A fragment is drawn at a random position of the reference where it fits into a contig, on one of two
haplotypes. A pair is read from both ends inwards; a single read is the whole fragment on either
strand. Variants of the haplotype are applied first, then sequencing errors.

    reference        ....ACGTACGTACGTACGTACGTACGTACGTACGT....
    haplotype            ACGTTCGTACG..CGTACGTACGTACGTACGT      variants
    fragment             |------------ insert ----------|
    left end             ACGTTCGT->                            sequencing errors, by cycle
    right end                                 <-TACGTACG       read as the other strand

Every random number is a function of the seed and the number of the read, so that any part of the
reads can be made independently, in any thread.
"""

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, unquote

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.io.names import put_bytes, put_field, put_number
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.threads import for_each_range
from bwarp.sequence import AMBIGUOUS, LETTERS
from bwarp.simulation.counter_random import bits_at, check_share, stream_key, threshold
from bwarp.simulation.variants import (
    LONGEST_INDEL,
    Variants,
    first_above,
    haplotype_stretch,
    reference_span,
)

#: The origin of one read; positions are 0-based within the contig, `stop` is exclusive. `contig` is
#: -1 for a random read. `variants` and `errors` count bases as an edit distance does.
TRUTH = np.dtype(
    [
        ("contig", np.int32),
        ("reverse", np.bool_),
        ("start", np.int64),
        ("stop", np.int64),
        ("variants", np.int32),
        ("errors", np.int32),
    ]
)

MOST_DRAWS = 10_000
#: Reference bases beyond the length of the read, to compensate for deletions. Insertions are
#: equally frequent and balance them on average, so this covers the variation. A read that needs
#: more is drawn again.
SPARE = 2 * LONGEST_INDEL + 8
LOWEST_QUALITY = 2
HIGHEST_QUALITY = 41
#: Offsets of qualities of one cycle from their mean: eight steps, equally probable.
_QUALITY_STEPS = np.array([-2, -1, -1, 0, 0, 1, 1, 2])


@dataclass(frozen=True)
class ReadParameters:
    """Parameters of simulated reads.

    Attributes
    ----------
    length : int
        Bases per read.
    ends : int
        2 for pairs, 1 for single reads.
    insert_mean, insert_sd : float
        Length of the fragment of a pair between outer ends; at least the length of a read.
    error_rate_start, error_rate_end : float
        Sequencing errors per base in the first and last cycle, with linear interpolation.
    error_indel_fraction : float
        The fraction of errors that are insertions or deletions, in equal shares.
    random_fraction : float
        The fraction of pairs or single reads that are random sequence.
    """

    length: int = 150
    ends: int = 2
    insert_mean: float = 400.0
    insert_sd: float = 60.0
    error_rate_start: float = 0.002
    error_rate_end: float = 0.012
    error_indel_fraction: float = 0.01
    random_fraction: float = 0.02

    def __post_init__(self):
        if self.length < 1:
            raise UsageError(f"read length {self.length}: a read must have at least 1 base")
        if self.ends not in (1, 2):
            raise UsageError(f"ends {self.ends}: use 1 for single reads or 2 for pairs")
        check_share("error rate start", self.error_rate_start)
        check_share("error rate end", self.error_rate_end)
        check_share("error indel fraction", self.error_indel_fraction)
        check_share("random fraction", self.random_fraction)
        if self.ends == 2 and not self.length <= self.insert_mean < 2**31:
            raise UsageError(
                f"insert mean {self.insert_mean:g} is not from the read length {self.length} to "
                "2^31: the insert size includes both reads"
            )
        if not 0 <= self.insert_sd < 2**31:
            raise UsageError(f"insert sd {self.insert_sd:g} is not from 0 to 2^31")


class SimulatedReads(NamedTuple):
    """Consecutive reads or pairs, and their truth.

    Attributes
    ----------
    first : int
        The number of the first read or pair.
    codes, qualities : ndarray, shape=(ends, count, length), dtype=uint8
        Bases 0 to 3 as sequenced, and FASTQ quality characters.
    truth : ndarray, shape=(ends, count), dtype=TRUTH
    """

    first: int
    codes: np.ndarray
    qualities: np.ndarray
    truth: np.ndarray


class _Model(NamedTuple):
    """The lengths and errors of reads, and the key of their random numbers, for compiled code."""

    key: np.uint64
    insert_mean: float
    insert_sd: float
    random_threshold: np.uint64
    error_thresholds: np.ndarray
    qualities: np.ndarray
    indel_threshold: np.uint64


def simulate_reads(
    codes: np.ndarray,
    offsets: np.ndarray,
    variants: Variants,
    parameters: ReadParameters,
    seed: int,
    first: int,
    count: int,
    threads: int = 1,
) -> SimulatedReads:
    """Simulate reads or pairs from number `first` on.

    Parameters
    ----------
    codes : ndarray, shape=(n_bases,), dtype=uint8
        The concatenated contigs, 4 for ambiguous bases; reads have no ambiguous base.
    offsets : ndarray, shape=(n_contigs + 1,), dtype=int64
        Contig i is ``codes[offsets[i]:offsets[i + 1]]``.
    variants : Variants
    parameters : ReadParameters
    seed, first, count : int
    threads : int
        Does not change the result.

    Raises
    ------
    InputError
        If a read does not fit into the reference, or no position was found in `MOST_DRAWS` draws.
    """
    p = parameters
    longest = int(np.diff(offsets).max(initial=0))
    if longest < p.length:
        raise InputError(
            f"the longest contig has {counted(longest, 'base')}, too few for reads of {p.length}: "
            "use a longer reference or shorter reads"
        )
    shape = (p.ends, count, p.length)
    reads = SimulatedReads(
        first, np.empty(shape, np.uint8), np.empty(shape, np.uint8), np.empty(shape[:2], TRUTH)
    )
    # A single read is the whole fragment.
    insert_mean, insert_sd = (p.insert_mean, p.insert_sd) if p.ends == 2 else (p.length, 0)
    model = _Model(
        stream_key(seed, 5), float(insert_mean), float(insert_sd), threshold(p.random_fraction),
        *_error_profile(p), threshold(p.error_indel_fraction),
    )  # fmt: skip
    unplaced = for_each_range(
        lambda start, stop: _make_reads(codes, offsets, variants, model, reads, start, stop),
        count,
        threads,
    )
    if any(unplaced):
        raise InputError(
            f"no position for a fragment of about {insert_mean:g} bases was found in "
            f"{MOST_DRAWS:,} draws, because contigs are too short or have too many N: use a "
            "smaller insert size, shorter reads or another reference"
        )
    return reads


def _error_profile(parameters):
    """Return error thresholds (uint64) and qualities (uint8), both of shape (length, 8).

    Each base has one of eight qualities around that of its cycle; the probability of an error
    matches the quality, and the mean over the eight is the error rate of the cycle. (Rates above
    0.67 leave no range above them and do not vary.)
    """
    ramp = np.linspace(parameters.error_rate_start, parameters.error_rate_end, parameters.length)
    spread = 10.0 ** (-_QUALITY_STEPS / 10)
    spread /= spread.mean()
    rates = ramp[:, None] * np.where((ramp * spread.max() <= 1)[:, None], spread, 1.0)
    phred = -10 * np.log10(np.maximum(rates, 1e-9))
    qualities = np.clip(np.round(phred), LOWEST_QUALITY, HIGHEST_QUALITY)
    return threshold(rates), (33 + qualities).astype(np.uint8)


@compiled
def _make_reads(codes, offsets, variants, model, reads, start, stop):
    """Make reads `start` to `stop` of the arrays; return whether a fragment did not fit."""
    ends, _, length = reads.codes.shape
    window = length + SPARE
    template = np.empty(window * (LONGEST_INDEL + 1), np.uint8)
    positions = np.empty(template.size, np.int64)
    for i in range(start, stop):
        key = bits_at(model.key, np.uint64(reads.first + i))
        if (bits_at(key, np.uint64(0)) >> np.uint64(32)) < model.random_threshold:
            for end in range(ends):
                _random_read(
                    bits_at(key, np.uint64(1 + end)), model.qualities, reads.codes[end, i],
                    reads.qualities[end, i],
                )  # fmt: skip
                _set_truth(reads.truth[end, i], -1, False, 0, 0, 0, 0)
            continue
        draw = 0
        placed = False
        while not placed:
            if draw == MOST_DRAWS:
                return True
            draw += 1
            draw_key = bits_at(key, np.uint64(2 + draw))
            left, right, contig = _draw_fragment(offsets, draw_key, model, length)
            placed = right <= offsets[contig + 1]
            flags = bits_at(draw_key, np.uint64(4))
            haplotype = 1 + np.int64(flags & np.uint64(1))
            flipped = (flags & np.uint64(2)) != 0
            end = 0
            while placed and end < ends:
                reverse = flipped != (end == 1)
                origin = offsets[contig]
                if reverse:
                    begin, finish = max(origin, right - window), right
                else:
                    begin, finish = left, min(offsets[contig + 1], left + window)
                n = haplotype_stretch(
                    codes, variants, haplotype, begin, finish, template, positions
                )
                used, errors = _sequence(
                    template, n, reverse, bits_at(draw_key, np.uint64(5 + end)), model,
                    reads.codes[end, i], reads.qualities[end, i],
                )  # fmt: skip
                placed = used > 0
                if placed:
                    a, b = (n - used, n) if reverse else (0, used)
                    at, until, differ = reference_span(codes, template, positions, a, b)
                    _set_truth(
                        reads.truth[end, i], contig, reverse, at - origin, until - origin, differ,
                        errors,
                    )  # fmt: skip
                end += 1
    return False


@inner
def _draw_fragment(offsets, key, model, shortest):
    """Return the start, end and contig of a random fragment, which may extend past its contig.

    The length is normal: the sum of twelve uniform 16-bit draws, exact on every machine.
    """
    unit = np.float64(bits_at(key, np.uint64(0)) >> np.uint64(11)) * 2.0**-53
    left = np.int64(unit * offsets[-1])
    contig = first_above(offsets, left) - 1
    normal = -6.0 + 6.0 / 65536
    for i in range(1, 4):
        bits = bits_at(key, np.uint64(i))
        for _ in range(4):
            normal += np.float64(bits & np.uint64(0xFFFF)) / 65536
            bits >>= np.uint64(16)
    insert = np.int64(np.floor(model.insert_mean + model.insert_sd * normal + 0.5))
    return left, left + max(insert, shortest), contig


@inner
def _sequence(template, n, reverse, key, model, read, quality):
    """Read a template with errors from its left end, or from its right end on the reverse strand.

    The first cycle has no insertion or deletion, so that a read begins where its template does.
    Returns the number of template bases used and the number of errors; -1 if the template is too
    short or a base is ambiguous.
    """
    length = read.size
    used = 0
    errors = 0
    for cycle in range(length):
        bits = bits_at(key, np.uint64(cycle))
        step = np.int64((bits >> np.uint64(32)) & np.uint64(7))
        other = np.int64(bits >> np.uint64(35))
        quality[cycle] = model.qualities[cycle, step]
        change = 0
        if (bits & np.uint64(0xFFFFFFFF)) < model.error_thresholds[cycle, step]:
            errors += 1
            indel = bits_at(key, np.uint64(length + cycle))
            if cycle == 0 or (indel & np.uint64(0xFFFFFFFF)) >= model.indel_threshold:
                change = 1 + other % 3
            elif indel >> np.uint64(63):
                read[cycle] = other & 3
                continue
            else:
                used += 1
        if used >= n:
            return -1, errors
        base = np.int64(template[n - 1 - used] if reverse else template[used])
        if base == AMBIGUOUS:
            return -1, errors
        if reverse:
            base = 3 - base
        read[cycle] = (base + change) & 3
        used += 1
    return used, errors


@inner
def _random_read(key, quality_table, read, quality):
    for cycle in range(read.size):
        bits = bits_at(key, np.uint64(cycle))
        read[cycle] = bits & np.uint64(3)
        quality[cycle] = quality_table[cycle, np.int64(bits >> np.uint64(61))]


@inner
def _set_truth(truth, contig, reverse, start, stop, variants, errors):
    truth.contig = contig
    truth.reverse = reverse
    truth.start = start
    truth.stop = stop
    truth.variants = variants
    truth.errors = errors


# The truth in the name of a read.
#
#     NUMBER:CONTIG:START:STOP:STRAND:VARIANTS:ERRORS             a single read
#     NUMBER:CONTIG:START:STOP:STRAND:VARIANTS:ERRORS:START:STOP:STRAND:VARIANTS:ERRORS     a pair
#     NUMBER:*                                                    random sequence
#
#     17:chr20:1042:1192:+:1:0:1390:1540:-:0:2
#
# Both reads of a pair have the same name, with the truth of read 1 before that of read 2. NUMBER
# counts reads or pairs from 0. START and STOP are 0-based and half-open within the contig, on its
# forward strand for any STRAND (+ or -). VARIANTS is the number of bases by which the haplotype
# differs from the reference along the read, ERRORS the number of sequencing errors; an inserted or
# deleted base counts as one, so their sum is at least the edit distance. CONTIG is percent-encoded
# except for letters, digits and ``_ . - ~``.


#: The maximum length of a name in a SAM record.
LONGEST_NAME = 254
#: The maximum length of the name of a pair without the contig.
_BESIDES_CONTIG = len("1099511627776:" + 2 * ":4294967296:4294967296:+:99999:99999")


@dataclass(frozen=True)
class EndTruth:
    """The origin of one read of a pair, or of a single read."""

    start: int
    stop: int
    reverse: bool
    variants: int
    errors: int


@dataclass(frozen=True)
class ReadTruth:
    """The truth in the name of a simulated read.

    Attributes
    ----------
    number : int
        The number of the read or pair, from 0.
    contig : str or None
        None for random sequence.
    ends : tuple of EndTruth
        One for a single read, two for a pair, none for random sequence.
    """

    number: int
    contig: str | None
    ends: tuple[EndTruth, ...]


def parse_read_name(name: str) -> ReadTruth:
    """Return the truth in a simulated read's name.

    >>> parse_read_name("17:HLA%3A1:40:190:-:1:0")
    ReadTruth(number=17, contig='HLA:1', ends=(EndTruth(start=40, stop=190, reverse=True, \
variants=1, errors=0),))
    """
    number, _, rest = name.partition(":")
    contig, *fields = rest.split(":")
    try:
        if rest == "*":
            return ReadTruth(int(number), None, ())
        if not contig or len(fields) not in (5, 10):
            raise ValueError
        ends = tuple(_end_truth(fields[at : at + 5]) for at in range(0, len(fields), 5))
        return ReadTruth(int(number), unquote(contig, errors="strict"), ends)
    except ValueError:
        raise InputError(
            f"read name {name!r} does not contain the origin of the read: use reads of bwarp "
            "simulate-reads or dwgsim"
        ) from None


def _end_truth(fields: list[str]) -> EndTruth:
    start, stop, strand, variants, errors = fields
    if strand not in ("+", "-"):
        raise ValueError
    return EndTruth(int(start), int(stop), strand == "-", int(variants), int(errors))


def encode_contig_names(names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the concatenated percent-encoded contig names (uint8), and their offsets (int64).

    Raises
    ------
    InputError
        If a name is too long for a read name.
    """
    encoded = [quote(name, safe="").encode() for name in names]
    for name, text in zip(names, encoded, strict=True):
        if _BESIDES_CONTIG + len(text) > LONGEST_NAME:
            raise InputError(
                f"contig {name[:40]!r}...: the name has {len(text)} characters when "
                f"percent-encoded, but at most {LONGEST_NAME - _BESIDES_CONTIG} fit in a read "
                "name: shorten it"
            )
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in encoded])])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets.astype(np.int64)


# FASTQ output.


_COLON = ord(":")
_BASE_OF_CODE = np.frombuffer(LETTERS, np.uint8)


def fastq_pieces(
    reads: SimulatedReads, end: int, names: tuple[str, ...], threads: int = 1
) -> list[np.ndarray]:
    """Yield the FASTQ text of one end of all reads, as consecutive arrays of bytes (uint8).

    Parameters
    ----------
    reads : SimulatedReads
    end : int
        0 for read 1 or single reads, 1 for read 2.
    names : tuple of str
        The names of contigs; read names have the format described above.
    """
    contig_text, contig_offsets = encode_contig_names(names)
    _, count, length = reads.codes.shape
    room = LONGEST_NAME + 2 * length + 6

    def piece(start: int, stop: int) -> np.ndarray:
        out = np.empty((stop - start) * room, np.uint8)
        return out[: _format_reads(reads, end, contig_text, contig_offsets, start, stop, out)]

    return for_each_range(piece, count, threads)


@compiled
def _format_reads(reads, mate, contig_text, contig_offsets, start, stop, out):
    """Write records `start` to `stop`; return the number of bytes."""
    truth, length = reads.truth, reads.codes.shape[2]
    at = 0
    for i in range(start, stop):
        out[at] = ord("@")
        at = put_field(out, at + 1, reads.first + i, _COLON)
        contig = truth[0, i].contig
        if contig < 0:
            out[at] = ord("*")
            at += 1
        else:
            at = put_bytes(out, at, contig_text, contig_offsets[contig], contig_offsets[contig + 1])
            for end in range(truth.shape[0]):
                at = _write_end(out, at, truth[end, i])
        out[at] = ord("\n")
        at += 1
        for k in range(length):
            out[at + k] = _BASE_OF_CODE[reads.codes[mate, i, k]]
        at += length
        out[at] = ord("\n")
        out[at + 1] = ord("+")
        out[at + 2] = ord("\n")
        at += 3
        at = put_bytes(out, at, reads.qualities[mate, i], 0, length)
        out[at] = ord("\n")
        at += 1
    return at


@inner
def _write_end(out, at, truth):
    """Write :START:STOP:STRAND:VARIANTS:ERRORS."""
    out[at] = _COLON
    at = put_field(out, at + 1, truth.start, _COLON)
    at = put_field(out, at, truth.stop, _COLON)
    out[at] = ord("-") if truth.reverse else ord("+")
    out[at + 1] = _COLON
    at = put_field(out, at + 2, truth.variants, _COLON)
    return put_number(out, at, truth.errors)
