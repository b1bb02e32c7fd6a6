"""Gaps near ends and inside on the GPU, against the CPU: the same results, bit for bit."""

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu.cuda import cuda, int64, uint8, uint32
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.mapping.extension_cpu import OnDiagonal
from bwarp.mapping.final_alignments import EndCosts, end_costs
from bwarp.mapping.final_alignments import gap_may_gain as gap_may_gain_cpu
from bwarp.mapping.final_alignments import two_inside_may_gain as two_inside_may_gain_cpu
from bwarp.mapping.final_alignments_cuda import gap_may_gain, two_inside_may_gain
from bwarp.reads.base_bits_cuda import base_blocks
from tests.helpers.oracles.mapping_oracle import flat, genome_with
from tests.mapping.test_end_gaps import (
    PARAMETERS,
    best_stretch,
    changed_read,
    random_genome,
    scores_on,
    with_two_gaps,
)


@kernel
def find_gains(
    blocks: uint32[::1], read_blocks: uint32[::1], numbers: int64[::1], low: int, high: int, n: int,
    costs: EndCosts, gains: uint8[::1],
):  # fmt: skip
    """Find gains. One thread per part: start of its read, length, diagonal, begin and end."""
    i = cuda.grid(1)
    if i < n:
        at = 5 * i
        read = OnDiagonal(numbers[at], numbers[at + 1], numbers[at + 2], low, high)
        gains[i] = gap_may_gain(blocks, read_blocks, read, numbers[at + 3], numbers[at + 4], costs)


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_same_stretches_may_gain(device, name):
    parameters = PARAMETERS[name]
    rng = np.random.default_rng(100 + list(PARAMETERS).index(name))
    low, high = 200, 1300
    bases = random_genome(rng, 1500)
    genome = genome_with(bases, [0, low, high, 1500])
    reads, stretches = [], []
    while len(reads) < 60:
        length, start = int(rng.choice([8, 20, 64, 65, 100, 150])), int(rng.integers(180, 1240))
        read = changed_read(rng, bases, length, start)
        diagonal = start + int(rng.choice([0, 0, 0, -1, 2, 7]))
        if len(read) >= 4:
            score, begin, end = best_stretch(read, bases[low:high], diagonal - low, parameters)
            if score > 0:
                reads.append(read)
                stretches.append((diagonal, begin, end))
    codes, offsets = flat(reads)
    costs = end_costs(parameters)
    expected = [
        gap_may_gain_cpu(
            genome.blocks,
            codes,
            OnDiagonal(offsets[i], len(read), diagonal, low, high),
            begin,
            end,
            costs,
        )  # fmt: skip
        for i, (read, (diagonal, begin, end)) in enumerate(zip(reads, stretches, strict=True))
    ]
    numbers = [(offsets[i], len(reads[i]), *stretches[i]) for i in range(len(reads))]
    gains = cuda.to_device(np.full(len(reads), 7, np.uint8))
    find_gains[launch(len(reads))](
        base_blocks(cuda.to_device(bases)), base_blocks(cuda.to_device(codes)),
        cuda.to_device(np.array(numbers, np.int64).ravel()), low, high, len(reads), costs,
        gains,
    )  # fmt: skip
    assert gains.copy_to_host().tolist() == expected
    assert 0 < sum(expected) < len(reads)


@kernel
def find_gains_inside(
    blocks: uint32[::1], read_blocks: uint32[::1], numbers: int64[::1], low: int, high: int, n: int,
    costs: EndCosts, gains: uint8[::1],
):  # fmt: skip
    """Find gains of two gaps. One thread per read of 150 bases: its diagonal, first and last base
    of a part, and the score of the part."""
    i = cuda.grid(1)
    if i < n:
        at = 4 * i
        read = OnDiagonal(150 * int64(i), int64(150), numbers[at], low, high)
        gains[i] = two_inside_may_gain(
            blocks, read_blocks, read, numbers[at + 1], numbers[at + 2], numbers[at + 3], costs
        )


@pytest.mark.parametrize("name", PARAMETERS)
def test_two_gaps_gain_inside_the_same_stretches(device, name):
    parameters = PARAMETERS[name]
    rng = np.random.default_rng(200 + list(PARAMETERS).index(name))
    low, high = 200, 1300
    bases = random_genome(rng, 1500)
    genome = genome_with(bases, [0, low, high, 1500])
    reads, numbers = [], []
    for i in range(80):
        start, size, apart = int(rng.integers(low, high - 150)), *rng.integers(1, [8, 50])
        read = bases[start : start + 150]
        if i % 4:
            read = with_two_gaps(rng, bases, start, 150, size, apart)
        begin, end = int(rng.integers(0, 20)), 150 - int(rng.integers(0, 20))
        score = int(scores_on(read, bases, start, parameters)[begin:end].sum())
        reads.append(read)
        numbers.append((start, begin, end, score))
    codes, _ = flat(reads)
    costs = end_costs(parameters)
    expected = [
        two_inside_may_gain_cpu(
            genome.blocks, codes, OnDiagonal(150 * i, 150, start, low, high), *part, costs
        )
        for i, (start, *part) in enumerate(numbers)
    ]
    gains = cuda.to_device(np.full(len(reads), 7, np.uint8))
    find_gains_inside[launch(len(reads))](
        base_blocks(cuda.to_device(bases)), base_blocks(cuda.to_device(codes)),
        cuda.to_device(np.array(numbers, np.int64).ravel()), low, high, len(reads), costs,
        gains,
    )  # fmt: skip
    assert gains.copy_to_host().tolist() == expected
    assert 0 < sum(expected) < len(reads)
