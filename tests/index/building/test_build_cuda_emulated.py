"""The GPU's suffix array and index, its kernels run in plain Python, against the CPU's.

With the smallest tiles and blocks of one warp, so that texts of a few hundred letters have many.
"""

from dataclasses import fields

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from numba import cuda

from bwarp.gpu import prefix_sum
from bwarp.index.building import build_cpu, build_cuda, suffix_array_cuda
from bwarp.index.building.build import build_index, build_reverse
from bwarp.index.fm_index import BWT
from bwarp.index.parameters import IndexParameters
from bwarp.reference import text_of
from tests.helpers.gpu import emulated_cuda
from tests.helpers.gpu.pretended_device import Launcher, device, pair_sorter
from tests.helpers.oracles.index_oracle import SortedSuffixes, reference_of


@pytest.fixture
def emulated(monkeypatch):
    for module in (build_cuda, prefix_sum, suffix_array_cuda):
        monkeypatch.setattr(module, "_THREADS", 32)
        for kernel in module.KERNEL_SIGNATURES:
            monkeypatch.setattr(module, kernel.py_func.__name__, Launcher(kernel))
    monkeypatch.setattr(prefix_sum, "TILE", 32)
    monkeypatch.setattr(suffix_array_cuda, "TILE", 64)
    monkeypatch.setattr(suffix_array_cuda, "pair_sorter", pair_sorter)
    monkeypatch.setattr(suffix_array_cuda, "require_memory", lambda *_: None)
    population_count = staticmethod(lambda bits: int(bits).bit_count())
    monkeypatch.setattr(emulated_cuda._Thread, "popc", population_count, raising=False)
    # What was never written must not look like a sensible number.
    fresh = lambda shape, dtype: device(np.full(shape, 113, dtype))  # noqa: E731
    monkeypatch.setattr(cuda, "device_array", fresh)
    monkeypatch.setattr(cuda, "device_array_like", lambda a: fresh(a.shape, a.dtype))
    monkeypatch.setattr(cuda, "to_device", device)


def text_of_contigs(contigs) -> np.ndarray:
    return np.concatenate([np.append(contig, 0) for contig in contigs]).astype(np.uint8)


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


@pytest.mark.parametrize(
    "contigs",
    [
        [[2]],
        [[1], [1], [4]],
        [[1] * 130],
        [[2] * 27, [2] * 27, [2] * 54],
        [np.tile(UNIT, 4), RNG.integers(1, 5, 40), np.tile(UNIT, 3)],
    ],
    ids=["one letter", "one-letter contigs", "all A", "first-key lengths", "repeats"],
)
def test_suffix_array(emulated, contigs):
    text = text_of_contigs(contigs)
    assert suffix_array_cuda.suffix_array(text).tolist() == SortedSuffixes(text).suffix_array


@pytest.mark.parametrize("parameters", [(32, 1, 2), (64, 3, 0), (96, 2, 3)])
@pytest.mark.parametrize("n_contigs", [1, 40])
def test_index(emulated, n_contigs, parameters):
    letters = RNG.choice(np.frombuffer(b"ACGT", np.uint8), 150)
    reference = reference_of([part.tobytes() for part in np.array_split(letters, n_contigs)])
    text, parameters = text_of(reference), IndexParameters(*parameters)
    built, *others = build_cuda.build_forward(text, parameters)
    expected, *expected_others = build_cpu.build_forward(reference, parameters)
    turned = build_cuda.build_reverse(text, parameters.occ_rate)
    expected_turned = build_cpu.build_reverse(reference, parameters.occ_rate)
    for one, other in ((built, expected), (turned, expected_turned)):
        for part in fields(other):
            assert np.array_equal(getattr(one, part.name), getattr(other, part.name)), part.name
    for one, other in zip(others, expected_others, strict=True):
        assert np.array_equal(one, other)


def test_the_engine_builds_what_is_asked_for_and_adds_the_rest(emulated, monkeypatch):
    monkeypatch.setattr(build_cuda, "require_memory", lambda *_: None)
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
