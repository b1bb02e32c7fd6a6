"""Simulated reads as FASTQ text, written by arrays."""

import numba
import numpy as np

from bwarp.runtime.threads import for_each_range
from bwarp.sequence import LETTERS
from bwarp.simulation.read_names import LONGEST_NAME, encode_contig_names
from bwarp.simulation.reads import SimulatedReads

__all__ = ["fastq_pieces"]

_LETTER_OF_CODE = np.frombuffer(LETTERS, np.uint8)


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
        size = _format_reads(
            reads.codes[end],
            reads.qualities[end],
            reads.truth,
            contig_text,
            contig_offsets,
            reads.first,
            start,
            stop,
            out,
        )
        return out[:size]

    return for_each_range(piece, count, threads)


@numba.njit(cache=True, nogil=True)
def _format_reads(codes, qualities, truth, contig_text, contig_offsets, first, start, stop, out):
    """Write records `start` to `stop`; returns the number of bytes."""
    length = codes.shape[1]
    at = 0
    for i in range(start, stop):
        out[at] = ord("@")
        at = _write_number(out, at + 1, first + i)
        out[at] = ord(":")
        at += 1
        contig = truth[0, i].contig
        if contig < 0:
            out[at] = ord("*")
            at += 1
        else:
            for k in range(contig_offsets[contig], contig_offsets[contig + 1]):
                out[at] = contig_text[k]
                at += 1
            for end in range(truth.shape[0]):
                at = _write_end(out, at, truth[end, i])
        out[at] = ord("\n")
        at += 1
        for k in range(length):
            out[at + k] = _LETTER_OF_CODE[codes[i, k]]
        at += length
        out[at] = ord("\n")
        out[at + 1] = ord("+")
        out[at + 2] = ord("\n")
        at += 3
        for k in range(length):
            out[at + k] = qualities[i, k]
        at += length
        out[at] = ord("\n")
        at += 1
    return at


@numba.njit
def _write_end(out, at, truth):
    """Write :START:STOP:STRAND:VARIANTS:ERRORS."""
    out[at] = ord(":")
    at = _write_number(out, at + 1, truth.start)
    out[at] = ord(":")
    at = _write_number(out, at + 1, truth.stop)
    out[at] = ord(":")
    out[at + 1] = ord("-") if truth.reverse else ord("+")
    out[at + 2] = ord(":")
    at = _write_number(out, at + 3, np.int64(truth.variants))
    out[at] = ord(":")
    return _write_number(out, at + 1, np.int64(truth.errors))


@numba.njit
def _write_number(out, at, number):
    """Write a whole number that is not negative in decimal digits."""
    digits = 1
    rest = number // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for k in range(at + digits - 1, at - 1, -1):
        out[k] = ord("0") + number % 10
        number //= 10
    return at + digits
