"""A database of sequences to search: sorted by length, in memory or memory-mapped from a folder.

Sorting by length gives one vector (or one warp) sequences of nearly equal length, so that no lane
idles. `order` has the position of each sequence in the file.

    codes     [ shortest ][ next ] ... [ longest ]        uint8, codes of the scoring's alphabet
    offsets   0           ^                      ^        int64[count + 1]
    order     the record number of each in the file           int64[count]

A prepared folder contains these arrays as .npy, the concatenated names, and database.json with the
alphabet and the size and checksum of every file. Codes are memory-mapped.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bwarp.alignment.scoring import LOCAL, Scoring, element_type
from bwarp.errors import InputError, UsageError
from bwarp.io.atomic_output import atomic_folder
from bwarp.io.chunk_files import crc32
from bwarp.io.fastx import SequenceBatch
from bwarp.io.names import Names, refuse_empty_names
from bwarp.io.sequence_table import SequenceTable, read_table, table_of
from bwarp.runtime.compiled_code import read_only

FORMAT_VERSION = 1

_ARRAYS = ("codes", "offsets", "order", "names", "name_offsets")


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


def save_database(database: Database, letters: bytes, folder: str | os.PathLike) -> None:
    """Write a prepared folder; it appears when it is complete."""
    names = database.names.part(0, database.count)
    arrays = {
        "codes": database.codes,
        "offsets": database.offsets,
        "order": database.order,
        "names": names.text,
        "name_offsets": np.append(0, names.bounds[:, 1]),
    }
    own = ["database.json", *(f"{name}.npy" for name in _ARRAYS)]
    with atomic_folder(folder, own) as part:
        files = {}
        for name, array in arrays.items():
            file = part / f"{name}.npy"
            np.save(file, array)
            files[file.name] = {"bytes": file.stat().st_size, "crc32": _sum(file)}
        description = {
            "format": "bwarp database",
            "version": FORMAT_VERSION,
            "letters": letters.decode(),
            "sequences": database.count,
            "residues": int(database.offsets[-1]),
            "files": files,
        }
        (part / "database.json").write_text(json.dumps(description, indent=1) + "\n")


def load_database(folder: str | os.PathLike, letters: bytes) -> Database:
    """Open a prepared folder for a scoring scheme of these letters, verifying all checksums."""
    folder = Path(folder)
    try:
        description = json.loads((folder / "database.json").read_bytes())
        if description["format"] != "bwarp database":
            raise KeyError("format")
        version, own_letters = description["version"], str(description["letters"])
        if version == FORMAT_VERSION:
            sums = {name: _recorded(description, name) for name in _ARRAYS}
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{folder}: not a prepared database (no database.json): make one with bwarp search "
            f"--database D.fa --prepare {folder}"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{folder / 'database.json'}: the file is damaged: prepare the database again"
        ) from None
    if version != FORMAT_VERSION:
        raise InputError(
            f"{folder}: the database has format version {version}, but this bwarp reads version "
            f"{FORMAT_VERSION}: prepare it again"
        )
    if own_letters != letters.decode():
        raise UsageError(
            f"{folder}: prepared for the alphabet {own_letters}, but the scores are for "
            f"{letters.decode()}: use a matrix of the same kind, or prepare it again"
        )
    for name, recorded in sums.items():
        file = folder / f"{name}.npy"
        if not file.exists():
            raise InputError(f"{file}: the file is missing: prepare the database again")
        if (file.stat().st_size, _sum(file)) != recorded:
            raise InputError(f"{file}: the file is damaged: prepare the database again")
    arrays = {name: _mapped(folder / f"{name}.npy") for name in _ARRAYS}
    edges = np.asarray(arrays["name_offsets"])
    names = Names(read_only(arrays["names"]), np.column_stack([edges[:-1], edges[1:]]))
    return Database(
        arrays["codes"], np.asarray(arrays["offsets"]), np.asarray(arrays["order"]), names
    )


def _mapped(file: Path) -> np.ndarray:
    """Map an array of numbers; reject anything else, such as pickled objects."""
    try:
        return np.load(file, mmap_mode="r", allow_pickle=False)
    except ValueError:
        raise InputError(f"{file}: the file is damaged: prepare the database again") from None


def _recorded(description: dict, name: str) -> tuple[int, str]:
    """Return the size and checksum of an array from a description."""
    file = description["files"][f"{name}.npy"]
    return file["bytes"], file["crc32"]


def _sum(file: Path) -> str:
    value = 0
    with open(file, "rb") as opened:
        while block := opened.read(1 << 24):
            value = crc32(block, value)
    return f"{value:08x}"
