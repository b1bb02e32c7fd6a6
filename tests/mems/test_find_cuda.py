"""Matching on a GPU, against comparing all pairs of positions, and against the CPU."""

import numpy as np
import pytest

from bwarp.mems.find import KINDS, find_matches
from tests.helpers.cases.mems_cases import index_of, text_of
from tests.helpers.oracles.mems_oracle import expected_matches, random_case, rows_of

pytestmark = pytest.mark.gpu


@pytest.fixture
def small_lists(monkeypatch):
    """Use workspace for small genomes."""
    from bwarp.index import device_index_cuda

    monkeypatch.setattr(device_index_cuda, "MOST_ELEMENTS", 1 << 18)
    monkeypatch.setattr(device_index_cuda, "FEWEST_ELEMENTS", 1 << 10)


@pytest.mark.parametrize("seed", range(10))
def test_random_cases(small_lists, seed):
    from bwarp.mems.maximal_cuda import prepare

    contigs, queries = random_case(np.random.default_rng(seed))
    index = prepare(index_of(contigs, sa_rate=1 + seed % 3), with_reverse=True)
    for min_length in (1, 5, 20, 40):
        text = text_of(queries, (0, 1), min_length)
        for kind in KINDS:
            found = rows_of(find_matches(index, text, min_length, kind, "cuda"))
            assert found == expected_matches(contigs, queries, (0, 1), min_length, kind), kind


def test_like_the_cpu(small_lists):
    """Two megabases with repeats, a long query and reads: more than one block of each."""
    from bwarp.mems.maximal_cuda import prepare

    rng = np.random.default_rng(4)
    genome = rng.integers(0, 4, 2_000_000).astype(np.uint8)
    unit = rng.integers(0, 4, 300)
    for start in rng.integers(0, genome.size - 300, 400):
        copied = rng.random(300) < 0.9
        genome[start : start + 300][copied] = unit[copied]
    query = genome[500_000:900_000].copy()
    query[rng.integers(0, query.size, 2000)] = 0
    reads = [genome[start : start + 100] for start in rng.integers(0, genome.size - 100, 500)]
    index = index_of([genome[:700_000], genome[700_000:]], prefix_length=8)
    device = prepare(index, with_reverse=True)
    for min_length in (20, 60):
        text = text_of([query, *reads], (0, 1), min_length)
        for kind in KINDS:
            found = rows_of(find_matches(device, text, min_length, kind, "cuda"))
            assert found == rows_of(find_matches(index, text, min_length, kind, "cpu", 2))
