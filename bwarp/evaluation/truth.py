"""How many simulated reads are mapped to the origin in their names."""

from dataclasses import dataclass

import pysam

from bwarp.simulation.read_names import parse_read_name

__all__ = ["NEAR", "TruthCounts", "count_correct", "true_origin"]

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
