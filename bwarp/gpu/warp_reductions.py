"""What all lanes of a warp have together; every lane is given it, and all must ask."""

from bwarp.gpu.cuda import cuda
from bwarp.gpu.launch import ALL_LANES

__all__ = ["greatest", "total"]


@cuda.jit(device=True)
def greatest(value):
    """The greatest value of a warp."""
    for distance in (16, 8, 4, 2, 1):
        value = max(value, cuda.shfl_xor_sync(ALL_LANES, value, distance))
    return value


@cuda.jit(device=True)
def total(value):
    """The sum of a warp's values."""
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(ALL_LANES, value, distance)
    return value
