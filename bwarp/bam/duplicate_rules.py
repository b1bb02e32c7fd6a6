"""Rules of duplicate reads over BAM records, those of Picard MarkDuplicates; both engines use them.

A template is a pair with both ends mapped, or a single mapped end: a read without a mate, or with
an unmapped mate. One record defines it: the primary record of the single end, or that of the end of
a pair which comes first in a sorted file. It contains all that is needed, as MC holds the mate's
CIGAR and ms the mate's score:

    group     library of the read group, and optionally the value of a tag such as a UMI
    ends      contig, position and strand of the 5' end of each read, as if no base were clipped
    score     sum of the base qualities of both reads; qualities below 15 do not count
    location  tile, x and y in the name
    positions leftmost positions and strands of both records

Templates of the same group with the same ends are duplicates of each other. The location, and then
the positions, decide between equal scores. All records of a template have the same hash of their
name, by which their flags are set.

The functions run on both engines: they neither allocate memory nor raise exceptions.
"""

from typing import NamedTuple

import numpy as np
from numpy import int64, uint64

from bwarp.bam.fields import (
    ARRAY,
    CHARACTER,
    CONTIG_AT,
    DUPLICATE,
    FIRST,
    FIXED_BYTES,
    FLAG_AT,
    FLOAT,
    HEXADECIMAL,
    INT8,
    INT16,
    INT32,
    LENGTH_AT,
    MATE_CONTIG_AT,
    MATE_POSITION_AT,
    MATE_REVERSE,
    MATE_UNMAPPED,
    MC,
    MS,
    NAME_BYTES_AT,
    NO_QUALITY,
    OPERATIONS_AT,
    PAIRED,
    POSITION_AT,
    REVERSE,
    RG,
    SECONDARY,
    SIZE_BYTES,
    SUPPLEMENTARY,
    TEXT,
    UINT8,
    UINT16,
    UINT32,
    UNMAPPED,
)
from bwarp.bam.records import (
    consumes_reference,
    get_int16,
    get_int32,
    put_int16,
    put_int32,
    text_operation,
)
from bwarp.reference import interval_at
from bwarp.runtime.compiled_code import compiled

_COLON, _MINUS, _ZERO, _NINE = b":-09"

#: What a record is for its template: nothing, the record that defines a single end or a pair, an
#: unmapped read, or a secondary or supplementary record; or its fields are inconsistent, or it is
#: of a pair but lacks MC or ms.
NOTHING, SINGLE, PAIR, UNMAPPED_READ, NOT_PRIMARY, DAMAGED, WITHOUT_MATE = range(7)

#: Lower qualities do not count.
_LEAST_QUALITY = 15

#: Maximum score of a read, so that Picard's 16-bit score of a pair cannot overflow.
MOST_SCORE = (1 << 15) // 2 - 1

#: Bits of a position of an end, which may be before or after its contig, and what is added to it.
_POSITION_BITS, _POSITION_OFFSET = 33, 1 << 31

#: Bits of a tile, an x or a y. Picard (up to 3.4) keeps the lowest 16 bits of each as a signed
#: number; the offset gives unsigned numbers the same order.
_FIELD_BITS, _FIELD_OFFSET = 16, 1 << 15
_FIELD_MASK = (1 << _FIELD_BITS) - 1

#: Bits of tile, x and y in a location; the other bits are above them. A location without them has
#: -1 for each of the three, as in Picard, where a tile of -1 in a name also means none.
LOCATION_BITS = 3 * _FIELD_BITS
NO_TILE = _FIELD_OFFSET - 1
_NO_LOCATION = NO_TILE << 2 * _FIELD_BITS | NO_TILE << _FIELD_BITS | NO_TILE

#: Maximum number of a read group in a location; read groups with higher numbers count as one.
_MOST_READ_GROUPS = (1 << _FIELD_BITS - 1) - 1

#: The duplicate flag in the higher byte of the flags.
_DUPLICATE_BIT = DUPLICATE >> 8

#: The tag DT of a library duplicate in BAM, and its value for an optical duplicate, as in Picard.
#: To get tags, all records must end with the former (see `Marks`).
LIBRARY_TAG = np.frombuffer(b"DTZLB\0", np.uint8)
_SEQUENCING = int.from_bytes(b"SQ", "little")
_TAG_BYTES, _VALUE_AT = LIBRARY_TAG.size, 3


class Grouping(NamedTuple):
    """How templates are grouped.

    Attributes
    ----------
    read_groups : ndarray, shape=(n,), dtype=uint64
        Hashes of the IDs of the read groups, sorted.
    libraries : ndarray, shape=(n,), dtype=int64
        The number of the library of each.
    unknown_library : int
        The number of the library of all other reads.
    barcode_tag : int
        Templates with different values of this tag are not duplicates; 0 for no tag.
    """

    read_groups: "uint64[::1]"
    libraries: "int64[::1]"
    unknown_library: int
    barcode_tag: int


class Marks(NamedTuple):
    """Which records get flags and tags.

    Attributes
    ----------
    names : ndarray, dtype=uint64
        Hash table of the names of duplicates (see `bwarp.bam.duplicates.name_table`).
    optical : ndarray, dtype=uint64
        The same for optical duplicates only; used for tags.
    has_tags : int
        Whether duplicates get the tag DT. All records must end with `LIBRARY_TAG`. It is removed
        from other records: their size is reduced, and unused bytes remain after them.
    """

    names: "uint64[::1]"
    optical: "uint64[::1]"
    has_tags: int


class Template(NamedTuple):
    """What a record states of its template.

    Attributes
    ----------
    kind : int
        NOTHING to WITHOUT_MATE. Only SINGLE and PAIR have the fields other than the group; the
        group of NOTHING and DAMAGED is 0.
    name : uint64
        Hash of the name.
    group : uint64
        The number of the library in the higher half, a hash of the barcode in the lower.
    first, second : uint64
        The smaller and the larger end; the second of a single end is 0.
    score : int
    positions : uint64
        Leftmost position and strand, of the read with the smaller end in the higher half, and of
        the defining record in the lower half. They give the order in a sorted file, because
        templates with the same ends have the same contigs.
    location : uint64
        Tile, x and y of the name, in this order from the highest bits, 16 bits each. Above them are
        the read group, and whether the first read of the pair is the only reverse one; optical
        duplicates also have these in common.
    """

    kind: int
    name: int
    group: int
    first: int
    second: int
    score: int
    positions: int
    location: int


@compiled
def _without_template(kind, group):
    none = np.uint64(0)
    return Template(np.int64(kind), none, group, none, none, np.int64(0), none, none)


class _Tags(NamedTuple):
    """The tags of a record: hashes of RG and the barcode (0: none), MC's offset and ms (-1: none).

    `end` is the end of the last tag, beyond the record if it is damaged.
    """

    read_group: int
    barcode: int
    mate_cigar: int
    mate_score: int
    end: int


# --------------------------------------------------------------------------------------------------
# Hashes.


_ODD = np.uint64(0x9E3779B97F4A7C15)
_ONE, _EIGHT, _HALF = np.uint64(1), np.uint64(8), np.uint64(32)


@compiled(inline="always")
def mixed(state, word):
    """Return a state of a hash that has taken one more word, both uint64."""
    state = (state ^ word) * _ODD
    return state ^ state >> _HALF


@compiled
def hash_bytes(data, first, stop, seed):
    """Return a 64-bit hash of the bytes ``[first, stop)``, which is never 0."""
    state = mixed(np.uint64(seed), np.uint64(stop - first))
    at = np.uint64(first)
    for _ in range((stop - first) >> 3):
        word = np.uint64(0)
        for i in range(8):
            word |= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * i)
        state = mixed(state, word)
        at += _EIGHT
    word = np.uint64(0)
    for i in range((stop - first) & 7):
        word |= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * i)
    # Twice, so that the last bytes reach all bits.
    state = mixed(mixed(state, word), np.uint64(0))
    return max(state, np.uint64(1))


# --------------------------------------------------------------------------------------------------
# Tags.


@compiled
def tag_end(data, at, stop):
    """Return the end of the tag at `at`; more than `stop` if the record ends before."""
    kind = data[at + 2]
    at += 3
    if kind in (TEXT, HEXADECIMAL):
        while at < stop and data[at] != 0:
            at += 1
        return at + 1
    count = np.int64(1)
    if kind == ARRAY:
        if at + 5 > stop:
            return stop + 1
        kind = data[at]
        count = get_int32(data, at + 1) & 0xFFFFFFFF
        at += 5
    if kind in (UINT8, INT8, CHARACTER):
        return at + count
    if kind in (UINT16, INT16):
        return at + 2 * count
    if kind in (UINT32, INT32, FLOAT):
        return at + 4 * count
    return stop + 1


@compiled
def tag_integer(data, at):
    """Return the integer whose kind is at `at`, or -1 for other kinds and negative integers."""
    kind = data[at]
    if kind == UINT8 or (kind == INT8 and data[at + 1] < 128):
        return np.int64(data[at + 1])
    if kind == UINT16 or (kind == INT16 and data[at + 2] < 128):
        return get_int16(data, at + 1)
    if kind == UINT32:
        return get_int32(data, at + 1) & 0xFFFFFFFF
    if kind == INT32:
        return max(get_int32(data, at + 1), np.int64(-1))
    return np.int64(-1)


@compiled
def _read_tags(data, at, stop, barcode_tag):
    """Return the `_Tags` in the bytes ``[at, stop)`` of a record."""
    none = np.uint64(0)
    read_group, barcode = none, none
    mate_cigar, mate_score = np.int64(-1), np.int64(-1)
    while at + 3 < stop:
        end = tag_end(data, at, stop)
        if end > stop:
            return _Tags(none, none, mate_cigar, mate_score, end)
        name, kind = get_int16(data, at), data[at + 2]
        if name == MC and kind == TEXT:
            mate_cigar = at + 3
        elif name == MS:
            mate_score = tag_integer(data, at + 2)
        elif name == RG and kind == TEXT:
            read_group = hash_bytes(data, at + 3, end - 1, none)
        if name == barcode_tag:
            barcode = hash_bytes(data, at + 2, end, none)
        at = end
    return _Tags(read_group, barcode, mate_cigar, mate_score, at)


@compiled
def tags_begin(data, start):
    """Return where the tags of the record at `start` begin; maybe beyond its end if damaged."""
    at = start + SIZE_BYTES
    length = get_int32(data, at + LENGTH_AT)
    if length < 0:
        return np.int64(1) << 62
    at += FIXED_BYTES + np.int64(data[at + NAME_BYTES_AT])
    at += 4 * get_int16(data, start + SIZE_BYTES + OPERATIONS_AT)
    return at + (length + 1) // 2 + length


@compiled
def _number_of(read_group, grouping):
    """Return the number of a read group in a grouping, or -1 for others and for none."""
    number = np.int64(interval_at(grouping.read_groups, read_group))
    return number if number >= 0 and grouping.read_groups[number] == read_group else np.int64(-1)


@compiled
def _library(number, grouping):
    """Return the number of the library of a read group."""
    return np.int64(grouping.libraries[number] if number >= 0 else grouping.unknown_library)


# --------------------------------------------------------------------------------------------------
# Names.


@compiled
def _name_hash(data, start, read_group, grouping):
    """Return the hash of a record's name, and of its read group if there are several.

    Different templates have the same hash with a probability of 2^-64 per pair of templates.
    """
    at = start + SIZE_BYTES
    stop = at + FIXED_BYTES + max(np.int64(data[at + NAME_BYTES_AT]) - 1, 0)
    # As in Picard, reads of different read groups may have the same name.
    seed = read_group if grouping.read_groups.size > 1 else np.uint64(0)
    return hash_bytes(data, at + FIXED_BYTES, stop, seed)


@compiled
def record_name(data, start, grouping):
    """Return the hash of the name of the record at `start`, as in its `Template`."""
    read_group = np.uint64(0)
    if grouping.read_groups.size > 1:
        stop = start + SIZE_BYTES + get_int32(data, start)
        tags = _read_tags(data, tags_begin(data, start), stop, np.int64(0))
        read_group = tags.read_group
    return _name_hash(data, start, read_group, grouping)


@compiled
def _field(data, first, stop):
    """Return the lowest 16 bits of the number that begins the bytes ``[first, stop)``, or -1.

    Characters after the digits are ignored.
    """
    value = np.int64(-1)
    is_negative = first < stop and data[first] == _MINUS
    at = first + 1 if is_negative else first
    while at < stop and _ZERO <= data[at] <= _NINE:
        value = 10 * max(value, np.int64(0)) + np.int64(data[at]) - _ZERO & _FIELD_MASK
        at += 1
    return -value & _FIELD_MASK if is_negative and value >= 0 else value


@compiled
def _tile_x_y(data, first, stop):
    """Return the last three of 5 or 7 fields of a name, tile, x and y, packed as in a location.

    A colon at the start of a name does not begin a field. If tile, x or y is not a number, the name
    has no location.
    """
    fields = 1
    tile_at, x_at, y_at = first, first, first
    for at in range(first + 1, stop):
        if data[at] == _COLON:
            fields += 1
            tile_at, x_at, y_at = x_at, y_at, at + 1
    if fields == 5 or fields == 7:
        tile, x = _field(data, tile_at, x_at - 1), _field(data, x_at, y_at - 1)
        y = _field(data, y_at, stop)
        if tile >= 0 and x >= 0 and y >= 0:
            location = np.int64(0)
            for value in (tile, x, y):
                location = location << _FIELD_BITS | (value + _FIELD_OFFSET & _FIELD_MASK)
            return location
    return np.int64(_NO_LOCATION)


@compiled
def _location(data, start, read_group, first_is_reverse):
    """Return the location of the record at `start`, given the number of its read group."""
    at = start + SIZE_BYTES
    stop = at + FIXED_BYTES + max(np.int64(data[at + NAME_BYTES_AT]) - 1, 0)
    group = min(read_group + 1, np.int64(_MOST_READ_GROUPS))
    own = np.uint64(_tile_x_y(data, at + FIXED_BYTES, stop))
    return np.uint64(group << 1 | first_is_reverse) << np.uint64(LOCATION_BITS) | own


# --------------------------------------------------------------------------------------------------
# Ends and scores.


@compiled(inline="always")
def pack_end(contig, position, reverse):
    """Return an end as a uint64; at the same position, forward comes before reverse."""
    own = (position + _POSITION_OFFSET) & ((1 << _POSITION_BITS) - 1)
    return np.uint64(contig) << np.uint64(_POSITION_BITS + 1) | np.uint64(own << 1 | reverse)


@compiled
def _own_end(data, start, contig, position, reverse):
    """Return the 5' end of the record at `start`, from its CIGAR."""
    at = start + SIZE_BYTES
    count = get_int16(data, at + OPERATIONS_AT)
    at += FIXED_BYTES + np.int64(data[at + NAME_BYTES_AT])
    before, span, after = np.int64(0), np.int64(0), np.int64(0)
    for i in range(count):
        value = get_int32(data, at + 4 * i) & 0xFFFFFFFF
        kind = value & 15
        if consumes_reference(kind):
            span += value >> 4
        elif kind == 4 or kind == 5:
            if span == 0:
                before += value >> 4
            else:
                after += value >> 4
    return pack_end(contig, position + span + after - 1 if reverse else position - before, reverse)


@compiled
def _mate_end(data, at, contig, position, reverse):
    """Return the 5' end of the mate, from its CIGAR in the text at `at`, which ends with 0."""
    before, span, after = np.int64(0), np.int64(0), np.int64(0)
    while data[at] != 0:
        length, kind, at = text_operation(data, at)
        if consumes_reference(kind):
            span += length
        elif kind == 4 or kind == 5:
            if span == 0:
                before += length
            else:
                after += length
    return pack_end(contig, position + span + after - 1 if reverse else position - before, reverse)


@compiled(inline="always")
def _stranded(position, reverse):
    """Return a position of a record with its strand as the lower half of a uint64."""
    return np.uint64(position << 1 & 0xFFFFFFFF | reverse)


@compiled(inline="always")
def counted_quality(quality):
    """Return what a base quality as in BAM adds to the score of its read."""
    return quality if _LEAST_QUALITY <= quality < NO_QUALITY else np.int64(0)


@compiled
def _score(data, first, stop):
    """Return the score of a read with the qualities ``[first, stop)``."""
    total = np.int64(0)
    for i in range(np.uint64(first), np.uint64(stop)):
        total += counted_quality(np.int64(data[i]))
    return min(total, np.int64(MOST_SCORE))


@compiled
def read_template(data, start, grouping):
    """Return the `Template` of the record at `start`, which is complete at least up to its name.

    Parameters
    ----------
    data : array, dtype=uint8
        Records.
    start : int64
    grouping : Grouping
    """
    none = np.uint64(0)
    at = start + SIZE_BYTES
    stop = at + get_int32(data, start)
    flag = get_int16(data, at + FLAG_AT)
    is_primary = flag & (SECONDARY | SUPPLEMENTARY) == 0
    is_pair = flag & PAIRED != 0 and flag & MATE_UNMAPPED == 0
    contig = get_int32(data, at + CONTIG_AT)
    position = get_int32(data, at + POSITION_AT)
    reverse = np.int64(flag & REVERSE != 0)
    mate_contig = get_int32(data, at + MATE_CONTIG_AT)
    mate_position = get_int32(data, at + MATE_POSITION_AT)
    mate_reverse = np.int64(flag & MATE_REVERSE != 0)
    is_mapped = flag & UNMAPPED == 0 and contig >= 0
    if is_primary and is_mapped and is_pair and mate_contig >= 0:
        # Whether the mate comes first in a sorted file.
        differs = mate_contig - contig
        if differs == 0:
            differs = mate_position - position
        if differs == 0:
            differs = mate_reverse - reverse
        if differs < 0 or (differs == 0 and flag & FIRST == 0):
            return _without_template(NOTHING, none)
    tags_at = tags_begin(data, start)
    tags = _read_tags(data, tags_at, stop, np.int64(grouping.barcode_tag))
    if tags_at > stop or tags.end > stop:
        return _without_template(DAMAGED, none)
    read_group = _number_of(tags.read_group, grouping)
    group = np.uint64(_library(read_group, grouping)) << _HALF | tags.barcode >> _HALF
    if not is_mapped:
        return _without_template(UNMAPPED_READ, group)
    if not is_primary:
        return _without_template(NOT_PRIMARY, group)
    name = _name_hash(data, start, tags.read_group, grouping)
    first = _own_end(data, start, contig, position, reverse)
    score = _score(data, tags_at - get_int32(data, at + LENGTH_AT), tags_at)
    own = _stranded(position, reverse)
    if not is_pair:
        location = _location(data, start, read_group, np.int64(0))
        positions = own << _HALF | own
        return Template(np.int64(SINGLE), name, group, first, none, score, positions, location)
    if mate_contig < 0 or tags.mate_cigar < 0 or tags.mate_score < 0:
        return _without_template(WITHOUT_MATE, group)
    second = _mate_end(data, tags.mate_cigar, mate_contig, mate_position, mate_reverse)
    score += min(tags.mate_score, np.int64(MOST_SCORE))
    # At the same position, Picard takes the read that comes first, whatever its strand.
    begins = first >> _ONE <= second >> _ONE
    positions = (own if begins else _stranded(mate_position, mate_reverse)) << _HALF | own
    of_first = reverse if flag & FIRST != 0 else mate_reverse
    location = _location(data, start, read_group, of_first & ~(reverse & mate_reverse))
    first, second = min(first, second), max(first, second)
    return Template(np.int64(PAIR), name, group, first, second, score, positions, location)


# --------------------------------------------------------------------------------------------------
# Flags and tags.


@compiled
def slot_of(table, number):
    """Return the slot of a hash table that holds a number, or the empty slot for it.

    The size of the table is a power of two; empty slots are 0.
    """
    mask = np.uint64(table.size - 1)
    slot = number & mask
    while table[slot] != 0 and table[slot] != number:
        slot = (slot + np.uint64(1)) & mask
    return slot


@compiled
def is_listed(names, name):
    """Return whether a name is in the table of `bwarp.bam.duplicates.name_table`."""
    return names[slot_of(names, name)] != 0


@compiled
def mark_record(data, start, grouping, marks):
    """Set the duplicate flag of the record at `start` if it is mapped and its name is in the table
    ``marks.names``; else clear it. With tags, call it only once per record."""
    at = start + SIZE_BYTES + FLAG_AT
    flag = get_int16(data, at)
    is_duplicate, name = False, np.uint64(0)
    if flag & UNMAPPED == 0:
        name = record_name(data, start, grouping)
        is_duplicate = is_listed(marks.names, name)
    # In NumPy's types, so that the byte keeps its type.
    others = np.int64(data[at + 1]) & ~_DUPLICATE_BIT
    data[at + 1] = others | (_DUPLICATE_BIT if is_duplicate else 0)
    if marks.has_tags:
        size = get_int32(data, start)
        if not is_duplicate:
            put_int32(data, start, size - _TAG_BYTES)
        elif is_listed(marks.optical, name):
            put_int16(data, start + SIZE_BYTES + size - _TAG_BYTES + _VALUE_AT, _SEQUENCING)
