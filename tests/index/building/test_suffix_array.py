"""The suffix array of both engines against a plain sort of all suffixes."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.index.building import suffix_array_cpu


def text_of_contigs(contigs) -> np.ndarray:
    """Contigs of letters 1 to 4, each followed by a separator."""
    return np.concatenate([np.append(contig, 0) for contig in contigs]).astype(np.uint8)


def sorted_suffixes(text: np.ndarray) -> list[int]:
    """The oracle: suffixes are byte strings, and Python sorts them."""
    letters = text.tobytes()
    return sorted(range(len(letters)), key=lambda start: letters[start:])


def hostile_texts() -> dict[str, np.ndarray]:
    """Texts of a few hundred letters that have broken suffix sorters."""
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


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_text(name):
    suffixes = suffix_array_cpu.suffix_array(TEXTS[name])
    assert suffixes.dtype == np.uint32
    assert suffixes.tolist() == sorted_suffixes(TEXTS[name])


@given(contigs_with_repeats)
def test_any_contigs(contigs):
    text = text_of_contigs(contigs)
    assert suffix_array_cpu.suffix_array(text).tolist() == sorted_suffixes(text)


@pytest.mark.parametrize("name", TEXTS)
def test_the_sort_for_long_texts_gives_the_same(name, monkeypatch):
    expected = suffix_array_cpu.suffix_array(TEXTS[name])
    monkeypatch.setattr(suffix_array_cpu, "LONGEST_32_BIT", 1)
    monkeypatch.setattr(suffix_array_cpu, "_CHUNK", 7)
    suffixes = suffix_array_cpu.suffix_array(TEXTS[name])
    assert suffixes.dtype == np.uint32
    assert np.array_equal(suffixes, expected)


def test_sorting_lets_other_threads_run():
    text = text_of_contigs([np.random.default_rng(3).integers(1, 5, 2_000_000)])
    worker = threading.Thread(target=suffix_array_cpu.suffix_array, args=(text,))
    worker.start()
    turns = 0
    while worker.is_alive():
        worker.join(0.001)
        turns += 1
    # With the lock held there would be one turn, after the sort.
    assert turns > 10


@pytest.mark.gpu
@pytest.mark.parametrize("name", TEXTS)
def test_hostile_text_on_the_gpu(name):
    from bwarp.index.building.suffix_array_cuda import suffix_array

    suffixes = suffix_array(TEXTS[name])
    assert suffixes.dtype == np.uint32
    assert suffixes.tolist() == sorted_suffixes(TEXTS[name])


@pytest.mark.gpu
@settings(deadline=None)
@given(contigs_with_repeats)
def test_any_contigs_on_the_gpu(contigs):
    from bwarp.index.building.suffix_array_cuda import suffix_array

    text = text_of_contigs(contigs)
    assert suffix_array(text).tolist() == sorted_suffixes(text)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "contigs",
    [
        [np.random.default_rng(1).integers(1, 5, 3_000_000)],
        [np.full(1_000_000, 1)],
        [np.tile(np.random.default_rng(2).integers(1, 5, 171), 6000)] * 2,
        np.split(np.random.default_rng(3).integers(1, 5, 1_000_000), 200_000),
    ],
    ids=["random", "all A", "satellite", "200,000 contigs"],
)
def test_engines_agree_on_millions_of_letters(contigs):
    from bwarp.index.building.suffix_array_cuda import suffix_array

    text = text_of_contigs(contigs)
    assert np.array_equal(suffix_array(text), suffix_array_cpu.suffix_array(text))
