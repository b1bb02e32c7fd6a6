"""How the primary alignments of two programs, or of two versions of one, differ read by read.

Both get clip-penalised scores by one scheme, so that alignments of programs with other scores
can be compared, and each difference gets one of these kinds:

    same                                   contig, position, strand and CIGAR are equal
    same locus, equal score | ...better    a base of the read lies at the same base of the genome
    elsewhere, equal score | ...better     it does not
    mapped here only | mapped there only   the other one has the read unmapped
    there on a contig not known here       other references: nothing can be said
    unmapped
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pysam

from bwarp.alignment.pairs import DELETION, EQUAL, INSERTION, MATCH, MISMATCH, SKIP, SOFT_CLIP
from bwarp.mapping.parameters import MappingParameters
from bwarp.sequence import encode
from bwarp.simulation.reads import parse_read_name

_MATCHES = (MATCH, EQUAL, MISMATCH)


@dataclass(frozen=True)
class Alignment:
    """A read's primary record.

    Attributes
    ----------
    contig : str
        "" for an unmapped read.
    position : int
        Of the first aligned base, from 0.
    reverse : bool
    cigar : tuple of (int, int)
        Operations and lengths as pysam gives them, = and X as M.
    quality : int
    score : int
        By the scheme of the comparison, or `score_of`'s least where the contig is not known.
    """

    contig: str
    position: int
    reverse: bool
    cigar: tuple[tuple[int, int], ...]
    quality: int
    score: int


def primary_alignments(
    path: str, contigs: Mapping[str, np.ndarray], parameters: MappingParameters
) -> Iterator[tuple[tuple[str, int], Alignment]]:
    """Name and end (0 or 1), and the primary alignment, of every read of a SAM or BAM file.

    Parameters
    ----------
    contigs : mapping of str to ndarray, dtype=uint8
        The genome's codes.
    """
    with pysam.AlignmentFile(path, check_sq=False) as file:
        for record in file.fetch(until_eof=True):
            if record.is_secondary or record.is_supplementary:
                continue
            key = (record.query_name, int(record.is_read2))
            if record.is_unmapped:
                yield key, Alignment("", -1, False, (), 0, 0)
                continue
            cigar = _plain(record.cigartuples)
            contig, position = record.reference_name, record.reference_start
            score = 0
            if contig in contigs:
                read = encode(record.query_sequence.encode())
                score = score_of(cigar, read, contigs[contig], position, parameters)
            yield (
                key,
                Alignment(
                    contig, position, record.is_reverse, cigar, record.mapping_quality, score
                ),
            )


def score_of(
    cigar: tuple[tuple[int, int], ...],
    read: np.ndarray,
    contig: np.ndarray,
    position: int,
    parameters: MappingParameters,
) -> int:
    """The clip-penalised score of an alignment.

    Parameters
    ----------
    read, contig : ndarray, dtype=uint8
        Codes; the read as its record has it.
    """
    total = at = 0
    for operation, length in cigar:
        if operation in _MATCHES:
            part, other = read[at : at + length], contig[position : position + length]
            same = int(np.count_nonzero((part == other) & (part < 4)))
            total += parameters.match * same + parameters.mismatch * (length - same)
            at, position = at + length, position + length
        elif operation in (INSERTION, DELETION, SKIP):
            counted = min(length, parameters.long_gap)
            total -= parameters.gap_open + parameters.gap_extend * counted
            at += length if operation == INSERTION else 0
            position += 0 if operation == INSERTION else length
        else:
            total -= parameters.clip
            at += length if operation == SOFT_CLIP else 0
    return total


def kind_of(here: Alignment, there: Alignment, contigs: Mapping[str, np.ndarray]) -> str:
    """In what way two alignments of one read differ: one of the kinds that the module lists."""
    if not here.contig and not there.contig:
        return "unmapped"
    if there.contig and there.contig not in contigs:
        return "there on a contig not known here"
    if not there.contig:
        return "mapped here only"
    if not here.contig:
        return "mapped there only"
    if (here.contig, here.position, here.reverse, here.cigar) == (
        there.contig, there.position, there.reverse, there.cigar,
    ):  # fmt: skip
        return "same"
    one_strand = (here.contig, here.reverse) == (there.contig, there.reverse)
    shared = one_strand and not _diagonals(here).isdisjoint(_diagonals(there))
    where = "same locus" if shared else "elsewhere"
    if here.score == there.score:
        return f"{where}, equal score"
    return f"{where}, {'here' if here.score > there.score else 'there'} better"


def count_kinds(
    here: str,
    there: str,
    contigs: Mapping[str, np.ndarray],
    parameters: MappingParameters,
    least_quality: int = 0,
) -> dict[str, int]:
    """How many reads of two SAM or BAM files differ in which way.

    Counted are the reads of both files of which one side has a mapping quality of `least_quality`
    or more.
    """
    kinds: Counter = Counter()
    alignments = dict(primary_alignments(here, contigs, parameters))
    for key, other in primary_alignments(there, contigs, parameters):
        mine = alignments.get(key)
        if mine is not None and max(mine.quality, other.quality) >= least_quality:
            kinds[kind_of(mine, other, contigs)] += 1
    return dict(sorted(kinds.items()))


def _plain(cigar) -> tuple[tuple[int, int], ...]:
    """= and X as M, neighbours joined."""
    plain: list[tuple[int, int]] = []
    for operation, length in cigar:
        operation = 0 if operation in _MATCHES else operation
        if plain and plain[-1][0] == operation:
            length += plain.pop()[1]
        plain.append((operation, length))
    return tuple(plain)


def _diagonals(alignment: Alignment) -> set[tuple[int, int]]:
    """(read base, genome base) of every aligned base."""
    aligned = set()
    at, position = 0, alignment.position
    for operation, length in alignment.cigar:
        if operation in _MATCHES:
            aligned.update((at + i, position + i) for i in range(length))
        at += length if operation in (*_MATCHES, INSERTION, SOFT_CLIP) else 0
        position += length if operation in (*_MATCHES, DELETION, SKIP) else 0
    return aligned


# --------------------------------------------------------------------------------------------------
# How many simulated reads are mapped to the origin in their names.


#: A read within so many bases of its true start is correct.
NEAR = 20


@dataclass(frozen=True)
class TruthCounts:
    """Counts of reads, each by mapping quality from 0 to 60.

    Attributes
    ----------
    correct, incorrect, random : tuple of int
        Mapped reads: at their origin, elsewhere, and of random sequence.
    unmapped : int
        Unmapped reads of the reference.
    unmapped_random : int
    """

    correct: tuple[int, ...]
    incorrect: tuple[int, ...]
    random: tuple[int, ...]
    unmapped: int
    unmapped_random: int

    @property
    def total(self) -> int:
        """Reads that are of the reference."""
        return sum(self.correct) + sum(self.incorrect) + self.unmapped


def count_correct(path: str) -> TruthCounts:
    """Count the primary records of a SAM or BAM file of reads by bwarp's simulator or dwgsim."""
    kinds = {kind: [0] * 256 for kind in ("correct", "incorrect", "random")}
    unmapped = unmapped_random = 0
    with pysam.AlignmentFile(path, check_sq=False) as file:
        for record in file.fetch(until_eof=True):
            if record.is_secondary or record.is_supplementary:
                continue
            contig, start = true_origin(record.query_name, record.is_read2)
            if contig is None:
                if record.is_unmapped:
                    unmapped_random += 1
                else:
                    kinds["random"][record.mapping_quality] += 1
            elif record.is_unmapped:
                unmapped += 1
            else:
                clipped = record.query_alignment_start
                found = record.reference_start
                near = min(abs(found - start), abs(found - clipped - start)) <= NEAR
                correct = near and record.reference_name == contig
                kinds["correct" if correct else "incorrect"][record.mapping_quality] += 1
    counts = [tuple(kinds[kind][:61]) for kind in ("correct", "incorrect", "random")]
    return TruthCounts(*counts, unmapped, unmapped_random)


def true_origin(name: str, is_second: bool) -> tuple[str | None, int]:
    """Contig and start; dwgsim's names end in nine fields with _ between them."""
    fields = name.rsplit("_", 9)
    if len(fields) == 10:
        return (None if fields[0] == "rand" else fields[0]), int(fields[1 + is_second]) - 1
    truth = parse_read_name(name)
    return (None, 0) if truth.contig is None else (truth.contig, truth.ends[is_second].start)
