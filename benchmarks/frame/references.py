"""References for programs that look at alignments."""

import numpy as np

from bwarp.reference import codes_of, read_reference

__all__ = ["contigs_of"]


def contigs_of(fasta) -> dict[str, np.ndarray]:
    """The codes of every contig, by its name."""
    reference = read_reference(fasta)
    codes, starts = codes_of(reference), reference.contig_starts
    return {name: codes[starts[i] : starts[i + 1]] for i, name in enumerate(reference.names)}
