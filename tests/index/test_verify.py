"""Verification accepts every correct index and rejects each kind of error, bit by bit.

All tests use one rate of counts, because each other rate would be compiled separately; ranks have
their own tests, and the tests of the program verify with the default rate.
"""

from dataclasses import replace

import numpy as np
import pytest

from bwarp.errors import InputError
from bwarp.index.verify import verify_index
from tests.helpers.oracles.index_oracle import AROUND_A_BLOCK, HOSTILE, index_of

WRONG = "the index is invalid ("

# Gaps inside and at borders, repeats, short contigs; the last block is not full.
TINY = [b"NNACGTACGGTTAACNNNGATTACAN", b"", b"C", b"ACGTACGG", b"TTTNA", b"GCGCAATTGC" * 3]


@pytest.mark.parametrize("name", HOSTILE | AROUND_A_BLOCK)
def test_right_indexes_pass(name):
    contigs = (HOSTILE | AROUND_A_BLOCK)[name]
    for sa_rate, prefix_length in ((1, 0), (4, 5)):
        verify_index(index_of(contigs, 32, sa_rate, prefix_length))


def test_pieces_that_cannot_start_anywhere():
    """Repeats are longer than any search: one piece covers the whole text."""
    verify_index(index_of([b"ACGGT" * 4000, b"A" * 5000], occ_rate=32), threads=3)


def test_many_pieces():
    rng = np.random.default_rng(10)
    contig = rng.choice(np.frombuffer(b"ACGT", np.uint8), 60_000).tobytes()
    index = index_of([contig, contig[:1000]], 32, 5)
    for threads in (1, 4):
        verify_index(index, threads)
    # One base changed: nearly every piece agrees, which is not enough.
    changed = b"C" if contig[30_000:30_001] == b"A" else b"A"
    other = index_of([contig[:30_000] + changed + contig[30_001:], contig[:1000]], 32, 5)
    with pytest.raises(InputError):
        verify_index(replace(index, reference=other.reference))


def with_array(index, path: str, array):
    """Return the index with one array, named like ``forward.blocks``, replaced."""
    owner, _, name = path.rpartition(".")
    if not owner:
        return replace(index, **{name: array})
    return replace(index, **{owner: replace(getattr(index, owner), **{name: array})})


def array_of(index, path: str) -> np.ndarray:
    for name in path.split("."):
        index = getattr(index, name)
    return index


# The message for a wrong bit, if there is only one possible message.
ARRAYS = {
    "forward.blocks": "",
    "forward.separator_rows": "",
    "forward.first_rows": "the counts of its forward BWT are wrong",
    "reverse.blocks": "",
    "reverse.separator_rows": "",
    "reverse.first_rows": "the counts of its reverse BWT are wrong",
    "prefix_table": "its prefix table does not match the text",
    "suffix_array": "its forward BWT or suffix array disagrees with the text at position ",
    "reference.segment_genome": "",
    "reference.segment_text": "",
    "reference.packed": "",
}


@pytest.mark.parametrize("path", ARRAYS)
def test_every_flipped_bit_is_found(path):
    index = index_of(TINY, occ_rate=32, sa_rate=3, prefix_length=2)
    verify_index(index)
    right = array_of(index, path)
    for at in range(right.nbytes):
        for bit in range(8):
            tampered = right.copy()
            tampered.reshape(-1).view(np.uint8)[at] ^= 1 << bit
            # Read-only as before: writable arrays would need other compiled functions.
            tampered.setflags(write=right.flags.writeable)
            with pytest.raises(InputError) as error:
                verify_index(with_array(index, path, tampered))
            assert str(error.value).startswith(WRONG + ARRAYS[path]), (at, bit)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_wrong_start_of_the_text(direction):
    index = index_of(TINY, 32)
    bwt = getattr(index, direction)
    for text_start in range(-2, bwt.separator_rows.size + 2):
        if text_start != bwt.text_start:
            with pytest.raises(InputError) as error:
                verify_index(with_array(index, f"{direction}.text_start", text_start))
            assert str(error.value).startswith(WRONG)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("forward.blocks", "the counts of its forward BWT are wrong"),
        ("forward.separator_rows", "the counts of its forward BWT are wrong"),
        ("reverse.blocks", "the counts of its reverse BWT are wrong"),
        ("reverse.separator_rows", "the counts of its reverse BWT are wrong"),
        ("prefix_table", "its prefix table does not match the text"),
        ("suffix_array", "its suffix array has a wrong length"),
        ("reference.packed", "its genome has a wrong length"),
    ],
)
def test_shorter_and_longer_arrays(path, message):
    index = index_of(TINY, occ_rate=32, sa_rate=3, prefix_length=2)
    right = array_of(index, path)
    for wrong in (right[:-1], np.concatenate([right, right[-1:]])):
        with pytest.raises(InputError) as error:
            verify_index(with_array(index, path, wrong))
        assert str(error.value) == f"{WRONG}{message}): build it again"


def test_parts_of_other_indexes():
    index = index_of(TINY, 32)
    other = index_of([*TINY[:-1], TINY[-1][::-1]], 32)
    for part in ("reference", "forward", "reverse", "prefix_table", "suffix_array"):
        with pytest.raises(InputError) as error:
            verify_index(replace(index, **{part: getattr(other, part)}))
        assert str(error.value).startswith(WRONG)
    with pytest.raises(InputError):
        verify_index(replace(index, sa_rate=3))


def test_two_suffixes_exchanged_in_a_repeat():
    index = index_of([b"A" * 2000], 32)
    verify_index(index)
    suffixes = index.suffix_array.copy()
    suffixes[[100, 200]] = suffixes[[200, 100]]
    with pytest.raises(InputError) as error:
        verify_index(replace(index, suffix_array=suffixes))
    assert str(error.value).startswith(WRONG + ARRAYS["suffix_array"])
