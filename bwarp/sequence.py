"""Bases as numbers: A C G T = 0 1 2 3, anything ambiguous = 4; reverse complement; 2-bit packing.

Packed sequences hold 32 bases per 64-bit word, the first base in the highest bits, so that shifting
extracts any k-mer as a number whose numerical order is the alphabetical order:

    word        0                                1
    bits   63 62 | 61 60 | ... | 1 0        63 62 | ...
    base     0   |   1   | ... | 31          32   | ...
"""

import numpy as np

from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.threads import for_each_range

AMBIGUOUS = 4
LETTERS = b"ACGTN"
IUPAC = b"ACGTURYSWKMBDHVN"


def _code_table() -> np.ndarray:
    table = np.full(256, 255, np.uint8)
    for letter in IUPAC:
        table[letter] = table[letter + 32] = AMBIGUOUS
    for code, letters in enumerate((b"Aa", b"Cc", b"Gg", b"TtUu")):
        for letter in letters:
            table[letter] = code
    table.setflags(write=False)
    return table


#: uint8[256]: the code of every byte; 255 for bytes that are not IUPAC nucleotide letters.
CODE_OF_BYTE = _code_table()

_COMPLEMENT = np.array([3, 2, 1, 0, 4], np.uint8)
_LETTER_OF_CODE = np.frombuffer(LETTERS, np.uint8)


def encode(letters: bytes) -> np.ndarray:
    """Return the codes of a nucleotide sequence.

    Parameters
    ----------
    letters : bytes
        IUPAC letters of either case; U is T.

    Returns
    -------
    codes : ndarray, shape=(n,), dtype=uint8
        0 to 3, and 4 for ambiguous letters.

    Examples
    --------
    >>> encode(b"ACGuN").tolist()
    [0, 1, 2, 3, 4]
    """
    codes = CODE_OF_BYTE[np.frombuffer(letters, np.uint8)]
    if codes.size and codes.max() == 255:
        at = int(np.argmax(codes == 255))
        raise ValueError(f"{chr(letters[at])!r} at position {at} is not a nucleotide letter")
    return codes


def decode(codes: np.ndarray) -> bytes:
    """Return the upper-case letters of codes; 4 becomes N.

    >>> decode(np.array([0, 1, 2, 3, 4], np.uint8))
    b'ACGTN'
    """
    return _LETTER_OF_CODE[codes].tobytes()


def reverse_complement(codes: np.ndarray) -> np.ndarray:
    """Return the reverse complement.

    >>> decode(reverse_complement(encode(b"AACGN")))
    b'NCGTT'
    """
    return _COMPLEMENT[codes[::-1]]


def pack(codes: np.ndarray, threads: int = 1) -> np.ndarray:
    """Pack codes into 64-bit words, 32 bases per word; ambiguous bases are stored as A.

    Parameters
    ----------
    codes : ndarray, shape=(n,), dtype=uint8

    Returns
    -------
    words : ndarray, shape=(n // 32 + 2,), dtype=uint64
        One word more than the bases need, so that `kmer_at` may read past the last base.
    """
    words = np.zeros(codes.size // 32 + 2, np.uint64)
    for_each_range(lambda start, stop: _pack(codes, words, start, stop), words.size, threads)
    return words


def unpack(words: np.ndarray, start: int, stop: int, threads: int = 1) -> np.ndarray:
    """Return the codes of the bases from `start` to `stop` of a packed sequence, dtype uint8."""
    codes = np.empty(stop - start, np.uint8)
    for_each_range(
        lambda first, last: _unpack(words, start + first, codes[first:last]), codes.size, threads
    )
    return codes


@compiled
def _pack(codes, words, start, stop):
    for word in range(start, stop):
        bits = np.uint64(0)
        for i in range(word * 32, min(word * 32 + 32, codes.size)):
            code = codes[i] if codes[i] < 4 else np.uint8(0)
            bits |= np.uint64(code) << np.uint64(62 - 2 * (i & 31))
        words[word] = bits


@compiled
def _unpack(words, start, codes):
    """Unpack 32 bases per word, which the compiler vectorises; 20 times as fast."""
    head = min(-start % 32, codes.size)
    whole = head + (codes.size - head) // 32 * 32
    for i in range(head):
        at = start + i
        codes[i] = (words[at >> 5] >> np.uint64(62 - 2 * (at & 31))) & np.uint64(3)
    for i in range(head, whole, 32):
        word = words[(start + i) >> 5]
        for j in range(32):
            codes[i + j] = (word >> np.uint64(62 - 2 * j)) & np.uint64(3)
    for i in range(whole, codes.size):
        at = start + i
        codes[i] = (words[at >> 5] >> np.uint64(62 - 2 * (at & 31))) & np.uint64(3)


@inner
def kmer_at(words, position, k):
    """Return the k-mer (k from 1 to 32) at a position of a packed sequence, as a number.

    Reads two adjacent words. Callable from CPU and CUDA code.
    """
    word = np.uint64(position) >> np.uint64(5)
    shift = (np.uint64(position) & np.uint64(31)) << np.uint64(1)
    bits = words[word] << shift
    if shift != np.uint64(0):
        bits |= words[word + np.uint64(1)] >> (np.uint64(64) - shift)
    return bits >> np.uint64(64 - 2 * k)


@inner
def reverse_complement_kmer(kmer, k):
    """Return the reverse complement of a k-mer (k from 1 to 32) held as a number.

    The complement is NOT; swapping ever larger groups reverses the order of the 2-bit codes.
    """
    bits = ~np.uint64(kmer)
    low = np.uint64(0x3333333333333333)
    bits = ((bits >> np.uint64(2)) & low) | ((bits & low) << np.uint64(2))
    low = np.uint64(0x0F0F0F0F0F0F0F0F)
    bits = ((bits >> np.uint64(4)) & low) | ((bits & low) << np.uint64(4))
    low = np.uint64(0x00FF00FF00FF00FF)
    bits = ((bits >> np.uint64(8)) & low) | ((bits & low) << np.uint64(8))
    low = np.uint64(0x0000FFFF0000FFFF)
    bits = ((bits >> np.uint64(16)) & low) | ((bits & low) << np.uint64(16))
    bits = (bits >> np.uint64(32)) | (bits << np.uint64(32))
    return bits >> np.uint64(64 - 2 * k)
