"""References: real ones if available, and the codes of their contigs."""

import gzip
import sys
from pathlib import Path

import numpy as np

from bwarp.reference import codes_of, read_reference
from frame.options import SHARED

__all__ = ["contigs_of", "ecoli"]


def contigs_of(fasta) -> dict[str, np.ndarray]:
    """Return the codes of each contig, by name."""
    reference = read_reference(fasta)
    codes, starts = codes_of(reference), reference.contig_starts
    return {name: codes[starts[i] : starts[i + 1]] for i, name in enumerate(reference.names)}


def ecoli(fasta: Path) -> bool:
    """Write E. coli K-12 to a file, if it is in ../shared/data."""
    packed = SHARED / "ref_ecoli_k12_mg1655" / "GCF_000005845.2_ASM584v2_genomic.fna.gz"
    if not packed.exists():
        print(f"left out E. coli: {packed} is not here", file=sys.stderr)
        return False
    fasta.write_bytes(gzip.decompress(packed.read_bytes()))
    return True
