"""Listing templates on the GPU, from which the host finds duplicates (`bwarp.bam.duplicates`).

    GPU     map group 1 | list 1 | map group 2 | list 2 | ... | sort       | mark | compress
    host                         | copy 1      | copy 2 | ... | find       |

A thread of the host copies the templates of a group while the next group is mapped, and finds the
duplicates while the GPU sorts all records.
"""

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from bwarp.bam.duplicate_rules import (
    NOT_PRIMARY,
    PAIR,
    SINGLE,
    UNMAPPED_READ,
    Grouping,
    Marks,
    read_template,
)
from bwarp.bam.duplicates import DuplicateMarker
from bwarp.bam.sorted_blocks_cuda import DeviceRecords, with_memory
from bwarp.bam.templates import Templates
from bwarp.gpu.cuda import cuda, int64, uint8, uint32, uint64
from bwarp.gpu.device_arrays import columns, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.sums_and_sorts import add_up
from bwarp.gpu.transfers import to_gpu, to_host
from bwarp.runtime.timeline import on_timeline


class DeviceDuplicates:
    """Lists the templates of records on the current GPU in a thread, and finds duplicates there.

    Parameters
    ----------
    marker : DuplicateMarker
        Receives the templates, in the order of the records.
    threads : int
        Threads of the host.
    """

    def __init__(self, marker: DuplicateMarker, threads: int):
        self._marker, self._threads = marker, threads
        self._grouping: Grouping | None = None
        self._pool = ThreadPoolExecutor(1, initializer=cuda.current_context().push)
        self._listing: Future | None = None

    def stop(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def add(self, records: DeviceRecords) -> None:
        """Start listing the templates of records, which must not change until the next call."""
        self.wait()
        self._listing = self._pool.submit(self._list, records)

    def wait(self) -> None:
        """Wait until the templates of all records are listed."""
        if self._listing is not None:
            self._listing.result()
            self._listing = None

    def find(self) -> Future:
        """Start finding the duplicates among all templates."""
        self.wait()
        return self._pool.submit(self._marker.find)

    @property
    def grouping(self) -> Grouping:
        """The grouping of the records, on the GPU."""
        if self._grouping is None:
            own = self._marker.grouping
            there = to_gpu([own.read_groups, own.libraries])
            self._grouping = own._replace(read_groups=there[0], libraries=there[1])
        return self._grouping

    def marks(self) -> Marks:
        """Return the names of duplicates on the GPU, after they are found."""
        own = self._marker.marks
        names, optical = with_memory(lambda _: to_gpu([own.names, own.optical], self._threads))
        return own._replace(names=names, optical=optical)

    @on_timeline("list templates")
    def _list(self, records: DeviceRecords) -> None:
        self._marker.extend(*with_memory(lambda _: self._listed(records)))

    def _listed(self, records: DeviceRecords) -> tuple[Templates, np.ndarray]:
        """Return the templates of records, and counts of others, as `DuplicateMarker.extend`."""
        rows = columns(Templates, records.count)
        offsets = zeros(records.count + 1, np.uint32)
        others = zeros(2 * (self.grouping.unknown_library + 1), np.int64)
        read_templates[launch(records.count)](
            records.data, records.starts, self.grouping, rows, offsets, others
        )
        count = add_up(offsets)
        templates = columns(Templates, count)
        gather_templates(rows, offsets, templates)
        found = Templates(*to_host(templates, self._threads))
        return found, others.copy_to_host().reshape(-1, 2)


@kernel(over="rows.names")
def read_templates(
    data: uint8[::1], starts: uint32[::1], grouping: Grouping, rows: Templates,
    defines: uint32[::1], others: int64[::1],
):  # fmt: skip
    """Read the templates of records. One thread per record; it reads the record once, and about
    half of the threads end after the fixed fields.

    `defines` is 1 for a record that defines a template. `others` counts unmapped records, and
    secondary or supplementary ones, of each library. Records of bwarp have all that is needed.
    """
    i = int64(cuda.grid(1))
    if i >= rows.names.size:
        return
    found = read_template(data, int64(starts[i]), grouping)
    if found.kind == SINGLE or found.kind == PAIR:
        defines[i] = 1
        rows.names[i] = found.name
        rows.groups[i] = found.group
        rows.first[i] = found.first
        rows.second[i] = found.second
        rows.scores[i] = found.score
        rows.positions[i] = found.positions
        rows.locations[i] = found.location
    elif found.kind == UNMAPPED_READ or found.kind == NOT_PRIMARY:
        column = 1 if found.kind == NOT_PRIMARY else 0
        cuda.atomic.add(others, 2 * int64(found.group >> uint64(32)) + column, int64(1))


@kernel(over="rows.names")
def gather_templates(rows: Templates, offsets: uint32[::1], templates: Templates):
    """Copy the rows that define a template to their offsets. One thread per row."""
    i = int64(cuda.grid(1))
    if i < rows.names.size and offsets[i] != offsets[i + 1]:
        target = int64(offsets[i])
        templates.names[target] = rows.names[i]
        templates.groups[target] = rows.groups[i]
        templates.first[target] = rows.first[i]
        templates.second[target] = rows.second[i]
        templates.scores[target] = rows.scores[i]
        templates.positions[target] = rows.positions[i]
        templates.locations[target] = rows.locations[i]
