"""SAM lines of mapped reads, written straight into bytes.

Two passes over the reads of a range: one bounds how long the lines can be, one writes them.
"""

import re
from dataclasses import dataclass

import numba
import numpy as np

from bwarp.errors import InputError
from bwarp.mapping.choice_cpu import Choice
from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.final_alignments import MappedReads
from bwarp.mapping.read_chunks import ReadChunk
from bwarp.reference import Reference
from bwarp.threads import for_each_range

__all__ = ["ContigNames", "contig_names", "sam_header", "sam_lines"]

_PAIRED, _PROPER, _UNMAPPED, _MATE_UNMAPPED = 1, 2, 4, 8
_REVERSE, _MATE_REVERSE, _FIRST, _LAST = 16, 32, 64, 128

_SAM_NAME = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")

_LETTERS = np.frombuffer(b"ACGTN", np.uint8)
_OPERATIONS = np.frombuffer(b"MIDNSHP=X", np.uint8)


@dataclass(frozen=True)
class ContigNames:
    """Contig names as bytes end to end, and where each begins."""

    text: np.ndarray
    starts: np.ndarray


def contig_names(reference: Reference) -> ContigNames:
    names = [name.encode() for name in reference.names]
    starts = np.concatenate([[0], np.cumsum([len(name) for name in names])]).astype(np.int64)
    return ContigNames(np.frombuffer(b"".join(names), np.uint8), starts)


def sam_header(reference: Reference, version: str, read_group: str | None) -> bytes:
    """@HD, @SQ with lengths and checksums, @RG and @PG.

    Raises
    ------
    InputError
        If a contig has a name that SAM does not allow.
    """
    for name in reference.names:
        if not _SAM_NAME.fullmatch(name):
            raise InputError(
                f"contig {name!r}: SAM allows no such name (printable ASCII, no comma, quote or "
                "bracket, not * or = at the start): rename it in the reference and index again"
            )
    lines = ["@HD\tVN:1.6\tSO:unsorted\tGO:query"]
    for name, length, md5 in zip(
        reference.names, np.diff(reference.contig_starts), reference.md5, strict=True
    ):
        # SAM has no empty sequences; no read maps to one.
        if length:
            lines.append(f"@SQ\tSN:{name}\tLN:{length}\tM5:{md5}")
    if read_group:
        lines.append(read_group)
    lines.append(f"@PG\tID:bwarp\tPN:bwarp\tVN:{version}")
    return ("\n".join(lines) + "\n").encode()


def sam_lines(
    genome: Genome,
    contigs: ContigNames,
    chunk: ReadChunk,
    both: np.ndarray,
    mapped: MappedReads,
    choice: Choice,
    read_group: bytes,
    threads: int = 1,
) -> list[np.ndarray]:
    """The lines of a chunk's reads in order, as arrays of bytes to write one after another."""
    qualities = np.empty(0, np.uint8) if chunk.qualities is None else chunk.qualities
    group = np.frombuffer(read_group, np.uint8)

    def write(first: int, last: int) -> np.ndarray:
        first, last = first * chunk.ends, last * chunk.ends
        bound = _bound(
            first, last, chunk.ends, chunk.offsets, chunk.names, mapped.cigar_offsets,
            mapped.cigar, contigs.starts, group.size,
        )  # fmt: skip
        out = np.empty(bound, np.uint8)
        used = _write_lines(
            first, last, chunk.ends, chunk.offsets, chunk.text, chunk.names, both, qualities,
            genome.codes, genome.contig_starts, contigs.text, contigs.starts,
            mapped.positions, mapped.strands, mapped.read_starts, mapped.read_ends, mapped.scores,
            mapped.cigar_offsets, mapped.cigar, choice.qualities, choice.others, choice.proper,
            group, out,
        )  # fmt: skip
        return out[:used]

    return for_each_range(write, chunk.n_templates, threads)


@numba.njit(cache=True, nogil=True)
def _bound(first, last, ends, offsets, names, cigar_offsets, cigar, contig_starts, group):
    """More bytes than the lines of the reads can take."""
    longest = 0
    for contig in range(contig_starts.size - 1):
        longest = max(longest, contig_starts[contig + 1] - contig_starts[contig])
    total = 0
    for read in range(first, last):
        template = read // ends
        total += names[template, 1] - names[template, 0] + 2 * longest + group + 300
        # Bases and qualities, and an MD that at worst names every base with a number before it.
        total += 5 * (offsets[read + 1] - offsets[read])
        for mate in range(template * ends, template * ends + ends):
            total += 12 * (cigar_offsets[mate + 1] - cigar_offsets[mate])
        for at in range(cigar_offsets[read], cigar_offsets[read + 1]):
            if cigar[at] & 15 == 2:
                total += cigar[at] >> 4
    return total


@numba.njit(cache=True, nogil=True, inline="always")
def _put_bytes(out, at, source, start, stop):
    for i in range(start, stop):
        out[at] = source[i]
        at += 1
    return at


@numba.njit(cache=True, nogil=True, inline="always")
def _put_number(out, at, number):
    if number < 0:
        out[at] = 45
        at += 1
        number = -number
    digits = 1
    power = 10
    while number >= power:
        digits += 1
        power *= 10
    for i in range(digits - 1, -1, -1):
        out[at + i] = 48 + number % 10
        number //= 10
    return at + digits


@numba.njit(cache=True, nogil=True, inline="always")
def _put_tag(out, at, first, second, kind):
    """A tab and a tag such as NM:i: ."""
    out[at] = 9
    out[at + 1] = first
    out[at + 2] = second
    out[at + 3] = 58
    out[at + 4] = kind
    out[at + 5] = 58
    return at + 6


@numba.njit(cache=True, nogil=True)
def _put_cigar(out, at, cigar, start, stop, clip_start, clip_end):
    if clip_start:
        at = _put_number(out, at, clip_start)
        out[at] = 83
        at += 1
    for i in range(start, stop):
        at = _put_number(out, at, np.int64(cigar[i] >> 4))
        out[at] = _OPERATIONS[cigar[i] & 15]
        at += 1
    if clip_end:
        at = _put_number(out, at, clip_end)
        out[at] = 83
        at += 1
    return at


@numba.njit(cache=True, nogil=True)
def _reference_length(cigar, start, stop):
    length = np.int64(0)
    for i in range(start, stop):
        if cigar[i] & 15 != 1:
            length += np.int64(cigar[i] >> 4)
    return length


@numba.njit(cache=True, nogil=True)
def _put_differences(out, at, genome, position, both, base, cigar, start, stop):
    """NM and MD: edits, and the reference's bases at mismatches and deletions."""
    edits = 0
    place = position
    read = base
    for i in range(start, stop):
        length = np.int64(cigar[i] >> 4)
        operation = cigar[i] & 15
        if operation == 0:
            for j in range(length):
                edits += both[read + j] != genome[place + j] or both[read + j] > 3
            read += length
            place += length
        elif operation == 1:
            edits += length
            read += length
        else:
            edits += length
            place += length
    at = _put_tag(out, at, 78, 77, 105)
    at = _put_number(out, at, edits)
    at = _put_tag(out, at, 77, 68, 90)
    same = 0
    place = position
    read = base
    for i in range(start, stop):
        length = np.int64(cigar[i] >> 4)
        operation = cigar[i] & 15
        if operation == 0:
            for j in range(length):
                if both[read + j] == genome[place + j] and both[read + j] < 4:
                    same += 1
                else:
                    at = _put_number(out, at, same)
                    out[at] = _LETTERS[genome[place + j]]
                    at += 1
                    same = 0
            read += length
            place += length
        elif operation == 1:
            read += length
        else:
            at = _put_number(out, at, same)
            out[at] = 94
            at += 1
            for j in range(length):
                out[at] = _LETTERS[genome[place + j]]
                at += 1
            same = 0
            place += length
    return _put_number(out, at, same)


@numba.njit(cache=True, nogil=True)
def _write_lines(
    first, last, ends, offsets, text, names, both, qualities, genome, contig_starts, contig_text,
    contig_names, positions, strands, read_starts, read_ends, scores, cigar_offsets, cigar,
    mapping_qualities, others, proper, group, out,
):  # fmt: skip
    at = 0
    for read in range(first, last):
        template = read // ends
        mate = read ^ 1 if ends == 2 else read
        length = offsets[read + 1] - offsets[read]
        mapped = positions[read] >= 0
        mate_mapped = ends == 2 and positions[mate] >= 0
        flag = 0
        if ends == 2:
            flag |= _PAIRED | (_LAST if read & 1 else _FIRST)
            flag |= _PROPER if proper[read] else 0
            flag |= 0 if mate_mapped else _MATE_UNMAPPED
            flag |= _MATE_REVERSE if mate_mapped and strands[mate] else 0
        flag |= 0 if mapped else _UNMAPPED
        turned = mapped and strands[read] == 1
        flag |= _REVERSE if turned else 0
        at = _put_bytes(out, at, text, names[template, 0], names[template, 1])
        out[at] = 9
        at = _put_number(out, at + 1, flag)
        out[at] = 9
        at += 1
        # An unmapped read stands where its mate does, so that sorting keeps them together.
        position = positions[read] if mapped else positions[mate]
        contig = -1
        if position >= 0:
            contig = np.searchsorted(contig_starts, position, side="right") - 1
            at = _put_bytes(out, at, contig_text, contig_names[contig], contig_names[contig + 1])
            out[at] = 9
            at = _put_number(out, at + 1, position - contig_starts[contig] + 1)
        else:
            out[at] = 42
            out[at + 1] = 9
            out[at + 2] = 48
            at += 3
        out[at] = 9
        at = _put_number(out, at + 1, np.int64(mapping_qualities[read]) if mapped else 0)
        out[at] = 9
        at += 1
        if mapped:
            at = _put_cigar(
                out, at, cigar, cigar_offsets[read], cigar_offsets[read + 1],
                np.int64(read_starts[read]), length - np.int64(read_ends[read]),
            )  # fmt: skip
        else:
            out[at] = 42
            at += 1
        out[at] = 9
        at += 1
        mate_position = positions[mate] if mate_mapped else positions[read]
        insert = np.int64(0)
        if ends == 2 and mate_position >= 0:
            mate_contig = np.searchsorted(contig_starts, mate_position, side="right") - 1
            if mate_contig == contig:
                out[at] = 61
                at += 1
            else:
                at = _put_bytes(
                    out, at, contig_text, contig_names[mate_contig], contig_names[mate_contig + 1]
                )
            out[at] = 9
            at = _put_number(out, at + 1, mate_position - contig_starts[mate_contig] + 1)
            if mapped and mate_mapped and mate_contig == contig:
                here, there = positions[read], positions[mate]
                if strands[read]:
                    here += (
                        _reference_length(cigar, cigar_offsets[read], cigar_offsets[read + 1]) - 1
                    )
                if strands[mate]:
                    there += (
                        _reference_length(cigar, cigar_offsets[mate], cigar_offsets[mate + 1]) - 1
                    )
                insert = there - here
                insert += 1 if insert > 0 else -1 if insert < 0 else 0
        else:
            out[at] = 42
            out[at + 1] = 9
            out[at + 2] = 48
            at += 3
        out[at] = 9
        at = _put_number(out, at + 1, insert)
        out[at] = 9
        at += 1
        base = offsets[read] + (both.size // 2 if turned else 0)
        if length == 0:
            out[at] = 42
            at += 1
        for i in range(length):
            out[at + i] = _LETTERS[both[base + i]]
        at += length
        out[at] = 9
        at += 1
        if qualities.size == 0 or length == 0:
            out[at] = 42
            at += 1
        elif turned:
            for i in range(length):
                out[at + i] = qualities[offsets[read + 1] - 1 - i]
            at += length
        else:
            at = _put_bytes(out, at, qualities, offsets[read], offsets[read + 1])
        if mapped:
            at = _put_differences(
                out, at, genome, positions[read], both, base + read_starts[read], cigar,
                cigar_offsets[read], cigar_offsets[read + 1],
            )  # fmt: skip
        if mate_mapped:
            at = _put_tag(out, at, 77, 67, 90)
            at = _put_cigar(
                out, at, cigar, cigar_offsets[mate], cigar_offsets[mate + 1],
                np.int64(read_starts[mate]),
                offsets[mate + 1] - offsets[mate] - np.int64(read_ends[mate]),
            )  # fmt: skip
            at = _put_tag(out, at, 77, 81, 105)
            at = _put_number(out, at, np.int64(mapping_qualities[mate]))
        if mapped:
            at = _put_tag(out, at, 65, 83, 105)
            at = _put_number(out, at, np.int64(scores[read]))
            at = _put_tag(out, at, 88, 83, 105)
            at = _put_number(out, at, np.int64(others[read]))
        if group.size:
            at = _put_tag(out, at, 82, 71, 90)
            at = _put_bytes(out, at, group, 0, group.size)
        out[at] = 10
        at += 1
    return at
