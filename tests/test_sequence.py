"""Codes, complements, packing and k-mers against plain loops over letters."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.sequence import (
    AMBIGUOUS,
    CODE_OF_BYTE,
    decode,
    encode,
    kmer_at,
    pack,
    reverse_complement,
    reverse_complement_kmer,
    unpack,
)

bases = st.lists(st.integers(0, 3), max_size=200).map(lambda codes: np.array(codes, np.uint8))
any_codes = st.lists(st.integers(0, 4), max_size=200).map(lambda codes: np.array(codes, np.uint8))

COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A", "N": "N"}


def kmer_number(letters: bytes) -> int:
    """Return letters as digits in base 4: the oracle."""
    number = 0
    for letter in letters:
        number = number * 4 + b"ACGT".index(letter)
    return number


def test_the_code_of_every_byte():
    for byte in range(256):
        letter = chr(byte).upper() if byte < 128 else "?"
        if letter in "ACGT":
            code = "ACGT".index(letter)
        elif letter == "U":
            code = 3
        else:
            code = AMBIGUOUS if letter in "RYSWKMBDHVN" else 255
        assert CODE_OF_BYTE[byte] == code, byte
    assert not CODE_OF_BYTE.flags.writeable


@settings(deadline=None)  # the first call compiles
@given(st.text("ACGTUNRYSWKMBDHVacgtunryswkmbdhv", max_size=100))
def test_encode_and_decode(text):
    codes = encode(text.encode())
    assert codes.dtype == np.uint8
    plain = [c if c in "ACGT" else "N" for c in text.upper().replace("U", "T")]
    assert decode(codes).decode() == "".join(plain)


@pytest.mark.parametrize("letter", [b"E", b"*", b"-", b" ", b"\n", b"\x00", b"\xff"])
def test_encode_refuses_other_letters(letter):
    with pytest.raises(ValueError, match=r"at position 3 is not a nucleotide letter") as error:
        encode(b"ACG" + letter + b"x")
    assert str(error.value).startswith(repr(letter.decode("latin-1")))


@settings(deadline=None)  # the first call compiles
@given(any_codes)
def test_complement(codes):
    letters = decode(codes).decode()
    complement = "".join(COMPLEMENT[letter] for letter in letters)
    assert decode(reverse_complement(codes)).decode() == complement[::-1]
    assert np.array_equal(reverse_complement(reverse_complement(codes)), codes)


@settings(deadline=None)  # the first call compiles
@given(any_codes)
def test_pack_is_base_four(codes):
    words = pack(codes)
    assert words.dtype == np.uint64
    assert words.size == codes.size // 32 + 2
    letters = decode(codes).replace(b"N", b"A").ljust(words.size * 32, b"A")
    for i, word in enumerate(words.tolist()):
        assert word == kmer_number(letters[32 * i : 32 * i + 32])


@settings(deadline=None)  # the first call compiles
@given(bases, st.data())
def test_unpack(codes, data):
    start = data.draw(st.integers(0, codes.size))
    stop = data.draw(st.integers(start, codes.size))
    assert np.array_equal(unpack(pack(codes), start, stop), codes[start:stop])


def test_packing_in_threads():
    codes = np.random.default_rng(1).integers(0, 5, 300_001).astype(np.uint8)
    assert np.array_equal(pack(codes, threads=4), pack(codes))
    assert np.array_equal(unpack(pack(codes, 2), 0, codes.size), codes & 3)


@numba.njit
def kmers_at(words, positions, k):
    """Take k-mers in compiled code, as elsewhere."""
    kmers = np.empty(positions.size, np.uint64)
    turned = np.empty(positions.size, np.uint64)
    for i in range(positions.size):
        kmers[i] = kmer_at(words, positions[i], k)
        turned[i] = reverse_complement_kmer(kmers[i], k)
    return kmers, turned


@settings(deadline=None)  # the first call compiles
@given(bases.filter(len), st.integers(1, 32))
def test_kmers(codes, k):
    positions = np.arange(codes.size)
    letters = decode(codes).ljust(codes.size + 32, b"A")
    kmers, turned = kmers_at(pack(codes), positions, k)
    for i in positions:
        kmer = letters[i : i + k]
        assert kmers[i] == kmer_number(kmer)
        assert turned[i] == kmer_number(decode(reverse_complement(encode(kmer))))


def test_kmers_from_python():
    words = pack(encode(b"ACGTTGCA" * 9))
    for k in (1, 7, 31, 32):
        for position in (0, 1, 31, 32, 33, 40):
            kmer = kmer_at(words, position, k)
            assert kmer == kmer_number((b"ACGTTGCA" * 9)[position : position + k])
            turned = reverse_complement_kmer(np.uint64(kmer), k)
            assert reverse_complement_kmer(np.uint64(turned), k) == kmer


def test_kmers_in_order_are_numbers_in_order():
    words = pack(np.random.default_rng(2).integers(0, 4, 500).astype(np.uint8))
    letters = decode(unpack(words, 0, 500))
    by_letters = sorted(range(480), key=lambda at: letters[at : at + 20])
    by_number = sorted(range(480), key=lambda at: int(kmer_at(words, at, 20)))
    assert by_letters == by_number
