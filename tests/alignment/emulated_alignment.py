"""The GPU's alignment engine on a pretended one, its tiles so small that short pairs fill them."""

from emulated_cuda import pretend_gpu

from bwarp.alignment import (
    batch_cuda,
    ends_cuda,
    gatk_cuda,
    gatk_run_lengths_cuda,
    order_cuda,
    pairs_cuda,
    path_rooms_cuda,
    paths_cuda,
    prefix_scan_cuda,
    profile_cuda,
    search_cuda,
)
from bwarp.index import prefix_sum_cuda

MODULES = (
    batch_cuda,
    ends_cuda,
    gatk_cuda,
    gatk_run_lengths_cuda,
    order_cuda,
    pairs_cuda,
    path_rooms_cuda,
    paths_cuda,
    profile_cuda,
    search_cuda,
)


def pretend(monkeypatch, few_pairs=0, **card):
    """Kernels of the alignment engine run here from now on; all batches but few are large ones."""
    pretend_gpu(monkeypatch, MODULES, **card)
    monkeypatch.setattr(order_cuda, "FEW_PAIRS", few_pairs)
    monkeypatch.setattr(paths_cuda, "FEW_PAIRS", few_pairs)
    monkeypatch.setattr(ends_cuda, "MANY_PAIRS", few_pairs)
    monkeypatch.setattr(pairs_cuda, "FEW_TILES", ((8, 2), (16, 2), (8, 5)))
    monkeypatch.setattr(prefix_scan_cuda, "MOST_WARPS", 2)
    monkeypatch.setattr(prefix_sum_cuda, "_THREADS", 32)
