"""Tables of templates (see `bwarp.bam.duplicate_rules`), in memory or on disk.

    templates -> memory -> one table
                   |
                   '-> files, by a hash of group and ends -> one table per file

Templates that exceed the memory go to files on disk, so that those with the same ends are in one
table.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy import int32, uint64

from bwarp.bam.duplicate_rules import mixed
from bwarp.bam.sort_keys import sorted_order
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted


class Templates(NamedTuple):
    """Templates, in the order of the input; see `bwarp.bam.duplicate_rules.Template`.

    Attributes
    ----------
    names, groups, first, second : ndarray, shape=(n,), dtype=uint64
        The second end of a single end is 0.
    scores : ndarray, shape=(n,), dtype=int32
    positions, locations : ndarray, shape=(n,), dtype=uint64
    """

    names: "uint64[::1]"
    groups: "uint64[::1]"
    first: "uint64[::1]"
    second: "uint64[::1]"
    scores: "int32[::1]"
    positions: "uint64[::1]"
    locations: "uint64[::1]"


_TYPES = (*[np.uint64] * 4, np.int32, *[np.uint64] * 2)

#: Bytes of a template.
TEMPLATE_BYTES = sum(np.dtype(dtype).itemsize for dtype in _TYPES)

#: Hashes of keys are short, so that sorting them takes few passes.
HASH_BITS = 33

#: Files for templates on disk, by the highest bits of their hashes.
_FILES = 64

#: Templates written to disk at a time.
_ROWS_A_WRITE = 1 << 20

#: Minimum number of templates of a thread.
_LEAST = 1 << 14


def empty_templates(count: int) -> Templates:
    """Return a table of `count` rows with arbitrary content."""
    return Templates(*(np.empty(count, dtype) for dtype in _TYPES))


class TemplateStore:
    """Takes tables of templates, and returns tables that hold all templates with the same ends.

    Parameters
    ----------
    threads : int
    folder : Path, optional
        Folder for templates on disk; None keeps all of them in memory.
    most_bytes : int
        Maximum bytes of templates in memory.

    Attributes
    ----------
    singles, pairs : int
        Numbers of single ends and of pairs.
    """

    def __init__(self, threads: int, folder: Path | None = None, most_bytes: int = 0):
        self._threads, self._folder = threads, folder
        self._most = most_bytes // TEMPLATE_BYTES
        #: Templates, and the number of the file that they are from.
        self._parts: list[tuple[int, Templates]] = []
        self._in_memory = 0
        #: For each write, the number of the input file, and of its templates per file on disk.
        self._on_disk: list[tuple[int, list[int]]] = []
        self.singles = self.pairs = 0

    def add(self, templates: Templates, file: int) -> None:
        """Add templates of the input file with a number."""
        singles = int(np.count_nonzero(templates.second == 0))
        self.singles += singles
        self.pairs += templates.names.size - singles
        self._parts.append((file, templates))
        self._in_memory += templates.names.size
        if self._folder is not None and self._in_memory > self._most:
            self._spill()

    def tables(self, files: Collection[int] | None = None) -> Iterator[Templates]:
        """Yield the templates of some input files, or of all, whose numbers may then be forgotten.

        Templates with the same group and ends are in one table, in the order in which they came.
        """
        if self._on_disk:
            self._spill()
            for number in range(_FILES):
                yield self._read(number, files)
        elif files is not None:
            yield _joined([part for file, part in self._parts if file in files], self._threads)
        else:
            if len(self._parts) != 1:
                parts = [part for _, part in self._parts]
                self._parts.clear()
                self._parts.append((0, _joined(parts, self._threads)))
            yield self._parts[0][1]

    def clear(self) -> None:
        """Release the memory and the disk."""
        self._parts.clear()
        self._in_memory = 0
        if self._on_disk:
            self._on_disk.clear()
            for number in range(_FILES):
                self._path(number).unlink()

    def _path(self, number: int) -> Path:
        assert self._folder is not None
        return self._folder / f"templates{number}"

    @on_timeline("write templates")
    def _spill(self) -> None:
        """Append the templates in memory to the files on disk."""
        parts = self._parts[::-1]
        self._parts, self._in_memory = [], 0
        while parts:
            file, part = parts.pop()
            taken, count = [part], part.names.size
            while parts and parts[-1][0] == file and count < _ROWS_A_WRITE:
                taken.append(parts.pop()[1])
                count += taken[-1].names.size
            del part
            self._write(_joined(taken, self._threads), file)

    def _write(self, table: Templates, file: int) -> None:
        count = table.names.size
        targets = np.empty(count, np.uint64)
        for_each_range(
            lambda first, stop: hash_keys(table, first, stop, targets), count, self._threads, _LEAST
        )
        targets >>= np.uint64(HASH_BITS - (_FILES.bit_length() - 1))
        order = sorted_order(targets, self._threads)
        counts = np.bincount(targets.astype(np.int64), minlength=_FILES).tolist()
        for number, rows in enumerate(np.split(order, np.cumsum(counts)[:-1])):
            with open(self._path(number), "ab") as out:
                for column in table:
                    # ndarray.tofile hides errors of a full disk.
                    out.write(column[rows].data)
        self._on_disk.append((file, counts))

    def _read(self, number: int, files: Collection[int] | None) -> Templates:
        """Return the templates of some input files in one file on disk."""
        parts = []
        with open(self._path(number), "rb") as data:
            for file, counts in self._on_disk:
                if files is None or file in files:
                    parts.append(_read_rows(data, counts[number]))
                else:
                    data.seek(counts[number] * TEMPLATE_BYTES, 1)
        return _joined(parts, self._threads)


def _read_rows(data: BinaryIO, count: int) -> Templates:
    return Templates(*(np.fromfile(data, dtype, count) for dtype in _TYPES))


def _edges(parts) -> list[int]:
    return np.cumsum([0, *(part.names.size for part in parts)]).tolist()


def _joined(parts: list[Templates], threads: int) -> Templates:
    """Concatenate tables, each of which is released from the list as soon as it is copied.

    Several threads copy, because the system hands a thread new memory at one gigabyte per second.
    """
    edges = _edges(parts)
    table = empty_templates(edges[-1])

    def copy(first: int, last: int) -> None:
        for number in range(first, last):
            for column, part in zip(table, parts[number], strict=True):
                column[edges[number] : edges[number + 1]] = part
            parts[number] = empty_templates(0)

    for_each_range(copy, len(parts), threads, smallest=1)
    return table


@compiled(inline="always")
def key_hash(group, first, second):
    """Return a hash of a group and ends, which is not 0."""
    return max(mixed(mixed(mixed(np.uint64(0), group), first), second), np.uint64(1))


@compiled
def hash_keys(templates, first_row, stop_row, hashes):
    """Write the hashes of the groups and ends of some rows, of `HASH_BITS` bits."""
    templates = uncounted(templates)
    groups, first, second = templates.groups, templates.first, templates.second
    for row in range(first_row, stop_row):
        hashes[row] = key_hash(groups[row], first[row], second[row]) >> np.uint64(64 - HASH_BITS)
