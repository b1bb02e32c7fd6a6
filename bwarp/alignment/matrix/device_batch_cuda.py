"""A batch of pairs on the GPU."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bwarp.alignment.pairs import PairBatch, Sequences
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.transfers import to_gpu, to_host
from bwarp.gpu.workspace import device_array

__all__ = [
    "BLOCK",
    "DeviceBatch",
    "DeviceSequences",
    "blocks",
    "device_batch",
    "free_bytes",
    "reference_windows",
    "with_host_lengths",
]

#: Threads a block of every alignment kernel.
BLOCK = 128


@dataclass(frozen=True)
class DeviceSequences:
    """Sequences of one side: device arrays as in `Sequences`.

    Attributes
    ----------
    longest : int
        None is longer; 0 of none.
    given_lengths : ndarray, optional
        The lengths, where the host has them too.
    """

    codes: object
    starts: object
    lengths: object
    longest: int
    given_lengths: np.ndarray | None = None

    @property
    def count(self) -> int:
        return self.lengths.size

    @cached_property
    def host_lengths(self) -> np.ndarray:
        """The lengths on the host; brought there if need be."""
        return to_host([self.lengths])[0] if self.given_lengths is None else self.given_lengths

    @cached_property
    def is_even(self) -> bool:
        """Whether all are known to be as long as the longest."""
        lengths = self.given_lengths
        return lengths is not None and int(lengths.min(initial=self.longest)) == self.longest


def with_host_lengths(codes, starts, lengths, host_lengths: np.ndarray) -> DeviceSequences:
    """Sequences whose lengths the host has too."""
    return DeviceSequences(codes, starts, lengths, int(host_lengths.max(initial=0)), host_lengths)


@dataclass(frozen=True)
class DeviceBatch:
    """Pair i is query i with reference i."""

    queries: DeviceSequences
    references: DeviceSequences

    @property
    def arrays(self) -> tuple:
        """Codes, starts and lengths of queries, then of references, as kernels take them."""
        sides = self.queries, self.references
        return tuple(array for s in sides for array in (s.codes, s.starts, s.lengths))

    @property
    def count(self) -> int:
        return self.queries.count


def device_batch(pairs: PairBatch, threads: int = 1) -> DeviceBatch:
    """Bring a batch to the GPU; codes that are there already (device arrays) stay."""
    sides = [_in_use(side) for side in (pairs.queries, pairs.references)]
    arrays = [array for side in sides for array in (side.codes, side.starts, side.lengths)]
    brought = iter(to_gpu([a for a in arrays if not cuda.is_cuda_array(a)], threads))
    arrays = iter([a if cuda.is_cuda_array(a) else next(brought) for a in arrays])
    three = zip(arrays, arrays, arrays, strict=True)
    return DeviceBatch(
        *(with_host_lengths(*a, s.lengths) for a, s in zip(three, sides, strict=True))
    )


def _in_use(sequences: Sequences) -> Sequences:
    """The same sequences in contiguous arrays, without most of the codes that none of them uses."""
    codes = sequences.codes
    starts = np.ascontiguousarray(sequences.starts, np.int64)
    lengths = np.ascontiguousarray(sequences.lengths, np.int32)
    if not cuda.is_cuda_array(codes):
        if codes.size > lengths.size * int(lengths.max(initial=0)):
            # The codes may be a whole genome.
            low = int(starts.min(initial=0))
            codes = codes[low : int((starts + lengths).max(initial=0))]
            starts = starts - low
        codes = np.ascontiguousarray(codes)
    return Sequences(codes, starts, lengths)


def reference_windows(words, starts: np.ndarray, lengths: np.ndarray) -> Sequences:
    """Windows of a packed genome that stays on the GPU, as one side of a batch.

    Parameters
    ----------
    words : device array, dtype=uint64
        2 bits a base as `bwarp.sequence.pack` lays them out.
    starts : ndarray, shape=(count,), dtype=int64
        First base of each window, in the genome.
    lengths : ndarray, shape=(count,), dtype=int32
    """
    lengths = np.ascontiguousarray(lengths, np.int32)
    offsets = np.zeros(lengths.size, np.int64)
    np.cumsum(lengths[:-1], out=offsets[1:])
    codes = device_array(max(1, int(lengths.sum(dtype=np.int64))), np.uint8)
    if lengths.size:
        arguments = to_gpu([np.ascontiguousarray(a) for a in (starts, lengths, offsets)])
        unpack_windows[blocks(lengths.size, 32), BLOCK](words, *arguments, codes)
    return Sequences(codes, offsets, lengths)


@kernel
def unpack_windows(
    words: uint64[::1], starts: int64[::1], lengths: int32[::1], offsets: int64[::1],
    codes: uint8[::1],
):  # fmt: skip
    """One warp a window: each thread unpacks every 32nd base, one byte out of 8 read."""
    window = cuda.grid(1) // 32
    if window < starts.size:
        for i in range(cuda.laneid, lengths[window], 32):
            at = uint64(starts[window] + i)
            word = words[at >> uint64(5)]
            shift = uint64(62) - uint64(2) * (at & uint64(31))
            codes[offsets[window] + i] = (word >> shift) & uint64(3)


def blocks(items: int, threads_an_item: int = 1) -> int:
    """Blocks that give every item its threads."""
    return -(-items * threads_an_item // BLOCK)


def free_bytes() -> int:
    """Free memory of the GPU."""
    return cuda.current_context().get_memory_info().free
