"""Simulated reads as FASTQ text, written by arrays."""

import numba
import numpy as np

from bwarp.io.put_text import put_bytes, put_field, put_number
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range
from bwarp.sequence import LETTERS
from bwarp.simulation.read_names import LONGEST_NAME, encode_contig_names
from bwarp.simulation.reads import SimulatedReads

__all__ = ["fastq_pieces"]

_COLON = ord(":")
_BASE_OF_CODE = np.frombuffer(LETTERS, np.uint8)


def fastq_pieces(
    reads: SimulatedReads, end: int, names: tuple[str, ...], threads: int = 1
) -> list[np.ndarray]:
    """The FASTQ text of one end of all reads, as consecutive arrays of bytes (uint8).

    Parameters
    ----------
    reads : SimulatedReads
    end : int
        0 for read 1 or single reads, 1 for read 2.
    names : tuple of str
        The contigs' names; the reads' names are as `bwarp.simulation.read_names` says.
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
    """Write records `start` to `stop`; returns the number of bytes."""
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


@numba.njit
def _write_end(out, at, truth):
    """Write :START:STOP:STRAND:VARIANTS:ERRORS."""
    out[at] = _COLON
    at = put_field(out, at + 1, truth.start, _COLON)
    at = put_field(out, at, truth.stop, _COLON)
    out[at] = ord("-") if truth.reverse else ord("+")
    out[at + 1] = _COLON
    at = put_field(out, at + 2, truth.variants, _COLON)
    return put_number(out, at, truth.errors)
