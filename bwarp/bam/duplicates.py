"""Finding and flagging duplicate reads: all but the best of templates with the same ends.

    records -> templates, one row each -> duplicates -> table of their names
    records -----------------------------------------------> the same records with flags

`bwarp.bam.duplicate_rules` has the rules over single records. Among templates with the same group
and ends, the one with the highest score is the best; among equal scores, the one whose defining
record comes first in the sorted file. Single ends are compared with each other, and all of them are
duplicates if any pair of their group has the same end.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numba import int32, uint64

from bwarp.bam.duplicate_rules import (
    DAMAGED,
    NOT_PRIMARY,
    NOTHING,
    PAIR,
    SINGLE,
    UNMAPPED_READ,
    WITHOUT_MATE,
    Grouping,
    flag_duplicate,
    hash_bytes,
    is_listed,
    mixed,
    read_template,
    slot_of,
)
from bwarp.bam.fields import tag
from bwarp.bam.header import BamHeader
from bwarp.bam.records import Records
from bwarp.bam.sort_keys import sorted_order
from bwarp.errors import InputError
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted

#: Name of the library of reads without one, as in Picard.
UNKNOWN_LIBRARY = "Unknown Library"


class Templates(NamedTuple):
    """Templates, in the order of the input; see `bwarp.bam.duplicate_rules.Template`.

    Attributes
    ----------
    names, groups, first, second : ndarray, shape=(n,), dtype=uint64
        The second end of a single end is 0.
    scores : ndarray, shape=(n,), dtype=int32
    sort_keys : ndarray, shape=(n,), dtype=uint64
        Sort keys of the defining records.
    """

    names: uint64[::1]
    groups: uint64[::1]
    first: uint64[::1]
    second: uint64[::1]
    scores: int32[::1]
    sort_keys: uint64[::1]


_TYPES = (np.uint64, np.uint64, np.uint64, np.uint64, np.int32, np.uint64)


def empty_templates(count: int) -> Templates:
    """Return a table of `count` rows with arbitrary content."""
    return Templates(*(np.empty(count, dtype) for dtype in _TYPES))


# --------------------------------------------------------------------------------------------------
# Read groups and libraries.


def grouping_of(header: BamHeader, barcode_tag: str | None = None) -> tuple[Grouping, list[str]]:
    """Return the grouping of the records of a file, and the names of its libraries.

    Reads without a read group, or of a read group without a library, are from the last library.
    """
    library_of = {}
    for line in header.text.splitlines():
        if line.startswith(b"@RG\t"):
            fields = dict(field.split(b":", 1) for field in line.split(b"\t")[1:] if b":" in field)
            name = fields.get(b"LB", UNKNOWN_LIBRARY.encode()).decode(errors="replace")
            library_of[_hash_of(fields.get(b"ID", b""))] = name
    libraries = [name for name in dict.fromkeys(library_of.values()) if name != UNKNOWN_LIBRARY]
    libraries.append(UNKNOWN_LIBRARY)
    read_groups = sorted(library_of)
    numbers = [libraries.index(library_of[group]) for group in read_groups]
    grouping = Grouping(
        np.array(read_groups, np.uint64), np.array(numbers, np.int64), len(libraries) - 1,
        int(tag(barcode_tag)) if barcode_tag else 0,
    )  # fmt: skip
    return grouping, libraries


def _hash_of(text: bytes) -> int:
    return int(hash_bytes(read_only(np.frombuffer(text, np.uint8)), 0, len(text), np.uint64(0)))


# --------------------------------------------------------------------------------------------------
# Records to templates.


@compiled
def _list_templates(data, starts, keys, grouping, templates, others):
    """Fill `templates` from records, and count in `others` (n_libraries, 2) those that are unmapped
    and those that are secondary or supplementary.

    Stop at a record with a problem; return the number of templates, and the problem or NOTHING.
    """
    data, grouping, templates = uncounted((data, grouping, templates))
    names, groups, first, second, scores, sort_keys = templates
    count = 0
    for i in range(keys.size):
        found = read_template(data, starts[i], grouping)
        if found.kind == SINGLE or found.kind == PAIR:
            names[count] = found.name
            groups[count] = found.group
            first[count] = found.first
            second[count] = found.second
            scores[count] = found.score
            sort_keys[count] = keys[i]
            count += 1
        elif found.kind == UNMAPPED_READ or found.kind == NOT_PRIMARY:
            others[found.group >> np.uint64(32), np.int64(found.kind == NOT_PRIMARY)] += 1
        elif found.kind == DAMAGED or found.kind == WITHOUT_MATE:
            return count, found.kind
    return count, np.int64(NOTHING)


# --------------------------------------------------------------------------------------------------
# Templates to duplicates.
#
# Templates with the same hash of group and ends are neighbours in the order of the hashes. The hash
# is short, so that sorting takes few passes; therefore the keys themselves are compared as well.


_HASH_BITS = 33

#: Minimum number of templates of a thread.
_LEAST = 1 << 14


@on_timeline("find duplicates")
def find_duplicates(templates: Templates, threads: int = 1) -> np.ndarray:
    """Return whether each template is a duplicate, shape=(n,), dtype=bool.

    The order of the rows matters only among templates with the same sort key.
    """
    count = templates.names.size
    is_duplicate = np.zeros(count, bool)
    hashes = np.empty(count, np.uint64)
    singles = for_each_range(
        lambda first, stop: _hash_keys(templates, first, stop, hashes), count, threads, _LEAST
    )
    n_singles = sum(singles)
    if 0 < n_singles < count:
        _mark_singles_at_pairs(templates, n_singles, is_duplicate, threads)
    order = sorted_order(hashes, threads)
    for_each_range(
        lambda first, stop: _mark_worse(templates, hashes, order, first, stop, is_duplicate),
        count, threads, _LEAST,
    )  # fmt: skip
    return is_duplicate


def _mark_singles_at_pairs(templates, n_singles: int, is_duplicate, threads: int) -> None:
    """Mark single ends at which a pair ends.

    The table holds hashes of single ends. Two different ends have the same hash with a probability
    of 2^-64.
    """
    table = np.zeros(_slots(n_singles), np.uint64)
    _list_singles(templates, table)
    has_pair = np.zeros(table.size, bool)
    count = templates.names.size
    for_each_range(
        lambda first, stop: _find_pairs(templates, first, stop, table, has_pair),
        count, threads, _LEAST,
    )  # fmt: skip
    for_each_range(
        lambda first, stop: _mark_singles(templates, first, stop, table, has_pair, is_duplicate),
        count, threads, _LEAST,
    )  # fmt: skip


def _slots(count: int) -> int:
    """Return the size of a hash table of `count` keys: a power of two, at most half full."""
    return 1 << (2 * count).bit_length()


@compiled(inline="always")
def _key_hash(group, first, second):
    """Return a hash of a key, which is not 0."""
    return max(mixed(mixed(mixed(np.uint64(0), group), first), second), np.uint64(1))


@compiled
def _hash_keys(templates, first_row, stop_row, hashes):
    """Write the hashes of the keys of some rows, and return the number of single ends."""
    templates = uncounted(templates)
    groups, first, second = templates.groups, templates.first, templates.second
    singles = 0
    for row in range(first_row, stop_row):
        singles += second[row] == 0
        hashes[row] = _key_hash(groups[row], first[row], second[row]) >> np.uint64(64 - _HASH_BITS)
    return singles


@compiled
def _list_singles(templates, table):
    """Put all single ends into a hash table."""
    templates = uncounted(templates)
    for row in range(templates.names.size):
        if templates.second[row] == 0:
            end = _key_hash(templates.groups[row], templates.first[row], np.uint64(0))
            table[slot_of(table, end)] = end


@compiled
def _find_pairs(templates, first_row, stop_row, table, has_pair):
    """Mark the slots of single ends at which pairs among some rows end."""
    templates, table = uncounted((templates, table))
    for row in range(first_row, stop_row):
        if templates.second[row] != 0:
            for end in (templates.first[row], templates.second[row]):
                slot = slot_of(table, _key_hash(templates.groups[row], end, np.uint64(0)))
                if table[slot] != 0:
                    has_pair[slot] = True


@compiled
def _mark_singles(templates, first_row, stop_row, table, has_pair, is_duplicate):
    """Mark the single ends among some rows whose slots have a pair."""
    templates, table = uncounted((templates, table))
    for row in range(first_row, stop_row):
        if templates.second[row] == 0:
            end = _key_hash(templates.groups[row], templates.first[row], np.uint64(0))
            is_duplicate[row] = has_pair[slot_of(table, end)]


@compiled(inline="always")
def _same_key(templates, one, other):
    return (
        templates.first[one] == templates.first[other]
        and templates.second[one] == templates.second[other]
        and templates.groups[one] == templates.groups[other]
    )


@compiled(inline="always")
def _is_better(templates, one, other):
    if templates.scores[one] != templates.scores[other]:
        return templates.scores[one] > templates.scores[other]
    if templates.sort_keys[one] != templates.sort_keys[other]:
        return templates.sort_keys[one] < templates.sort_keys[other]
    return one < other


@compiled
def _mark_worse(templates, hashes, order, first, stop, is_duplicate):
    """Mark all but the best template of each key, for the hashes that begin in order[first:stop].

    The order within a hash changes.
    """
    templates, hashes = uncounted((templates, hashes))
    while 0 < first < stop and hashes[order[first]] == hashes[order[first - 1]]:
        first += 1
    while first < stop:
        end = first + 1
        while end < order.size and hashes[order[end]] == hashes[order[first]]:
            end += 1
        while first < end:
            best = order[first]
            following = first + 1
            for at in range(following, end):
                row = order[at]
                if _same_key(templates, row, best):
                    order[at] = order[following]
                    following += 1
                    if _is_better(templates, row, best):
                        is_duplicate[best] = True
                        best = row
                    else:
                        is_duplicate[row] = True
            first = following


# --------------------------------------------------------------------------------------------------
# Duplicates to flags.


def name_table(names: np.ndarray) -> np.ndarray:
    """Return a hash table of names (uint64, not 0; see `slot_of`), dtype=uint64."""
    table = np.zeros(_slots(names.size), np.uint64)
    _list_names(names, table)
    return table


@compiled
def _list_names(names, table):
    table = uncounted(table)
    for name in names:
        table[slot_of(table, name)] = name


@compiled
def _count_listed(names, table):
    """Return how many names are in a table."""
    names, table = uncounted((names, table))
    count = 0
    for name in names:
        count += is_listed(table, name)
    return count


@compiled
def _flag_records(data, starts, first, stop, grouping, names):
    data, starts, grouping, names = uncounted((data, starts, grouping, names))
    for i in range(first, stop):
        flag_duplicate(data, starts[i], grouping, names)


class DuplicateCounts(NamedTuple):
    """Counts per library, by which Picard describes duplicates.

    Attributes
    ----------
    libraries : list of str
    unmapped, not_primary : ndarray, shape=(n_libraries,), dtype=int64
        Unmapped reads; secondary and supplementary records.
    singles, pairs : ndarray, shape=(n_libraries,), dtype=int64
        Templates.
    duplicate_singles, duplicate_pairs : ndarray, shape=(n_libraries,), dtype=int64
        Templates that are duplicates.
    """

    libraries: list[str]
    unmapped: np.ndarray
    not_primary: np.ndarray
    singles: np.ndarray
    pairs: np.ndarray
    duplicate_singles: np.ndarray
    duplicate_pairs: np.ndarray

    @property
    def reads(self) -> int:
        """Reads that are flagged."""
        return int(self.duplicate_singles.sum() + 2 * self.duplicate_pairs.sum())


class DuplicateMarker:
    """Collects the templates of records, finds the duplicates, and flags records.

    Parameters
    ----------
    header : BamHeader
        Header of the records; its read groups name their libraries.
    barcode_tag : str or None
        Duplicates must also have the same value of this tag.
    threads : int

    Attributes
    ----------
    grouping : Grouping
    names : ndarray, dtype=uint64
        Hash table of the names of duplicates (see `name_table`), after `find`.
    counts : DuplicateCounts
        Counts of all records, after `find`.
    """

    grouping: Grouping
    names: np.ndarray
    counts: DuplicateCounts

    def __init__(self, header: BamHeader, barcode_tag: str | None, threads: int):
        self.grouping, self._libraries = grouping_of(header, barcode_tag)
        self._others = np.zeros((len(self._libraries), 2), np.int64)
        self._threads = threads
        #: Templates, and the number of the file that they are from.
        self._parts: list[tuple[int, Templates]] = []

    @on_timeline("list templates")
    def add(self, records: Records, path="", file: int = 0) -> None:
        """Add the templates of records, which follow all records added before in the input.

        `path` names the input in error messages; `file` is its number (see `count_in`).

        Raises
        ------
        InputError
            If a record is damaged, or a pair lacks MC or ms.
        """
        data = read_only(records.data)

        def run(first: int, stop: int):
            starts, keys = records.starts[first:stop], records.keys[first:stop]
            table = empty_templates(stop - first)
            others = np.zeros(self._others.shape, np.int64)
            count, problem = _list_templates(data, starts, keys, self.grouping, table, others)
            return Templates(*(column[:count].copy() for column in table)), others, problem

        for templates, others, problem in for_each_range(run, records.count, self._threads, _LEAST):
            if problem == DAMAGED:
                raise InputError(f"{path}: a record is damaged: write the file again")
            if problem == WITHOUT_MATE:
                raise InputError(
                    f"{path}: a pair has no tags MC and ms: write the file with bwarp map "
                    "--mark-duplicates"
                )
            self.extend(templates, others, file)

    def extend(self, templates: Templates, others: np.ndarray, file: int = 0) -> None:
        """Add templates, and counts of unmapped and of other records (n_libraries, 2)."""
        self._parts.append((file, templates))
        self._others += others

    def count_in(self, files: Iterable[int]) -> int:
        """Return the number of reads that are duplicates if there are only these files."""
        chosen = set(files)
        parts = [part for file, part in self._parts if file in chosen]
        templates = _joined(parts, self._threads)
        return self._counts(templates, find_duplicates(templates, self._threads)).reads

    def find(self) -> None:
        """Find and count the duplicates among all templates, which are then released.

        Raises
        ------
        InputError
            If a duplicate has the name of another template, which would be flagged as well.
        """
        parts = [part for _, part in self._parts]
        self._parts.clear()
        templates = _joined(parts, self._threads)
        is_duplicate = find_duplicates(templates, self._threads)
        self.names = name_table(templates.names[is_duplicate])
        self.counts = self._counts(templates, is_duplicate)
        listed = for_each_range(
            lambda first, stop: _count_listed(templates.names[first:stop], self.names),
            templates.names.size, self._threads, _LEAST,
        )  # fmt: skip
        if sum(listed) > np.count_nonzero(is_duplicate):
            raise InputError(
                "reads or pairs have the same name and read group, so --mark-duplicates cannot "
                "find their records: rename them"
            )

    @on_timeline("flag duplicates")
    def flag(self, records: Records) -> None:
        """Set or clear the duplicate flag of each record, after `find`."""
        for_each_range(
            lambda first, stop: _flag_records(
                records.data, records.starts, first, stop, self.grouping, self.names
            ),
            records.count, self._threads, _LEAST,
        )  # fmt: skip

    def _counts(self, templates: Templates, is_duplicate: np.ndarray) -> DuplicateCounts:
        def count(first: int, stop: int) -> np.ndarray:
            counts = np.zeros((len(self._libraries), 4), np.int64)
            _count_templates(templates, is_duplicate, first, stop, counts)
            return counts

        parts = for_each_range(count, is_duplicate.size, self._threads, _LEAST)
        counts = sum(parts, np.zeros((len(self._libraries), 4), np.int64))
        return DuplicateCounts(self._libraries, *self._others.T, *counts.T)


def _joined(parts: list[Templates], threads: int) -> Templates:
    """Concatenate tables, each of which is released from the list as soon as it is copied.

    Several threads copy, because the system hands a thread new memory at one gigabyte per second.
    """
    edges = np.cumsum([0, *(part.names.size for part in parts)]).tolist()
    table = empty_templates(edges[-1])

    def copy(first: int, last: int) -> None:
        for number in range(first, last):
            for column, part in zip(table, parts[number], strict=True):
                column[edges[number] : edges[number + 1]] = part
            parts[number] = empty_templates(0)

    for_each_range(copy, len(parts), threads, smallest=1)
    return table


@compiled
def _count_templates(templates, is_duplicate, first, stop, counts):
    """Count some rows in `counts` (n_libraries, 4): singles, pairs, duplicates of both."""
    templates = uncounted(templates)
    groups, second = templates.groups, templates.second
    for row in range(first, stop):
        library = np.int64(groups[row] >> np.uint64(32))
        is_pair = np.int64(second[row] != 0)
        counts[library, is_pair] += 1
        counts[library, 2 + is_pair] += is_duplicate[row]
