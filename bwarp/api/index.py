"""bwarp.Index: build, save and open an FM-index.

index = bwarp.Index.build("genome.fa.gz")
index.save("genome.index")
index = bwarp.Index.open("genome.index")
"""

import hashlib
import os
from pathlib import Path
from typing import cast

import numpy as np

from bwarp.api.engine import prepared, threads_or_all
from bwarp.api.sequences import Sequences, batch_of, given_sequences, is_file, refuse_nothing
from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.index.build import build_index, build_reverse
from bwarp.index.chunk_store import open_index
from bwarp.index.chunks import ChunkedIndex
from bwarp.index.description import refused_chunks
from bwarp.index.fm_index import FMIndex
from bwarp.index.parameters import choose_parameters
from bwarp.index.store import StoredIndex, save_index
from bwarp.reference import Reference, check_size, make_reference, read_reference
from bwarp.sequence import decode


class Index:
    """An FM-index of a reference, searched by the functions of `bwarp`.

    Attributes
    ----------
    names : list of str
        Names of the contigs.
    lengths : ndarray, shape=(n_contigs,), dtype=int64
    fm_index : FMIndex, StoredIndex or ChunkedIndex
        Arrays of the index.
    """

    def __init__(self, fm_index: FMIndex | StoredIndex | ChunkedIndex):
        # The first two have the same attributes; `arrays_of` refuses the third.
        self.fm_index = cast(FMIndex, fm_index)
        if isinstance(fm_index, StoredIndex | ChunkedIndex):
            # Arrays are read, and their checksums verified, at first use.
            contigs = fm_index.description["contigs"]
            self.names = [contig["name"] for contig in contigs]
            self.lengths = np.array([contig["length"] for contig in contigs], np.int64)
        else:
            self.names = list(fm_index.reference.names)
            self.lengths = np.diff(fm_index.reference.contig_starts)

    @classmethod
    def open(cls, folder: str | os.PathLike) -> "Index":
        """Open the index in a folder written by `save` or bwarp index.

        Only `find_mems` and `find_seeds` search an index in chunks.
        """
        return cls(open_index(folder))

    @classmethod
    def build(
        cls,
        reference: Sequences,
        *,
        occ_rate: int = 64,
        sa_rate: int = 4,
        prefix_length: int | None = None,
        with_reverse: bool = False,
        backend: str = "auto",
        threads: int | None = None,
    ) -> "Index":
        """Index a FASTA file, or contigs in memory.

        Parameters
        ----------
        reference : path, or sequences in memory
            Contigs of a list are named 0, 1, ...; those of a dict by its keys.
        occ_rate : int, default: 64
            Rows of the BWT between two stored counts of its bases.
        sa_rate : int, default: 4
            Rows between two stored entries of the suffix array; 1 stores all.
        prefix_length : int, optional
            Length of the k-mers whose SA intervals are stored, 0 to 14; by default
            chosen by the size of the genome.
        with_reverse : bool, default: False
            Also build the BWT of the reversed text, for searches with mismatches and
            for unique matches.
        backend : {"auto", "cpu", "cuda"}
            Engine to use.
        threads : int, optional
            Number of threads; by default all that this process may use.
        """
        threads = threads_or_all(threads)
        # Report wrong options before any work is done.
        choose_parameters(1, occ_rate, sa_rate, prefix_length)
        contigs = reference_of(reference, threads)
        chosen = choose_parameters(contigs.text_length, occ_rate, sa_rate, prefix_length)
        _, built = prepared(
            backend,
            lambda engine: build_index(contigs, chosen, engine, threads, with_reverse=with_reverse),
        )
        return cls(built)

    def add_reverse(self, *, backend: str = "auto", threads: int | None = None) -> None:
        """Build the BWT of the reversed text if the index lacks it.

        Searches with mismatches and for unique matches need it. It is added in memory: `save`
        writes it with the index, and ``bwarp index --with-reverse`` adds it to a folder.
        """
        index, threads = arrays_of(self), threads_or_all(threads)
        if index.has_reverse:
            return
        _, reverse = prepared(
            backend,
            lambda engine: build_reverse(index.reference, index.occ_rate, engine, threads),
        )
        self.fm_index = FMIndex(
            index.reference,
            index.forward,
            reverse,
            index.prefix_table,
            index.suffix_array,
            index.sa_rate,
        )

    def save(self, folder: str | os.PathLike, threads: int | None = None) -> Path:
        """Write the index to a folder, which replaces an older index once it is complete.

        Returns
        -------
        folder : Path
        """
        save_index(arrays_of(self), folder, threads_or_all(threads))
        return Path(folder)

    def __len__(self) -> int:
        """Return the number of contigs."""
        return len(self.names)

    def __repr__(self) -> str:
        bases = counted(self.lengths.sum(), "base")
        return f"<bwarp.Index of {counted(len(self), 'contig')}, {bases}>"


def arrays_of(index: "Index | FMIndex | StoredIndex | str | os.PathLike") -> FMIndex:
    """Return the arrays of an index, or of an index in a folder, that is not in chunks."""
    found = arrays_or_chunks_of(index)
    if isinstance(found, ChunkedIndex):
        raise refused_chunks(found.folder)
    return found


def arrays_or_chunks_of(
    index: "Index | FMIndex | StoredIndex | ChunkedIndex | str | os.PathLike",
) -> FMIndex | ChunkedIndex:
    """Return the arrays of an index, or of an index in a folder, or an index in chunks."""
    if isinstance(index, str | os.PathLike):
        return Index.open(index).fm_index
    if isinstance(index, FMIndex | StoredIndex | ChunkedIndex):
        return Index(index).fm_index
    if isinstance(index, Index):
        return index.fm_index
    raise UsageError(
        f"the index is of type {type(index).__name__}: give a bwarp.Index or the folder of an index"
    )


def reference_of(given: Sequences, threads: int) -> Reference:
    """Return the contigs of a FASTA file, or contigs in memory, as a reference."""
    if is_file(given, "reference"):
        return read_reference(given, threads)
    items = list(given_sequences(given, "reference"))
    refuse_nothing(items, "reference")
    batch = batch_of(items)
    names = batch.names()
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"reference: two contigs are named {twice!r}: rename one")
    if not (batch.codes < 4).any():
        raise InputError("reference: no contig has an A, C, G or T: there is nothing to index")
    check_size("reference", batch.codes.size + len(names))
    md5 = tuple(
        hashlib.md5(_letters(item.sequence), usedforsecurity=False).hexdigest() for item in items
    )
    return make_reference(tuple(names), batch.offsets, batch.codes, md5, threads)


def _letters(sequence: str | bytes | np.ndarray) -> bytes:
    """Return the bytes that the checksum of a contig covers."""
    if isinstance(sequence, np.ndarray):
        return decode(sequence)
    return (sequence.encode() if isinstance(sequence, str) else bytes(sequence)).upper()
