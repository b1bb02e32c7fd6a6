"""K-mers of a file of queries, batch by batch, with the names of their queries."""

import os
from collections.abc import Iterator

from bwarp.errors import InputError
from bwarp.io.fastx import read_sequences
from bwarp.io.file_blocks import CHUNK_BYTES
from bwarp.seeding.find import kmer_batches
from bwarp.seeding.kmers import KmerBatch
from bwarp.seeding.output.seed_text import Names, query_names

__all__ = ["read_kmers"]


def read_kmers(
    path: str | os.PathLike,
    k: int | None = None,
    step: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[tuple[KmerBatch, Names]]:
    """The k-mers of a FASTA or FASTQ file, in order.

    Parameters
    ----------
    path : path-like
        As for `bwarp.io.fastx.read_sequences`.
    k, step
        As for `bwarp.seeding.find.kmer_batches`.

    Yields
    ------
    kmers, names : KmerBatch, Names
        The names are those of the queries that `kmers` numbers.

    Raises
    ------
    InputError
        For a file that cannot be read, or a query without a name.
    """
    for sequences in read_sequences(path, chunk_bytes=chunk_bytes):
        names = query_names(sequences)
        nameless = names.first_empty()
        if nameless is not None:
            raise InputError(
                f"{path}: record {sequences.first_record + nameless + 1} has no name: "
                "write one after its > or @"
            )
        for kmers in kmer_batches(sequences, k, step):
            yield kmers, names
