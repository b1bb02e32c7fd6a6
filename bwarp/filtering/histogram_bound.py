"""How many edits an alignment must have at least, from counts alone.

A read r of m bases is to be aligned, all of it, somewhere within a window W of n bases of the
reference. An edit is a mismatch, an inserted or a deleted base; an ambiguous base matches
nothing. Whatever is proved here holds for every such alignment, so a candidate whose bound is
above the allowed edits k can be dropped, and no other kind is.

**One edit changes the distance of histograms by at most 2.** A mismatch takes 1 from one base's
count and adds 1 to another's; an insertion or deletion changes one count by 1. So a read and the
stretch w that it aligns to have sum |count_r - count_w| <= 2 edits.

**Bases, with slack.** W is longer than w, so only what the read has in excess can tell:

    edits >= sum over bases of max(0, count_r(x) - count_W(x))

Proof: in the alignment, each matched base x of r has a base x of w of its own, so at most
count_w(x) <= count_W(x) of the count_r(x) bases are matched; every base of r that is not
matched is mismatched or inserted, an edit of its own. (For n = m without slack the excess is half
the distance: both sums are m, so what is in excess here is missing there.)

**Bases of parts.** Cut r into parts. Letter j of r, if matched, is matched to some base p of
W with

    j - k <= p < n - m + j + 1 + k

Proof: w begins at u >= 0 and up to base j the alignment consumes j bases of r and
j - insertions + deletions of w, so p >= u + j - insertions >= j - k; the other side is the same
from the right end. So a part [a, b) meets only the region [a - k, n - m + b + k) of W, its edits
are at least its excess over that region, and the parts' edits add up, since an insertion or
mismatch belongs to one base of r:

    W   |----------------------------------|
    r       |--- part 0 ---|--- part 1 ---|
            <-region of part 0-->
                     <-- region of part 1 ->

**K-mers of q bases** (the q-gram lemma, Ukkonen 1992). One edit spoils at most q of the k-mers of
r: the ones that contain the mismatched or inserted base, or the q - 1 that a deletion cuts
through. Each k-mer that is not spoiled stands in w, at a position of its own. So

    q * edits >= sum over k-mers of max(0, count_r(k-mer) - count_W(k-mer))

K-mers of four bases are the sharpest for reads of 100 to 250 bases; bases are the cheapest.

**Ambiguous bases** are packed as A. In W this only adds to counts, which weakens the bound. In r
such a base is never matched, so it may be counted as any base: the proofs only ask that
matched bases be counted as what they are.
"""

import numba
import numpy as np

from bwarp.sequence import kmer_at, reverse_complement_kmer

__all__ = [
    "LONGEST_KMER",
    "complement_counts",
    "count_packed",
    "excess",
    "base_bound",
    "oriented_kmer",
    "population",
]

#: Tables of k-mers have 4**q entries.
LONGEST_KMER = 5


@numba.jit
def population(word):
    """The number of set bits of a 64-bit word. Callable from CPU and CUDA code."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    # In this very form LLVM knows it for one instruction.
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@numba.jit
def count_packed(words, start, stop):
    """The bases of a stretch of a packed sequence (see `bwarp.sequence.pack`).

    Returns A | C << 16 | G << 32 | T << 48, so the stretch must be below 65,536 bases.
    Callable from CPU and CUDA code; reads one word for 32 bases.
    """
    low = np.uint64(0x5555555555555555)
    c = np.uint64(0)
    g = np.uint64(0)
    t = np.uint64(0)
    at = start
    while at < stop:
        word = words[np.uint64(at) >> np.uint64(5)]
        first = np.uint64(at) & np.uint64(31)
        n_bases = min(np.int64(32) - np.int64(first), stop - at)
        # The bases from `first` on, moved to the top, and no others.
        word = word << (np.uint64(2) * first)
        if n_bases < 32:
            word = word >> np.uint64(64 - 2 * n_bases)
        high_bits = (word >> np.uint64(1)) & low
        low_bits = word & low
        c += population(low_bits & ~high_bits)
        g += population(high_bits & ~low_bits)
        t += population(high_bits & low_bits)
        at += n_bases
    a = np.uint64(max(stop - start, 0)) - c - g - t
    return a | c << np.uint64(16) | g << np.uint64(32) | t << np.uint64(48)


@numba.jit
def excess(read, window):
    """How many bases of one packed histogram are in excess of another."""
    total = np.int64(0)
    for base in range(4):
        shift = np.uint64(16 * base)
        of_read = np.int64((read >> shift) & np.uint64(0xFFFF))
        of_window = np.int64((window >> shift) & np.uint64(0xFFFF))
        total += max(of_read - of_window, np.int64(0))
    return total


@numba.jit
def complement_counts(counts):
    """The packed histogram of the other strand: A and T swap, and C and G."""
    low = np.uint64(0xFFFF)
    return (
        (counts >> np.uint64(48))
        | ((counts >> np.uint64(32)) & low) << np.uint64(16)
        | ((counts >> np.uint64(16)) & low) << np.uint64(32)
        | (counts & low) << np.uint64(48)
    )


@numba.jit
def base_bound(read_words, read_start, read_stop, reverse, reference_words, start, stop, max_edits):
    """The fewest edits of an alignment of a read within a window, by bases, parts 1, 2 and 4.

    Parameters
    ----------
    read_words, reference_words : ndarray, dtype=uint64
        Packed sequences; the read is [read_start, read_stop), the window [start, stop).
    reverse : bool
        Whether it is the read's other strand that is aligned.
    max_edits : int
        The bound holds for alignments of at most so many edits.
    """
    length = read_stop - read_start
    window = stop - start
    best = np.int64(0)
    parts = np.int64(1)
    while parts <= 4:
        total = np.int64(0)
        for part in range(parts):
            first = length * part // parts
            last = length * (part + 1) // parts
            if reverse:
                of_read = complement_counts(
                    count_packed(read_words, read_stop - last, read_stop - first)
                )
            else:
                of_read = count_packed(read_words, read_start + first, read_start + last)
            region_first = max(first - max_edits, np.int64(0))
            region_last = min(window - length + last + max_edits, window)
            of_window = count_packed(reference_words, start + region_first, start + region_last)
            total += excess(of_read, of_window)
        best = max(best, total)
        parts *= 2
    return best


@numba.jit
def oriented_kmer(words, position, length, reverse):
    """The k-mer of `length` bases at a position, or its reverse complement, as a number."""
    kmer = kmer_at(words, position, length)
    if reverse:
        kmer = reverse_complement_kmer(kmer, length)
    return np.int64(kmer)
