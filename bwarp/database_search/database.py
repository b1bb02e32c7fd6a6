"""A database of sequences to search: sorted by length, in memory or mapped from a folder.

Sorting by length gives one vector (or one warp) sequences of nearly equal length, so that no lane
idles. `order` has the position of each sequence in the file.

    codes     [ shortest ][ next ] ... [ longest ]        uint8, codes of the scoring's alphabet
    offsets   0           ^                      ^        int64[count + 1]
    order     the record number of each in the file           int64[count]

A folder that `bwarp search-index` writes contains these arrays as .npy, the concatenated names, and
database.json with the alphabet and the size and checksums of every file. All are memory-mapped.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bwarp.alignment.scoring import LOCAL, Scoring, element_type
from bwarp.errors import InputError, UsageError
from bwarp.index.description import canonical, has_sums_of
from bwarp.index.store import save_arrays
from bwarp.io.atomic_output import atomic_folder
from bwarp.io.chunk_files import Column, checked_array, map_file, text_sum
from bwarp.io.fastx import SequenceBatch
from bwarp.io.names import Names, refuse_empty_names
from bwarp.io.sequence_table import SequenceTable, read_table, table_of
from bwarp.runtime.compiled_code import read_only
from bwarp.runtime.threads import for_each_range

FORMAT = "bwarp database"
FORMAT_VERSION = 2

_ARRAYS = ("codes", "offsets", "order", "names", "name_offsets")
_DESCRIPTION = "database.json"
#: The files of a folder; the first identifies it.
FILES = (_DESCRIPTION, *(f"{name}.npy" for name in _ARRAYS))
_REMEDY = "make it again with bwarp search-index"


@dataclass(frozen=True)
class Database:
    """Sequences by ascending length; ties are in file order.

    Attributes
    ----------
    codes : ndarray, dtype=uint8
    offsets : ndarray, shape=(count + 1,), dtype=int64
    order : ndarray, shape=(count,), dtype=int64
        The record number of each sequence in the file.
    names : Names
        The name of each sequence, in the same order as the codes.
    """

    codes: np.ndarray
    offsets: np.ndarray
    order: np.ndarray
    names: Names

    @property
    def count(self) -> int:
        return self.order.size

    def sequence(self, i: int) -> np.ndarray:
        """Return the codes of sequence i in this order, as a view."""
        return self.codes[self.offsets[i] : self.offsets[i + 1]]


def sorted_database(sequences: Iterable[np.ndarray], names: Iterable[str]) -> Database:
    """Make a database of code arrays in file order."""
    sequences = list(sequences)
    offsets = np.cumsum([0, *(sequence.size for sequence in sequences)])
    codes = np.concatenate([np.empty(0, np.uint8), *sequences])
    return database_of(SequenceTable([(codes, offsets)], Names.of(list(names))))


def database_of(table: SequenceTable, threads: int = 1) -> Database:
    """Sort the sequences of a file by length."""
    lengths = table.lengths
    # NumPy sorts short numbers by radix, which is stable and takes an eighth of the time.
    short = lengths.max(initial=0) < 1 << 16
    order = np.argsort(lengths.astype(np.uint16) if short else lengths, kind="stable")
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths[order], out=offsets[1:])
    starts = np.empty(lengths.size, np.int64)
    starts[order] = offsets[:-1]
    names = Names(table.names.text, table.names.bounds[order])
    return Database(table.codes(starts, threads), offsets, order, names)


def read_database(path: str | os.PathLike, code_of_byte: np.ndarray, threads: int = 1) -> Database:
    """Read a FASTA file (optionally gzipped) in the codes of a scoring scheme."""
    return database_of(read_all(path, code_of_byte, threads), threads)


def read_all(path: str | os.PathLike, code_of_byte: np.ndarray, threads: int = 1) -> SequenceTable:
    """Return all sequences of a file, which must have at least one."""
    table = checked(path, read_table(path, code_of_byte, threads))
    if not table.count:
        raise InputError(f"{path}: the file contains no sequences")
    return table


def gather_sequences(where: str | os.PathLike, batches: Iterable[SequenceBatch]) -> SequenceTable:
    """Return all sequences of batches; errors name their source, `where`."""
    return checked(where, table_of(batches))


def checked(where: str | os.PathLike, table: SequenceTable) -> SequenceTable:
    """Return the sequences, all of which must have a name and residues."""
    refuse_empty_names(where, table.names)
    for record in np.flatnonzero(table.lengths == 0)[:1]:
        raise InputError(
            f"{where}, record {record + 1} ({table.names.name(record)}) has no sequence: remove it"
        )
    return table


def check_search(queries: Sequence[np.ndarray], database: Database, scoring: Scoring) -> None:
    """Reject empty queries, and scores that do not fit 32 bits."""
    for number, query in enumerate(queries, 1):
        if query.size == 0:
            raise InputError(f"query {number} is empty: remove it")
    if database.count and len(queries):
        longest = max(query.size for query in queries)
        element_type(scoring, LOCAL, longest, int(np.diff(database.offsets).max()))


def save_database(
    database: Database, letters: bytes, folder: str | os.PathLike, threads: int = 1
) -> None:
    """Write the folder of a database; it appears when it is complete."""
    names = database.names.part(0, database.count)
    arrays = {
        "codes": database.codes,
        "offsets": database.offsets,
        "order": database.order,
        "names": names.text,
        "name_offsets": np.append(0, names.bounds[:, 1]),
    }
    with atomic_folder(folder, FILES) as part:
        description = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "letters": letters.decode(),
            "sequences": database.count,
            "residues": int(database.offsets[-1]),
            "name_bytes": names.text.size,
            "files": save_arrays(arrays, part, threads),
        }
        complete = description | {"sum": text_sum(canonical(description))}
        (part / _DESCRIPTION).write_text(json.dumps(complete, indent=1) + "\n")


def load_database(folder: str | os.PathLike, letters: bytes, threads: int = 1) -> Database:
    """Open the folder of a database for a scoring scheme of these letters.

    All checksums are verified, and all numbers that are used as indices.
    """
    folder = Path(folder)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        files = {name: map_file(folder / name, opened) for name in FILES}
    finally:
        os.close(opened)
    description = _checked_description(folder, files[_DESCRIPTION])
    if description["letters"] != letters.decode():
        raise UsageError(
            f"{folder}: prepared for the alphabet {description['letters']}, but the scores are for "
            f"{letters.decode()}: use a matrix of the same kind, or {_REMEDY}"
        )
    count, residues, name_bytes = (
        description[key] for key in ("sequences", "residues", "name_bytes")
    )
    shapes = {
        "codes": (np.uint8, residues),
        "offsets": (np.int64, count + 1),
        "order": (np.int64, count),
        "names": (np.uint8, name_bytes),
        "name_offsets": (np.int64, count + 1),
    }
    arrays = {}
    for name, (dtype, size) in shapes.items():
        file = f"{name}.npy"
        recorded = description["files"][file]
        arrays[name] = checked_array(
            folder / file, files[file], recorded, np.dtype(dtype), (size,), _REMEDY
        )
    for name, column in (
        ("offsets", Column.of_offsets(residues)),
        ("order", Column(np.int64, most=max(count - 1, 0))),
        ("name_offsets", Column.of_offsets(name_bytes)),
    ):
        problem = column.problem(arrays[name])
        if problem:
            raise _invalid(folder / f"{name}.npy", problem)
    lengths = np.diff(arrays["offsets"])
    if (lengths[1:] < lengths[:-1]).any():
        raise _invalid(folder / "offsets.npy", "the sequences are not in order of length")
    codes = arrays["codes"]
    largest = for_each_range(
        lambda first, last: int(codes[first:last].max()), residues, threads, 1 << 22
    )
    if max(largest, default=0) >= len(letters):
        raise _invalid(folder / "codes.npy", f"{max(largest)} is not the code of a letter")
    edges = arrays["name_offsets"]
    names = Names(read_only(arrays["names"]), np.column_stack([edges[:-1], edges[1:]]))
    return Database(codes, arrays["offsets"], arrays["order"], names)


def _invalid(path: Path, problem: str) -> InputError:
    return InputError(f"{path}: the database is invalid ({problem}): {_REMEDY}")


def _checked_description(folder: Path, text: np.ndarray | None) -> dict:
    """Return the contents of database.json, whose checksum and values must be valid."""
    if text is None:
        raise InputError(
            f"{folder}: not a prepared database (no {_DESCRIPTION}): make one with bwarp "
            f"search-index D.fa -o {folder}"
        )
    damaged = InputError(f"{folder / _DESCRIPTION}: the file is damaged: {_REMEDY}")
    try:
        description = json.loads(text.tobytes())
    except (ValueError, RecursionError):
        raise damaged from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise damaged
    if description.get("version") != FORMAT_VERSION:
        raise InputError(
            f"{folder}: the database has format version {description.get('version')}, but this "
            f"bwarp reads version {FORMAT_VERSION}: {_REMEDY}"
        )
    recorded = description.pop("sum", None)
    sizes = [description.get(key) for key in ("sequences", "residues", "name_bytes")]
    if (
        recorded != text_sum(canonical(description))
        or not isinstance(description.get("letters"), str)
        or not all(type(size) is int and 0 <= size < 1 << 62 for size in sizes)
        or not has_sums_of(description.get("files"), FILES[1:])
    ):
        raise damaged
    return description
