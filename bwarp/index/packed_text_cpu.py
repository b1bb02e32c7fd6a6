"""The indexed text in 2 bits per base, with a separate list of its separators.

The text is the segments of a reference, each followed by a separator (`bwarp.reference`). As 2 bits
cannot encode a fifth symbol, a separator is stored as A and its position is listed. One bit per 256
positions tells whether 32 bases read from there may include one: nearly all reads of the text find
the bit unset and need no further check.

    text       A C G | T A |         | is a separator, and comes before A
    words      A C G A T A A         32 bases per word, the first in the highest bits
    separators 3, 6
"""

from typing import NamedTuple

import numpy as np

from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range
from bwarp.sequence import kmer_at, reverse_complement_kmer

#: Bases of a word, the maximum that is read at once.
WORD = 32

#: Positions that share a bit of `near_separator`.
STRETCH = 256


class PackedText(NamedTuple):
    """A text of A, C, G, T and separators.

    Attributes
    ----------
    words : ndarray, shape=(size // 32 + 3,), dtype=uint64
    separators : ndarray, shape=(n_separators,), dtype=int64
        Their sorted positions; the text ends with one, and no two are adjacent.
    near_separator : ndarray, dtype=uint64
        Bit i: whether one of the 32 bases from any position of stretch i on is a separator.
    size : int
    """

    words: np.ndarray
    separators: np.ndarray
    near_separator: np.ndarray
    size: int


def make_text(words: np.ndarray, separators: np.ndarray) -> PackedText:
    """Make a text from its words and the positions of its separators, the last of which ends it."""
    size = int(separators[-1]) + 1
    near = np.zeros(size // STRETCH // 64 + 1, np.uint64)
    for reach in (0, WORD - 1):
        stretch = np.maximum(separators - reach, 0) // STRETCH
        np.bitwise_or.at(near, stretch >> 6, np.uint64(1) << (stretch & 63).astype(np.uint64))
    return PackedText(words, separators, near, size)


def pack_text(reference: Reference, threads: int = 1) -> PackedText:
    """Pack the text of a reference."""
    words = np.zeros(reference.text_length // WORD + 3, np.uint64)
    for_each_range(
        lambda start, stop: _pack(
            reference.packed, reference.segment_genome, reference.segment_text, words, start, stop
        ),
        reference.text_length // WORD + 1,
        threads,
    )
    return make_text(words, reference.segment_text[1:] - 1)


def reversed_text(text: PackedText, threads: int = 1) -> PackedText:
    """Reverse the text, keeping its last separator last."""
    words = np.zeros_like(text.words)
    for_each_range(
        lambda start, stop: _reverse(text.words, text.size, words, start, stop),
        text.size // WORD + 1,
        threads,
    )
    separators = np.append(text.size - 2 - text.separators[-2::-1], text.size - 1)
    return make_text(words, separators)


@compiled
def is_near_separator(text, position):
    """Return False if none of the 32 bases from a position on is a separator."""
    stretch = position // STRETCH
    return (text.near_separator[stretch >> 6] >> np.uint64(stretch & 63)) & np.uint64(1) != 0


@compiled
def next_separator(text, position):
    """Return the number of the first separator at or after a position."""
    low = 0
    high = text.separators.size
    while low < high:
        middle = (low + high) >> 1
        if text.separators[middle] < position:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def bases_before_separator(text, position, most):
    """Count the bases, at most `most`, between a position and the next separator."""
    return min(most, text.separators[next_separator(text, position)] - position)


@compiled
def _pack(genome, segment_genome, segment_text, words, start, stop):
    """Write words; bases are shifted from the genome to the text by the separators before them."""
    segment = np.searchsorted(segment_text, start * WORD, side="right") - 1
    for word in range(start, stop):
        first = word * WORD
        last = min(first + WORD, segment_text[-1])
        shift = np.int64(segment_genome[segment]) - segment_text[segment]
        if first + WORD < segment_text[segment + 1]:
            words[word] = kmer_at(genome, first + shift, WORD)
            continue
        for at in range(first, last):
            if at == segment_text[segment + 1]:
                segment += 1
                shift = np.int64(segment_genome[segment]) - segment_text[segment]
            if at + 1 < segment_text[segment + 1]:
                base = kmer_at(genome, at + shift, 1)
                words[word] |= base << np.uint64(62 - 2 * (at & 31))
        if last == segment_text[segment + 1] and segment + 1 < segment_genome.size:
            segment += 1


@compiled
def _reverse(words, size, turned, start, stop):
    """Write words of the reversed text: base i is base size - 2 - i."""
    for word in range(start, stop):
        first = size - 2 - (word * WORD + WORD - 1)
        if first >= 0:
            turned[word] = ~reverse_complement_kmer(kmer_at(words, first, WORD), WORD)
            continue
        for at in range(word * WORD, size - 1):
            turned[word] |= kmer_at(words, size - 2 - at, 1) << np.uint64(62 - 2 * (at & 31))
