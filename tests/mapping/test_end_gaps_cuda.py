"""Gaps near ends on the GPU, against the CPU: the same results, bit for bit."""

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu.cuda import cuda, int64, uint8, uint32
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.mapping.extension_cpu import OnDiagonal
from bwarp.mapping.final_alignments import EndCosts, end_costs
from bwarp.mapping.final_alignments import gap_may_gain as gap_may_gain_cpu
from bwarp.mapping.final_alignments_cuda import gap_may_gain
from bwarp.reads.base_bits_cuda import base_blocks
from tests.helpers.oracles.mapping_oracle import flat, genome_with
from tests.mapping.test_end_gaps import (
    PARAMETERS,
    best_stretch,
    changed_read,
    random_genome,
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
