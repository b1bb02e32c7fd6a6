"""The bases of two references side by side, as `packed_int16_kernel_cuda` looks up their scores.

Each column has a word, the selector of a byte permutation: out of two query bases' profiles (four
bytes, the scores against A, C, G and T) it brings the scores of both references' bases, widened
to 16 bits. A reference with an ambiguous base does not fit: its pair gets the score REFUSED and
is computed elsewhere (`int32_kernel_cuda`).
"""

from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint64
from bwarp.gpu.kernel import kernel

__all__ = ["REFUSED", "refuse", "select_bases"]

#: The score of a pair whose reference has an ambiguous base.
REFUSED = -(2**31)

ALL = 0xFFFFFFFF


@kernel
def select_bases(
    references: uint8[::1], starts: int64[::1], lengths: int32[::1], order: int32[::1],
    selectors: int32[::1], stride: int, margin: int, scores: int32[::1], refused: int32[::1],
):  # fmt: skip
    """Lay out, column by column, what looks up the scores of two references' bases at once.

    One warp a group of two pairs, a thread every 32nd column: reads two bases, writes the
    selector of permute_bytes that brings their scores, widened to 16 bits, out of the profiles of
    two query bases, to `selectors[group * stride + margin + column]`. Pairs whose reference has
    an ambiguous base get the score REFUSED, and `refused[0]` becomes 1; the others get 0.
    """
    group = cuda.grid(1) // 32
    if 2 * group >= order.size:
        return
    a, b = order[2 * group], order[2 * group + 1]
    row_start = uint64(group * stride + margin)
    start_a, start_b = uint64(starts[a]), uint64(starts[b])
    seen_a, seen_b = int32(0), int32(0)
    for at in range(cuda.laneid, lengths[a], 32):
        column = uint64(at)
        base_a = int32(references[start_a + column])
        base_b = int32(references[start_b + column])
        seen_a = int32(seen_a | base_a)
        seen_b = int32(seen_b | base_b)
        selectors[row_start + column] = int32(
            base_a * int32(0x11) + base_b * int32(0x1100) + int32(0xC480)
        )
    refused_a = cuda.ballot_sync(ALL, seen_a > 3)
    refused_b = cuda.ballot_sync(ALL, seen_b > 3)
    if cuda.laneid == 0:
        scores[a] = int32(REFUSED) if refused_a != 0 else int32(0)
        scores[b] = int32(REFUSED) if refused_b != 0 else int32(0)
        if refused_a != 0 or refused_b != 0:
            refused[0] = int32(1)


@kernel
def refuse(order: int32[::1], scores: int32[::1], refused: int32[::1]):
    """Give pairs the score REFUSED. One thread a slot."""
    slot = cuda.grid(1)
    if slot < order.size:
        scores[order[slot]] = int32(REFUSED)
        refused[0] = int32(1)
