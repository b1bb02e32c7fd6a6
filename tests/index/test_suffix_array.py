"""The suffix array of both engines against a plain sort of all suffixes."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.index import suffix_array_cpu as suffix_buckets_cpu
from bwarp.index.packed_text_cpu import PackedText, make_text, reversed_text
from bwarp.index.suffix_array_cpu import (
    PERIOD,
    difference_cover,
    sample_suffixes,
    suffixes_in_order,
)
from bwarp.sequence import pack
from tests.helpers.oracles.index_oracle import turned


def text_of_contigs(contigs) -> np.ndarray:
    """Return contigs of letters 1 to 4, each followed by a separator."""
    return np.concatenate([np.append(contig, 0) for contig in contigs]).astype(np.uint8)


def packed(text: np.ndarray) -> PackedText:
    words = np.zeros(text.size // 32 + 3, np.uint64)
    words[:-1] = pack(np.where(text == 0, 0, text - 1).astype(np.uint8))
    return make_text(words, np.flatnonzero(text == 0))


def suffix_array(text: np.ndarray, threads=2, most=1 << 40, period=PERIOD) -> np.ndarray:
    """Return the start positions of all suffixes of a text in order, by the CPU engine."""
    suffixes = np.empty(text.size, np.uint32)
    text = packed(text)
    n_pieces = 0
    for first, piece in suffixes_in_order(
        text, sample_suffixes(text, threads, period), False, most, threads
    ):
        suffixes[first : first + piece.size] = piece
        n_pieces += 1
    assert n_pieces == 1 or most < text.size
    return suffixes


def sorted_suffixes(text: np.ndarray) -> list[int]:
    """Return the oracle's result: Python sorts the suffixes as byte strings."""
    letters = text.tobytes()
    return sorted(range(len(letters)), key=lambda start: letters[start:])


def hostile_texts() -> dict[str, np.ndarray]:
    """Return texts of a few hundred letters that have broken suffix sorters."""
    rng = np.random.default_rng(11)
    unit = rng.integers(1, 5, 37)
    contig = rng.integers(1, 5, 120)
    return {
        "one letter": text_of_contigs([[3]]),
        "one-letter contigs": text_of_contigs([[1], [1], [2], [4], [1], [2]]),
        "all A": text_of_contigs([[1] * 300]),
        "all T": text_of_contigs([[4] * 300]),
        "A of every length to 60": text_of_contigs([[1] * length for length in range(1, 61)]),
        "the same contig often": text_of_contigs([contig] * 5),
        "contigs of first-key length": text_of_contigs([[2] * 27, [2] * 54, [2] * 27, [2] * 28]),
        "tandem repeats": text_of_contigs([np.tile(unit, 9), np.tile(unit[:5], 40)]),
        "periods of two": text_of_contigs([[1, 2] * 100, [2, 1] * 100]),
        "random": text_of_contigs([rng.integers(1, 5, 400), rng.integers(1, 5, 100)]),
        "two letters": text_of_contigs([rng.integers(1, 3, 300)]),
        "many separators": text_of_contigs(
            [rng.integers(1, 5, rng.integers(1, 4)) for _ in range(150)]
        ),
    }


TEXTS = hostile_texts()

LONG_NAMES = ["random", "all A", "satellite", "200,000 contigs"]
LONG = [
    [np.random.default_rng(1).integers(1, 5, 3_000_000)],
    [np.full(1_000_000, 1)],
    [np.tile(np.random.default_rng(2).integers(1, 5, 171), 6000)] * 2,
    [*np.random.default_rng(3).integers(1, 5, (200_000, 5))],
]

#: Short units repeated, so that suffixes share long prefixes with and without separators.
contigs_with_repeats = st.lists(
    st.builds(
        lambda unit, times, tail: unit * times + tail,
        st.lists(st.integers(1, 4), min_size=1, max_size=8),
        st.integers(1, 12),
        st.lists(st.integers(1, 2), max_size=4),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("period", [16, 64, PERIOD])
@pytest.mark.parametrize("name", TEXTS)
def test_hostile_text(name, period, monkeypatch):
    expected = sorted_suffixes(TEXTS[name])
    assert suffix_array(TEXTS[name], period=period).tolist() == expected
    assert suffix_array(TEXTS[name], threads=3, most=40, period=period).tolist() == expected
    # Buckets that are larger than the memory of a thread are split.
    monkeypatch.setattr(suffix_buckets_cpu, "WORKSPACE_ITEMS", 20)
    assert suffix_array(TEXTS[name], period=period).tolist() == expected


@settings(deadline=None)
@given(contigs_with_repeats, st.sampled_from([16, 64, PERIOD]), st.sampled_from([30, 1 << 40]))
def test_any_contigs(contigs, period, most):
    text = text_of_contigs(contigs)
    assert suffix_array(text, 2, most, period).tolist() == sorted_suffixes(text)


@pytest.mark.parametrize("contigs", LONG, ids=LONG_NAMES)
def test_long_texts(contigs):
    """Each suffix is smaller than the next: by its first symbol, or by the row of the rest."""
    text = text_of_contigs(contigs)
    suffixes = suffix_array(text, most=text.size // 3)
    rows = np.zeros(text.size + 1, np.int64)  # 0 for the empty suffix
    rows[suffixes] = np.arange(1, text.size + 1)
    assert np.count_nonzero(rows) == text.size
    keys = text[suffixes] * np.int64(text.size + 1) + rows[suffixes.astype(np.int64) + 1]
    assert np.all(np.diff(keys) > 0)


@pytest.mark.parametrize("name", TEXTS)
def test_texts_read_backwards(name):
    text = packed(TEXTS[name])
    back = reversed_text(text, 2)
    for array, expected in zip(back, packed(turned(TEXTS[name])), strict=True):
        assert np.array_equal(array, expected)


@pytest.mark.parametrize("period", [16, 64, 256, PERIOD])
def test_every_distance_is_in_the_difference_cover(period):
    cover = difference_cover(period)
    assert set(((cover[:, None] - cover) % period).ravel()) == set(range(period))
    assert cover.size <= 2 * period**0.5


def test_sorting_lets_other_threads_run():
    text = text_of_contigs([np.random.default_rng(3).integers(1, 5, 2_000_000)])
    suffix_array(text[-1000:])  # compiled
    worker = threading.Thread(target=suffix_array, args=(text, 1))
    worker.start()
    turns = 0
    while worker.is_alive():
        worker.join(0.001)
        turns += 1
    # If the sort held the lock, there would be a single turn, after the sort.
    assert turns > 10


def suffix_array_by_gpu(text: np.ndarray, most=1 << 40) -> np.ndarray:
    from bwarp.index.packed_text_cuda import text_on_gpu
    from bwarp.index.suffix_array_cuda import suffixes_in_parts

    text = packed(text)
    parts = suffixes_in_parts(
        text, text_on_gpu(text, 2), lambda: sample_suffixes(text, 2), min(most, text.size), 2
    )
    return np.concatenate([part.suffixes.copy_to_host() for part in parts])


@pytest.mark.gpu
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("most", [1, 100, 1 << 40])
def test_hostile_text_on_the_gpu(name, most):
    suffixes = suffix_array_by_gpu(TEXTS[name], most)
    assert suffixes.dtype == np.uint32
    assert suffixes.tolist() == sorted_suffixes(TEXTS[name])


@pytest.mark.gpu
@settings(deadline=None)
@given(contigs_with_repeats)
def test_any_contigs_on_the_gpu(contigs):
    text = text_of_contigs(contigs)
    assert suffix_array_by_gpu(text).tolist() == sorted_suffixes(text)


@pytest.mark.gpu
@pytest.mark.parametrize("contigs", LONG, ids=LONG_NAMES)
@pytest.mark.parametrize("most", [300_000, 1 << 40])
def test_engines_agree_on_millions_of_bases(contigs, most):
    text = text_of_contigs(contigs)
    assert np.array_equal(suffix_array_by_gpu(text, most), suffix_array(text))
