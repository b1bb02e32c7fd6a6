"""K-mers of queries, batch by batch, with the names of their queries."""

import os
from collections.abc import Iterable, Iterator

from bwarp.errors import UsageError
from bwarp.io.fastx import SequenceBatch, read_sequences
from bwarp.io.names import Names, names_of
from bwarp.seeding.degenerate_queries import CODE_OF_LETTER, batches_with_variants
from bwarp.seeding.kmers import KmerBatch

__all__ = ["kmers_of", "kmers_to_cut", "read_queries"]


def kmers_to_cut(k: int | None, step: int | None) -> tuple[int | None, int]:
    """The length of k-mers, None for whole queries, and their step, of which 1 is the default."""
    if step is not None and k is None:
        raise UsageError("--step is for cut k-mers: give their length with -k, or leave it out")
    return k, step or 1


def read_queries(
    path: str | os.PathLike, k: int | None = None, step: int = 1
) -> Iterator[tuple[KmerBatch, Names]]:
    """The k-mers of a FASTA or FASTQ file, in order; of whole degenerate queries, the variants.

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
    yield from kmers_of(path, read_sequences(path, CODE_OF_LETTER), k, step)


def kmers_of(
    where: str | os.PathLike,
    batches: Iterable[SequenceBatch],
    k: int | None = None,
    step: int = 1,
) -> Iterator[tuple[KmerBatch, Names]]:
    """`read_queries` for sequences that someone else reads; errors name `where` they are from.

    Codes are those of `bwarp.seeding.degenerate_queries.CODE_OF_LETTER`.
    """
    for sequences in batches:
        names = names_of(where, sequences)
        for kmers in batches_with_variants(sequences, k, step):
            yield kmers, names
