"""The GPU's engine of mapping on a pretended card, with blocks of one warp.

Alignments with gaps are taken from the CPU's engine: the kernels of the GPU's have tests of their
own, and are slow in plain Python.
"""

import emulated_cuda
import numpy as np
from emulated_cuda import pretend_gpu
from numba import cuda
from test_cuda_emulated import pair_sorter

from bwarp import ptx_reference
from bwarp.alignment.pairs import PairBatch, Sequences
from bwarp.alignment.pairs_cpu import pair_ends
from bwarp.index import device_cuda, locate_cuda, memory_plan, prefix_sum_cuda
from bwarp.mapping import (
    base_blocks_cuda,
    candidates_cuda,
    extension_cuda,
    places_cuda,
    placing_cuda,
    reads_cuda,
    rescue_cuda,
    seed_keys_cuda,
)
from bwarp.seeding import exact_cuda

MODULES = (
    base_blocks_cuda,
    candidates_cuda,
    extension_cuda,
    places_cuda,
    placing_cuda,
    reads_cuda,
    rescue_cuda,
    seed_keys_cuda,
)


def pretend(monkeypatch):
    """Kernels of indexes, searches and mapping run here from now on."""
    pretend_gpu(monkeypatch, MODULES)
    monkeypatch.setattr(extension_cuda, "find_ends", find_ends)
    monkeypatch.setattr(
        extension_cuda,
        "to_card",
        lambda arrays, threads=1: [cuda.to_device(array) for array in arrays],
    )
    for module in (device_cuda, exact_cuda, locate_cuda, prefix_sum_cuda):
        monkeypatch.setattr(module, "_THREADS", 32)
    monkeypatch.setattr(prefix_sum_cuda, "TILE", 32)
    monkeypatch.setattr(device_cuda, "pair_sorter", pair_sorter)
    monkeypatch.setattr(memory_plan, "SHORTEST_STRING", 2)
    monkeypatch.setattr(device_cuda, "MOST_ELEMENTS", 1024)
    monkeypatch.setattr(device_cuda, "FEWEST_ELEMENTS", 64)
    monkeypatch.setattr(device_cuda, "free_memory", lambda: 10**9)
    monkeypatch.setattr(cuda, "pinned_array", np.empty)
    thread = emulated_cuda._Thread
    for name in ("load_uint32x2", "load_uint32x4"):
        operation = getattr(ptx_reference, name)
        of_memory = lambda array, at, operation=operation: operation(array.array, int(at))  # noqa: E731
        monkeypatch.setattr(thread, name, staticmethod(of_memory), raising=False)


def find_ends(batch, scoring, mode):
    """What `bwarp.alignment.pairs_cuda.find_ends` gives, on the CPU."""
    sides = [
        Sequences(np.array(side.codes), np.array(side.starts), np.array(side.lengths))
        for side in (batch.queries, batch.references)
    ]
    ends = pair_ends(PairBatch(*sides), scoring, mode)
    return [cuda.to_device(a) for a in (ends.scores, ends.query_ends, ends.reference_ends)]
