"""The sequences of the contigs as files named by their checksums, where CRAM writers look."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bwarp.errors import InputError
from bwarp.io.fastx import read_sequences
from bwarp.reference import Reference, codes_between

__all__ = ["write_sequences"]

_LETTERS = np.frombuffer(b"ACGTN", np.uint8)

#: IUPAC letters as upper case.
_UPPER_CASE = np.full(256, 255, np.uint8)
for _letter in b"ABCDGHKMNRSTUVWY":
    _UPPER_CASE[_letter] = _UPPER_CASE[_letter + 32] = _letter


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
