"""Read queries and yield their k-mers, batch by batch, with the names of the queries."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from bwarp.errors import UsageError
from bwarp.io.fastx import SequenceBatch, read_sequences
from bwarp.io.names import Names, names_of
from bwarp.runtime.chunks import in_order
from bwarp.runtime.timeline import on_timeline
from bwarp.seeding.find import batches_to_cut, kmer_batches
from bwarp.seeding.kmers import (
    AMBIGUOUS_BASE,
    MOST_VARIANTS,
    TOO_MANY_VARIANTS,
    KmerBatch,
    kmer_words,
    whole_queries,
)

# Degenerate queries: searched as all sequences that their IUPAC letters stand for.
#
# A query with R, Y or N is searched as many plain ones, its variants. Several variants may match
# the same site; it is reported once, with the fewest mismatches: those at bases that the letter
# excludes.


#: Threads that cut k-mers, which bounds the memory for those that wait.
MOST_CUTTING = 8

#: The maximum number of variants in a batch.
VARIANTS_AT_ONCE = 1 << 18

#: The bases that a letter stands for; its code is its index here, with N at 4 as everywhere.
_MEANT = {
    "A": "A", "C": "C", "G": "G", "T": "T", "N": "ACGT", "R": "AG", "Y": "CT", "S": "CG",
    "W": "AT", "K": "GT", "M": "AC", "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG",
}  # fmt: skip
_BASES = tuple(tuple("ACGT".index(base) for base in bases) for bases in _MEANT.values())
_N_BASES = np.array([len(bases) for bases in _BASES])


def _letter_table() -> np.ndarray:
    table = np.full(256, 255, np.uint8)
    for code, letter in enumerate(_MEANT):
        table[ord(letter)] = table[ord(letter.lower())] = code
    table[ord("U")] = table[ord("u")] = table[ord("T")]
    table.setflags(write=False)
    return table


#: uint8[256]: the code of each IUPAC letter, with the usual codes of plain bases and N; 255 for
#: other bytes.
CODE_OF_LETTER = _letter_table()


def bases_of_codes(codes: np.ndarray) -> np.ndarray:
    """Return the bases that letters stand for, one bit each, A lowest; dtype=uint8."""
    return np.array([sum(1 << base for base in bases) for bases in _BASES], np.uint8)[codes]


def batches_with_variants(
    sequences: SequenceBatch, k: int | None = None, step: int = 1
) -> Iterator[KmerBatch]:
    """Do what `bwarp.seeding.find.kmer_batches` does, with degenerate queries in separate batches.

    Parameters
    ----------
    sequences : SequenceBatch
        Codes are those of `CODE_OF_LETTER`. K-mers cut from queries contain plain bases only.
    """
    if k is not None:
        yield from kmer_batches(sequences, k, step)
        return
    kmers = whole_queries(sequences)
    ambiguous = kmers.skipped[kmers.skipped[:, 2] == AMBIGUOUS_BASE, 0]
    codes = [
        sequences.codes[sequences.offsets[query] : sequences.offsets[query + 1]]
        for query in ambiguous
    ]
    # Logarithms, because a query of Ns may stand for more sequences than an integer can hold.
    too_many = np.array([np.log2(_N_BASES[one]).sum() for one in codes]) > np.log2(MOST_VARIANTS)
    kmers.skipped[np.isin(kmers.skipped[:, 0], ambiguous[too_many]), 2] = TOO_MANY_VARIANTS
    waiting, first = [], 0
    for query, letters, refused in zip(ambiguous.tolist(), codes, too_many, strict=True):
        if refused:
            continue
        plain = _between(kmers, first, query)
        size = sum(len(words) for _, _, words in waiting)
        if waiting and (plain.count or size > VARIANTS_AT_ONCE):
            yield _degenerate(kmers, waiting)
            waiting = []
        if plain.count or len(plain.skipped):
            yield plain
        waiting.append((query, letters.size, _variant_words(letters)))
        first = query + 1
    if waiting:
        yield _degenerate(kmers, waiting)
    rest = _between(kmers, first, sequences.count)
    if rest.count or len(rest.skipped) or first == 0:
        yield rest


def _between(kmers: KmerBatch, first: int, last: int) -> KmerBatch:
    """Return the plain queries from number `first` up to, but excluding, `last`."""
    begin, end = np.searchsorted(kmers.queries, [first, last])
    rows = slice(int(begin), int(end))
    numbers = kmers.skipped[:, 0]
    return KmerBatch(
        words=kmers.words[rows],
        lengths=kmers.lengths[rows],
        queries=kmers.queries[rows],
        starts=kmers.starts[rows],
        skipped=kmers.skipped[(numbers >= first) & (numbers < last)],
    )


def _degenerate(kmers: KmerBatch, waiting: list) -> KmerBatch:
    """Make a batch of degenerate queries, given by number, length and words of their variants."""
    queries = np.array([query for query, _, _ in waiting], np.int64)
    lengths = np.array([length for _, length, _ in waiting], np.uint8)
    n_words = kmer_words(int(lengths.max()))
    numbers = np.repeat(np.arange(queries.size), [len(words) for _, _, words in waiting])
    nothing = np.empty((0, 3), np.int64)
    variants = KmerBatch(
        words=np.concatenate([words[:, :n_words] for _, _, words in waiting]),
        lengths=lengths[numbers],
        queries=numbers,
        starts=np.zeros(numbers.size, np.int64),
        skipped=nothing,
    )
    return KmerBatch(
        words=np.zeros((queries.size, n_words), np.uint64),
        lengths=lengths,
        queries=queries,
        starts=np.zeros(queries.size, np.int64),
        skipped=nothing,
        variants=variants,
    )


def _variant_words(letters: np.ndarray) -> np.ndarray:
    """Return the packed bases of all variants, in alphabetical order, shape=(n, 2)."""
    words = np.zeros((1, 2), np.uint64)
    for at, code in enumerate(letters):
        bases = np.array(_BASES[code], np.uint64)
        words = np.repeat(words, bases.size, axis=0)
        bits = np.tile(bases, len(words) // bases.size) << np.uint64(62 - 2 * (at & 31))
        words[:, at >> 5] |= bits
    return words


def kmers_to_cut(k: int | None, step: int | None) -> tuple[int | None, int]:
    """Return the length of k-mers, None for whole queries, and their step, by default 1."""
    if step is not None and k is None:
        raise UsageError("--step requires -k")
    return k, step or 1


def read_queries(
    path: str | os.PathLike, k: int | None = None, step: int = 1, threads: int = 1
) -> Iterator[tuple[KmerBatch, Names]]:
    """Yield the k-mers of a FASTA or FASTQ file, in order; for degenerate queries, the variants.

    Parameters
    ----------
    path : path-like
        As for `bwarp.io.fastx.read_sequences`.
    k, step
        As for `bwarp.seeding.find.kmer_batches`.
    threads : int
        Threads that parse the file and cut k-mers, ahead of what is requested.

    Yields
    ------
    kmers, names : KmerBatch, Names
        The names of the queries that `kmers` refers to.

    Raises
    ------
    InputError
        If the file cannot be read, or a query has no name.
    """
    sequences = read_sequences(path, CODE_OF_LETTER, threads=threads)
    yield from kmers_of(path, sequences, k, step, threads)


def kmers_of(
    where: str | os.PathLike,
    batches: Iterable[SequenceBatch],
    k: int | None = None,
    step: int = 1,
    threads: int = 1,
) -> Iterator[tuple[KmerBatch, Names]]:
    """Do what `read_queries` does for sequences already read; errors name their source, `where`.

    Codes are those of `bwarp.seeding.queries.CODE_OF_LETTER`.
    """

    def to_cut() -> Iterator[Callable[[], list[tuple[KmerBatch, Names]]]]:
        for sequences in batches:
            if k is None:
                yield partial(_named_queries, where, sequences)
                continue
            names = names_of(where, sequences)
            for cut in batches_to_cut(sequences, k, step):
                yield lambda cut=cut, names=names: [(cut(), names)]

    for made in in_order(_cut, to_cut(), min(threads, MOST_CUTTING)):
        yield from made


@on_timeline("cut k-mers")
def _cut(cut: Callable[[], list]) -> list:
    return cut()


def _named_queries(
    where: str | os.PathLike, sequences: SequenceBatch
) -> list[tuple[KmerBatch, Names]]:
    names = names_of(where, sequences)
    return [(kmers, names) for kmers in batches_with_variants(sequences)]
