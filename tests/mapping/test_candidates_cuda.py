"""Seeds are selected, and their hits listed, sorted and grouped, by the GPU as by the CPU.

Reads have any hits: none, thousands, all on one diagonal, all far apart. The kernels run in plain
Python, and on a GPU if there is one.
"""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu.cuda import cuda
from bwarp.gpu.device_arrays import columns
from bwarp.gpu.launch import launch
from bwarp.mapping import candidates_cuda, seed_selection_cuda
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.seed_selection_cuda import LOCATED, SearchedSeeds, SeedKeys
from bwarp.mapping.seeds_cpu import (
    DIAGONAL_SHIFT,
    SeedRows,
    _group,
    _list_rows,
    _make_keys,
    _select_hits,
    group_rules,
)
from bwarp.reads.device_reads_cuda import DeviceReads

K = 20
GAP = MappingParameters().largest_gap


def to_gpu(array, dtype):
    return cuda.to_device(array.astype(dtype) if len(array) else np.zeros(1, dtype))


def one_diagonal(rng, n):
    return np.full(n, int(rng.integers(0, 1 << 32)))


def both_strands_alike(rng, n):
    """Return equal diagonals on both strands."""
    return np.concatenate([np.full(n // 2, 700), np.full(n - n // 2, 700 + (1 << 35))])


def far_apart(rng, n):
    """Return hits that are separate groups: the distance to the next is one base too long."""
    return np.arange(n) * (GAP + 1) - 50


def one_group(rng, n):
    """Return diagonals just near enough to form one group, with one hit each."""
    return np.arange(n) * GAP


def twins(rng, n):
    """Return one group in which all diagonals except one are equally good."""
    return (np.arange(n) + 1) // 2 * 3


def crowded(rng, n):
    """Return few diagonals, so that many hits are equal and groups have several diagonals."""
    return rng.integers(0, max(1, n // 6), n) * 7 + rng.integers(0, 2, n) * (1 << 35)


def repeats(rng, n):
    """Return copies with occasional indels: few or many hits, on one or two diagonals."""
    copies = rng.integers(0, 1 << 33, max(1, n // 9))
    shifts = rng.choice([0, 0, 0, 1, -4, 11], n)
    return rng.choice(copies, n) + shifts + rng.integers(0, 2, n) * (1 << 35)


def shuffled_tail(rng, n):
    """Return diagonals that are sorted except for the last."""
    return np.roll(np.arange(n) * 5, -1)


SHAPES = (
    one_diagonal, both_strands_alike, far_apart, one_group, twins, crowded, repeats, shuffled_tail
)  # fmt: skip


def a_case(rng, hits_of_reads):
    """Make reads with these hits (strand * 2**35 + diagonal), in items in a possible order.

    Between any two of these reads is one that is not searched.
    """
    n = len(hits_of_reads)
    wanted = np.arange(n) * 2 + 1
    lengths = rng.integers(0, 200, 2 * n + 1)
    firsts, keys, counts, taken, read_positions = [0], [], [], [], []
    for i, hits in enumerate(hits_of_reads):
        n_seeds = int(rng.integers(1 if len(hits) else 0, 8))
        lengths[wanted[i]] = max(lengths[wanted[i]], K + n_seeds)
        firsts.append(firsts[-1] + n_seeds)
        borders = np.sort(rng.integers(0, len(hits) + 1, 2 * n_seeds))
        borders[-1:] = len(hits)
        here = np.diff(borders, prepend=0)
        taken += here.tolist()
        left_out = rng.integers(1, 9, 2 * n_seeds) * (rng.random(2 * n_seeds) < 0.05)
        counts += (here + left_out).tolist()
        read_positions += [0] * n_seeds
        keys += [(i << 36) + int(hit) + DIAGONAL_SHIFT for hit in hits]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    differences = rng.integers(0, 8, n)
    return (
        np.array(keys, np.uint64), offsets, wanted, np.array(firsts), np.array(counts, np.int64),
        np.array(taken, np.int64), differences, np.array(read_positions, np.int32),
    )  # fmt: skip


def by_the_cpu(case, parameters):
    keys, offsets, wanted, firsts, counts, taken, differences, read_positions = case
    found = np.zeros((keys.size, 6), np.int64)
    score_bounds, unlocated = np.zeros((2, offsets.size - 1), np.int32)
    seeds = SeedRows(firsts, read_positions, counts, counts, taken, differences)
    rules = group_rules(K, parameters)
    n = _group(np.sort(keys), offsets, wanted, seeds, rules, found, score_bounds, unlocated)
    return found[:n], score_bounds, unlocated


def by_the_gpu(case, parameters):
    keys, offsets, wanted, firsts, counts, taken, differences, read_positions = case
    # A hit that the search has located.
    counts = np.where((counts == 1) & (taken == 1), LOCATED, counts)
    hit_firsts = np.concatenate([[0], np.cumsum(taken)])
    n_wanted = len(wanted)

    found = SeedKeys(
        to_gpu(firsts, np.uint32), to_gpu(read_positions, np.int32), to_gpu(counts, np.uint32),
        to_gpu(hit_firsts, np.uint32), to_gpu(differences, np.int32), to_gpu(keys, np.uint64),
        to_gpu(keys, np.uint64), keys.size, int(firsts[-1]),
    )  # fmt: skip
    reads = columns(DeviceReads, 1, offsets=cuda.to_device(offsets), n_bases=0, longest=0)
    seed_selection_cuda.sort_keys[launch(32 * n_wanted)](
        found.keys, found.spare, found.seed_firsts, found.hit_firsts
    )
    assert found.keys.copy_to_host()[: keys.size].tolist() == np.sort(keys).tolist()
    candidates, bounds, searched = candidates_cuda.group(
        found, reads, to_gpu(wanted, np.int32), K, parameters
    )
    offsets_found = candidates.offsets.copy_to_host()
    n_found = int(offsets_found[-1])
    assert searched.tolist() == [firsts[-1], keys.size, n_found]
    rows = [
        getattr(candidates, name).copy_to_host()[:n_found]
        for name in ("reads", "strands", "diagonals", "lowest", "highest", "seeds")
    ]
    assert np.array_equal(offsets_found, np.searchsorted(rows[0], np.arange(offsets.size)))
    return (
        np.stack([column.astype(np.int64) for column in rows], axis=1),
        bounds.score_bounds.copy_to_host(),
        bounds.unlocated.copy_to_host(),
    )


def assert_same(case, parameters):
    expected, *expected_bounds = by_the_cpu(case, parameters)
    found, *bounds = by_the_gpu(case, parameters)
    assert found.tolist() == expected.tolist()
    assert [bound.tolist() for bound in bounds] == [bound.tolist() for bound in expected_bounds]
    return expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("most", [32, 1])
def test_reads_with_few_hits_and_many(device, shape, most):
    rng = np.random.default_rng(most)
    sizes = [0, 1, 2, 31, 32, 33, 64, 65, 300, 0, 7, 0]
    case = a_case(rng, [rng.permutation(shape(rng, n)) for n in sizes])
    expected = assert_same(case, replace(MappingParameters(), candidates_a_read=most))
    assert set(expected[:, 0]) == {2 * i + 1 for i, n in enumerate(sizes) if n}


@pytest.mark.parametrize("n", [2048, 5000])
def test_reads_with_thousands_of_hits(device, n):
    rng = np.random.default_rng(n)
    shapes = (twins, repeats) if n == 5000 else (far_apart, crowded)
    case = a_case(rng, [rng.permutation(shape(rng, n)) for shape in (*shapes, one_diagonal)])
    assert_same(case, MappingParameters())


def test_no_read_has_a_hit(device):
    case = a_case(np.random.default_rng(0), [np.empty(0, np.int64)] * 3)
    assert len(assert_same(case, MappingParameters())) == 0


@pytest.mark.parametrize(("most", "least"), [(16, 0), (64, 32), (2048, 0), (1, 1)])
@pytest.mark.parametrize("highest", [1, 4, 100, 5000])
def test_the_rarest_seeds_are_taken_and_their_hits_listed(device, most, least, highest):
    rng = np.random.default_rng(most * highest)
    n_seeds = np.array([0, 1, 2, 15, 16, 17, 33, 0, 90, 150, 0])
    n_wanted = len(n_seeds)
    firsts = np.concatenate([[0], np.cumsum(n_seeds)])
    lengths = np.where(n_seeds, K + 3 * n_seeds, 0)
    wanted = np.arange(n_wanted)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    read_positions = np.concatenate([np.arange(n) * 3 for n in n_seeds]).astype(np.int32)
    read_positions[rng.random(read_positions.size) < 0.1] = -1
    counts = (highest ** rng.random(2 * read_positions.size)).astype(np.int64)
    counts[rng.random(counts.size) < 0.3] = rng.choice([0, 1, highest, 2**32 - 2])
    # A read whose rarest seed has too many hits.
    read_positions[0], counts[:2] = 0, (most + 2, most + 1)
    starts = rng.integers(0, 1000, counts.size)
    found = np.where((counts == 1) & (rng.random(counts.size) < 0.5), LOCATED, counts)
    taken, differences = np.zeros(counts.size, np.uint32), np.zeros(n_wanted, np.int32)
    seeds = SeedRows(firsts, read_positions, starts, counts, taken, differences)
    _select_hits(seeds, K, most, least)
    owners = np.repeat(wanted, n_seeds)
    searched = SearchedSeeds(
        to_gpu(firsts, np.uint32), to_gpu(read_positions, np.int32), to_gpu(owners, np.int32),
        to_gpu(starts, np.uint32), to_gpu(found, np.uint32),
    )  # fmt: skip
    order, spare = (cuda.device_array(counts.size, np.uint64) for _ in range(2))
    selected = cuda.device_array(counts.size + 1, np.uint32)
    different = cuda.device_array(n_wanted, np.int32)
    seed_selection_cuda.select_hits(searched, K, most, least, order, spare, selected, different)
    assert selected.copy_to_host().tolist() == [*taken.tolist(), 0]
    assert different.copy_to_host().tolist() == differences.tolist()

    hit_firsts = np.concatenate([[0], np.cumsum(taken)])
    rows, keys = np.empty(taken.sum(), np.uint32), np.empty(taken.sum(), np.uint64)
    _list_rows(seeds, rows)
    # Rows serve as positions, and all are in one segment, so the located positions are the rows.
    segment = np.array([0, 2**33]), np.array([0])
    _make_keys(offsets, wanted, K, seeds, rows, *segment, keys)
    reads = columns(DeviceReads, 1, offsets=cuda.to_device(offsets), n_bases=0, longest=0)
    listed, begun = to_gpu(rows * 0, np.uint32), to_gpu(keys * 0, np.uint64)
    seed_selection_cuda.list_hits(
        searched, reads, to_gpu(wanted, np.int32), K, to_gpu(hit_firsts, np.uint32), listed, begun
    )
    is_located = np.repeat(found == LOCATED, taken)
    listed, begun = (array.copy_to_host()[: rows.size] for array in (listed, begun))
    assert listed.tolist() == np.where(is_located, 0, rows).tolist()
    located = begun - np.where(is_located, np.uint64(1 << 63), 0).astype(np.uint64)
    assert (located + listed).tolist() == keys.tolist()
