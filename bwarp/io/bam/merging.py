"""Merging sorted streams of records: arrays of each are taken as far as all are known."""

from collections.abc import Iterator

import numpy as np

from bwarp.errors import InputError
from bwarp.io.bam.records import FIXED_BYTES, Records, get_int32, record_starts
from bwarp.io.bam.sort_order import NO_POSITION, sorted_order
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.timeline import on_timeline

__all__ = ["merged", "whole_records"]

_REVERSE = 16


def whole_records(path, blocks: Iterator[bytes], contig_starts: np.ndarray) -> Iterator[Records]:
    """The records of a sorted stream of bytes, which is cut anywhere; some at a time.

    Parameters
    ----------
    path : path-like
        What is read, to be named if it is damaged.
    blocks : iterator of bytes or of views of bytes
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
        Of the contigs that the header names, end to end.
    """
    rest = np.empty(0, np.uint8)
    for block in blocks:
        data = read_only(np.concatenate([rest, np.frombuffer(block, np.uint8)]))
        starts = record_starts(data)
        rest = data[starts[-1] :].copy()
        keys, damaged = _keys(data, starts, contig_starts)
        if damaged or (rest.size >= 4 and get_int32(data, starts[-1]) < FIXED_BYTES):
            raise InputError(f"{path}: a record in it is damaged: write the file again")
        if np.any(keys[1:] < keys[:-1]):
            raise InputError(f"{path}: its header says that it is sorted, and it is not: sort it")
        if keys.size:
            yield Records(data[: starts[-1]], starts, keys)
    if rest.size:
        raise InputError(f"{path}: the file ends within a record: write it again")


@compiled
def _keys(data, starts, contig_starts):
    """The keys (see `bwarp.io.bam.sort_order.sort_keys`), and whether a record contradicts
    itself."""
    keys = np.empty(starts.size - 1, np.uint64)
    for i in range(keys.size):
        at = starts[i] + 4
        contig = get_int32(data, at)
        position = get_int32(data, at + 4)
        operations = np.int64(data[at + 12]) | np.int64(data[at + 13]) << 8
        longer = FIXED_BYTES + np.int64(data[at + 8]) + 4 * operations > starts[i + 1] - at
        if longer or contig < -1 or contig >= contig_starts.size - 1:
            return keys, True
        keys[i] = NO_POSITION
        if contig >= 0:
            if position < 0 or position >= contig_starts[contig + 1] - contig_starts[contig]:
                return keys, True
            reverse = data[at + 14] & _REVERSE != 0
            keys[i] = (contig_starts[contig] + position) << 1 | reverse
    return keys, False


@on_timeline("merge sorted runs")
def merged(runs: list[Iterator[Records]], threads: int = 1) -> Iterator[tuple[Records, np.ndarray]]:
    """The records of sorted runs in batches, with the order within each.

    Among equal keys those of earlier runs come first. Of every run a window is in memory. The
    window that ends first says how far the merged order is known: up to its last key, and for runs
    before it including that key, of which their windows hold all.
    """
    windows = [(number, records) for number, run in enumerate(runs) if (records := next(run, None))]
    while windows:
        end, last = min((records.keys[-1], number) for number, records in windows)
        taken, left = [], []
        for number, records in windows:
            side = "right" if number <= last else "left"
            count = int(np.searchsorted(records.keys, end, side=side))
            taken.append(_part(records, 0, count))
            rest = _part(records, count, records.count)
            if not rest.count:
                rest = next(runs[number], None)
            if rest is not None:
                left.append((number, rest))
        windows = left
        records = _joined(taken, threads)
        yield records, sorted_order(records.keys)


def _part(records: Records, first: int, stop: int) -> Records:
    starts = records.starts[first : stop + 1]
    return Records(
        records.data[starts[0] : starts[-1]], starts - starts[0], records.keys[first:stop]
    )


def _joined(parts: list[Records], threads: int) -> Records:
    ends = np.cumsum([0] + [part.data.size for part in parts])
    starts = [part.starts[:-1] + end for part, end in zip(parts, ends, strict=False)]
    data = np.empty(ends[-1], np.uint8)

    def copy(first: int, last: int) -> None:
        for number in range(first, last):
            data[ends[number] : ends[number + 1]] = parts[number].data

    # New memory is given to a thread at a gigabyte a second.
    for_each_range(copy, len(parts), threads, smallest=1)
    return Records(
        data,
        np.concatenate([*starts, ends[-1:]]),
        np.concatenate([part.keys for part in parts]),
    )
