"""Convert comments of FASTQ headers to SAM tags, as bwa mem -C does.

@read1 BC:Z:ACGT<tab>XI:i:7          the records of read1 get the tags BC and XI
"""

import os
import re
import struct
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bwarp.bam.fields import (
    ARRAY,
    AS,
    CG,
    CHARACTER,
    DE,
    DT,
    FLOAT,
    HEXADECIMAL,
    INTEGER,
    MC,
    MD,
    MQ,
    MS,
    NM,
    NN,
    PA,
    RG,
    SA,
    TEXT,
    TP,
    XA,
    XS,
)
from bwarp.bam.fields import tag as tag_number
from bwarp.bam.records import put_int32
from bwarp.errors import InputError, UsageError
from bwarp.reads.read_chunks import ReadChunk, comment_text
from bwarp.reads.read_files import ReadFiles
from bwarp.reads.record_files import holds_records, read_groups
from bwarp.reads.stored_reads import read_groups_in
from bwarp.records.output_options import AlignmentOutput, parse_read_group
from bwarp.records.record_text import put_integer_tag, put_tag
from bwarp.runtime.compiled_code import compiled

#: Tags that the records have anyway, and the lines of PAF.
_OURS = (NM, MD, MC, MQ, AS, XS, SA, XA, PA, MS)
_OF_PAF = (NM, AS, NN, TP, DE, CG)

# Return codes of the fast converter other than success.
_NOT_TAGS = 1
_OURS_ALREADY = 2
_RARE_KIND = 3

_NUMBER = rb"[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?"
_FLOAT = re.compile(rb"([A-Za-z][A-Za-z0-9]):f:(%b)" % _NUMBER)
_ARRAY = re.compile(rb"([A-Za-z][A-Za-z0-9]):B:([cCsSiIf])((?:,%b)*)" % _NUMBER)


def tags_of_run(output: AlignmentOutput) -> tuple[np.int64, ...]:
    """Return tags that records have only in some runs, which comments must not contain."""
    return (RG,) * bool(output.read_group_id) + (DT,) * output.duplicate_tags


class ReadTags(NamedTuple):
    """Further tags of each read.

    Attributes
    ----------
    text : tuple of ndarray, dtype=uint8, int64
        Tab-separated tags in SAM format, and the offsets of each read's tags.
    binary : tuple of ndarray, dtype=uint8, int64
        Tags in BAM format, and the offsets of each read's tags.
    """

    text: tuple[np.ndarray, np.ndarray]
    binary: tuple[np.ndarray, np.ndarray]


def comment_tags(chunk: ReadChunk, more: tuple = (), is_paf: bool = False) -> ReadTags:
    """Convert the comments of a chunk's reads to tags for SAM and BAM or for PAF.

    `more` holds tags that the records of this run have in addition to the usual ones.

    Raises
    ------
    InputError
        If a comment is anything else, or holds a tag that records have anyway.
    """
    text, text_offsets = comment_text(chunk)
    ours = np.array(_OF_PAF if is_paf else (*_OURS, *more))
    # A tag takes at least four bytes of text, and at most one more here: the end of a text.
    binary = np.empty(2 * text.size, np.uint8)
    offsets = np.zeros(text_offsets.size, np.int64)
    read, problem = _convert(text, text_offsets, ours, binary, offsets)
    if problem == _RARE_KIND:
        parts = []
        for read in range(chunk.n_reads):
            comment = text[text_offsets[read] : text_offsets[read + 1]].tobytes()
            parts.append(_slowly(comment, ours, binary))
            if isinstance(parts[-1], int):
                problem = parts[-1]
                break
        else:
            sizes = [len(part) for part in parts]
            joined = np.frombuffer(b"".join(parts), np.uint8)
            return ReadTags((text, text_offsets), (joined, np.concatenate([[0], np.cumsum(sizes)])))
    if problem:
        comment = text[text_offsets[read] : text_offsets[read + 1]].tobytes()
        raise _error(chunk, read, comment, problem)
    return ReadTags((text, text_offsets), (binary[: offsets[-1]], offsets))


def _error(chunk: ReadChunk, read: int, comment: bytes, problem: int) -> InputError:
    start = (
        f"read {chunk.name(read // chunk.ends)!r}: its comment "
        f"{comment.decode('utf-8', 'replace')!r}"
    )
    if problem == _OURS_ALREADY:
        return InputError(
            f"{start} has a tag that bwarp writes: omit --comments, or remove the tag from the "
            "FASTQ"
        )
    return InputError(
        f"{start} does not consist of SAM tags such as BC:Z:ACGT, separated by tabs: omit "
        "--comments"
    )


def _slowly(comment: bytes, ours: np.ndarray, room: np.ndarray) -> bytes | int:
    """Return a read's tags in BAM format, or an error code; the tags may have any numbers."""
    parts = []
    for tag in comment.split(b"\t") if comment else ():
        if found := _FLOAT.fullmatch(tag):
            parts.append(found[1] + b"f" + struct.pack("<f", float(found[2])))
        elif found := _ARRAY.fullmatch(tag):
            kind = found[2].decode().translate(str.maketrans("cCsSiI", "bBhHiI"))
            numbers = found[3].split(b",")[1:]
            try:
                values = [float(n) if kind == "f" else int(n) for n in numbers]
                packed = struct.pack(f"<i{len(values)}{kind}", len(values), *values)
            except (ValueError, struct.error):
                return _NOT_TAGS
            parts.append(found[1] + b"B" + found[2] + packed)
        else:
            one = np.frombuffer(tag, np.uint8)
            offsets = np.zeros(2, np.int64)
            _, problem = _convert(one, np.array([0, one.size]), ours, room, offsets)
            if problem or not one.size:
                return _OURS_ALREADY if problem == _OURS_ALREADY else _NOT_TAGS
            parts.append(room[: offsets[1]].tobytes())
            continue
        if tag_number(found[1].decode()) in ours:
            return _OURS_ALREADY
    return b"".join(parts)


@compiled
def _is_letter(byte):
    return 65 <= byte <= 90 or 97 <= byte <= 122


@compiled
def _digits(text, start, stop):
    """Return a number without its decimal point, and the number of digits after the point.

    The latter is -1 for other characters, more than 15 digits, or no digit after a point.
    """
    number, digits, point = np.int64(0), 0, stop
    for i in range(start, stop):
        if text[i] == 46 and point == stop:
            point = i
            continue
        digits += 1
        if not 48 <= text[i] <= 57 or digits > 15:
            return number, np.int64(-1)
        number = 10 * number + text[i] - 48
    if digits == 0 or point == stop - 1:
        return number, np.int64(-1)
    return number, max(stop - point - 1, 0)


@compiled
def _has_sign(text, start, stop):
    return start < stop and (text[start] == 45 or text[start] == 43)


@compiled
def _float_bits(text, start, stop):
    """Return the bits of a number as float32, and whether they are certain.

    The number is a quotient of two integers that float64 holds exactly, so it is rounded as in
    Python.
    """
    signed = _has_sign(text, start, stop)
    number, decimals = _digits(text, start + signed, stop)
    value = np.float64(number) / 10.0 ** np.float64(max(decimals, 0))
    if signed and text[start] == 45:
        value = -value
    return np.int64(np.float32(value).view(np.int32)), decimals >= 0


@compiled
def _put_array(out, at, text, start, stop):
    """Write the numbers of an array such as c,1,-2; return -1 if a number needs `_slowly`."""
    if start == stop:
        return np.int64(-1)
    kind = text[start]
    # c s i and C S I, of 1, 2 and 4 bytes.
    size, low = 4, np.int64(0)
    if kind == 99 or kind == 67:
        size = 1
    elif kind == 115 or kind == 83:
        size = 2
    elif kind != 105 and kind != 73 and kind != FLOAT:
        return np.int64(-1)
    high = (np.int64(1) << 8 * size) - 1
    if kind == 99 or kind == 115 or kind == 105:
        low, high = -(high >> 1) - 1, high >> 1
    out[at] = kind
    count_at = at + 1
    at, count, begin = at + 5, np.int64(0), start + 1
    while begin < stop:
        end = begin + 1
        while end < stop and text[end] != 44:
            end += 1
        if text[begin] != 44:
            return np.int64(-1)
        if kind == FLOAT:
            number, is_usual = _float_bits(text, begin + 1, end)
        else:
            signed = _has_sign(text, begin + 1, end)
            number, decimals = _digits(text, begin + 1 + signed, end)
            number = -number if signed and text[begin + 1] == 45 else number
            is_usual = decimals == 0 and low <= number <= high
        if not is_usual:
            return np.int64(-1)
        for i in range(size):
            out[at + i] = number >> 8 * i & 255
        at += size
        count += 1
        begin = end
    put_int32(out, count_at, count)
    return at


@compiled
def _convert(text, text_offsets, ours, out, offsets):
    """Convert tags to BAM; return the first read with a problem, and the problem."""
    at = np.int64(0)
    for read in range(text_offsets.size - 1):
        start, end = text_offsets[read], text_offsets[read + 1]
        while start < end:
            stop = start
            while stop < end and text[stop] != 9:
                if text[stop] < 32 or text[stop] > 126:
                    return read, _NOT_TAGS
                stop += 1
            # A tab at the end would announce another tag.
            if stop - start < 5 or stop == end - 1:
                return read, _NOT_TAGS
            first, second, kind = text[start], text[start + 1], text[start + 3]
            if text[start + 2] != 58 or text[start + 4] != 58 or not _is_letter(first):
                return read, _NOT_TAGS
            if not _is_letter(second) and not 48 <= second <= 57:
                return read, _NOT_TAGS
            tag = np.int64(first) | np.int64(second) << 8
            if tag in ours:
                return read, _OURS_ALREADY
            start += 5
            if kind == CHARACTER:
                if stop - start != 1 or text[start] == 32:
                    return read, _NOT_TAGS
                at = put_tag(out, at, tag, kind)
                out[at] = text[start]
                at += 1
            elif kind == INTEGER:
                number, digits = np.int64(0), 0
                for i in range(start, stop):
                    if i == start and (text[i] == 45 or text[i] == 43):
                        continue
                    if not 48 <= text[i] <= 57 or digits == 10:
                        return read, _NOT_TAGS
                    number = 10 * number + text[i] - 48
                    digits += 1
                if text[start] == 45:
                    number = -number
                if digits == 0 or not -(1 << 31) <= number < 1 << 32:
                    return read, _NOT_TAGS
                at = put_integer_tag(out, at, tag, number)
            elif kind in (TEXT, HEXADECIMAL):
                if kind == HEXADECIMAL and (stop - start) % 2:
                    return read, _NOT_TAGS
                at = put_tag(out, at, tag, kind)
                for i in range(start, stop):
                    if kind == HEXADECIMAL and not (48 <= text[i] <= 57 or 65 <= text[i] <= 70):
                        return read, _NOT_TAGS
                    out[at] = text[i]
                    at += 1
                out[at] = 0
                at += 1
            elif kind == FLOAT:
                bits, is_exact = _float_bits(text, start, stop)
                if not is_exact:
                    return read, _RARE_KIND
                at = put_int32(out, put_tag(out, at, tag, kind), bits)
            elif kind == ARRAY:
                begin = at
                at = _put_array(out, put_tag(out, at, tag, kind), text, start, stop)
                if at < begin:
                    return read, _RARE_KIND
            else:
                return read, _NOT_TAGS
            start = stop + 1
        offsets[read + 1] = at
    return np.int64(-1), 0


# --------------------------------------------------------------------------------------------------
# Tags and read groups of input files in BAM or CRAM.


def with_tags_of(files: ReadFiles, output: AlignmentOutput) -> tuple[ReadFiles, AlignmentOutput]:
    """Return the same with the tags of the reads, and their read groups if none was given.

    If there is a single group, all reads belong to it; otherwise each read names its group.

    Raises
    ------
    InputError
        If two groups have the same ID.
    """
    output = replace(output, comments=True)
    if _has_group_or_none(output):
        return files, output
    lines: dict[bytes, str] = {}
    for path in filter(holds_records, files.first):
        for typed in read_groups(path):
            line, group = parse_read_group(typed)
            if lines.setdefault(group, line) != line:
                raise InputError(
                    f"{path}: read group {group.decode()!r} has a different header line in an "
                    "earlier file: give it another ID (samtools addreplacerg), or use one group "
                    "for all reads (--read-group)"
                )
    several = len(lines) > 1
    group = b"" if several else next(iter(lines), b"")
    header = "\n".join(lines.values()) or None
    return (
        replace(files, with_groups=several),
        replace(output, read_group=header, read_group_id=group),
    )


def with_tags_of_batches(folder: str | os.PathLike, output: AlignmentOutput) -> AlignmentOutput:
    """Do the same for a folder of batches, whose reads do not name their groups.

    Raises
    ------
    UsageError
        If the reads belong to several groups, and none was given.
    """
    output = replace(output, comments=True)
    if _has_group_or_none(output):
        return output
    lines = read_groups_in(folder)
    if len(lines) > 1:
        raise UsageError(
            f"{folder}: its reads have {len(lines):,} read groups, which batches do not keep: map "
            "the original files, or use one group for all reads (--read-group)"
        )
    line, group = parse_read_group(lines[0] if lines else None)
    return replace(output, read_group=line, read_group_id=group)


def _has_group_or_none(output: AlignmentOutput) -> bool:
    """Return whether a group was given, or the output format has none."""
    return bool(output.read_group) or output.path.endswith((".paf", ".paf.gz"))
