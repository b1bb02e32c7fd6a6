"""Compare the primary alignments of two programs, or versions, and count correct simulated reads.

Both alignments get clip-penalised scores by the same scheme, so that programs with different scores
can be compared. Each difference is of one of these kinds:

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
    """The primary record of a read.

    Attributes
    ----------
    contig : str
        "" for an unmapped read.
    position : int
        Position of the first aligned base, 0-based.
    reverse : bool
    cigar : tuple of (int, int)
        Operations and lengths as in pysam, with = and X as M.
    quality : int
    score : int
        Score by the scheme of the comparison; the minimum of `score_of` if the contig is unknown.
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
    """Yield the name, end (0 or 1) and primary alignment of every read of a SAM or BAM file.

    Parameters
    ----------
    contigs : mapping of str to ndarray, dtype=uint8
        The codes of the genome.
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
    """Return the clip-penalised score of an alignment.

    Parameters
    ----------
    read, contig : ndarray, dtype=uint8
        Codes; the read as in its record.
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
    """Return the kind of difference between two alignments of a read, as listed at the top."""
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
    """Count the reads of two SAM or BAM files by kind of difference.

    Only reads in both files are counted, with a mapping quality of at least `least_quality` in one
    of them.
    """
    kinds: Counter = Counter()
    alignments = dict(primary_alignments(here, contigs, parameters))
    for key, other in primary_alignments(there, contigs, parameters):
        mine = alignments.get(key)
        if mine is not None and max(mine.quality, other.quality) >= least_quality:
            kinds[kind_of(mine, other, contigs)] += 1
    return dict(sorted(kinds.items()))


def _plain(cigar) -> tuple[tuple[int, int], ...]:
    """Return operations with = and X as M, adjacent ones joined."""
    plain: list[tuple[int, int]] = []
    for operation, length in cigar:
        operation = 0 if operation in _MATCHES else operation
        if plain and plain[-1][0] == operation:
            length += plain.pop()[1]
        plain.append((operation, length))
    return tuple(plain)


def _diagonals(alignment: Alignment) -> set[tuple[int, int]]:
    """Return (read base, genome base) of every aligned base."""
    aligned = set()
    at, position = 0, alignment.position
    for operation, length in alignment.cigar:
        if operation in _MATCHES:
            aligned.update((at + i, position + i) for i in range(length))
        at += length if operation in (*_MATCHES, INSERTION, SOFT_CLIP) else 0
        position += length if operation in (*_MATCHES, DELETION, SKIP) else 0
    return aligned


# Accuracy on simulated reads, whose names contain their origin.


#: A read within this many bases of its true start is correct.
NEAR = 20


@dataclass(frozen=True)
class TruthCounts:
    """Counts of reads, each by mapping quality from 0 to 60.

    Attributes
    ----------
    correct, incorrect, random : tuple of int
        Mapped reads: at their origin, elsewhere, and of random sequence.
    unmapped : int
        Unmapped reads from the reference.
    unmapped_random : int
    """

    correct: tuple[int, ...]
    incorrect: tuple[int, ...]
    random: tuple[int, ...]
    unmapped: int
    unmapped_random: int

    @property
    def total(self) -> int:
        """The number of reads from the reference."""
        return sum(self.correct) + sum(self.incorrect) + self.unmapped


def count_correct(path: str) -> TruthCounts:
    """Count the primary records of a SAM or BAM file of reads from bwarp's simulator or dwgsim."""
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
    """Return contig and start; names from dwgsim end in nine fields joined by _."""
    fields = name.rsplit("_", 9)
    if len(fields) == 10:
        return (None if fields[0] == "rand" else fields[0]), int(fields[1 + is_second]) - 1
    truth = parse_read_name(name)
    return (None, 0) if truth.contig is None else (truth.contig, truth.ends[is_second].start)
