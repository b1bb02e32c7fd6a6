"""Finding and flagging duplicate reads: all but the best of templates with the same ends.

    records -> templates, one row each -> duplicates -> table of their names
    records -----------------------------------------------> the same records with flags and tags

`bwarp.bam.duplicate_rules` has the rules over single records. Among templates with the same group
and ends, the one with the highest score is the best. Among equal scores, it is the one with the
smallest tile, x and y, and then the one whose read with the smaller end comes first in the sorted
file. Single ends are compared with each other, and all of them are duplicates if any pair of their
group has the same end.

Some duplicates are optical: the sequencer read one cluster of the flow cell as several. Pairs with
the same ends, read group, tile and orientation belong to one cluster if their x and y differ by at
most a distance, or if other pairs of the cluster connect them. All pairs of a cluster are optical
duplicates except one: the best pair, or if the cluster lacks it, the one with the smallest x and y.
As in Picard, a set of more than 300,000 pairs has no optical duplicates.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy import bool_, uint64

from bwarp.bam.duplicate_rules import (
    DAMAGED,
    LIBRARY_TAG,
    LOCATION_BITS,
    NO_TILE,
    NOT_PRIMARY,
    NOTHING,
    PAIR,
    SINGLE,
    UNMAPPED_READ,
    WITHOUT_MATE,
    Grouping,
    Marks,
    hash_bytes,
    is_listed,
    mark_record,
    read_template,
    slot_of,
    tag_end,
    tags_begin,
)
from bwarp.bam.fields import DT, SIZE_BYTES, tag
from bwarp.bam.header import BamHeader
from bwarp.bam.records import Records, get_int16, put_int32
from bwarp.bam.sort_keys import sorted_order
from bwarp.bam.templates import Templates, TemplateStore, empty_templates, hash_keys, key_hash
from bwarp.errors import InputError
from bwarp.io.names import put_bytes
from bwarp.options.mapping import DEFAULT_OPTICAL_DISTANCE
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted

#: Templates take at most this fraction of the memory for sorting: one part in `_SHARE`.
_SHARE = 8

#: Name of the library of reads without one, as in Picard.
UNKNOWN_LIBRARY = "Unknown Library"


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
def _list_templates(data, starts, grouping, templates, others):
    """Fill `templates` from records, and count in `others` (n_libraries, 2) those that are unmapped
    and those that are secondary or supplementary.

    Stop at a record with a problem; return the number of templates, and the problem or NOTHING.
    """
    data, grouping, templates = uncounted((data, grouping, templates))
    names, groups, first, second, scores, positions, locations = templates
    count = 0
    for i in range(starts.size):
        found = read_template(data, starts[i], grouping)
        if found.kind == SINGLE or found.kind == PAIR:
            names[count] = found.name
            groups[count] = found.group
            first[count] = found.first
            second[count] = found.second
            scores[count] = found.score
            positions[count] = found.positions
            locations[count] = found.location
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
# is short, so that sorting takes few passes; therefore group and ends are compared as well.


#: Minimum number of templates of a thread.
_LEAST = 1 << 14

#: What a template is: the best of its ends, a duplicate, or an optical duplicate.
BEST, DUPLICATE, OPTICAL = range(3)


class _Singles(NamedTuple):
    """A hash table of single ends, and whether a pair ends there.

    Two different ends have the same hash with a probability of 2^-64.
    """

    table: "uint64[::1]"
    has_pair: "bool_[::1]"


def find_duplicates(
    store: TemplateStore,
    distance: int = 0,
    threads: int = 1,
    files: Collection[int] | None = None,
) -> Iterator[tuple[Templates, np.ndarray]]:
    """Yield each table of templates, and what each template is: BEST, DUPLICATE or OPTICAL.

    The order of the rows matters only among templates with the same location and positions.

    Parameters
    ----------
    distance : int
        Maximum difference of x and of y between neighbours in a cluster; if 0, there are no
        clusters.
    files : collection of int, optional
        Search only among the templates of these input files.
    """
    singles = None
    if store.singles and store.pairs:
        singles = _singles_at_pairs(store, threads, files)
    for templates in store.tables(files):
        yield templates, _kinds_of(templates, singles, distance, threads)


@on_timeline("find duplicates")
def _singles_at_pairs(store: TemplateStore, threads: int, files) -> _Singles:
    table = np.zeros(_slots(store.singles), np.uint64)
    for templates in store.tables(files):
        _list_singles(templates, table)
    singles = _Singles(table, np.zeros(table.size, bool))
    for templates in store.tables(files):
        for_each_range(
            lambda first, stop, templates=templates: _find_pairs(templates, first, stop, singles),
            templates.names.size, threads, _LEAST,
        )  # fmt: skip
    return singles


@on_timeline("find duplicates")
def _kinds_of(templates, singles: _Singles | None, distance: int, threads: int) -> np.ndarray:
    """Return what each template of a table is, shape=(n,), dtype=uint8."""
    count = templates.names.size
    kinds = np.full(count, BEST, np.uint8)
    if singles is not None:
        for_each_range(
            lambda first, stop: _mark_singles(templates, first, stop, singles, kinds),
            count, threads, _LEAST,
        )  # fmt: skip
    hashes = np.empty(count, np.uint64)
    for_each_range(
        lambda first, stop: hash_keys(templates, first, stop, hashes), count, threads, _LEAST
    )
    order = sorted_order(hashes, threads)
    for_each_range(
        lambda first, stop: _mark_worse(templates, hashes, order, first, stop, distance, kinds),
        count, threads, _LEAST,
    )  # fmt: skip
    return kinds


def _slots(count: int) -> int:
    """Return the size of a hash table of `count` keys: a power of two, at most half full."""
    return 1 << (2 * count).bit_length()


@compiled
def _list_singles(templates, table):
    """Put all single ends into a hash table."""
    templates = uncounted(templates)
    for row in range(templates.names.size):
        if templates.second[row] == 0:
            end = key_hash(templates.groups[row], templates.first[row], np.uint64(0))
            table[slot_of(table, end)] = end


@compiled
def _find_pairs(templates, first_row, stop_row, singles):
    """Mark the slots of single ends at which pairs among some rows end."""
    templates, singles = uncounted((templates, singles))
    table = singles.table
    for row in range(first_row, stop_row):
        if templates.second[row] != 0:
            for end in (templates.first[row], templates.second[row]):
                slot = slot_of(table, key_hash(templates.groups[row], end, np.uint64(0)))
                if table[slot] != 0:
                    singles.has_pair[slot] = True


@compiled
def _mark_singles(templates, first_row, stop_row, singles, kinds):
    """Mark the single ends among some rows whose slots have a pair."""
    templates, singles = uncounted((templates, singles))
    for row in range(first_row, stop_row):
        if templates.second[row] == 0:
            end = key_hash(templates.groups[row], templates.first[row], np.uint64(0))
            kinds[row] = DUPLICATE if singles.has_pair[slot_of(singles.table, end)] else BEST


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
    return _comes_first(templates, one, other)


@compiled(inline="always")
def _comes_first(templates, one, other):
    own, its = templates.locations[one] & _LOCATION, templates.locations[other] & _LOCATION
    if own != its:
        return own < its
    if templates.positions[one] != templates.positions[other]:
        return templates.positions[one] < templates.positions[other]
    return one < other


@compiled
def _mark_worse(templates, hashes, order, first, stop, distance, kinds):
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
                        kinds[best] = DUPLICATE
                        best = row
                    else:
                        kinds[row] = DUPLICATE
            if following > first + 1 and templates.second[best] != 0 and distance > 0:
                _mark_optical(templates, order[first:following], best, distance, kinds)
            first = following


# --------------------------------------------------------------------------------------------------
# Optical duplicates.


_LOCATION = np.uint64((1 << LOCATION_BITS) - 1)
_ORIENTATION, _TILE, _X = np.uint64(LOCATION_BITS), np.uint64(32), np.uint64(16)
_FIELD = np.uint64((1 << 16) - 1)

#: Pairs with the same ends and orientation among which Picard looks for optical duplicates.
_MOST_PAIRS = 300_000


@compiled
def _mark_optical(templates, rows, best, distance, kinds):
    """Mark the optical duplicates among pairs with the same ends; this reorders `rows`.

    In the order of read group, orientation, tile, x and y, each pair is compared with the following
    ones within the distance in x.
    """
    locations = templates.locations
    _sort_by_location(templates, rows)
    turned = np.int64(0)
    for row in rows:
        turned += np.int64(locations[row] >> _ORIENTATION & np.uint64(1))
    # An earlier pair of the same cluster, or the pair itself if it is the first.
    before = np.arange(rows.size)
    for i in range(rows.size):
        own = locations[rows[i]]
        of_same = turned if own >> _ORIENTATION & np.uint64(1) else rows.size - turned
        if own >> _TILE & _FIELD == NO_TILE or of_same > _MOST_PAIRS:
            continue
        for j in range(i + 1, rows.size):
            other = locations[rows[j]]
            if other >> _TILE != own >> _TILE or _steps(own >> _X, other >> _X) > distance:
                break
            if _steps(own, other) <= distance:
                one, two = _first_of(before, i), _first_of(before, j)
                before[max(one, two)] = min(one, two)
    kept = np.int64(-1)
    for i in range(rows.size):
        if rows[i] == best:
            kept = _first_of(before, i)
    for i in range(rows.size):
        cluster = _first_of(before, i)
        if rows[i] != best and (cluster == kept or cluster != i):
            kinds[rows[i]] = OPTICAL


@compiled(inline="always")
def _steps(one, other):
    """Return the difference of the lowest 16 bits."""
    return abs(np.int64(one & _FIELD) - np.int64(other & _FIELD))


@compiled
def _first_of(before, i):
    """Return the first pair of a cluster, and shorten the way to it."""
    while before[i] != i:
        before[i] = before[before[i]]
        i = before[i]
    return i


@compiled
def _sort_by_location(templates, rows):
    """Sort rows by location, then in the order of templates with equal scores, by Shell's sort."""
    gap = np.int64(1)
    while 3 * gap < rows.size:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, rows.size):
            row, at = rows[i], i
            while at >= gap and _is_before(templates, row, rows[at - gap]):
                rows[at] = rows[at - gap]
                at -= gap
            rows[at] = row
        gap //= 3


@compiled(inline="always")
def _is_before(templates, one, other):
    own, its = templates.locations[one], templates.locations[other]
    return own < its if own != its else _comes_first(templates, one, other)


# --------------------------------------------------------------------------------------------------
# Room for the tags of duplicates.
#
# All records get the tag DT of a library duplicate before they are sorted. When duplicates are
# marked, it is kept, changed, or removed in place; unused bytes then remain after the record.


def tags_with_room(tags: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return further tags of reads in BAM format with the tag DT, and their new offsets.

    Parameters
    ----------
    tags : ndarray, dtype=uint8
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    """
    out = np.empty(tags.size + LIBRARY_TAG.size * (offsets.size - 1), np.uint8)
    _add_tags(read_only(tags), offsets, out)
    return out, offsets + LIBRARY_TAG.size * np.arange(offsets.size)


@compiled
def _add_tags(tags, offsets, out):
    at = np.int64(0)
    for read in range(offsets.size - 1):
        at = put_bytes(out, at, tags, offsets[read], offsets[read + 1])
        at = put_bytes(out, at, LIBRARY_TAG, np.int64(0), np.int64(LIBRARY_TAG.size))


def records_with_room(records: Records, with_room: bool, path="") -> Records:
    """Return records without the tags DT of an earlier run, and with a new one if requested.

    Raises
    ------
    InputError
        If a record is damaged.
    """
    data = read_only(records.data)
    if not with_room and not _has_tags(data, records.starts):
        return records
    out = np.empty(data.size + LIBRARY_TAG.size * records.count, np.uint8)
    starts = np.zeros(records.starts.size, np.int64)
    if not _copy_records(data, records.starts, with_room, out, starts):
        raise _damaged(path)
    return Records(out[: starts[-1]], starts, records.keys)


@compiled
def _has_tags(data, starts):
    """Return whether any record has the tag DT."""
    for i in range(starts.size - 1):
        at, stop = tags_begin(data, starts[i]), starts[i + 1]
        while at + 3 < stop:
            if get_int16(data, at) == DT:
                return True
            at = tag_end(data, at, stop)
    return False


@compiled
def _copy_records(data, starts, with_room, out, out_starts):
    """Copy records for `records_with_room`; return whether they are complete."""
    at = np.int64(0)
    for i in range(starts.size - 1):
        source, stop, begin = tags_begin(data, starts[i]), starts[i + 1], at
        if source > stop:
            return False
        at = put_bytes(out, at, data, starts[i], source)
        while source + 3 < stop:
            end = tag_end(data, source, stop)
            if end > stop:
                return False
            if get_int16(data, source) != DT:
                at = put_bytes(out, at, data, source, end)
            source = end
        at = put_bytes(out, at, data, source, stop)
        if with_room:
            at = put_bytes(out, at, LIBRARY_TAG, np.int64(0), np.int64(LIBRARY_TAG.size))
        put_int32(out, begin, at - begin - SIZE_BYTES)
        out_starts[i + 1] = at
    return True


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
def _mark_records(data, starts, first, stop, grouping, marks):
    data, starts, grouping, marks = uncounted((data, starts, grouping, marks))
    for i in range(first, stop):
        mark_record(data, starts[i], grouping, marks)


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
    optical_pairs : ndarray, shape=(n_libraries,), dtype=int64
        Pairs among them that are optical duplicates.
    """

    libraries: list[str]
    unmapped: np.ndarray
    not_primary: np.ndarray
    singles: np.ndarray
    pairs: np.ndarray
    duplicate_singles: np.ndarray
    duplicate_pairs: np.ndarray
    optical_pairs: np.ndarray

    @property
    def reads(self) -> int:
        """Reads that are flagged."""
        return int(self.duplicate_singles.sum() + 2 * self.duplicate_pairs.sum())


def _damaged(path) -> InputError:
    return InputError(f"{path}: a record is damaged: write the file again")


class DuplicateMarker:
    """Collects the templates of records, finds the duplicates, and marks records.

    Parameters
    ----------
    header : BamHeader
        Header of the records; its read groups name their libraries.
    barcode_tag : str or None
        Duplicates must also have the same value of this tag.
    optical_distance : int or None
        Maximum distance of optical duplicates; 0 to look for none, None for the default.
    threads : int
    folder : Path, optional
        Folder for templates that exceed the memory; None keeps all of them in memory.
    sort_bytes : int
        Memory for sorting records; templates may take an eighth of it.
    with_tags : bool
        Duplicates get the tag DT. All records must have room for it (see `records_with_room`).

    Attributes
    ----------
    grouping : Grouping
    with_tags : bool
    marks : Marks
        Names of the duplicates, after `find`.
    counts : DuplicateCounts
        Counts of all records, after `find`.
    """

    grouping: Grouping
    with_tags: bool
    marks: Marks
    counts: DuplicateCounts

    def __init__(
        self,
        header: BamHeader,
        barcode_tag: str | None,
        optical_distance: int | None,
        threads: int,
        folder: Path | None = None,
        sort_bytes: int = 0,
        with_tags: bool = False,
    ):
        self.with_tags = with_tags
        self.grouping, self._libraries = grouping_of(header, barcode_tag)
        self._distance = DEFAULT_OPTICAL_DISTANCE if optical_distance is None else optical_distance
        self._others = np.zeros((len(self._libraries), 2), np.int64)
        self._threads = threads
        self._store = TemplateStore(threads, folder, sort_bytes // _SHARE)

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
            table = empty_templates(stop - first)
            others = np.zeros(self._others.shape, np.int64)
            count, problem = _list_templates(
                data, records.starts[first:stop], self.grouping, table, others
            )
            return Templates(*(column[:count].copy() for column in table)), others, problem

        for templates, others, problem in for_each_range(run, records.count, self._threads, _LEAST):
            if problem == DAMAGED:
                raise _damaged(path)
            if problem == WITHOUT_MATE:
                raise InputError(
                    f"{path}: a pair has no tags MC and ms: write the file with bwarp map "
                    "--mark-duplicates"
                )
            self.extend(templates, others, file)

    def extend(self, templates: Templates, others: np.ndarray, file: int = 0) -> None:
        """Add templates, and counts of unmapped and of other records (n_libraries, 2)."""
        self._store.add(templates, file)
        self._others += others

    def count_in(self, files: Collection[int]) -> int:
        """Return the number of reads that are duplicates if there are only these files."""
        counts = self._no_counts()
        for templates, kinds in find_duplicates(self._store, 0, self._threads, files):
            counts += self._count(templates, kinds)
        return DuplicateCounts(self._libraries, *self._others.T, *counts.T).reads

    def find(self) -> None:
        """Find and count the duplicates among all templates, which are then released.

        Raises
        ------
        InputError
            If a duplicate has the name of another template, which would be flagged as well.
        """
        names, optical, counts = [], [], self._no_counts()
        for templates, kinds in find_duplicates(self._store, self._distance, self._threads):
            names.append(templates.names[kinds != BEST])
            if self.with_tags:
                optical.append(templates.names[kinds == OPTICAL])
            counts += self._count(templates, kinds)
        duplicates = np.concatenate(names)
        self.marks = Marks(
            name_table(duplicates),
            name_table(np.concatenate([*optical, np.empty(0, np.uint64)])),
            int(self.with_tags),
        )
        self.counts = DuplicateCounts(self._libraries, *self._others.T, *counts.T)
        listed = sum(self._listed(templates.names) for templates in self._store.tables())
        self._store.clear()
        if listed > duplicates.size:
            raise InputError(
                "reads or pairs have the same name and read group, so --mark-duplicates cannot "
                "find their records: rename them"
            )

    def _listed(self, names: np.ndarray) -> int:
        """Return how many of some names are in the table."""
        listed = for_each_range(
            lambda first, stop: _count_listed(names[first:stop], self.marks.names),
            names.size, self._threads, _LEAST,
        )  # fmt: skip
        return sum(listed)

    @on_timeline("mark duplicates")
    def mark(self, records: Records) -> None:
        """Set or clear the duplicate flag of each record, after `find`.

        With tags, the sizes of records change, so that a record may end before the next one starts.
        Mark each record only once.
        """
        for_each_range(
            lambda first, stop: _mark_records(
                records.data, records.starts, first, stop, self.grouping, self.marks
            ),
            records.count, self._threads, _LEAST,
        )  # fmt: skip

    def _no_counts(self) -> np.ndarray:
        return np.zeros((len(self._libraries), 5), np.int64)

    def _count(self, templates: Templates, kinds: np.ndarray) -> np.ndarray:
        """Return the counts of templates, as `_count_templates`."""

        def count(first: int, stop: int) -> np.ndarray:
            counts = self._no_counts()
            _count_templates(templates, kinds, first, stop, counts)
            return counts

        parts = for_each_range(count, kinds.size, self._threads, _LEAST)
        return sum(parts, self._no_counts())


@compiled
def _count_templates(templates, kinds, first, stop, counts):
    """Count some rows in `counts` (n_libraries, 5): singles, pairs, duplicates of both, and optical
    duplicates."""
    templates = uncounted(templates)
    groups, second = templates.groups, templates.second
    for row in range(first, stop):
        library = np.int64(groups[row] >> np.uint64(32))
        is_pair = np.int64(second[row] != 0)
        counts[library, is_pair] += 1
        counts[library, 2 + is_pair] += kinds[row] != BEST
        counts[library, 4] += kinds[row] == OPTICAL
