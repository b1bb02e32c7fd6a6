"""Counting the records of a sorted file while it is written, by any number of threads.

    records in order -> groups -> counts, in threads      any order
                               -> events, taken in order  -> histograms of depths

`bwarp.checks.check_files` writes the counts as the texts of samtools and mosdepth.
"""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.bam.header import BamHeader
from bwarp.bam.index import record_loci
from bwarp.checks.depth_histograms import ContigDepths, DepthHistograms
from bwarp.checks.record_counts import (
    DAMAGED,
    WITHOUT_MATE,
    Counts,
    add_counts,
    count_records,
    empty_counts,
    longest_read,
)
from bwarp.errors import InputError
from bwarp.runtime.compiled_code import read_only
from bwarp.runtime.timeline import on_timeline

#: Records of a group of `add`.
_RECORDS_A_GROUP = 1 << 13

#: Tables have room for a multiple of this many bases per read: 7 kB of memory per base and thread.
_CYCLES = 256


class Group(NamedTuple):
    """Counts of consecutive records that are not added to the tables: see `count_records`.

    Attributes
    ----------
    first : int
        Position of the first record, as in events; the end of all contigs if it has none.
    lengths : Counter
        Number of each item of `count_records`.
    coverage, depth : ndarray, dtype=int64
        Sorted events.
    """

    first: int
    lengths: Counter
    coverage: np.ndarray
    depth: np.ndarray


class CheckedRecords(NamedTuple):
    """Counts of all records of a file.

    Attributes
    ----------
    counts : Counts
    lengths : Counter
        Number of reads of each length, packed by `pack_length`.
    coverage : ndarray, dtype=int64
        Number of bases of the reference with each depth, by the rules of samtools stats.
    depths : list of ContigDepths
        The same by the rules of mosdepth, per contig.
    region_sums : ndarray, shape=(n_regions,), dtype=int64
        Sum of the depths of the bases of each region.
    """

    counts: Counts
    lengths: Counter
    coverage: np.ndarray
    depths: list[ContigDepths]
    region_sums: np.ndarray


class Checker:
    """Counts the records of a sorted file.

    Parameters
    ----------
    header : BamHeader
    path : str
        Name of the file in error messages.
    regions : sequence of (start, stop)
        Regions in positions of the concatenated contigs.
    threads : int
        Threads of `add`.
    """

    def __init__(
        self,
        header: BamHeader,
        path: str,
        regions: Sequence[tuple[int, int]] = (),
        threads: int = 1,
    ):
        self._path, self._threads = path, threads
        starts = header.contig_starts
        self._offsets = starts + np.arange(starts.size)
        contigs = np.searchsorted(starts, [start for start, _ in regions], side="right") - 1
        placed = [
            (start + contig, stop + contig)
            for (start, stop), contig in zip(regions, contigs.tolist(), strict=True)
        ]
        self._depth = DepthHistograms(self._offsets, placed)
        self._coverage = DepthHistograms(self._offsets)
        self._lengths: Counter = Counter()
        #: Tables that no thread uses at the moment.
        self._tables = [empty_counts(len(header.names), 0)]

    @on_timeline("count records")
    def count(self, data: np.ndarray, starts: np.ndarray) -> Group:
        """Count the records at `starts` (n) in `data`; any number of threads may call this.

        Raises
        ------
        InputError
            If a record is damaged, or mates may overlap but have no MC.
        """
        data = read_only(data)
        try:
            table = self._tables.pop()
        except IndexError:
            table = empty_counts(self._offsets.size - 1, 0)
        longest = longest_read(data, starts)
        if longest > table.bases.shape[1]:
            cycles = -(-int(longest) // _CYCLES) * _CYCLES
            table = add_counts(empty_counts(self._offsets.size - 1, cycles), table)
        lengths, coverage, depth, problem = count_records(data, starts, table, self._offsets)
        if problem == DAMAGED:
            raise InputError(f"{self._path}: a record is damaged: write the file again")
        if problem == WITHOUT_MATE:
            raise InputError(
                f"{self._path}: a pair has no tag MC, which --qc needs to count overlapping mates "
                "once: write the files with bwarp map"
            )
        self._tables.append(table)
        loci = record_loci(data, starts[:1])
        first = int(self._offsets[-1])
        if starts.size and loci.contigs[0] >= 0:
            first = int(self._offsets[loci.contigs[0]] + loci.firsts[0])
        items, numbers = np.unique(lengths, return_counts=True)
        coverage.sort()
        depth.sort()
        found = Counter(dict(zip(items.tolist(), numbers.tolist(), strict=True)))
        return Group(first, found, coverage, depth)

    def take(self, group: Group) -> None:
        """Add a group of records, in the order of the file."""
        self._lengths.update(group.lengths)
        self._coverage.add(group.coverage, group.first)
        self._depth.add(group.depth, group.first)

    def add(self, data: np.ndarray, starts: np.ndarray, order: np.ndarray | None = None) -> None:
        """Count the records at `starts` (n + 1) of `data`, in their own order or in `order`."""
        starts = starts[:-1] if order is None else starts[order]
        groups = [
            starts[at : at + _RECORDS_A_GROUP] for at in range(0, starts.size, _RECORDS_A_GROUP)
        ]
        with ThreadPoolExecutor(self._threads) as pool:
            # Groups are taken while the threads count others.
            for group in pool.map(partial(self.count, data), groups):
                self.take(group)

    def finish(self) -> CheckedRecords:
        """Return the counts of all records."""
        counts = self._tables[0]
        for table in self._tables[1:]:
            counts = add_counts(counts, table)
        contigs, _ = self._coverage.finish()
        coverage = np.zeros(max((c.bases.size for c in contigs), default=1), np.int64)
        for contig in contigs:
            coverage[: contig.bases.size] += contig.bases
        return CheckedRecords(counts, self._lengths, coverage, *self._depth.finish())
