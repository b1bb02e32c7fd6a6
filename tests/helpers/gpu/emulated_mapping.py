"""The mapping engine on a simulated GPU, with blocks of one warp.

Alignments with gaps are computed by the CPU engine: the GPU kernels have their own tests, and are
slow in plain Python.
"""

import functools

import numpy as np

from bwarp.alignment.pair_ends_cpu import pair_alignments, pair_ends
from bwarp.alignment.pairs import PairBatch, Sequences
from bwarp.allmap import alignments_cuda
from bwarp.gpu import launch, ptx_reference
from bwarp.gpu import sums_and_sorts as prefix_sum
from bwarp.gpu.cuda import cuda
from bwarp.index import device_index_cuda, locate_cuda, memory_plan
from bwarp.mapping import extension_cuda
from bwarp.mapping import final_alignments_cuda as gapped_alignments_cuda
from bwarp.seeding import exact_cuda, search_schemes_cpu, search_schemes_cuda
from tests.helpers.gpu import emulated_cuda
from tests.helpers.gpu.pretended_device import pair_sorter, pretend_gpu


def pretend(monkeypatch, gpus=1):
    """Run the kernels of indexes, searches and mapping here."""
    pretend_gpu(monkeypatch, [launch], gpus=gpus)
    monkeypatch.setattr(extension_cuda, "find_ends", find_ends)
    for module in (alignments_cuda, gapped_alignments_cuda):
        monkeypatch.setattr(module, "batch_alignments", batch_alignments)
    monkeypatch.setattr(
        extension_cuda,
        "to_gpu",
        lambda arrays, threads=1: [cuda.to_device(array) for array in arrays],
    )
    for module in (device_index_cuda, exact_cuda, locate_cuda, prefix_sum, search_schemes_cuda):
        monkeypatch.setattr(module, "_THREADS", 32)
    monkeypatch.setattr(search_schemes_cuda, "_BLOCKS_A_PROCESSOR", 2)
    # Short starts, as the table of strings is as long.
    monkeypatch.setattr(search_schemes_cpu, "LONGEST_START", 3)
    choose = functools.cache(search_schemes_cpu.choose_schemes.__wrapped__)
    monkeypatch.setattr(search_schemes_cuda, "choose_schemes", choose)
    monkeypatch.setattr(prefix_sum, "TILE", 32)
    monkeypatch.setattr(device_index_cuda, "pair_sorter", pair_sorter)
    monkeypatch.setattr(memory_plan, "SHORTEST_STRING", 2)
    monkeypatch.setattr(device_index_cuda, "MOST_ELEMENTS", 1024)
    monkeypatch.setattr(device_index_cuda, "FEWEST_ELEMENTS", 64)
    monkeypatch.setattr(device_index_cuda, "free_memory", lambda: 10**9)
    monkeypatch.setattr(cuda, "pinned_array", np.empty)
    thread = emulated_cuda._Thread
    for name in ("load_uint32x2", "load_uint32x4"):
        operation = getattr(ptx_reference, name)
        of_memory = lambda array, at, operation=operation: operation(array.array, int(at))  # noqa: E731
        monkeypatch.setattr(thread, name, staticmethod(of_memory), raising=False)


def find_ends(batch, scoring, mode):
    """Compute the result of `bwarp.alignment.pair_ends_cuda.find_ends` on the CPU."""
    ends = pair_ends(_on_host(batch), scoring, mode)
    return [cuda.to_device(a) for a in (ends.scores, ends.query_ends, ends.reference_ends)]


def batch_alignments(batch, scoring, mode, threads=1):
    """Compute the result of `bwarp.alignment.pair_ends_cuda.batch_alignments` on the CPU."""
    return pair_alignments(_on_host(batch), scoring, mode, threads)


def _on_host(batch):
    sides = [
        Sequences(np.array(side.codes), np.array(side.starts), np.array(side.lengths))
        for side in (batch.queries, batch.references)
    ]
    return PairBatch(*sides)
