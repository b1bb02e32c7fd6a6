"""How many simulated reads lie where their names say that they are from."""

from dataclasses import dataclass

import pysam

from bwarp.simulation.read_names import parse_read_name

__all__ = ["NEAR", "TruthCounts", "count_right", "true_place"]

#: A read this near to its true start is right.
NEAR = 20


@dataclass(frozen=True)
class TruthCounts:
    """Counts of reads, each by mapping quality from 0 to 60.

    Attributes
    ----------
    right, wrong, random : tuple of int
        Mapped reads: where they are from, elsewhere, and of random sequence.
    unmapped : int
        Reads of the reference that are not mapped.
    unmapped_random : int
    """

    right: tuple[int, ...]
    wrong: tuple[int, ...]
    random: tuple[int, ...]
    unmapped: int
    unmapped_random: int

    @property
    def total(self) -> int:
        """Reads that are of the reference."""
        return sum(self.right) + sum(self.wrong) + self.unmapped


def count_right(path: str) -> TruthCounts:
    """Count the primary lines of a SAM or BAM file of reads by our simulator or dwgsim."""
    kinds = {kind: [0] * 256 for kind in ("right", "wrong", "random")}
    unmapped = unmapped_random = 0
    with pysam.AlignmentFile(path, check_sq=False) as file:
        for record in file.fetch(until_eof=True):
            if record.is_secondary or record.is_supplementary:
                continue
            contig, start = true_place(record.query_name, record.is_read2)
            if contig is None:
                if record.is_unmapped:
                    unmapped_random += 1
                else:
                    kinds["random"][record.mapping_quality] += 1
            elif record.is_unmapped:
                unmapped += 1
            else:
                clipped = record.query_alignment_start
                place = record.reference_start
                near = min(abs(place - start), abs(place - clipped - start)) <= NEAR
                right = near and record.reference_name == contig
                kinds["right" if right else "wrong"][record.mapping_quality] += 1
    counts = [tuple(kinds[kind][:61]) for kind in ("right", "wrong", "random")]
    return TruthCounts(*counts, unmapped, unmapped_random)


def true_place(name: str, is_second: bool) -> tuple[str | None, int]:
    """Contig and start; dwgsim's names end in nine fields with _ between them."""
    fields = name.rsplit("_", 9)
    if len(fields) == 10:
        return (None if fields[0] == "rand" else fields[0]), int(fields[1 + is_second]) - 1
    truth = parse_read_name(name)
    return (None, 0) if truth.contig is None else (truth.contig, truth.ends[is_second].start)
