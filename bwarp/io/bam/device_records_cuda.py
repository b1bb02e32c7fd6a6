"""BAM records on a GPU, and their way there and back, and from one GPU to another."""

from dataclasses import dataclass

import numpy as np

from bwarp.gpu.cuda import cuda
from bwarp.gpu.pinned_memory import PinnedBuffer
from bwarp.gpu.several_gpus import copy_from_gpu
from bwarp.io.bam.records import Records

__all__ = ["DeviceRecords", "records_from_gpu", "records_on_gpu", "records_on_host"]


@dataclass(frozen=True)
class DeviceRecords:
    """Some BAM records on a GPU, less than 4 GB.

    Attributes
    ----------
    data : device array, dtype=uint8
        Whole records, end to end.
    starts : device array, shape=(count + 1,), dtype=uint32
        Where each begins; the last is where they end.
    keys : device array, shape=(count,), dtype=uint64
        What they are sorted by (see `bwarp.io.bam.sort_order`).
    count, n_bytes : int
    gpu : int
        Its number, as CUDA counts those that it shows.
    """

    data: object
    starts: object
    keys: object
    count: int
    n_bytes: int
    gpu: int


def records_on_gpu(records: Records) -> DeviceRecords:
    starts = records.starts - records.starts[0]
    return DeviceRecords(
        cuda.to_device(np.append(records.data, np.uint8(0))),
        cuda.to_device(starts.astype(np.uint32)),
        cuda.to_device(np.append(records.keys, np.uint64(0))),
        records.count,
        int(starts[-1]),
        cuda.get_current_device().id,
    )


def records_from_gpu(records: DeviceRecords) -> DeviceRecords:
    """The same on the current GPU, of records on another one."""
    arrays = (copy_from_gpu(a, records.gpu) for a in (records.data, records.starts, records.keys))
    return DeviceRecords(*arrays, records.count, records.n_bytes, cuda.get_current_device().id)


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
