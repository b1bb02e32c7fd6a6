"""The alignment engine on a simulated GPU, with tiles so small that short pairs fill them."""

from bwarp.alignment import (
    device_batch_cuda,
    few_pairs_cuda,
    gatk_cuda,
    gatk_run_lengths_cuda,
    traceback_cuda,
)
from bwarp.alignment import device_batch_cuda as order_by_size_cuda
from bwarp.alignment import device_batch_cuda as scores_and_ends_cuda
from bwarp.alignment import pair_ends_cuda as pairs_cuda
from bwarp.alignment import traceback_cuda as traceback_buffers_cuda
from bwarp.database_search import prefix_scan_cuda, profile_kernel_cuda, search_cuda
from bwarp.gpu import sums_and_sorts as prefix_sum
from tests.helpers.gpu.pretended_device import pretend_gpu

MODULES = (
    device_batch_cuda,
    scores_and_ends_cuda,
    gatk_cuda,
    gatk_run_lengths_cuda,
    order_by_size_cuda,
    pairs_cuda,
    traceback_buffers_cuda,
    traceback_cuda,
    profile_kernel_cuda,
    search_cuda,
)


def pretend(monkeypatch, few_pairs=0, **device):
    """Run the kernels of the alignment engine here; nearly all batches count as large."""
    pretend_gpu(monkeypatch, MODULES, **device)
    monkeypatch.setattr(order_by_size_cuda, "FEW_PAIRS", few_pairs)
    monkeypatch.setattr(few_pairs_cuda, "FEW_PAIRS", few_pairs)
    monkeypatch.setattr(scores_and_ends_cuda, "MANY_PAIRS", few_pairs)
    monkeypatch.setattr(pairs_cuda, "FEW_TILES", ((8, 2), (16, 2), (8, 5)))
    monkeypatch.setattr(prefix_scan_cuda, "MOST_WARPS", 2)
    monkeypatch.setattr(prefix_sum, "_THREADS", 32)
