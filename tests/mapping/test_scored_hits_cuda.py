"""Hits ranked and merged by the GPU's kernels as by the CPU, for any number per read."""

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu.cuda import cuda
from bwarp.gpu.transfers import PinnedBuffer
from bwarp.mapping import scored_hits_cpu, scored_hits_cuda
from bwarp.mapping.scored_hits_cpu import FIELDS
from bwarp.mapping.scored_hits_cuda import DeviceScoredHits, hits_on_host

COUNTS = np.array([0, 1, 2, 31, 32, 33, 0, 64, 65, 130, 0])


def random_hits(rng, counts):
    """Return hits of reads, many at almost or exactly the same locus, with few distinct scores."""
    n = int(counts.sum())
    rows = np.zeros((n, FIELDS), np.int64)
    rows[:, 0] = rng.integers(0, 12, n)
    rows[:, 3] = rng.integers(0, 4, n)
    rows[:, 4] = 100 - rng.integers(0, 4, n)
    rows[:, 1] = 150 * rng.integers(0, 40, n) + rows[:, 3] + rng.integers(0, 3, n)
    rows[:, 2] = rows[:, 1] + rows[:, 4] - rows[:, 3] + rng.integers(0, 2, n)
    rows[:, 5] = rng.integers(0, 2, n)
    rows[:, 6:] = rng.integers(0, 1 << 33, (n, 2))
    return rng.integers(0, 2, n).astype(np.uint8), rows


def on_device(counts, strands, rows):
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    arrays = (cuda.to_device(array) for array in (strands, rows.ravel(), offsets))
    return DeviceScoredHits(*arrays, len(rows))


def ranked(rng, counts, least):
    """Return sorted random hits, by the CPU and on the GPU."""
    strands, rows = random_hits(rng, counts)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    hits = on_device(counts, strands, rows)
    return (
        scored_hits_cpu.ranked(offsets, strands, rows.ravel(), least),
        scored_hits_cuda.ranked(hits, least, hits.offsets),
    )


def assert_same(hits, expected):
    found = hits_on_host(hits, PinnedBuffer())
    for name, got, wanted in zip(found._fields, found, expected, strict=True):
        assert got.dtype == wanted.dtype, name
        assert got.tolist() == wanted.tolist(), name


@pytest.mark.parametrize("least", [0, 5, 12])
def test_hits_are_ranked(device, least):
    expected, hits = ranked(np.random.default_rng(least), COUNTS, least)
    assert_same(hits, expected)
    assert 0 < len(expected.reads) < COUNTS.sum() or least == 12


@pytest.mark.parametrize("dropped", [False, True])
def test_hits_are_merged(device, dropped):
    rng = np.random.default_rng(1)
    expected, hits = ranked(rng, COUNTS, 0)
    more_expected, more = ranked(rng, COUNTS[::-1] * (np.arange(len(COUNTS)) % 3 > 0), 4)
    marks = np.full(len(COUNTS), dropped) & (np.arange(len(COUNTS)) % 2 == 0)
    joined = scored_hits_cuda.merge(hits, more, cuda.to_device(marks.astype(np.uint8)))
    assert_same(
        joined, scored_hits_cpu.merge(scored_hits_cpu.without(expected, marks), more_expected)
    )
