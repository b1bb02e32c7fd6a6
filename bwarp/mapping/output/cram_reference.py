"""The reference of a CRAM file: where its writer finds the sequences, and where readers do.

The writer finds them in files named by their checksums, readers in the FASTA that the header names.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from bwarp.errors import InputError
from bwarp.io.bam.header import BamHeader
from bwarp.io.fastx import read_sequences
from bwarp.reference import Reference, codes_between

__all__ = ["is_readable_by_samtools", "naming_reference", "write_sequences"]

_LETTERS = np.frombuffer(b"ACGTN", np.uint8)

#: IUPAC letters as upper case.
_UPPER_CASE = np.full(256, 255, np.uint8)
for _letter in b"ABCDGHKMNRSTUVWY":
    _UPPER_CASE[_letter] = _UPPER_CASE[_letter + 32] = _letter


def is_readable_by_samtools(fasta: str) -> bool:
    """Whether a FASTA is a file that samtools can look up sequences in: plain text or BGZF."""
    if not os.path.isfile(fasta) or not os.path.abspath(fasta).isprintable():
        return False
    with open(fasta, "rb") as file:
        start = file.read(14)
    return start[:1] == b">" or (start[:4] == b"\x1f\x8b\x08\x04" and start[12:14] == b"BC")


def naming_reference(header: BamHeader, fasta: str | None) -> BamHeader:
    """The header with the path of the FASTA in every @SQ record, as UR, if samtools can read it.

    samtools looks there for the sequences; nothing else in a header of bwarp names a folder.
    """
    if fasta is None or not is_readable_by_samtools(fasta):
        return header
    path = b"\tUR:" + os.fsencode(os.path.abspath(fasta))
    lines = header.text.splitlines()
    named = (line + path if line.startswith(b"@SQ\t") else line for line in lines)
    return replace(header, text=b"".join(line + b"\n" for line in named))


def write_sequences(reference: Reference, fasta: str | None, folder: Path) -> None:
    """Write every contig's letters to ``folder/MD5``.

    Parameters
    ----------
    reference : Reference
    fasta : str, optional
        Where the letters are read from; otherwise they must all be A, C, G, T or N.
    folder : Path

    Raises
    ------
    InputError
        If there are other letters, or the FASTA is of another reference.
    """
    sequences = _from_packed(reference) if fasta is None else _from_fasta(fasta)
    waiting = dict(zip(reference.names, reference.md5, strict=True))
    for name, letters in sequences:
        checksum = waiting.pop(name, None)
        if checksum is None:
            continue
        if hashlib.md5(letters, usedforsecurity=False).hexdigest() != checksum:
            if fasta is None:
                raise InputError(
                    f"contig {name!r} has letters besides A, C, G, T and N, which the index does "
                    "not keep: give --reference with the FASTA that the index was made of"
                )
            raise InputError(
                f"{fasta}: contig {name!r} is not the one that the index was made of: "
                "give the FASTA that it was made of"
            )
        (folder / checksum).write_bytes(letters)
    for name in waiting:
        raise InputError(
            f"{fasta}: contig {name!r} of the index is not there: "
            "give the FASTA that it was made of"
        )


def _from_packed(reference: Reference) -> Iterator[tuple[str, np.ndarray]]:
    starts = reference.contig_starts
    for number, name in enumerate(reference.names):
        yield name, _LETTERS[codes_between(reference, starts[number], starts[number + 1])]


def _from_fasta(fasta: str) -> Iterator[tuple[str, np.ndarray]]:
    for batch in read_sequences(fasta, _UPPER_CASE):
        for number, name in enumerate(batch.names()):
            yield name, batch.codes[batch.offsets[number] : batch.offsets[number + 1]]
