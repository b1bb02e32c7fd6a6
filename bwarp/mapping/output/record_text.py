"""The text that SAM lines and BAM records hold alike: numbers, CIGARs, MD, SA and XA.

The functions write into a byte array and return where they stopped; the array must be long enough.
Loops over bytes have unsigned indexes: only those does LLVM turn into loops over vectors.
"""

from dataclasses import dataclass

import numba
import numpy as np

from bwarp.io.put_text import put_bytes, put_number
from bwarp.reference import Reference
from bwarp.runtime.simd import VECTOR_BYTES, equal, fill, greater, load, mask_bits, population_count

__all__ = [
    "ContigNames",
    "contig_names",
    "count_edits",
    "most_bytes",
    "put_alternatives",
    "put_cigar",
    "put_md",
    "put_split",
]

_LETTERS = np.frombuffer(b"ACGTN", np.uint8)
_OPERATIONS = np.frombuffer(b"MIDNSHP=X", np.uint8)
_REVERSE = 16


@dataclass(frozen=True)
class ContigNames:
    """Contig names as bytes end to end, and where each begins."""

    text: np.ndarray
    starts: np.ndarray


def contig_names(reference: Reference) -> ContigNames:
    names = [name.encode() for name in reference.names]
    starts = np.concatenate([[0], np.cumsum([len(name) for name in names])]).astype(np.int64)
    return ContigNames(np.frombuffer(b"".join(names), np.uint8), starts)


@numba.njit(cache=True, nogil=True)
def most_bytes(
    first, last, ends, offsets, names, reads, mates, cigar_offsets, cigar, first_rows,
    alternative_offsets, alternative_cigar_offsets, contig_names, group, tag_offsets,
):  # fmt: skip
    """More bytes than the lines or records can take.

    A number takes 20 at most, an operation of a CIGAR 12.
    """
    longest = 0
    for contig in range(contig_names.size - 1):
        longest = max(longest, contig_names[contig + 1] - contig_names[contig])
    total = 0
    for row in range(first, last):
        read = reads[row]
        template = read // ends
        total += names[template, 1] - names[template, 0] + 2 * longest + group + 300
        # Bases and qualities, and an MD that at worst names every base with a number before it.
        total += 5 * (offsets[read + 1] - offsets[read])
        total += tag_offsets[read + 1] - tag_offsets[read]
        for at in range(cigar_offsets[row], cigar_offsets[row + 1]):
            total += 12
            if cigar[at] & 15 == 2:
                total += cigar[at] >> 4
        if mates[row] >= 0:
            total += 12 * (cigar_offsets[mates[row] + 1] - cigar_offsets[mates[row]])
        if first_rows[read + 1] - first_rows[read] > 1:
            for other in range(first_rows[read], first_rows[read + 1]):
                total += longest + 60
                total += 12 * (cigar_offsets[other + 1] - cigar_offsets[other])
        begin, end = alternative_offsets[row], alternative_offsets[row + 1]
        total += (end - begin) * (longest + 60)
        total += 12 * (alternative_cigar_offsets[end] - alternative_cigar_offsets[begin])
    return total


@numba.njit(cache=True, nogil=True)
def put_cigar(out, at, cigar, start, stop):
    for i in range(start, stop):
        at = put_number(out, at, np.int64(cigar[i] >> 4))
        out[at] = _OPERATIONS[cigar[i] & 15]
        at += 1
    return at


@numba.njit(cache=True, nogil=True)
def _mismatches(genome, place, both, read, start, length):
    """Which of some bases of an alignment differ: the first of them, and a bit for each.

    Bases are numbered within ``[0, length)``; those from `start` on are looked at, `VECTOR_BYTES`
    of them or up to the end. An ambiguous base is a mismatch.
    """
    if length >= VECTOR_BYTES:
        first = min(start, length - VECTOR_BYTES)
        bases = load(both, read + first)
        bits = ~mask_bits(equal(bases, load(genome, place + first)))
        bits |= mask_bits(greater(bases, fill(np.uint8(3))))
        # What was looked at before is shifted out and in again.
        skip = np.uint64(start - first)
        return first, np.uint64(bits) >> skip << skip
    bits = np.uint64(0)
    for i in range(start, min(length, start + VECTOR_BYTES)):
        differs = both[read + i] != genome[place + i] or both[read + i] > 3
        bits |= np.uint64(differs) << np.uint64(i)
    return np.int64(0), bits


@numba.njit(cache=True, nogil=True)
def count_edits(genome, place, both, read, cigar, start, stop):
    """Mismatched, inserted and deleted bases: NM.

    `place` is the genome position of the first aligned base; ``both[read]`` is the read's first
    base on its strand, clipped ones included. An ambiguous base is a mismatch.
    """
    edits = np.int64(0)
    for i in range(start, stop):
        length = np.int64(cigar[i] >> 4)
        operation = cigar[i] & 15
        if operation == 0:
            at = np.int64(0)
            while at < length:
                first, bits = _mismatches(genome, place, both, read, at, length)
                edits += population_count(bits)
                at = first + VECTOR_BYTES
            read += length
            place += length
        elif operation == 2:
            edits += length
            place += length
        else:
            edits += length if operation == 1 else 0
            read += length
    return edits


@numba.njit(cache=True, nogil=True)
def put_md(out, at, genome, place, both, read, cigar, start, stop):
    """MD: the reference's bases at mismatches and deletions, with how many agree between them.

    Parameters as of `count_edits`.
    """
    same = np.int64(0)
    for i in range(start, stop):
        length = np.int64(cigar[i] >> 4)
        operation = cigar[i] & 15
        if operation == 0:
            done = looked_at = np.int64(0)
            while looked_at < length:
                first, bits = _mismatches(genome, place, both, read, looked_at, length)
                while bits:
                    found = first + np.int64(population_count(~bits & (bits - np.uint64(1))))
                    bits &= bits - np.uint64(1)
                    at = put_number(out, at, same + found - done)
                    out[at] = _LETTERS[genome[place + found]]
                    at += 1
                    same, done = np.int64(0), found + 1
                looked_at = first + VECTOR_BYTES
            same += length - done
            read += length
            place += length
        elif operation == 2:
            at = put_number(out, at, same)
            out[at] = 94
            at += 1
            for j in range(length):
                out[at] = _LETTERS[genome[place + j]]
                at += 1
            same = np.int64(0)
            place += length
        else:
            read += length
    return put_number(out, at, same)


@numba.njit(cache=True, nogil=True)
def put_split(
    out, at, row, reads, flags, contigs, positions, mapping_qualities, cigar_offsets, cigar,
    first_rows, genome, contig_starts, contig_text, contig_names, both, offsets,
):  # fmt: skip
    """SA: the other lines of the row's read, as contig,position,strand,CIGAR,MAPQ,NM;"""
    read = reads[row]
    for other in range(first_rows[read], first_rows[read + 1]):
        if other == row:
            continue
        contig = contigs[other]
        reverse = flags[other] & _REVERSE != 0
        at = put_bytes(out, at, contig_text, contig_names[contig], contig_names[contig + 1])
        out[at] = 44
        at = put_number(out, at + 1, positions[other] - contig_starts[contig] + 1)
        out[at] = 44
        out[at + 1] = 45 if reverse else 43
        out[at + 2] = 44
        at += 3
        for i in range(cigar_offsets[other], cigar_offsets[other + 1]):
            at = put_number(out, at, np.int64(cigar[i] >> 4))
            # Whether the other line has its clipped bases does not matter here.
            operation = cigar[i] & 15
            out[at] = _OPERATIONS[4 if operation == 5 else operation]
            at += 1
        out[at] = 44
        at = put_number(out, at + 1, np.int64(mapping_qualities[other]))
        out[at] = 44
        base = offsets[read] + (both.size // 2 if reverse else 0)
        edits = count_edits(
            genome, positions[other], both, base, cigar, cigar_offsets[other],
            cigar_offsets[other + 1],
        )  # fmt: skip
        at = put_number(out, at + 1, edits)
        out[at] = 59
        at += 1
    return at


@numba.njit(cache=True, nogil=True)
def put_alternatives(
    out, at, first, last, strands, positions, cigar_offsets, cigar,
    genome, contig_starts, contig_text, contig_names, both, base,
):  # fmt: skip
    """XA: places as contig,strand and position,CIGAR,NM; `base` is the read's place in `both`."""
    for place in range(first, last):
        contig = np.searchsorted(contig_starts, positions[place], side="right") - 1
        at = put_bytes(out, at, contig_text, contig_names[contig], contig_names[contig + 1])
        out[at] = 44
        out[at + 1] = 45 if strands[place] else 43
        at = put_number(out, at + 2, positions[place] - contig_starts[contig] + 1)
        out[at] = 44
        at = put_cigar(out, at + 1, cigar, cigar_offsets[place], cigar_offsets[place + 1])
        out[at] = 44
        edits = count_edits(
            genome, positions[place], both, base + (both.size // 2 if strands[place] else 0),
            cigar, cigar_offsets[place], cigar_offsets[place + 1],
        )  # fmt: skip
        at = put_number(out, at + 1, edits)
        out[at] = 59
        at += 1
    return at
