"""The codes of a reference that was read from a file, for drawing reads from it."""

import numpy as np

from bwarp.reference import Reference
from bwarp.sequence import AMBIGUOUS, unpack

__all__ = ["reference_codes"]


def reference_codes(reference: Reference) -> np.ndarray:
    """The contigs of a reference end to end, 4 where ambiguous.

    Returns
    -------
    codes : ndarray, shape=(n_bases,), dtype=uint8
    """
    codes = unpack(reference.packed, 0, reference.n_bases)
    starts = reference.segment_genome.astype(np.int64)
    stops = starts + np.diff(reference.segment_text) - 1
    # What lies between segments is ambiguous; a contig's border alone leaves a gap of no bases.
    gap_starts = np.concatenate([[0], stops]).tolist()
    gap_stops = np.concatenate([starts, [reference.n_bases]]).tolist()
    for start, stop in zip(gap_starts, gap_stops, strict=True):
        codes[start:stop] = AMBIGUOUS
    return codes
