"""The records of a file of reads, counted out: as many at a time as a chunk takes.

FASTQ and FASTA are read as they are. Of BAM and CRAM samtools makes lines, and those become FASTQ.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from bwarp.io.fastx_text import RecordText, cut_records
from bwarp.io.file_blocks import CHUNK_BYTES, read_blocks
from bwarp.mapping.reads.record_files import holds_records
from bwarp.mapping.reads.unaligned_records import read_unaligned
from bwarp.runtime.threads import read_ahead

__all__ = ["CountedRecords", "counted_records", "threads_that_read", "whole_pairs"]

#: Threads that read for up to sixteen that map: so many keep up with a GPU.
_READING = 4


@dataclass(frozen=True)
class CountedRecords:
    """The text of as many records as a chunk takes of a file, or of those that are left.

    Attributes
    ----------
    parts : list of RecordText
    failure : Exception, optional
        Why there is no more of the file: an error only after those of the records.
    """

    parts: list[RecordText]
    failure: Exception | None = None


def threads_that_read(threads: int) -> int:
    """Of so many threads those that make chunks; and of every file, if it is BGZF, inflate it."""
    return min(threads, max(_READING, threads // 4))


def counted_records(
    path, count: int, threads: int, with_groups: bool = False
) -> Iterator[CountedRecords]:
    """The records of a file, `count` at a time; those before a failure, and it, are the last.

    The comments of BAM and CRAM hold the read group as well, `with_groups`.
    """
    read = partial(read_unaligned, with_groups=with_groups)
    read = read if holds_records(path) else read_blocks
    blocks = read(path, _block_bytes(count), threads_that_read(threads))
    texts = cut_records(path, read_ahead(blocks))
    waiting: list[RecordText] = []
    n_waiting = 0
    while True:
        try:
            records = next(texts, None)
        except Exception as error:
            yield CountedRecords(waiting, error)
            return
        if records is None:
            break
        while n_waiting + records.count >= count:
            cut = count - n_waiting
            yield CountedRecords([*waiting, records.part(0, cut)])
            records = records.part(cut, records.count)
            waiting, n_waiting = [], 0
        if records.count:
            waiting.append(records)
            n_waiting += records.count
    if waiting:
        yield CountedRecords(waiting)


def _block_bytes(count: int) -> int:
    """Bytes of a file that are read at a time: about so many records, for some wait to be cut."""
    return min(CHUNK_BYTES, max(count << 9, 1 << 20))


def whole_pairs(counted: Iterator[CountedRecords]) -> Iterator[CountedRecords]:
    """The same records, with a read that may have its mate in what follows moved there."""
    moved: list[RecordText] = []
    for records in counted:
        parts = [*moved, *records.parts]
        moved = []
        if records.failure is None and parts and _is_odd(parts):
            last = parts.pop()
            if last.count > 1:
                parts.append(last.part(0, last.count - 1))
            moved = [last.part(last.count - 1, last.count)]
        if parts or records.failure is not None:
            yield CountedRecords(parts, records.failure)
    if moved:
        yield CountedRecords(moved)


def _is_odd(parts: list[RecordText]) -> bool:
    """Whether an odd number of records at the end have the same name."""
    names = (_name_in(part, i) for part in reversed(parts) for i in reversed(range(part.count)))
    last = next(names)
    return sum(1 for _ in takewhile(lambda name: name == last, names)) % 2 == 0


def _name_in(records: RecordText, record: int) -> bytes:
    start, stop = records.starts[record : record + 2]
    header = records.text[start:stop].tobytes().partition(b"\n")[0]
    return re.sub(rb"(?<=.)/[12]$", b"", re.split(rb"[ \t\r]", header[1:], maxsplit=1)[0])
