"""Counts of sorted BAM records, from which the texts of samtools and mosdepth are written.

    records of a job -> tables of counts, to which any number of jobs add
                     -> lengths of the reads
                     -> events: where stretches of aligned bases begin and end, for depths

The counts are those of `samtools flagstat`, `idxstats` and `stats`, which define the records that
each includes. Secondary records count only in the first two.

Positions in events are those in the concatenated contigs of the header. Each contig is followed by
one extra position, so that its end is not the start of the next. An event is twice its position,
plus 1 if a stretch begins there.

There are two kinds of events, with different records and rules for overlapping mates:

    coverage    samtools stats: all mapped records that are not secondary
    depth       mosdepth: without QC failures and duplicates; bases that both mates of a proper
                pair cover count once
"""

from typing import NamedTuple

import numpy as np

from bwarp.bam.duplicate_rules import tag_end, tag_integer
from bwarp.bam.fields import (
    DUPLICATE,
    FIRST,
    FIXED_BYTES,
    FLAG_AT,
    LAST,
    LENGTH_AT,
    MATE_CONTIG_AT,
    MATE_POSITION_AT,
    MATE_REVERSE,
    MATE_UNMAPPED,
    MC,
    NAME_BYTES_AT,
    NM,
    OPERATIONS_AT,
    PAIRED,
    POSITION_AT,
    PROPER,
    QC_FAILED,
    QUALITY_AT,
    REVERSE,
    SECONDARY,
    SIZE_BYTES,
    SUPPLEMENTARY,
    TEMPLATE_LENGTH_AT,
    TEXT,
    UNMAPPED,
)
from bwarp.bam.records import (
    END_OF_CIGAR,
    consumes_reference,
    get_int16,
    get_int32,
    put_int32,
    text_operation,
)
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

#: Rows of `Counts.flags`.
(
    READS, PRIMARY, NOT_PRIMARY, SPLIT, COPIES, PRIMARY_COPIES, MAPPED, PRIMARY_MAPPED, IN_PAIRS,
    FIRST_READS, LAST_READS, PROPER_PAIRS, BOTH_MAPPED, SINGLETONS, OTHER_CONTIG,
    SURELY_OTHER_CONTIG,
) = range(16)  # fmt: skip

#: Rows of `Counts.numbers`; the first three are indexed by the read of the pair.
(
    FIRST_FRAGMENTS, LAST_FRAGMENTS, OTHER_FRAGMENTS, FIRST_LENGTH, LAST_LENGTH, OTHER_LENGTH,
    MAPPED_PAIRED, MAPPED_SINGLE, UNMAPPED_READS, PROPERLY_PAIRED, PAIRED_READS, DUPLICATES,
    DUPLICATE_LENGTH, QUALITY_0, FAILED, SECONDARY_RECORDS, SUPPLEMENTARY_RECORDS, MAPPED_LENGTH,
    ALIGNED_BASES, EDITS, DIFFERENT_CONTIGS,
) = range(21)  # fmt: skip

#: The read of a pair to which a record belongs; a read without a mate counts as the first.
FIRST_READ, LAST_READ, OTHER_READ = range(3)

#: Rows of `Counts.insert_sizes`.
INWARD, OUTWARD, OTHER_ORIENTATION = range(3)

#: Sizes of histograms of samtools stats: insert sizes up to 8,000, and shares of G and C; it does
#: not count indels longer than 300 bases.
MOST_INSERT_SIZE, GC_BINS, MOST_INDEL = 8000, 200, 300

#: Problems of a record: none, its fields are inconsistent, or it has no MC although it and its mate
#: may overlap.
NOTHING, DAMAGED, WITHOUT_MATE = range(3)

#: Records with one of these flags do not count for depths.
_NOT_DEEP = UNMAPPED | SECONDARY | QC_FAILED | DUPLICATE


class Counts(NamedTuple):
    """Tables to which `count_records` adds, all int64.

    Attributes
    ----------
    flags : ndarray, shape=(2, 16)
        The numbers of samtools flagstat, for records without and with a QC failure.
    contigs : ndarray, shape=(n_contigs + 1, 2)
        Mapped and unmapped records of each contig, and in the last row those without a contig.
    numbers : ndarray, shape=(21,)
        Numbers for the section SN of samtools stats.
    bases : ndarray, shape=(6, cycles, 16)
        Bases by their code in BAM, per cycle; forward records of the first reads, reverse ones of
        the first reads, then those of the last and of other reads.
    qualities : ndarray, shape=(3, 256, cycles)
        Qualities per cycle of first, last and other reads. The cycles of a quality are next to each
        other, because rows of 2,048 bytes per cycle would compete for few lines of the cache.
    gc : ndarray, shape=(3, GC_BINS)
        Reads by their share of G and C.
    insert_sizes : ndarray, shape=(3, MOST_INSERT_SIZE + 1)
        Reads by insert size and orientation.
    mapping_qualities : ndarray, shape=(256,)
    indels : ndarray, shape=(2, MOST_INDEL + 1)
        Insertions and deletions by length.
    indel_cycles : ndarray, shape=(2, 3, cycles + 1)
        Insertions and deletions of first, last and other reads per cycle.
    """

    flags: np.ndarray
    contigs: np.ndarray
    numbers: np.ndarray
    bases: np.ndarray
    qualities: np.ndarray
    gc: np.ndarray
    insert_sizes: np.ndarray
    mapping_qualities: np.ndarray
    indels: np.ndarray
    indel_cycles: np.ndarray


def empty_counts(n_contigs: int, cycles: int) -> Counts:
    """Return tables of zeros for reads of up to `cycles` bases."""
    shapes = (
        (2, 16), (n_contigs + 1, 2), (21,), (6, cycles, 16), (3, 256, cycles), (3, GC_BINS),
        (3, MOST_INSERT_SIZE + 1), (256,), (2, MOST_INDEL + 1), (2, 3, cycles + 1),
    )  # fmt: skip
    return Counts(*(np.zeros(shape, np.int64) for shape in shapes))


def add_counts(total: Counts, counts: Counts) -> Counts:
    """Return the sums of two sets of tables, which may be for reads of different lengths."""
    if counts.bases.shape[1] > total.bases.shape[1]:
        total, counts = counts, total
    for table, more in zip(total, counts, strict=True):
        table[tuple(map(slice, more.shape))] += more
    return total


# --------------------------------------------------------------------------------------------------
# Fields of a record.


class _Fields(NamedTuple):
    """Fixed fields of a record, and the offsets of its CIGAR, bases, qualities, tags and end."""

    flag: int
    contig: int
    position: int
    mate_contig: int
    mate_position: int
    insert_size: int
    mapping_quality: int
    length: int
    operations: int
    cigar: int
    bases: int
    qualities: int
    tags: int
    stop: int


@compiled
def _read_fields(data, start):
    at = start + SIZE_BYTES
    length = get_int32(data, at + LENGTH_AT)
    operations = get_int16(data, at + OPERATIONS_AT)
    cigar = at + FIXED_BYTES + np.int64(data[at + NAME_BYTES_AT])
    bases = cigar + 4 * operations
    qualities = bases + (length + 1) // 2
    return _Fields(
        get_int16(data, at + FLAG_AT),
        get_int32(data, at),
        get_int32(data, at + POSITION_AT),
        get_int32(data, at + MATE_CONTIG_AT),
        get_int32(data, at + MATE_POSITION_AT),
        get_int32(data, at + TEMPLATE_LENGTH_AT),
        np.int64(data[at + QUALITY_AT]),
        length,
        operations,
        cigar,
        bases,
        qualities,
        qualities + length,
        at + get_int32(data, start),
    )


@compiled
def _read_edits_and_mate(data, tags, stop):
    """Return NM (0 without one), the offset of the text of MC (-1 without one), and the end of the
    last tag, which is beyond `stop` if the record is damaged."""
    edits, mate_cigar, at = np.int64(0), np.int64(-1), tags
    has_edits = False
    while at + 3 < stop:
        end = tag_end(data, at, stop)
        if end > stop:
            return edits, mate_cigar, end
        name = get_int16(data, at)
        if name == NM and not has_edits:
            edits, has_edits = max(tag_integer(data, at + 2), np.int64(0)), True
        elif name == MC and data[at + 2] == TEXT:
            mate_cigar = at + 3
        at = end
    return edits, mate_cigar, at


# --------------------------------------------------------------------------------------------------
# Aligned stretches: bases of a record aligned to bases of the reference without a gap between them.


@compiled
def _next_stretch(data, at, stop, position):
    """Return the next stretch of a CIGAR in BAM: its start and end on the reference, and the offset
    and the position after it. The stretch is empty after the last one."""
    begin = end = position
    while at < stop:
        value = get_int32(data, at) & 0xFFFFFFFF
        kind, length = value & 15, value >> 4
        if kind == 0 or kind == 7 or kind == 8:
            if begin == end:
                begin = position
            position += length
            end = position
        elif kind == 2 or kind == 3:
            if begin < end and length > 0:
                break
            position += length
        at += 4
    return begin, end, at, position


@compiled
def _operations_of_text(data, at):
    """Convert the text of a CIGAR, which ends with 0, to its form in BAM."""
    size = np.int64(0)
    while data[at + size] != 0:
        size += 1
    cigar = np.empty(4 * size, np.uint8)
    used = np.int64(0)
    while data[at] != 0:
        length, kind, at = text_operation(data, at)
        if kind != END_OF_CIGAR:
            put_int32(cigar, used, length << 4 | kind)
            used += 4
    return cigar[:used]


@compiled
def _put_event(events, used, position, limit, begins):
    """Write an event; `limit` is the end of the contig."""
    events[used] = min(position, limit) << 1 | begins
    return used + 1


@compiled
def _put_stretches(data, record, offset, limit, events, used):
    """Write the events of the stretches of a record."""
    at, stop, position = record.cigar, record.bases, record.position
    while True:
        begin, end, at, position = _next_stretch(data, at, stop, position)
        if begin == end:
            return used
        used = _put_event(events, used, offset + begin, limit, 1)
        used = _put_event(events, used, offset + end, limit, 0)


@compiled
def _put_overlaps(data, record, mate_cigar, offset, limit, events, used):
    """Write events that lower the depth by 1 where a record and its later mate overlap.

    As in mosdepth: if both CIGARs have a single operation, the mate is assumed to end last.
    """
    at, stop = record.cigar, record.bases
    begin, end, at, position = _next_stretch(data, at, stop, record.position)
    mate = _operations_of_text(data, mate_cigar)
    if record.operations == 1 and mate.size == 4:
        used = _put_event(events, used, offset + record.mate_position, limit, 0)
        return _put_event(events, used, offset + end, limit, 1)
    mate_begin, mate_end, mate_at, mate_position = _next_stretch(
        mate, 0, mate.size, record.mate_position
    )
    while begin < end and mate_begin < mate_end:
        first, last = max(begin, mate_begin), min(end, mate_end)
        if first < last:
            used = _put_event(events, used, offset + first, limit, 0)
            used = _put_event(events, used, offset + last, limit, 1)
        if end < mate_end:
            begin, end, at, position = _next_stretch(data, at, stop, position)
        else:
            mate_begin, mate_end, mate_at, mate_position = _next_stretch(
                mate, mate_at, mate.size, mate_position
            )
    return used


@compiled
def _reaches_later_mate(data, record):
    """Return whether a record of a proper pair comes before its mate and may overlap it."""
    flag, position = record.flag, record.position
    if flag & PROPER == 0 or flag & SUPPLEMENTARY != 0 or record.contig != record.mate_contig:
        return False
    if position > record.mate_position:
        return False
    span = np.int64(0)
    for at in range(record.cigar, record.bases, 4):
        value = get_int32(data, at) & 0xFFFFFFFF
        kind = value & 15
        if consumes_reference(kind):
            span += value >> 4
    if position + max(span, np.int64(1)) <= record.mate_position:
        return False
    if position < record.mate_position:
        return True
    # The order of the file: forward first, then usually the first read.
    is_reverse, mate_is_reverse = flag & REVERSE != 0, flag & MATE_REVERSE != 0
    return mate_is_reverse if is_reverse != mate_is_reverse else flag & FIRST != 0


# --------------------------------------------------------------------------------------------------
# Counts of one record.


@compiled
def _count_flags(record, counts):
    """Count a record as samtools flagstat and idxstats do."""
    flag = record.flag
    is_mapped, is_copy = flag & UNMAPPED == 0, flag & DUPLICATE != 0
    row = counts.flags[np.int64(flag & QC_FAILED != 0)]
    row[READS] += 1
    row[MAPPED] += is_mapped
    row[COPIES] += is_copy
    counts.contigs[record.contig, np.int64(not is_mapped)] += 1
    if flag & SECONDARY:
        row[NOT_PRIMARY] += 1
        return
    if flag & SUPPLEMENTARY:
        row[SPLIT] += 1
        return
    row[PRIMARY] += 1
    row[PRIMARY_MAPPED] += is_mapped
    row[PRIMARY_COPIES] += is_copy
    if flag & PAIRED == 0:
        return
    row[IN_PAIRS] += 1
    row[FIRST_READS] += flag & FIRST != 0
    row[LAST_READS] += flag & LAST != 0
    if not is_mapped:
        return
    row[PROPER_PAIRS] += flag & PROPER != 0
    if flag & MATE_UNMAPPED:
        row[SINGLETONS] += 1
        return
    row[BOTH_MAPPED] += 1
    if record.contig != record.mate_contig:
        row[OTHER_CONTIG] += 1
        row[SURELY_OTHER_CONTIG] += record.mapping_quality >= 5


@compiled
def _cycles(length, is_reverse):
    """Return the cycle of the first base of a record, and the step to that of the next base.

    Both are unsigned, so that indexes need no test for negative numbers; steps of -1 wrap around.
    """
    if is_reverse:
        return np.uint64(length - 1), np.uint64(-1)
    return np.uint64(0), np.uint64(1)


@compiled
def _count_bases(data, at, length, is_reverse, table):
    """Add the bases at `at` to a table (cycles, 16); return how many are G or C."""
    gc = np.int64(0)
    cycle, step = _cycles(length, is_reverse)
    for i in range(np.uint64(at), np.uint64(at + length // 2)):
        first, second = np.uint64(data[i] >> 4), np.uint64(data[i] & 15)
        table[cycle, first] += 1
        table[cycle + step, second] += 1
        gc += _is_gc(first) + _is_gc(second)
        cycle += step + step
    if length & 1:
        last = np.uint64(data[at + length // 2] >> 4)
        table[cycle, last] += 1
        gc += _is_gc(last)
    return gc


@compiled
def _is_gc(code):
    return np.int64(code == 2) + np.int64(code == 4)


@compiled
def _count_qualities(data, at, length, is_reverse, table):
    """Add the qualities at `at` to a table (256, cycles)."""
    cycle, step = _cycles(length, is_reverse)
    for i in range(np.uint64(at), np.uint64(at + length)):
        table[np.uint64(data[i]), cycle] += 1
        cycle += step


@compiled
def _count_read(data, record, read, counts):
    """Count a record that is neither secondary nor supplementary, by its bases and flags."""
    flag, length = record.flag, record.length
    is_reverse = flag & REVERSE != 0
    numbers = counts.numbers
    numbers[FIRST_FRAGMENTS + read] += 1
    numbers[FIRST_LENGTH + read] += length
    numbers[FAILED] += flag & QC_FAILED != 0
    numbers[PAIRED_READS] += flag & PAIRED != 0
    table = counts.bases[2 * read + np.int64(is_reverse)]
    gc = _count_bases(data, record.bases, length, is_reverse, table)
    for share in range(
        gc * (GC_BINS - 1) // length, min((gc + 1) * (GC_BINS - 1) // length, GC_BINS - 1)
    ):
        counts.gc[read, share] += 1
    _count_qualities(data, record.qualities, length, is_reverse, counts.qualities[read])
    if flag & UNMAPPED:
        numbers[UNMAPPED_READS] += 1
        return
    numbers[MAPPED_LENGTH] += length
    numbers[QUALITY_0] += record.mapping_quality == 0
    if flag & PAIRED == 0 or flag & MATE_UNMAPPED != 0:
        numbers[MAPPED_SINGLE] += 1
        return
    numbers[MAPPED_PAIRED] += 1
    numbers[PROPERLY_PAIRED] += flag & PROPER != 0
    numbers[DIFFERENT_CONTIGS] += record.contig != record.mate_contig
    size = min(abs(record.insert_size), MOST_INSERT_SIZE)
    if size > 0 or record.contig == record.mate_contig:
        counts.insert_sizes[_orientation(record), size] += 1


@compiled
def _orientation(record):
    flag = record.flag
    is_forward = flag & REVERSE == 0
    if is_forward == (flag & MATE_REVERSE == 0):
        return np.int64(OTHER_ORIENTATION)
    distance = record.mate_position - record.position
    if distance == 0:
        return np.int64(INWARD)
    is_first = flag & FIRST != 0
    comes_first = (distance > 0) == is_first
    return np.int64(INWARD if comes_first == (is_first == is_forward) else OUTWARD)


@compiled
def _count_operations(data, record, read, counts):
    """Count aligned bases, insertions and deletions."""
    is_reverse = record.flag & REVERSE != 0
    done = np.int64(0)
    for at in range(record.cigar, record.bases, 4):
        value = get_int32(data, at) & 0xFFFFFFFF
        kind, length = value & 15, value >> 4
        if kind == 0 or kind == 1 or kind == 7 or kind == 8:
            counts.numbers[ALIGNED_BASES] += length
        if (kind == 1 or kind == 2) and length > 0:
            cycle = done - (kind == 2)
            if is_reverse:
                cycle = record.length - done - (length if kind == 1 else 1)
            # A gap before the first base has no cycle.
            if 0 <= cycle <= record.length:
                counts.indel_cycles[kind - 1, read, cycle] += 1
                if length <= MOST_INDEL:
                    counts.indels[kind - 1, length] += 1
        if kind == 0 or kind == 1 or kind == 4 or kind == 7 or kind == 8:
            done += length


@compiled
def _unclipped_length(data, record):
    """Return the number of bases of a read, including hard-clipped ones."""
    length = record.length
    for at in range(record.cigar, record.bases, 4):
        value = get_int32(data, at) & 0xFFFFFFFF
        if value & 15 == 5:
            length += value >> 4
    return length


# --------------------------------------------------------------------------------------------------
# Records.


@compiled
def longest_read(data, starts):
    """Return the maximum number of bases of records that are neither secondary nor damaged."""
    longest = np.int64(0)
    for start in starts:
        flag = get_int16(data, start + SIZE_BYTES + FLAG_AT)
        length = get_int32(data, start + SIZE_BYTES + LENGTH_AT)
        if flag & SECONDARY == 0 and length <= get_int32(data, start):
            longest = max(longest, length)
    return longest


def pack_length(length: int, read: int, is_original: bool) -> int:
    """Return an item of `lengths` of `count_records`."""
    return length << 3 | read << 1 | is_original


_pack_length = compiled(pack_length)


@compiled
def _with_room(events, used, room):
    if used + room <= events.size:
        return events
    larger = np.empty(2 * events.size + room, np.int64)
    larger[:used] = events[:used]
    return larger


@compiled
def count_records(data, starts, counts, offsets):
    """Count records.

    Parameters
    ----------
    data : ndarray, dtype=uint8
    starts : ndarray, shape=(n,), dtype=int64
        Starts of the records in `data`.
    counts : Counts
        Tables to which the counts are added.
    offsets : ndarray, shape=(n_contigs + 1,), dtype=int64
        Starts of the contigs in positions of events, and the end of the last.

    Returns
    -------
    lengths : ndarray, dtype=int64
        Unclipped length, read and kind of each read, as by `pack_length`.
    coverage, depth : ndarray, dtype=int64
        Events, in the order of the records.
    problem : int
        NOTHING, DAMAGED or WITHOUT_MATE.
    """
    counts = uncounted(counts)
    numbers = counts.numbers
    lengths = np.empty(starts.size, np.int64)
    coverage = np.empty(4 * starts.size + 64, np.int64)
    depth = np.empty(6 * starts.size + 64, np.int64)
    n_lengths = n_coverage = n_depth = 0
    problem = NOTHING
    for start in starts:
        record = _read_fields(data, start)
        flag, length, contig = record.flag, record.length, record.contig
        is_damaged = length < 0 or record.tags > record.stop or contig < -1
        if is_damaged or contig >= offsets.size - 1:
            problem = DAMAGED
            break
        _count_flags(record, counts)
        if flag & SECONDARY:
            numbers[SECONDARY_RECORDS] += 1
            continue
        is_original = flag & SUPPLEMENTARY == 0
        numbers[SUPPLEMENTARY_RECORDS] += not is_original
        read = FIRST_READ
        if flag & PAIRED:
            read = LAST_READ if flag & LAST else FIRST_READ
            if (flag & FIRST != 0) == (flag & LAST != 0):
                read = OTHER_READ
        is_mapped = flag & UNMAPPED == 0
        edits, mate_cigar, end = _read_edits_and_mate(data, record.tags, record.stop)
        if end > record.stop:
            problem = DAMAGED
            break
        if length > 0:
            numbers[DUPLICATES] += flag & DUPLICATE != 0
            numbers[DUPLICATE_LENGTH] += length if flag & DUPLICATE else 0
            lengths[n_lengths] = _pack_length(_unclipped_length(data, record), read, is_original)
            n_lengths += 1
            if flag & (UNMAPPED | SUPPLEMENTARY | QC_FAILED | DUPLICATE) == 0:
                counts.mapping_qualities[record.mapping_quality] += 1
            if is_original:
                _count_read(data, record, read, counts)
        if not is_mapped or contig < 0:
            continue
        offset = offsets[contig]
        limit = offsets[contig + 1] - 1
        room = 4 * record.operations + record.stop - start
        if length > 0:
            numbers[EDITS] += edits
            _count_operations(data, record, read, counts)
            coverage = _with_room(coverage, n_coverage, room)
            n_coverage = _put_stretches(data, record, offset, limit, coverage, n_coverage)
        if flag & _NOT_DEEP:
            continue
        depth = _with_room(depth, n_depth, room)
        n_depth = _put_stretches(data, record, offset, limit, depth, n_depth)
        if _reaches_later_mate(data, record):
            if mate_cigar < 0:
                problem = WITHOUT_MATE
                break
            n_depth = _put_overlaps(data, record, mate_cigar, offset, limit, depth, n_depth)
    return lengths[:n_lengths], coverage[:n_coverage], depth[:n_depth], problem
