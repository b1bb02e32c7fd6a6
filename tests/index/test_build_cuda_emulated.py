"""The GPU's suffix array and index, with kernels in plain Python, against the CPU's.

Tiles have the minimum size and blocks one warp, so that texts of a few hundred letters have many.
"""

from dataclasses import fields

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.errors import GpuMemoryError
from bwarp.gpu import available_memory
from bwarp.gpu import sums_and_sorts as prefix_sum
from bwarp.index import build_cpu, build_cuda, bwt_cuda, packed_text_cuda, suffix_array_cuda
from bwarp.index import bwt_cuda as prefix_table_cuda
from bwarp.index.build import build_index, build_reverse
from bwarp.index.fm_index import BWT
from bwarp.index.packed_text_cpu import pack_text
from bwarp.index.parameters import IndexParameters
from bwarp.index.suffix_array_cpu import sample_suffixes
from tests.helpers.gpu.pretended_device import device, pair_sorter, pretend_gpu
from tests.helpers.oracles.index_oracle import SortedSuffixes, reference_of


@pytest.fixture
def emulated(monkeypatch):
    pretend_gpu(monkeypatch, [])
    for module in (
        bwt_cuda, packed_text_cuda, prefix_sum, prefix_table_cuda, suffix_array_cuda,
    ):  # fmt: skip
        monkeypatch.setattr(module, "_THREADS", 32)
    monkeypatch.setattr(prefix_sum, "TILE", 32)
    monkeypatch.setattr(suffix_array_cuda, "TILE", 64)
    monkeypatch.setattr(suffix_array_cuda, "pair_sorter", pair_sorter)
    monkeypatch.setattr(suffix_array_cuda, "BUCKET_SYMBOLS", 2)
    monkeypatch.setattr(build_cuda, "free_memory", lambda: 10**9)


def set_symbols(monkeypatch, first, following, deepest):
    """Set the number of symbols in keys, and the number sorted on the GPU."""
    monkeypatch.setattr(suffix_array_cuda, "FIRST_SYMBOLS", first)
    monkeypatch.setattr(suffix_array_cuda, "NEXT_SYMBOLS", following)
    monkeypatch.setattr(suffix_array_cuda, "NEXT_BITS", (5**following - 1).bit_length())
    monkeypatch.setattr(suffix_array_cuda, "DEEPEST", deepest)


@pytest.mark.parametrize(
    ("count", "first", "stride"),
    [(0, 0, 1), (32, 0, 1), (33, 0, 1), (1030, 0, 1), (40, 2, 5), (700, 1, 2)],
)
@pytest.mark.parametrize("tile", [32, 512, 2048])
def test_exclusive_sum(emulated, monkeypatch, tile, count, first, stride):
    monkeypatch.setattr(prefix_sum, "TILE", tile)
    values = np.random.default_rng(count).integers(0, 1000, first + count * stride, np.uint32)
    summed = device(values)
    prefix_sum.exclusive_sum(summed, first, stride)
    column = values[first::stride]
    expected = values.copy()
    expected[first::stride] = np.cumsum(column) - column
    assert np.array_equal(summed, expected)


RNG = np.random.default_rng(4)
UNIT = RNG.integers(1, 5, 30)
TEXTS = {
    "one letter": [[2]],
    "one-letter contigs": [[1], [1], [4]],
    "all A": [[1] * 130],
    "first-key lengths": [[2] * 27, [2] * 27, [2] * 54],
    "repeats": [np.tile(UNIT, 4), RNG.integers(1, 5, 40), np.tile(UNIT, 3)],
}


def reference_of_codes(contigs):
    return reference_of([bytes(b"ACGT"[base - 1] for base in contig) for contig in contigs])


@pytest.mark.parametrize("contigs", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("symbols", [(27, 13, 1024), (27, 13, 40), (4, 3, 20), (2, 1, 2)], ids=str)
@pytest.mark.parametrize("most", [1, 40, 1000])
def test_suffix_array(emulated, monkeypatch, contigs, symbols, most):
    """In parts of any size, with any number of symbols at a time, and any depth for the host."""
    set_symbols(monkeypatch, *symbols)
    monkeypatch.setattr(suffix_array_cuda, "require_memory", lambda *_: None)
    reference = reference_of_codes(contigs)
    text = pack_text(reference)
    codes = packed_text_cuda.text_on_gpu(text)
    expected_codes = np.concatenate([np.append(contig, 0) for contig in contigs])
    assert codes.tolist() == expected_codes.tolist()
    found = []
    for part in suffix_array_cuda.suffixes_in_parts(
        text, codes, lambda: sample_suffixes(text), most
    ):
        assert part.first == len(found)
        assert [half.size for half in part.room] == [part.suffixes.size] * 2
        for half in part.room:
            half[:] = 0x71717171
        found += part.suffixes.copy_to_host().tolist()
    assert found == SortedSuffixes(expected_codes.astype(np.uint8)).suffix_array


def test_suffixes_that_begin_alike_and_have_no_room(emulated, monkeypatch):
    monkeypatch.setattr(available_memory, "free_memory", lambda: 1000)
    text = pack_text(reference_of_codes([[1] * 130]))
    parts = suffix_array_cuda.suffixes_in_parts(
        text, packed_text_cuda.text_on_gpu(text), lambda: sample_suffixes(text), 100
    )
    message = (
        "sorting 129 suffixes that begin alike requires 0.0 GB of GPU memory, "
        "but only 0.0 GB are free"
    )
    with pytest.raises(GpuMemoryError, match=message):
        next(parts)


@pytest.mark.parametrize("parameters", [(32, 1, 2), (64, 3, 0), (96, 2, 3)])
@pytest.mark.parametrize(("n_contigs", "most"), [(1, 1000), (40, 1000), (1, 17), (40, 30)])
def test_index(emulated, monkeypatch, n_contigs, most, parameters):
    monkeypatch.setattr(build_cuda, "suffixes_at_once", lambda *_: most)
    monkeypatch.setattr(suffix_array_cuda, "require_memory", lambda *_: None)
    letters = np.random.default_rng(4).choice(np.frombuffer(b"ACGT", np.uint8), 150)
    reference = reference_of([part.tobytes() for part in np.array_split(letters, n_contigs)])
    parameters = IndexParameters(*parameters)
    built, *others = build_cuda.build_forward(reference, parameters, 2)
    expected, *expected_others = build_cpu.build_forward(reference, parameters)
    turned = build_cuda.build_reverse(reference, parameters.occ_rate)
    expected_turned = build_cpu.build_reverse(reference, parameters.occ_rate)
    for one, other in ((built, expected), (turned, expected_turned)):
        for part in fields(other):
            assert np.array_equal(getattr(one, part.name), getattr(other, part.name)), part.name
    for one, other in zip(others, expected_others, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def test_the_engine_builds_what_is_asked_for_and_adds_the_rest(emulated):
    reference = reference_of([b"ACGTTGCATTACGGA" * 3, b"GGATTACA"])
    parameters = IndexParameters(32, 2, 2)
    made = build_index(reference, parameters, "cuda")
    assert made.reverse is None
    both = build_index(reference, parameters, "cuda", with_reverse=True)
    added = build_reverse(reference, parameters.occ_rate, "cuda")
    expected = build_index(reference, parameters, "cpu", with_reverse=True)
    for part in fields(BWT):
        for one, other in (
            (made.forward, expected.forward),
            (both.reverse, expected.reverse),
            (added, expected.reverse),
        ):
            assert np.array_equal(getattr(one, part.name), getattr(other, part.name)), part.name
