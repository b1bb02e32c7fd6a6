"""A simulated genome as FASTA text, in pieces."""

from collections.abc import Iterator

import numpy as np

from bwarp.sequence import LETTERS
from bwarp.simulation.genome import Genome

__all__ = ["fasta_pieces"]

PIECE_BASES = 1 << 22
_BASE_OF_CODE = np.frombuffer(LETTERS, np.uint8)
_CASE_BIT = 0x20


def fasta_pieces(genome: Genome, line_width: int, masked: np.ndarray) -> Iterator[bytes]:
    """The text of a FASTA file, about 4 MB at a time.

    Parameters
    ----------
    genome : Genome
    line_width : int
        Bases a line.
    masked : ndarray, shape=(n, 2), dtype=int64
        Intervals to write in lower case, sorted by their starts: ``genome.repeats`` or none.
    """
    step = max(1, PIECE_BASES // line_width) * line_width
    # With ends that never fall, the intervals that meet a piece are one slice of the list.
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
