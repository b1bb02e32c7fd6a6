"""Convert sequences that users pass to functions into the batches in which files are read.

"reads.fq.gz"                     a file; it must exist
["ACGT", b"GGTA"]                 named 0, 1, ...; any sequence of strings, or arrays of codes
{"liver_1": "ACGT"}, a Series     named by the keys or the index
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sized
from itertools import islice
from typing import NamedTuple, TypeGuard

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.io.compressed_files import CHUNK_BYTES
from bwarp.io.fastx import SequenceBatch, read_sequences
from bwarp.reads.read_chunks import LONGEST_READ, ReadChunk, read_chunks
from bwarp.sequence import CODE_OF_BYTE

#: Types that functions of this package accept as sequences.
Sequences = str | os.PathLike | Iterable | Mapping

#: Number of sequences in memory per batch.
_AT_ONCE = 1 << 16

#: Maximum number of letters of a string shown in an error.
_SHOWN = 30


class Given(NamedTuple):
    """A sequence in memory, and its name in errors: ``what[key]``."""

    what: str
    key: object
    sequence: str | bytes | np.ndarray

    @property
    def where(self) -> str:
        return f"{self.what}[{self.key!r}]"


def listed(given: str | os.PathLike | Iterable | None) -> list:
    """Return what may be one path or text, several, or None as a list."""
    if given is None:
        return []
    return [given] if isinstance(given, str | os.PathLike) else list(given)


def is_file(given: Sequences, what: str) -> TypeGuard[str | os.PathLike]:
    """Return whether sequences are given as a file.

    Raises
    ------
    InputError
        If a path does not exist, or is a folder.
    UsageError
        If a string does not name a file; it would otherwise be taken as a list of letters.
    """
    if isinstance(given, os.PathLike) or (isinstance(given, str) and os.path.exists(given)):
        check_files(given)
        return True
    if isinstance(given, str | bytes | bytearray):
        shown = repr(given[:_SHOWN])
        raise UsageError(
            f"{what} {shown} is not an existing file: use [{shown}] for a list of one sequence, or "
            "the path of a FASTA or FASTQ file"
        )
    return False


def check_files(*paths: str | os.PathLike | None) -> None:
    """Raise an error if a path does not exist or is a folder; None is ignored."""
    for path in paths:
        if path is not None and os.path.isdir(path):
            raise InputError(f"{path}: is a folder: give the path of a file")
        if path is not None and not os.path.exists(path):
            raise InputError(f"{path}: no such file: check the path")


def sequence_batches(
    given: Sequences,
    what: str,
    code_of_byte: np.ndarray = CODE_OF_BYTE,
    chunk_bytes: int = CHUNK_BYTES,
    threads: int = 1,
) -> tuple[str, Iterator[SequenceBatch]]:
    """Return the source of sequences, for error messages, and their batches.

    Parameters
    ----------
    given : path, or sequences in memory
    what : str
        Name of this argument of the function.
    code_of_byte : ndarray, shape=(256,), dtype=uint8
        Code of each byte; 255 for bytes that are not letters.
    chunk_bytes : int
        Bytes of a file per batch.
    threads : int
        Threads that parse a file.
    """
    if is_file(given, what):
        return os.fspath(given), read_sequences(given, code_of_byte, chunk_bytes, threads)
    return what, _batches(given_sequences(given, what), code_of_byte)


def refuse_nothing(sequences: Sized, what: str) -> None:
    """Raise an error if there are no sequences."""
    if not len(sequences):
        raise InputError(f"{what}: no sequences: give at least one")


def given_sequences(given: Sequences, what: str) -> Iterator[Given]:
    """Yield sequences in memory one by one."""
    if hasattr(given, "items"):
        pairs = given.items()
    elif isinstance(given, Iterable):
        pairs = enumerate(given)
    else:
        raise UsageError(
            f"{what} is of type {type(given).__name__}: give a list of sequences, a dict of names "
            "and sequences, or the path of a FASTA or FASTQ file"
        )
    return (Given(what, key, sequence) for key, sequence in pairs)


def _batches(items: Iterator[Given], code_of_byte: np.ndarray) -> Iterator[SequenceBatch]:
    first = 0
    while part := list(islice(items, _AT_ONCE)):
        yield batch_of(part, code_of_byte, first)
        first += len(part)


def batch_of(
    items: list[Given], code_of_byte: np.ndarray = CODE_OF_BYTE, first_record: int = 0
) -> SequenceBatch:
    """Return sequences in memory as a batch.

    Raises
    ------
    InputError
        If an item is not a sequence, a letter is invalid, or a name contains a blank.
    """
    letters = _letters_of_codes(code_of_byte)
    text, offsets = _end_to_end([_text(item, letters) for item in items])
    codes = code_of_byte[text]
    for at in np.flatnonzero(codes == 255)[:1]:
        number = int(np.searchsorted(offsets, at, side="right")) - 1
        raise InputError(
            f"{items[number].where}: {chr(text[at])!r} at position {at - offsets[number]} is not a "
            "valid sequence letter"
        )
    names, edges = _end_to_end([_name(item) for item in items])
    return SequenceBatch(
        codes=codes,
        offsets=offsets,
        qualities=None,
        text=names,
        headers=np.column_stack([edges[:-1], edges[1:]]),
        first_record=first_record,
    )


def _end_to_end(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate strings into an array of bytes; return it with the n + 1 offsets."""
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return np.frombuffer(b"".join(texts), np.uint8), offsets


def _letters_of_codes(code_of_byte: np.ndarray) -> np.ndarray:
    """Return a letter for each code, as bytes."""
    codes, letters = np.unique(code_of_byte, return_index=True)
    return letters[codes < 255].astype(np.uint8)


def _text(item: Given, letters: np.ndarray) -> bytes:
    sequence = item.sequence
    if isinstance(sequence, str):
        # Characters outside Latin-1 become question marks, which are never valid letters.
        return sequence.encode("latin-1", "replace")
    if isinstance(sequence, bytes | bytearray):
        return bytes(sequence)
    if isinstance(sequence, np.ndarray) and sequence.dtype == np.uint8 and sequence.ndim == 1:
        if sequence.size and sequence.max() >= letters.size:
            raise InputError(
                f"{item.where}: {sequence.max()} is not a valid code: codes are 0 to "
                f"{letters.size - 1}"
            )
        return letters[sequence].tobytes()
    raise InputError(
        f"{item.where} is of type {type(sequence).__name__}: a sequence must be a str, bytes, or "
        "an array of codes (uint8)"
    )


def _name(item: Given) -> bytes:
    name = str(item.key)
    if len(name.split()) != 1 or name != name.strip():
        raise InputError(f"{item.where}: names must not be empty or contain white space: rename it")
    return name.encode()


# --------------------------------------------------------------------------------------------------
# Chunks of reads and their mates.


def chunks_of_reads(
    reads: Sequences, mates: Sequences | None, size: int, threads: int
) -> Iterator[ReadChunk]:
    """Yield chunks of `size` reads; with `mates`, pairs: mate i is the other end of read i.

    Parameters
    ----------
    reads, mates : path, or sequences in memory
        Either both files or both in memory.
    """
    if is_file(reads, "reads"):
        if mates is None:
            return read_chunks(os.fspath(reads), None, False, size, threads)
        if is_file(mates, "mates"):
            return read_chunks(os.fspath(reads), os.fspath(mates), False, size, threads)
    elif mates is None or not is_file(mates, "mates"):
        return _chunks_of(reads, mates, size)
    raise UsageError("reads and mates must both be files, or both be in memory")


def _chunks_of(reads: Sequences, mates: Sequences | None, size: int) -> Iterator[ReadChunk]:
    """Yield chunks of `size` reads in memory; both ends of a pair are adjacent."""
    items = list(given_sequences(reads, "reads"))
    ends = 1
    if mates is not None:
        partners = list(given_sequences(mates, "mates"))
        if len(partners) != len(items):
            raise InputError(
                f"{counted(len(items), 'read')} but {counted(len(partners), 'mate')}: give one "
                "mate per read"
            )
        ends = 2
        items = [read for pair in zip(items, partners, strict=True) for read in pair]
    first, rest = 0, iter(items)
    while part := list(islice(rest, size)):
        yield _chunk_of(part, ends, first)
        first += len(part) // ends


def _chunk_of(items: list[Given], ends: int, first_template: int) -> ReadChunk:
    batch = batch_of(items)
    lengths = np.diff(batch.offsets)
    for number in np.flatnonzero(lengths > LONGEST_READ)[:1]:
        raise InputError(
            f"{items[number].where} has {counted(lengths[number], 'base')}, but the maximum is "
            f"{LONGEST_READ:,}: use a mapper for long reads, such as minimap2"
        )
    return ReadChunk(
        codes=batch.codes,
        offsets=batch.offsets,
        qualities=None,
        text=batch.text,
        names=batch.headers[::ends].copy(),
        ends=ends,
        first_template=first_template,
    )
