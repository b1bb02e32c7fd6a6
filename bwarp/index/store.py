"""Store an index as a folder: written atomically, memory-mapped, and checked on first use.

index.json                   version, parameters, contigs, and the size and checksums of every file
genome.npy                   the contigs, 2 bits per base
segments.npy                 genome and text position of every segment
forward_blocks.npy           the BWT of the text ...
forward_separator_rows.npy
reverse_blocks.npy           ... and, if requested, of the reversed text
reverse_separator_rows.npy
prefix_table.npy             intervals of all k-mers of prefix_length
suffix_array.npy             every sa_rate-th entry

An index with both BWTs has format version 1, one without the reverse has version 2. The reverse is
added in place: existing files stay as they are, and the reverse takes effect when index.json names
it.

A folder may be replaced while programs have it open. All files are opened at once, relative to the
descriptor of one folder, so a program continues with the index that it opened.
"""

import json
import os
import re
import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from bwarp.errors import InputError, UsageError
from bwarp.index.consistency import counts_add_up, intervals_below, segments_in_order
from bwarp.index.description import FORMAT, array_types, canonical, parsed_description
from bwarp.index.fm_index import BWT, FMIndex
from bwarp.io.atomic_output import added_to_folder, atomic_folder
from bwarp.io.chunk_files import checked_array, map_file, save_with_sums, text_sum
from bwarp.reference import LONGEST_TEXT, Reference
from bwarp.runtime.threads import available_threads, run_together

_ARRAYS = (
    "genome",
    "segments",
    "forward_blocks",
    "forward_separator_rows",
    "reverse_blocks",
    "reverse_separator_rows",
    "prefix_table",
    "suffix_array",
)
_KEYS = (
    "format",
    "version",
    "occ_rate",
    "sa_rate",
    "prefix_length",
    "text_length",
    "first_rows",
    "forward_text_start",
    "reverse_text_start",
    "contigs",
)
_FILES = ("index.json", *(f"{name}.npy" for name in _ARRAYS))
#: Folders of the chunks of an index in chunks.
_CHUNK_FOLDER = re.compile(r"chunk-\d+")
#: Keys of the description that an index without the reverse lacks or that differ.
_OF_REVERSE = ("version", "reverse_text_start", "reverse_blocks.npy", "reverse_separator_rows.npy")
#: The files that do not depend on the sampling rates, nor on the reverse.
_OF_TEXT = ("genome.npy", "segments.npy")
#: How often to reopen an index that is replaced meanwhile: some network file systems report a
#: different inode number of a folder each time.
_TRIES = 100

Opened = TypeVar("Opened")


def save_index(index: FMIndex, folder: str | os.PathLike, threads: int = 1) -> None:
    """Write an index; the folder appears when it is complete and replaces an older one."""
    with new_index_folder(folder) as part:
        write_index(index, part, threads)


@contextmanager
def new_index_folder(folder: str | os.PathLike) -> Iterator[Path]:
    """Yield a private folder that becomes `folder` if the block ends without an error.

    Opening it before the index is built reports at once if `folder` cannot be written.
    """
    path = Path(folder) / "index.json"
    # Other programs also have files of that name, and their folders must not be replaced.
    if path.is_file() and FORMAT.encode() not in path.read_bytes():
        raise UsageError(
            f"{folder}: contains an index.json that bwarp did not write: give the name of a new "
            "folder"
        )
    chunks = [entry.name for entry in Path(folder).glob("*") if _CHUNK_FOLDER.fullmatch(entry.name)]
    of_chunks = [f"{chunk}/{name}" for chunk in chunks for name in _FILES]
    with atomic_folder(folder, [*_FILES, *of_chunks]) as part:
        yield part


@contextmanager
def added_to_index(stored: "StoredIndex") -> Iterator[Path]:
    """Yield a private folder whose files are added to the index if the block ends without an error.

    Until then, and while files are moved, the index stays valid. If another index was written there
    meanwhile, it is left unchanged.
    """
    folder = stored.folder

    def check() -> None:
        if load_index(folder).checksum != stored.checksum:
            raise InputError(
                f"{folder}: another index was written meanwhile and was left unchanged: run again "
                "to add the reverse BWT to it"
            )

    with added_to_folder(folder, "index.json", check) as part:
        yield part


def write_index(index: FMIndex, folder: Path, threads: int = 1) -> None:
    """Write the files of an index into an existing folder."""
    reference = index.reference
    arrays = reference_arrays(reference) | {
        "forward_blocks": index.forward.blocks,
        "forward_separator_rows": index.forward.separator_rows,
        "prefix_table": index.prefix_table,
        "suffix_array": index.suffix_array,
    }
    description = {
        "format": FORMAT,
        "version": 2,
        "occ_rate": index.occ_rate,
        "sa_rate": index.sa_rate,
        "prefix_length": index.prefix_length,
        "text_length": reference.text_length,
        "first_rows": index.forward.first_rows.tolist(),
        "forward_text_start": index.forward.text_start,
        "contigs": contig_descriptions(reference),
        "files": save_arrays(arrays, folder, threads),
    }
    if index.has_reverse:
        write_reverse(index.reverse, description, folder, threads)
    else:
        _write_description(description, folder)


def write_reverse(reverse: BWT, description: dict, folder: Path, threads: int = 1) -> None:
    """Write the files of a reverse BWT and the completed description of an index without it."""
    arrays = {"reverse_blocks": reverse.blocks, "reverse_separator_rows": reverse.separator_rows}
    files = description["files"] | save_arrays(arrays, folder, threads)
    complete = description | {"version": 1, "reverse_text_start": reverse.text_start}
    _write_description(complete | {"files": files}, folder)


def reference_arrays(reference: Reference) -> dict[str, np.ndarray]:
    """Return the stored arrays of a reference by their names."""
    return {
        "genome": reference.packed,
        "segments": np.column_stack(
            [reference.segment_genome.astype(np.int64), reference.segment_text[:-1]]
        ),
    }


def contig_descriptions(reference: Reference) -> list[dict]:
    """Return the names, lengths and checksums of contigs for a description."""
    lengths = np.diff(reference.contig_starts).tolist()
    contigs = [
        {"name": name, "length": length, "md5": md5}
        for name, length, md5 in zip(reference.names, lengths, reference.md5, strict=True)
    ]
    for number in reference.alt:
        contigs[number]["alt"] = True
    return contigs


def save_arrays(arrays: dict[str, np.ndarray], folder: Path, threads: int) -> dict[str, dict]:
    """Write arrays; return the size and checksums of each file by its name."""
    written = run_together(
        [
            lambda name=name, array=array: save_with_sums(folder / f"{name}.npy", array)
            for name, array in arrays.items()
        ],
        threads,
    )
    return {f"{name}.npy": sums for name, sums in zip(arrays, written, strict=True)}


def _write_description(description: dict, folder: Path) -> None:
    # In a fixed order, independent of the order in which the parts finish.
    files = {name: description["files"][name] for name in _FILES if name in description["files"]}
    write_json(
        {key: description[key] for key in _KEYS if key in description} | {"files": files}, folder
    )


def write_json(description: dict, folder: Path) -> None:
    """Write index.json with the checksum of its contents."""
    complete = description | {"sum": text_sum(canonical(description))}
    (folder / "index.json").write_text(json.dumps(complete, indent=1) + "\n")


def load_index(folder: str | os.PathLike) -> "StoredIndex":
    """Open an index written by `save_index`.

    Only index.json is read here. Each array is mapped, and its checksums are verified, on first
    use, so that a program pays only for what it uses.

    Raises
    ------
    InputError
        If the folder is not an index, is damaged, or is of another version.
    """
    return read_opened(folder, stored_at)


def read_opened(folder: str | os.PathLike, read: Callable[[Path, int], Opened]) -> Opened:
    """Return ``read(folder, opened)``; call it again if the folder was replaced meanwhile.

    Parameters
    ----------
    read : function of Path and int
        Opens files relative to the descriptor of the folder.
    """
    folder, refused = Path(folder), None
    for _ in range(_TRIES):
        try:
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            if folder.exists() and not folder.is_dir():
                raise InputError(
                    f"{folder}: is a file: give the folder that bwarp index wrote"
                ) from None
            raise InputError(
                f"{folder}: no such index: make it with bwarp index REF.fa -o {folder}"
            ) from None
        try:
            try:
                result, refused = read(folder, opened), None
            except InputError as error:
                refused = error
            if _is_at(folder, opened):
                break
        finally:
            os.close(opened)
    if refused:
        raise refused
    return result


def stored_at(folder: Path, opened: int) -> "StoredIndex":
    """Open the index in a folder that is open as a descriptor."""
    text = map_file(folder / "index.json", opened)
    files = {name: map_file(folder / name, opened) for name in _FILES[1:]}
    return StoredIndex(
        folder, parsed_description(folder / "index.json", text_of(folder, text)), files
    )


def _is_at(folder: Path, opened: int) -> bool:
    """Return whether the opened folder still has that name."""
    try:
        return os.path.samestat(os.stat(folder), os.fstat(opened))
    except FileNotFoundError:
        return False


def text_of(folder: Path, text: np.ndarray | None) -> bytes:
    """Return the contents of index.json, as mapped."""
    if text is None:
        raise InputError(
            f"{folder}: not a bwarp index (no index.json): make one with bwarp index REF.fa -o "
            f"{folder}"
        )
    return text.tobytes()


class StoredReference:
    """The `Reference` of an index in a folder: each array is read on first use.

    Attributes
    ----------
    folder : Path
    description : dict
        The checked contents of index.json.
    """

    def __init__(
        self,
        folder: Path,
        description: dict,
        files: dict[str, np.ndarray | None],
        types: dict[str, tuple[np.dtype, tuple[int, ...]]],
    ):
        self.folder = folder
        self.description = description
        self._files = files
        self._types = types
        self._arrays: dict[str, np.ndarray] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    def _array(self, name: str) -> np.ndarray:
        """Return an array, mapped once: concurrent threads wait for the first one."""
        file = f"{name}.npy"
        with self._lock:
            if name not in self._arrays:
                recorded = self.description["files"][file]
                self._arrays[name] = checked_array(
                    self.folder / file, self._files[file], recorded, *self._types[file]
                )
            return self._arrays[name]

    def _impossible(self, name: str, what: str) -> InputError:
        return InputError(
            f"{self.folder / name}.npy: the index is invalid ({what}): build it again"
        )

    @cached_property
    def reference(self) -> Reference:
        contigs = self.description["contigs"]
        segments = self._array("segments")
        if segments.min() < 0 or segments.max() > LONGEST_TEXT:
            raise self._impossible("segments", "its segments are not in order")
        lengths = [contig["length"] for contig in contigs]
        reference = Reference(
            names=tuple(contig["name"] for contig in contigs),
            contig_starts=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
            md5=tuple(contig["md5"] for contig in contigs),
            segment_genome=segments[:, 0].astype(np.uint32),
            segment_text=np.append(segments[:, 1], self.description["text_length"]),
            packed=self._array("genome"),
            alt=tuple(number for number, contig in enumerate(contigs) if contig.get("alt")),
        )
        if not segments_in_order(reference):
            raise self._impossible("segments", "its segments are not in order")
        return reference


class StoredIndex(StoredReference):
    """An `FMIndex` in a folder: the same attributes, each read on first use."""

    def __init__(self, folder: Path, description: dict, files: dict[str, np.ndarray | None]):
        super().__init__(folder, description, files, array_types(description))
        self.occ_rate: int = description["occ_rate"]
        self.sa_rate: int = description["sa_rate"]
        self.prefix_length: int = description["prefix_length"]
        self.start_tables: dict[int, np.ndarray] = {}

    @property
    def checksum(self) -> str:
        """A checksum that identifies this index, whether or not the reverse has been added."""
        fixed = {key: self.description[key] for key in self.description if key not in _OF_REVERSE}
        files = {file: sums for file, sums in fixed["files"].items() if file not in _OF_REVERSE}
        return text_sum(json.dumps(fixed | {"files": files}, sort_keys=True))

    @property
    def text_checksum(self) -> str:
        """A checksum that identifies the indexed genome, whatever the sampling rates."""
        files = {file: self.description["files"][file] for file in _OF_TEXT}
        return text_sum(json.dumps([self.description["contigs"], files], sort_keys=True))

    @property
    def has_reverse(self) -> bool:
        return "reverse_text_start" in self.description

    def _bwt(self, direction: str) -> BWT:
        bwt = BWT(
            self._array(f"{direction}_blocks"),
            self._array(f"{direction}_separator_rows"),
            np.array(self.description["first_rows"], np.uint32),
            self.description[f"{direction}_text_start"],
        )
        if not counts_add_up(bwt, self.description["text_length"], available_threads()):
            raise self._impossible(
                f"{direction}_blocks", "the counts of the BWT do not match its separators"
            )
        return bwt

    @cached_property
    def forward(self) -> BWT:
        return self._bwt("forward")

    @cached_property
    def reverse(self) -> BWT | None:
        return self._bwt("reverse") if self.has_reverse else None

    @cached_property
    def prefix_table(self) -> np.ndarray:
        table = self._array("prefix_table")
        if not intervals_below(table, self.description["text_length"], available_threads()):
            raise self._impossible("prefix_table", "it contains rows that the index does not have")
        return table

    @cached_property
    def suffix_array(self) -> np.ndarray:
        return self._array("suffix_array")


# Searches that need the BWT of the reversed text, for indexes built without it.


def require_reverse(index: FMIndex | StoredReference, search: str) -> None:
    """Raise an error if an index lacks the reverse for a search, such as ``"a search with
    mismatches"``.
    """
    if index.has_reverse:
        return
    if isinstance(index, StoredReference):
        folder = index.folder
        raise UsageError(
            f"{folder}: no reverse BWT, which {search} requires: add it with bwarp index -o "
            f"{shlex.quote(str(folder))} --with-reverse"
        )
    raise UsageError(
        f"the index has no reverse BWT, which {search} requires: build it with with_reverse=True, "
        "or add it with add_reverse()"
    )
