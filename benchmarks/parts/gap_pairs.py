"""A haplotype with pairs of an insertion and a deletion of the same length, near each other.

Bases before and after a pair have the same positions as in the genome, so the origins in the names
of reads of the haplotype are those in the genome.
"""

from pathlib import Path

import numpy as np
import pysam

from bwarp.sequence import decode, encode

__all__ = ["share_with_both_gaps", "with_gap_pairs", "write_haplotype"]

LONGEST = 12
#: Bases between the gaps of a pair.
BETWEEN = 10, 40
#: Bases from the start of a pair to the start of the next one.
APART = 150, 250


def write_haplotype(fasta: Path, haplotype: Path, seed: int) -> None:
    """Write a copy of a genome with pairs of gaps; the same seed gives the same file."""
    rng = np.random.default_rng(seed)
    with pysam.FastxFile(str(fasta)) as file, open(haplotype, "wb") as out:
        for record in file:
            changed = with_gap_pairs(rng, encode(record.sequence.encode()))
            out.write(b">%s\n%s\n" % (record.name.encode(), decode(changed)))


def with_gap_pairs(rng: np.random.Generator, codes: np.ndarray) -> np.ndarray:
    """Return a copy of a contig with pairs of gaps (uint8); either gap may be the first."""
    changed = codes.copy()
    at = APART[0]
    while at + APART[1] < codes.size:
        size, between = int(rng.integers(1, LONGEST + 1)), int(rng.integers(*BETWEEN))
        end = at + between + size
        inserted = rng.integers(0, 4, size)
        if rng.random() < 0.5:
            changed[at:end] = np.concatenate([inserted, codes[at : end - size]])
        else:
            changed[at:end] = np.concatenate([codes[at + size : end], inserted])
        at += int(rng.integers(*APART))
    return changed


def share_with_both_gaps(sam: Path) -> float:
    """Return the percentage of reads whose primary alignment has an insertion and a deletion."""
    reads = found = 0
    with pysam.AlignmentFile(str(sam)) as file:
        for record in file.fetch(until_eof=True):
            if not record.is_secondary and not record.is_supplementary:
                reads += 1
                found += {1, 2} <= {operation for operation, _ in record.cigartuples or ()}
    return round(100 * found / reads, 3)
