"""BAM records on a GPU, and their way there and back."""

from dataclasses import dataclass

import numpy as np
from numba import cuda

from bwarp.gpu.pinned_memory import PinnedBuffer
from bwarp.io.bam.records import Records

__all__ = ["DeviceRecords", "records_on_gpu", "records_on_host"]


@dataclass(frozen=True)
class DeviceRecords:
    """Some BAM records on the current GPU, less than 4 GB.

    Attributes
    ----------
    data : device array, dtype=uint8
        Whole records, end to end.
    starts : device array, shape=(count + 1,), dtype=uint32
        Where each begins; the last is where they end.
    keys : device array, shape=(count,), dtype=uint64
        What they are sorted by (see `bwarp.io.bam.sort_order`).
    count, n_bytes : int
    """

    data: object
    starts: object
    keys: object
    count: int
    n_bytes: int


def records_on_gpu(records: Records) -> DeviceRecords:
    starts = records.starts - records.starts[0]
    return DeviceRecords(
        cuda.to_device(np.append(records.data, np.uint8(0))),
        cuda.to_device(starts.astype(np.uint32)),
        cuda.to_device(np.append(records.keys, np.uint64(0))),
        records.count,
        int(starts[-1]),
    )


def records_on_host(records: DeviceRecords, pinned: PinnedBuffer) -> Records:
    """The same on the host, in memory of their own; they come through pinned memory."""
    (data,) = pinned.arrays(max(1, records.n_bytes), [np.uint8])
    data = data[: records.n_bytes]
    if data.size:
        records.data[: data.size].copy_to_host(data)
    return Records(
        np.array(data),
        records.starts.copy_to_host().astype(np.int64),
        records.keys.copy_to_host()[: records.count],
    )
