"""SAM lines of mapped reads, written straight into bytes.

Two passes over the rows of a range: one bounds how long the lines can be, one writes them.
"""

import numba
import numpy as np

from bwarp.errors import InputError
from bwarp.io.put_text import put_bytes, put_field, put_number
from bwarp.io.sam_names import is_contig_name
from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.output.alignment_records import (
    MATE_UNMAPPED,
    PAIRED,
    REVERSE,
    UNMAPPED,
    AlignmentRecords,
)
from bwarp.mapping.output.comment_tags import ReadTags
from bwarp.mapping.output.record_text import (
    ContigNames,
    count_edits,
    most_bytes,
    put_alternatives,
    put_cigar,
    put_md,
    put_split,
)
from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import read_only
from bwarp.runtime.threads import for_each_range

__all__ = ["sam_header", "sam_lines"]


def sam_header(reference: Reference, program: str, read_group: str | None, order: str) -> bytes:
    """@HD, @SQ with lengths and checksums, @RG and @PG.

    `program` is the @PG record; `order` is what @HD says of it, such as ``SO:coordinate``.

    Raises
    ------
    InputError
        If a contig has a name that SAM does not allow.
    """
    for name in reference.names:
        if not is_contig_name(name):
            raise InputError(
                f"contig {name!r}: SAM allows no such name (printable ASCII, no comma, quote or "
                "bracket, not * or = at the start): rename it in the reference and index again"
            )
    lines = [f"@HD\tVN:1.6\t{order}"]
    for name, length, md5 in zip(
        reference.names, np.diff(reference.contig_starts), reference.md5, strict=True
    ):
        # SAM has no empty sequences; no read maps to one.
        if length:
            lines.append(f"@SQ\tSN:{name}\tLN:{length}\tM5:{md5}")
    if read_group:
        lines.append(read_group)
    lines.append(program)
    return ("\n".join(lines) + "\n").encode()


def sam_lines(
    genome: Genome,
    contigs: ContigNames,
    chunk: ReadChunk,
    both: np.ndarray,
    records: AlignmentRecords,
    read_group: bytes,
    tags: ReadTags,
    threads: int = 1,
) -> list[np.ndarray]:
    """The lines in order, as arrays of bytes to write one after another."""
    qualities = np.empty(0, np.uint8) if chunk.qualities is None else chunk.qualities
    group = np.frombuffer(read_group, np.uint8)

    def write(first: int, last: int) -> np.ndarray:
        bound = most_bytes(
            first, last, chunk.ends, chunk.offsets, chunk.names, records.reads, records.mates,
            records.cigar_offsets, records.cigar, records.first_rows, records.alternative_offsets,
            records.alternative_cigar_offsets, contigs.starts, group.size, tags.text_offsets,
        )  # fmt: skip
        out = np.empty(bound, np.uint8)
        used = _write_lines(
            first, last, chunk.ends, chunk.offsets, read_only(chunk.text), chunk.names, both,
            qualities, genome.codes, genome.contig_starts, contigs.text, contigs.starts,
            records.reads, records.flags, records.contigs, records.positions,
            records.mapping_qualities, records.cigar_offsets, records.cigar, records.mates,
            records.template_lengths, records.scores, records.suboptimal, records.first_rows,
            records.alternative_offsets, records.alternative_strands,
            records.alternative_positions, records.alternative_cigar_offsets,
            records.alternative_cigar, group, tags.text, tags.text_offsets, out,
        )  # fmt: skip
        return out[:used]

    return for_each_range(write, records.n_rows, threads)


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


@numba.njit(cache=True, nogil=True, inline="always")
def _put_star(out, at):
    out[at] = 42
    return at + 1


@numba.njit(cache=True, nogil=True)
def _put_letters(out, at, codes, start, stop):
    """Codes as A, C, G, T and N; sums of comparisons, for those are made in vectors."""
    to, begin = np.uint64(at), np.uint64(start)
    for i in range(np.uint64(stop - start)):
        code = codes[begin + i]
        letter = np.uint8(65) + (code == 1) * np.uint8(2) + (code == 2) * np.uint8(6)
        out[to + i] = letter + (code == 3) * np.uint8(19) + (code == 4) * np.uint8(13)
    return at + stop - start


@numba.njit(cache=True, nogil=True)
def _put_turned(out, at, source, start, stop):
    """Bytes from the last to the first."""
    to, last = np.uint64(at), np.uint64(stop - 1)
    for i in range(np.uint64(stop - start)):
        out[to + i] = source[last - i]
    return at + stop - start


@numba.njit(cache=True, nogil=True)
def _write_lines(
    first, last, ends, offsets, text, names, both, qualities,
    genome, contig_starts, contig_text, contig_names,
    reads, flags, contigs, positions, mapping_qualities, cigar_offsets, cigar, mates,
    template_lengths, scores, suboptimal, first_rows,
    alternative_offsets, alternative_strands, alternative_positions, alternative_cigar_offsets,
    alternative_cigar, group, tags, tag_offsets, out,
):  # fmt: skip
    at = 0
    for row in range(first, last):
        read = reads[row]
        template = read // ends
        mate = mates[row]
        flag = np.int64(flags[row])
        mapped = flag & UNMAPPED == 0
        mate_mapped = flag & PAIRED != 0 and flag & MATE_UNMAPPED == 0
        turned = flag & REVERSE != 0
        begin, end = cigar_offsets[row], cigar_offsets[row + 1]
        at = put_bytes(out, at, text, names[template, 0], names[template, 1])
        if names[template, 0] == names[template, 1]:
            at = _put_star(out, at)
        out[at] = 9
        at = put_field(out, at + 1, flag, 9)
        contig = contigs[row]
        if contig >= 0:
            at = put_bytes(out, at, contig_text, contig_names[contig], contig_names[contig + 1])
            out[at] = 9
            at = put_number(out, at + 1, positions[row] - contig_starts[contig] + 1)
        else:
            out[at] = 42
            out[at + 1] = 9
            out[at + 2] = 48
            at += 3
        out[at] = 9
        at = put_field(out, at + 1, mapping_qualities[row], 9)
        at = put_cigar(out, at, cigar, begin, end) if mapped else _put_star(out, at)
        out[at] = 9
        at += 1
        mate_contig = contigs[mate] if mate >= 0 else -1
        if mate_contig >= 0:
            if mate_contig == contig:
                out[at] = 61
                at += 1
            else:
                at = put_bytes(
                    out, at, contig_text, contig_names[mate_contig], contig_names[mate_contig + 1]
                )
            out[at] = 9
            at = put_number(out, at + 1, positions[mate] - contig_starts[mate_contig] + 1)
        else:
            out[at] = 42
            out[at + 1] = 9
            out[at + 2] = 48
            at += 3
        out[at] = 9
        at = put_field(out, at + 1, template_lengths[row], 9)
        length = offsets[read + 1] - offsets[read]
        base = offsets[read] + (both.size // 2 if turned else 0)
        # Hard-clipped bases are not written.
        start, stop = 0, length
        if mapped:
            start = np.int64(cigar[begin] >> 4) if cigar[begin] & 15 == 5 else 0
            stop -= np.int64(cigar[end - 1] >> 4) if cigar[end - 1] & 15 == 5 else 0
        if start == stop:
            at = _put_star(out, at)
        at = _put_letters(out, at, both, base + start, base + stop)
        out[at] = 9
        at += 1
        if qualities.size == 0 or start == stop:
            at = _put_star(out, at)
        elif turned:
            last = offsets[read + 1] - start
            at = _put_turned(out, at, qualities, last - (stop - start), last)
        else:
            at = put_bytes(out, at, qualities, offsets[read] + start, offsets[read] + stop)
        if mapped:
            at = _put_tag(out, at, 78, 77, 105)
            edits = count_edits(genome, positions[row], both, base, cigar, begin, end)
            at = put_number(out, at, edits)
            at = _put_tag(out, at, 77, 68, 90)
            at = put_md(out, at, genome, positions[row], both, base, cigar, begin, end)
        if mate_mapped:
            at = _put_tag(out, at, 77, 67, 90)
            at = put_cigar(out, at, cigar, cigar_offsets[mate], cigar_offsets[mate + 1])
            at = _put_tag(out, at, 77, 81, 105)
            at = put_number(out, at, np.int64(mapping_qualities[mate]))
        if mapped:
            at = _put_tag(out, at, 65, 83, 105)
            at = put_number(out, at, np.int64(scores[row]))
            at = _put_tag(out, at, 88, 83, 105)
            at = put_number(out, at, np.int64(suboptimal[row]))
        if group.size:
            at = _put_tag(out, at, 82, 71, 90)
            at = put_bytes(out, at, group, 0, group.size)
        if first_rows[read + 1] - first_rows[read] > 1:
            at = _put_tag(out, at, 83, 65, 90)
            at = put_split(
                out, at, row, reads, flags, contigs, positions, mapping_qualities, cigar_offsets,
                cigar, first_rows, genome, contig_starts, contig_text, contig_names, both, offsets,
            )  # fmt: skip
        if alternative_offsets[row] < alternative_offsets[row + 1]:
            at = _put_tag(out, at, 88, 65, 90)
            at = put_alternatives(
                out, at, alternative_offsets[row], alternative_offsets[row + 1],
                alternative_strands, alternative_positions, alternative_cigar_offsets,
                alternative_cigar, genome, contig_starts, contig_text, contig_names, both,
                offsets[read],
            )  # fmt: skip
        if tag_offsets[read] < tag_offsets[read + 1]:
            out[at] = 9
            at = put_bytes(out, at + 1, tags, tag_offsets[read], tag_offsets[read + 1])
        out[at] = 10
        at += 1
    return at
