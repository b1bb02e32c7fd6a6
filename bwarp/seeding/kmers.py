"""Batches of k-mers cut from reads, packed for searching.

A k-mer takes one 64-bit word (k up to 32) or two (k up to 64), first base in the highest bits:

    words[i]    A C G T A C ... A 0 0 0      unused low bits are 0
    base b      bits 63-2b, 62-2b of word b // 32

A batch also lists what cannot be searched: k-mers with an ambiguous base, and queries shorter than
k or longer than 64.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bwarp.io.fastx import SequenceBatch
from bwarp.options.finding import LONGEST_KMER, SHORTEST_KMER
from bwarp.runtime.compiled_code import compiled

#: The maximum number of sequences that a degenerate query may stand for.
MOST_VARIANTS = 4096

#: Reasons why a query or k-mer was not searched, by number.
REASONS = (
    "", "ambiguous base", "shorter than the k-mer length", f"longer than {LONGEST_KMER}",
    f"stands for more than {MOST_VARIANTS} sequences",
)  # fmt: skip
AMBIGUOUS_BASE, TOO_MANY_VARIANTS = 1, 4
_TOO_SHORT, _TOO_LONG = 2, 3


@dataclass(frozen=True)
class KmerBatch:
    """K-mers ordered by query and start.

    Attributes
    ----------
    words : ndarray, shape=(n, 1 or 2), dtype=uint64
        The packed bases of every k-mer.
    lengths : ndarray, shape=(n,), dtype=uint8
    queries : ndarray, shape=(n,), dtype=int64
        The number of the query of each k-mer within its batch of sequences.
    starts : ndarray, shape=(n,), dtype=int64
        Where the k-mer begins in the query.
    skipped : ndarray, shape=(n_skipped, 3), dtype=int64
        Query, start and reason (a number in `REASONS`) of everything not searched.
    variants : KmerBatch, optional
        For degenerate queries, all sequences that they stand for; its `queries` are then the
        numbers of k-mers, whose own `words` are meaningless.
    """

    words: np.ndarray
    lengths: np.ndarray
    queries: np.ndarray
    starts: np.ndarray
    skipped: np.ndarray
    variants: "KmerBatch | None" = None

    @property
    def count(self) -> int:
        return len(self.words)


def taken_kmers(kmers: KmerBatch, numbers: np.ndarray) -> KmerBatch:
    """Select k-mers of a batch, none of which is degenerate, by their numbers."""
    columns = (kmers.words, kmers.lengths, kmers.queries, kmers.starts)
    return KmerBatch(*(column[numbers] for column in columns), kmers.skipped[:0])


class PackedKmers(NamedTuple):
    """K-mers of one length as compiled functions take them.

    Attributes
    ----------
    words : ndarray, shape=(n * words_a_kmer + 1,), dtype=uint64
        One word more than the k-mers need, because reading the last one reads two words.
    """

    words: np.ndarray
    words_a_kmer: int
    k: int

    @classmethod
    def of(cls, kmers: np.ndarray, k: int) -> "PackedKmers":
        """Pack an array of k-mers, shape=(n, words_a_kmer)."""
        return cls(np.append(kmers.reshape(-1), np.uint64(0)), kmers.shape[1], k)


def kmer_words(k: int) -> int:
    """Return the number of 64-bit words per k-mer."""
    return 1 if k <= 32 else 2


def cut_kmers(sequences: SequenceBatch, k: int, step: int) -> KmerBatch:
    """Cut the k-mers that begin at every `step`-th base of every sequence, k from 8 to 64."""
    lengths = np.diff(sequences.offsets)
    n_windows = np.maximum((lengths - k) // step + 1, 1)
    firsts = np.concatenate([[0], np.cumsum(n_windows)])
    n = int(firsts[-1])
    queries = np.repeat(np.arange(sequences.count), n_windows)
    starts = (np.arange(n) - firsts[queries]) * step
    return _pack(sequences, queries, starts, np.full(n, k, np.int64), lengths)


def whole_queries(sequences: SequenceBatch) -> KmerBatch:
    """Take every sequence as one k-mer of its own length."""
    lengths = np.diff(sequences.offsets)
    queries = np.arange(sequences.count)
    return _pack(sequences, queries, np.zeros_like(queries), lengths, lengths)


def _pack(sequences, queries, starts, kmer_lengths, query_lengths) -> KmerBatch:
    n = len(queries)
    longest = int(min(kmer_lengths.max(initial=1), LONGEST_KMER))
    words = np.zeros((n, kmer_words(longest)), np.uint64)
    reasons = np.zeros(n, np.uint8)
    reasons[starts + kmer_lengths > query_lengths[queries]] = _TOO_SHORT
    reasons[kmer_lengths < SHORTEST_KMER] = _TOO_SHORT
    reasons[kmer_lengths > LONGEST_KMER] = _TOO_LONG
    _pack_kmers(sequences.codes, sequences.offsets[queries] + starts, kmer_lengths, words, reasons)
    kept = reasons == 0
    left = ~kept
    return KmerBatch(
        words=words[kept],
        lengths=kmer_lengths[kept].astype(np.uint8),
        queries=queries[kept],
        starts=starts[kept],
        skipped=np.column_stack([queries[left], starts[left], reasons[left]]).astype(np.int64),
    )


@compiled
def _pack_kmers(codes, positions, lengths, words, reasons):
    for i in range(positions.size):
        if reasons[i]:
            continue
        for b in range(lengths[i]):
            code = codes[positions[i] + b]
            if code > 3:
                reasons[i] = AMBIGUOUS_BASE
                break
            words[i, b >> 5] |= np.uint64(code) << np.uint64(62 - 2 * (b & 31))


@compiled
def base_of_item(words, words_a_kmer, k, item, position):
    """Return a base of item i of `PackedKmers`: k-mer i // 2, reverse-complemented if i is odd."""
    at = k - 1 - position if item & 1 else position
    word = words[(item >> 1) * words_a_kmer + (at >> 5)]
    code = (word >> np.uint64(62 - 2 * (at & 31))) & np.uint64(3)
    return np.uint64(3) - code if item & 1 else code
