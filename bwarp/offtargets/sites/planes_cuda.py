"""The bases of a site as two planes of 64 bits, cut out of a stretch of the genome on the GPU."""

from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.ptx import load_uint32x4

__all__ = ["site_planes"]


@cuda.jit(device=True)
def site_planes(blocks, border, backward):
    """Low and high bits of 64 bases from a border on, the base beside it in bit 0.

    Parameters
    ----------
    blocks : device array, dtype=uint32
        Of `bwarp.mapping.reads.base_bits_cuda`.
    border : int
        As `bwarp.offtargets.sites.pam_sites_cpu` has it, with the margin that it asks for.
    backward : bool
        Whether the bases before the border are read, from it backwards.

    Three blocks are read.
    """
    begin = uint32(border - 64) if backward else uint32(border)
    first = uint64(4) * (uint64(begin) >> uint64(5))
    shift = uint64(begin & uint32(31))
    low_0, high_0, _, _ = load_uint32x4(blocks, first)
    low_1, high_1, _, _ = load_uint32x4(blocks, first + uint64(4))
    low_2, high_2, _, _ = load_uint32x4(blocks, first + uint64(8))
    low = cut_out(low_0, low_1, low_2, shift)
    high = cut_out(high_0, high_1, high_2, shift)
    if backward:
        low, high = uint64(cuda.brev(low)), uint64(cuda.brev(high))
    return low, high


@cuda.jit(device=True)
def cut_out(first, second, third, shift):
    """64 bits of three words of 32, from bit `shift` (0 to 31) of the first on."""
    lower = (uint64(first) | uint64(second) << uint64(32)) >> shift
    upper = (uint64(second) | uint64(third) << uint64(32)) >> shift
    return uint64((lower & uint64(0xFFFFFFFF)) | upper << uint64(32))
